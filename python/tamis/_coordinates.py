"""Coordinate (COO) views of tensors: conversion, linear indices, and construction in the format of an operand.

Functions that move elements, such as ``reshape`` and ``roll``, map coordinates here; index notation has no word for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _construct, _tamis
from ._config import current
from ._errors import Error, fail
from ._lazy_import import np
from ._shape_utils import Shape, format_levels, num_elements, check_size, is_strided, default_sparse_format
from ._trace import Tracer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor


def as_tensor(given: Any) -> Tensor:
    """Converts an operand to a tensor; refuses tracers."""
    if isinstance(given, _tamis.Tensor):
        return given  # type: ignore[return-value]
    if isinstance(given, Tracer):
        raise fail(
            "E0303",
            "this function moves elements, which `@tamis.jit` cannot trace",
            "call it outside the traced function",
            "elementwise functions, sums and other reductions, products, `transpose`, `expand_dims` and `squeeze` are traced",
        )
    return _construct.asarray(given)


def to_coordinates(tensor: Tensor) -> tuple[list[NDArray[np.int64]], NDArray[Any]]:
    """The coordinate array of each dimension and the stored values, in lexicographic order."""
    columns, values = tensor.coordinates()
    return [np.asarray(column, dtype=np.int64) for column in columns], values


def ravel_multi_index(columns: Sequence[NDArray[np.int64]], shape: Shape) -> NDArray[np.int64]:
    """Linear (row-major) indices of coordinates, as :func:`numpy.ravel_multi_index`."""
    if num_elements(shape) >= 1 << 63:
        by = " x ".join(map(str, shape))
        raise fail(
            "E0404", f"the elements of a {by} tensor cannot be counted in 64 bits", "slice it first, as in `t[:1000]`"
        )
    place = np.zeros(len(columns[0]) if columns else 1, dtype=np.int64)
    for column, n in zip(columns, shape):
        place = place * n + column
    return place


def unravel_index(place: NDArray[np.int64], shape: Shape) -> list[NDArray[np.int64]]:
    """Coordinates of linear (row-major) indices, as :func:`numpy.unravel_index`."""
    columns = []
    for n in reversed(shape):
        place, column = np.divmod(place, max(n, 1))
        columns.append(column)
    return columns[::-1]


def from_coordinates(like: Tensor, columns: Sequence[Any], values: NDArray[Any], shape: Shape, format: str | None = None) -> Tensor:
    """A tensor of new coordinates and values: in the format of ``like`` at equal rank, else in the default sparse format."""
    default = default_sparse_format(len(shape))
    if default == "csr" and 8 * shape[0] > current().dense_limit:
        default = "dcsr"  # An array of row positions would be larger than what is made unasked.
    wanted = format or (format_levels(like) if len(shape) == like.ndim and not is_strided(like) else default)
    plain_values = np.ascontiguousarray(values)
    columns = [np.ascontiguousarray(column) for column in columns]
    if not shape:
        value = plain_values[0] if len(plain_values) else like.fill_value
        return _construct.asarray(np.asarray(value, dtype=like.dtype))
    try:
        return _tamis.from_coordinates(columns, plain_values, list(shape), wanted, like.fill_value, "error")
    except Error:
        # Some formats restrict the sparsity pattern: one interval per fiber, blocks that divide the shape.
        if wanted == default:
            raise
        return _tamis.from_coordinates(columns, plain_values, list(shape), default, like.fill_value, "error")


def from_array(array: NDArray[Any]) -> Tensor:
    """A dense tensor that borrows an array which no other owner writes."""
    return _construct.asarray(array)


def apply_if_strided(what: str, tensor: Tensor, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Tensor | None:
    """Applies a NumPy function to a strided tensor, zero-copy where NumPy returns a view; ``None`` for sparse tensors."""
    return from_array(change(tensor._readable())) if is_strided(tensor) else None


def check_nnz(what: str, tensor: Tensor, shape: Shape, count: int) -> None:
    """Raises E0706 if ``count`` stored elements exceed the memory limit."""
    check_size(what, shape, count, tensor.dtype.itemsize + 8 * max(len(shape), 1))
