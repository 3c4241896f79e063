"""Tensors as lists of entries: for moves of coordinates, which index notation has no word for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _construct, _tamis
from ._errors import Error, fail
from ._lazy import np
from ._shapes import Shape, bare, cells, check_size, is_full, lists
from ._traced import Traced

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor


def plain(given: Any) -> Tensor:
    """A tensor for whatever was given."""
    if isinstance(given, _tamis.Tensor):
        return given  # type: ignore[return-value]
    if isinstance(given, Traced):
        raise fail(
            "E0303",
            "this function moves elements about, which `@tamis.jit` does not trace",
            "call it outside of the traced function",
            "elementwise functions, sums and other reductions, products, `transpose`, `expand_dims` and `squeeze` are traced",
        )
    return _construct.asarray(given)


def entries(tensor: Tensor) -> tuple[list[NDArray[np.int64]], NDArray[Any]]:
    """The coordinates of each dimension and the values of what is stored, sorted."""
    columns, values = tensor.coordinates()
    return [np.asarray(column, dtype=np.int64) for column in columns], values


def linear(columns: Sequence[NDArray[np.int64]], shape: Shape) -> NDArray[np.int64]:
    """One number for each coordinate, in row-major order."""
    if cells(shape) >= 1 << 63:
        by = " x ".join(map(str, shape))
        raise fail(
            "E0404", f"the elements of a {by} tensor cannot be counted in 64 bits", "take a part of it first, as in `t[:1000]`"
        )
    place = np.zeros(len(columns[0]) if columns else 1, dtype=np.int64)
    for column, n in zip(columns, shape):
        place = place * n + column
    return place


def unlinear(place: NDArray[np.int64], shape: Shape) -> list[NDArray[np.int64]]:
    """Coordinates of numbers in row-major order."""
    columns = []
    for n in reversed(shape):
        place, column = np.divmod(place, max(n, 1))
        columns.append(column)
    return columns[::-1]


def rebuilt(like: Tensor, columns: Sequence[Any], values: NDArray[Any], shape: Shape, format: str | None = None) -> Tensor:
    """A tensor of other entries, in the format of one that it was made of if the rank is the same, else in lists."""
    wanted = format or (bare(like) if len(shape) == like.ndim and not is_full(like) else lists(len(shape)))
    plain_values = np.ascontiguousarray(values)
    columns = [np.ascontiguousarray(column) for column in columns]
    if not shape:
        value = plain_values[0] if len(plain_values) else like.fill_value
        return _construct.asarray(np.asarray(value, dtype=like.dtype))
    try:
        return _tamis.from_coordinates(columns, plain_values, list(shape), wanted, like.fill_value, "error")
    except Error:
        # Some formats cannot hold every pattern: one run for each fiber, blocks that divide the shape.
        if wanted == lists(len(shape)):
            raise
        return _tamis.from_coordinates(columns, plain_values, list(shape), lists(len(shape)), like.fill_value, "error")


def from_array(array: NDArray[Any]) -> Tensor:
    """A dense tensor of an array that nobody else changes."""
    return _construct.asarray(array)


def on_dense(what: str, tensor: Tensor, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Tensor | None:
    """Dense tensors are moved by NumPy, as views where that is possible; ``None`` for the others."""
    return from_array(change(tensor.to_numpy())) if is_full(tensor) else None


def check_entries(what: str, tensor: Tensor, shape: Shape, count: int) -> None:
    """Refuses more entries than memory is allowed for."""
    check_size(what, shape, count, tensor.dtype.itemsize + 8 * max(len(shape), 1))
