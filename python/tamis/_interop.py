"""SciPy interoperability: conversion of sparse arrays in both directions. Imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _tamis
from ._construct import from_coordinates, from_numpy, same_number
from ._errors import Error, fail
from ._lazy_import import np
from ._tensor import Tensor, contiguous, dtype_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The largest number that SciPy's usual index type holds.
_INT32 = 2**31 - 1


def _plain(array: Any, dtype: Any = None) -> NDArray[Any]:
    return contiguous(array, dtype=dtype_of(array.dtype) if dtype is None else dtype)


def _finish(made: Tensor, format: str | None, fill: Any) -> Tensor:
    if fill is not None and not same_number(fill, made.fill_value):
        raise fail(
            "E0709",
            f"the fill value of a sparse array is 0, not {fill}",
            "leave `fill` out, or give a dense array",
        )
    return made if format is None else made.convert(format)


def from_scipy(data: Any, format: str | None, fill: Any, dtype: Any, borrow: bool) -> Tensor:
    """Any of SciPy's formats, as SciPy means it: entries with equal coordinates are summed, unsorted ones sorted."""
    kind = data.format
    if kind == "lil" or kind == "dok" or kind == "dia":
        data, kind = (data.tocsr(), "csr") if data.ndim == 2 else (data.tocoo(), "coo")
    made: Tensor
    if kind == "coo" or data.ndim != 2:
        made = _from_coo(data.tocoo(), dtype, borrow)
    elif kind in ("csr", "csc", "bsr"):
        made = _from_compressed(data, kind, dtype, borrow)
    else:
        raise fail("E0601", f"`{kind}` is not a supported format of SciPy", "convert it first: `A.tocsr()`")
    return _finish(made, format, fill)


def _from_compressed(data: Any, kind: str, dtype: Any, borrow: bool) -> Tensor:
    shape = [int(n) for n in data.shape]
    name = kind
    # SciPy's arrays may be longer than what counts.
    indptr = np.asarray(data.indptr)
    count = int(indptr[-1]) if indptr.size else 0
    indices, values = np.asarray(data.indices)[:count], np.asarray(data.data)[:count]
    if kind == "bsr":
        rows, columns = (int(n) for n in data.blocksize)
        name = f"bsr({rows},{columns})"
    array = _plain(values, dtype)
    shared = borrow and np.may_share_memory(array, values)
    level = {"pos": _plain(indptr), "crd": _plain(indices)}
    levels: list[dict[str, Any]] = [{}, level] if kind != "bsr" else [{}, level, {}, {}]
    try:
        return _tamis.from_parts(shape, name, levels, array.reshape(-1), 0, shared)
    except Error as error:
        if error.code != "E0704":
            raise
    # Unsorted rows or duplicates: conversion through coordinates sorts and sums them. The positions were validated before.
    major = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    if kind == "bsr":
        blocks = array.reshape(-1, rows, columns)
        i = (major * rows)[:, None, None] + np.arange(rows)[None, :, None] + np.zeros((1, 1, columns), dtype=np.int64)
        j = (indices * columns)[:, None, None] + np.arange(columns)[None, None, :] + np.zeros((1, rows, 1), dtype=np.int64)
        coords = [i.reshape(-1), j.reshape(-1)]
        return from_coordinates(coords, blocks.reshape(-1), shape, name, None, None, "sum")
    coords = [major, indices] if kind == "csr" else [indices, major]
    return from_coordinates(coords, array, shape, name, None, None, "sum")


def _from_coo(data: Any, dtype: Any, borrow: bool) -> Tensor:
    coords = data.coords if hasattr(data, "coords") else (data.row, data.col)
    shape = [int(n) for n in data.shape]
    values = np.asarray(data.data)
    array = _plain(values, dtype)
    shared = borrow and np.may_share_memory(array, values)
    columns = [_plain(column) for column in coords]
    if len(shape) > 0 and shared:
        levels: list[dict[str, Any]] = [{"crd": column} for column in columns]
        levels[0]["pos"] = np.array([0, len(array)], dtype=np.int64)
        try:
            return _tamis.from_parts(shape, "coo", levels, array, 0, True)
        except Error as error:
            if error.code != "E0704":
                raise
    return from_coordinates(columns, array, shape, "coo", None, None, "sum")


