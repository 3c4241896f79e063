"""Sparse arrays of other libraries: pydata/sparse, pandas, Arrow, JAX; taken by their arrays, never through a dense one.

None of these libraries is imported: an object of one exists only where that library was.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from ._construct import from_coordinates, same_number
from ._errors import fail
from ._interop import _finish, _from_compressed, from_scipy
from ._lazy_import import np

if TYPE_CHECKING:
    from ._tensor import Tensor


def from_foreign(data: Any, format: str | None, fill: Any, dtype: Any, borrow: bool) -> Tensor | None:
    """A tensor of a sparse array of another library; ``None`` if it is none.

    >>> from tamis._foreign import from_foreign
    >>> from_foreign([1, 2], None, None, None, False) is None
    True
    """
    library = type(data).__module__.split(".")[0]
    if library == "sparse" and hasattr(data, "fill_value") and hasattr(data, "nnz"):
        return _from_pydata(data, format, fill, dtype, borrow)
    if library == "pandas" and hasattr(data, "sparse"):
        return from_scipy(data.sparse.to_coo(), format, fill, dtype, borrow) if _is_sparse_frame(data) else None
    if library == "pyarrow" and type(data).__name__.startswith("Sparse"):
        return _from_arrow(data, format, fill, dtype, borrow)
    if library in ("jax", "jaxlib") and hasattr(data, "indices") and hasattr(data, "n_dense"):
        if data.n_dense or data.n_batch:
            raise fail("E0601", "batch and dense dimensions of JAX are not supported", "convert it: `x.todense()`")
        coords = np.asarray(data.indices)
        inside = np.all(coords < np.asarray(data.shape), axis=1)  # Padding lies outside.
        made = from_coordinates(coords[inside].T, np.asarray(data.data)[inside], data.shape, None, None, dtype, "sum")
        return _finish(made, format, fill)
    return None


class _Compressed:
    """Arrays of a compressed matrix by SciPy's names."""

    def __init__(self, shape: tuple[int, ...], indptr: Any, indices: Any, data: Any) -> None:
        self.shape, self.indptr, self.indices, self.data = shape, indptr, indices, data


def _is_sparse_frame(frame: Any) -> bool:
    pandas = sys.modules["pandas"]
    return hasattr(frame, "dtypes") and hasattr(frame, "columns") and all(isinstance(d, pandas.SparseDtype) for d in frame.dtypes)


def _from_pydata(data: Any, format: str | None, fill: Any, dtype: Any, borrow: bool) -> Tensor:
    number = np.asarray(data.fill_value)[()]
    if fill is not None and not same_number(fill, number):
        raise fail("E0709", f"the fill value of the array is {number}, not {fill}", "leave `fill` out")
    kind = type(data).__name__
    if kind == "GCXS" and data.ndim == 2 and number == 0:
        by_rows = tuple(data.compressed_axes) == (0,)
        view = _Compressed(tuple(data.shape), data.indptr, data.indices, data.data)
        made = _from_compressed(view, "csr" if by_rows else "csc", dtype, borrow)
        return made if format is None else made.convert(format)
    if not hasattr(data, "coords"):
        data = data.tocoo() if hasattr(data, "tocoo") else data.to_coo()
    if not data.ndim:
        raise fail("E0401", "a sparse array without dimensions is not supported", "give its number: `x.todense()[()]`")
    name = format or {1: "sparse", 2: "coo"}.get(data.ndim, "csf")
    return from_coordinates(data.coords, data.data, data.shape, name, number, dtype, "sum")


def _from_arrow(data: Any, format: str | None, fill: Any, dtype: Any, borrow: bool) -> Tensor:
    kind = type(data).__name__
    if kind == "SparseCOOTensor":
        values, coords = data.to_numpy()
        made = from_coordinates(coords.T, values.reshape(-1), data.shape, None, None, dtype, "sum")
    elif kind in ("SparseCSRMatrix", "SparseCSCMatrix"):
        values, positions, coordinates = data.to_numpy()
        view = _Compressed(tuple(data.shape), positions.reshape(-1), coordinates.reshape(-1), values.reshape(-1))
        made = _from_compressed(view, "csr" if kind == "SparseCSRMatrix" else "csc", dtype, borrow)
    else:
        raise fail("E0601", f"`{kind}` is not supported", "`SparseCOOTensor`, `SparseCSRMatrix` and `SparseCSCMatrix` are")
    return _finish(made, format, fill)


def to_pydata(tensor: Tensor) -> Any:
    """See :meth:`Tensor.to_pydata`."""
    import sparse

    coords, values = tensor.to_coo()
    return sparse.COO(coords, values, shape=tensor.shape, fill_value=tensor.fill_value, has_duplicates=False, sorted=True)


def to_arrow(tensor: Tensor) -> Any:
    """See :meth:`Tensor.to_arrow`."""
    import pyarrow

    from ._interop import _zero_fill

    _zero_fill(tensor, "Arrow")
    coords, values = tensor.to_coo()
    return pyarrow.SparseCOOTensor.from_numpy(values, np.ascontiguousarray(coords.T), shape=list(tensor.shape))