def _zero_fill(tensor: Tensor, where: str) -> None:
    if not same_number(tensor.fill_value, tensor.dtype.type(0)):
        raise fail(
            "E0709",
            f"the fill value is 0 in {where}, but {tensor.fill_value} in this tensor",
            "export it as coordinates, `t.to_coo()`, or as a dense array, `t.to_numpy()`",
        )


def _signed(array: NDArray[Any], largest: int, copy: bool) -> NDArray[Any]:
    """Positions or coordinates in the types that SciPy and PyTorch index with."""
    wanted = np.int32 if largest <= _INT32 else np.int64
    if not copy and array.dtype.itemsize == np.dtype(wanted).itemsize:
        return array.view(wanted)  # No number has its highest bit set.
    return array.astype(wanted)


def _kind(tensor: Tensor) -> str:
    """The format's name up to the leaf and the arguments."""
    return tensor.format.split(";")[0].split("(")[0].strip()


def _valued(tensor: Tensor) -> Tensor:
    """A pattern is given its values."""
    return tensor.convert(tensor.format.split(";")[0]) if tensor.is_pattern else tensor


def _parts(tensor: Tensor, copy: bool) -> tuple[str, NDArray[Any], NDArray[Any], NDArray[Any]]:
    """A matrix in CSR, CSC or BSR: its kind, positions, coordinates and values."""
    kind = _kind(tensor)
    level = tensor.level_arrays(1)
    values = tensor.values
    assert values is not None
    largest = max(*tensor.shape, len(values))
    pos, crd = _signed(level["pos"], largest, copy), _signed(level["crd"], largest, copy)
    return kind, pos, crd, values.copy() if copy else values


def _block(tensor: Tensor) -> tuple[int, int]:
    rows, columns = tensor.format.split("(")[1].split(")")[0].split(",")
    return int(rows), int(columns)


def _as_matrix(tensor: Tensor) -> Tensor:
    """In a format that SciPy and PyTorch have, too: CSR, CSC, COO, or BSR whose blocks cover the matrix."""
    kind = _kind(tensor)
    if kind == "bsr":
        rows, columns = _block(tensor)
        if tensor.shape[0] % rows == 0 and tensor.shape[1] % columns == 0:
            return _valued(tensor)
    if kind in ("csr", "csc", "coo"):
        return _valued(tensor)
    return _valued(tensor).convert("csr")


def to_scipy(tensor: Tensor, copy: bool) -> Any:
    """See :meth:`Tensor.to_scipy`."""
    from scipy import sparse

    _zero_fill(tensor, "SciPy")
    if tensor.ndim == 0:
        raise fail("E0401", "SciPy has no sparse arrays without dimensions", "`t.item()` gives the number")
    if tensor.ndim != 2:
        coords, values = tensor.to_coo()
        try:
            made = sparse.coo_array((values, tuple(coords)), shape=tensor.shape)
        except (ValueError, TypeError) as error:
            raise fail(
                "E0707",
                f"this version of SciPy has no sparse arrays of {tensor.ndim} dimensions: {error}",
                "`t.to_coo()` gives coordinates and values",
                "install SciPy 1.15 or later",
            ) from None
        made.has_canonical_format = True
        return made
    tensor = _as_matrix(tensor)
    if _kind(tensor) == "coo":
        stored = tensor.values
        assert stored is not None
        largest = max(*tensor.shape, len(stored))
        row, column = (_signed(tensor.level_arrays(k)["crd"], largest, copy) for k in range(2))
        made = sparse.coo_array((stored.copy() if copy else stored, (row, column)), shape=tensor.shape)
        made.has_canonical_format = True
        return made
    kind, pos, crd, values = _parts(tensor, copy)
    if kind == "bsr":
        blocks = values.reshape(-1, *_block(tensor))
        made = sparse.bsr_array((blocks, crd, pos), shape=tensor.shape)
    else:
        made = {"csr": sparse.csr_array, "csc": sparse.csc_array}[kind]((values, crd, pos), shape=tensor.shape)
    made.has_sorted_indices = True
    made.has_canonical_format = True
    return made
