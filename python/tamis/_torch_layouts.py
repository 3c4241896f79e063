"""Sparse layouts of PyTorch as patterns with values, and back, both differentiable; and sparse tensors of any other format.

The pattern of a sparse tensor of PyTorch is checked once: it is memoised on the tensor, for as long as its indices do not change.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from . import _construct, _interop, _torch
from ._errors import fail
from ._lazy_import import np

if TYPE_CHECKING:
    from ._pattern import Pattern
    from ._tensor import Tensor

#: The types of 16 bits are stored as such, and computed in 32 bits.
HALF = (torch.float16, torch.bfloat16)

_ROWS = (torch.sparse_csr, torch.sparse_bsr)
_COLUMNS = (torch.sparse_csc, torch.sparse_bsc)


def _indices(data: Any) -> tuple[Any, ...]:
    """The index tensors of a sparse tensor of PyTorch."""
    if data.layout == torch.sparse_coo:
        return (data._indices(),)
    if data.layout in _ROWS:
        return data.crow_indices(), data.col_indices()
    return data.ccol_indices(), data.row_indices()


def _raw_values(data: Any) -> Any:
    return data._values() if data.layout == torch.sparse_coo else data.values()


def _rebuilt(layout: Any, indices: tuple[Any, ...], values: Any, shape: Any) -> Any:
    """A sparse tensor of PyTorch with known indices."""
    if layout == torch.sparse_coo:
        return torch.sparse_coo_tensor(indices[0], values, shape, is_coalesced=True, check_invariants=False)
    return torch.sparse_compressed_tensor(*indices, values, shape, layout=layout, check_invariants=False)


class _Values(torch.autograd.Function):  # type: ignore[misc]
    """The values of a sparse tensor; unlike PyTorch's own, with gradients of every order."""

    @staticmethod
    def forward(ctx: Any, data: Any) -> Any:
        ctx.like = data.layout, _indices(data), tuple(data.shape)
        return _raw_values(data).clone()

    @staticmethod
    def backward(ctx: Any, above: Any) -> Any:
        return _Made.apply(above, *ctx.like)


class _Made(torch.autograd.Function):  # type: ignore[misc]
    """A sparse tensor of values and indices."""

    @staticmethod
    def forward(ctx: Any, values: Any, layout: Any, indices: tuple[Any, ...], shape: Any) -> Any:
        ctx.like = layout, indices, shape
        return _rebuilt(layout, indices, values.detach(), shape)

    @staticmethod
    def backward(ctx: Any, above: Any) -> Any:
        layout, indices, shape = ctx.like
        if above.layout == torch.sparse_coo:
            above = above.coalesce()
        if above.layout == layout and all(torch.equal(a, b) for a, b in zip(_indices(above), indices)):
            return _Values.apply(above), None, None, None
        dense = above if above.layout == torch.strided else above.to_dense()
        return _at_coordinates(dense, layout, indices, shape), None, None, None


def _at_coordinates(dense: Any, layout: Any, indices: tuple[Any, ...], shape: Any) -> Any:
    """The elements of a strided gradient where a sparse tensor stores some."""
    if layout == torch.sparse_coo:
        return dense[tuple(indices[0])]
    count = indices[1].shape[-1]
    ones = torch.arange(count, dtype=torch.float64)
    if len(shape) == 2 and layout in (torch.sparse_csr, torch.sparse_csc):
        coordinates = _rebuilt(layout, indices, ones, shape).to_sparse_coo().coalesce()
        order = coordinates.values().long()
        rows, columns = (torch.empty_like(order).scatter_(0, order, c) for c in coordinates.indices())
        return dense[rows, columns]
    raise fail("E0710", f"a strided gradient of the layout {layout} is not supported", "use CSR, CSC or COO")


def layout_of(data: Any) -> tuple[Any, Any]:
    """The pattern of a sparse tensor of PyTorch, and its values, in one dimension, which PyTorch records; no pattern if the values
    would have to be sorted or summed, or no gradient is wanted."""
    if data.layout == torch.sparse_coo and not data.is_coalesced():
        data = data.coalesce()
    indices = _indices(data)
    state = tuple(i._version for i in indices)
    known = getattr(data, "_tamis_pattern", None)
    if known is None or known[0] != state:
        with torch.no_grad():
            made = _torch.from_torch(data, None, None, None, True)
        values = made.values
        raw = _torch._values(_raw_values(data.detach()))
        same = values is not None and len(values) == raw.size and (not raw.size or np.array_equal(values, raw.reshape(-1), equal_nan=raw.dtype.kind in "fc"))
        ordered = same and (np.may_share_memory(values, raw) or _is_ordered(data, made))
        known = (state, made.sparsity_pattern() if ordered else None)
        data._tamis_pattern = known
    if known[1] is None:
        if data.requires_grad and torch.is_grad_enabled():
            raise fail(
                "E0710",
                f"a gradient of a PyTorch tensor of the layout {data.layout} whose indices are not sorted cannot be given back",
                "sort them, as in `x.to_sparse_coo().coalesce().to_sparse_csr()`",
                "use the layouts CSR, CSC, BSR or COO",
            )
        return None, None
    values = _Values.apply(data) if data.requires_grad and torch.is_grad_enabled() else _raw_values(data.detach())
    return known[1], values.reshape(-1)


def _is_ordered(data: Any, made: Any) -> bool:
    """Whether the storage order of a tensor is that of PyTorch's; it is if coordinates and numbers in place of values agree."""
    raw = _raw_values(data.detach())
    marked = torch.arange(1, raw.numel() + 1, dtype=torch.int64).reshape(raw.shape)
    again = _torch.from_torch(_rebuilt(data.layout, _indices(data), marked, tuple(data.shape)), None, None, None, True)
    return again.values is not None and bool(np.array_equal(again.values, marked.reshape(-1).numpy())) and again.format == made.format


def tensor_of_layout(pattern: Any, values: Any, fill: Any) -> Any:
    """A sparse tensor of PyTorch of values on a pattern; PyTorch records it."""
    # Positions in the values, counted from 1, in place of the values: conversions permute them, and pad with 0.
    made = pattern.with_values(_construct.asarray(np.arange(1, len(values) + 1, dtype=np.int64)), 0)
    if not _construct.same_number(fill, 0):
        _interop._zero_fill(pattern.with_values(_construct.asarray(_torch._values(values.detach())), fill), "PyTorch")
    shape = tuple(made.shape)
    matrix = _interop._as_matrix(made) if made.ndim == 2 else made
    kind = _interop._kind(matrix) if made.ndim == 2 else "coo"
    indices: tuple[Any, ...]
    if kind == "coo":
        coords, order = matrix.to_coo()
        layout, indices = torch.sparse_coo, (torch.from_numpy(np.ascontiguousarray(coords, dtype=np.int64)),)
    else:
        kind, pos, crd, order = _interop._parts(matrix, True)
        layout = {"csr": torch.sparse_csr, "csc": torch.sparse_csc, "bsr": torch.sparse_bsr}[kind]
        indices = (torch.from_numpy(pos), torch.from_numpy(crd))
    if len(order) != len(values) or not np.array_equal(order, made.values):
        padded = torch.cat([values, values.new_zeros(1)]) if len(order) and not order.min() else values
        values = padded[torch.from_numpy(order - 1)]
    if kind == "bsr":
        values = values.reshape(-1, *_interop._block(matrix))
    if values.requires_grad and torch.is_grad_enabled():
        result = _Made.apply(values, layout, indices, shape)
    else:
        result = _rebuilt(layout, indices, values, shape)
    return result


def sparse_tensor(pattern: Pattern, values: Any, fill: Any) -> SparseTensor:
    """See :meth:`tamis.Pattern.with_values`."""
    if not _construct.same_number(fill, 0):
        raise fail("E0709", f"the fill value of PyTorch's values is 0, not {fill}", "leave `fill_value` out")
    made = SparseTensor(pattern, values)
    made.detach().to_tensor()  # There is a value for each stored element.
    return made


class SparseTensor:
    """A sparse tensor whose values are a PyTorch tensor: a sparsity pattern, and the values that it stores, which are differentiable.

    Made by ``pattern.with_values(values)`` of PyTorch values. It is an operand of everything that takes PyTorch tensors, and the sparse
    result of what has such an operand.
    """

    def __init__(self, pattern: Pattern, values: Any) -> None:
        if values.dim() != 1:
            raise fail("E0701", f"values have one dimension, not {values.dim()}", "write `values.reshape(-1)`")
        self.pattern, self.values = pattern, values

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self.pattern.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.pattern.ndim

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return self.pattern.nnz

    @property
    def dtype(self) -> Any:
        """The type of the values, of PyTorch's."""
        return self.values.dtype

    @property
    def format(self) -> str:
        """How it is stored."""
        return self.pattern.format

    @property
    def requires_grad(self) -> bool:
        """Whether PyTorch records what is computed from the values."""
        return bool(self.values.requires_grad)

    def detach(self) -> SparseTensor:
        """The same without gradients."""
        return SparseTensor(self.pattern, self.values.detach())

    def to_tensor(self) -> Tensor:
        """A tensor that shares the values; refused if they require a gradient."""
        wide = self.values.float() if self.values.dtype in HALF else self.values
        made: Tensor = self.pattern.with_values(_construct.asarray(wide))
        return made

    def to_torch(self) -> Any:
        """A sparse tensor of PyTorch, in CSR, CSC, BSR or COO."""
        return tensor_of_layout(self.pattern.as_tensor(), self.values, 0)

    def __matmul__(self, other: Any) -> Any:
        from ._linalg import matmul

        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        from ._linalg import matmul

        return matmul(other, self)

    def __repr__(self) -> str:
        size = "x".join(map(str, self.shape))
        return f"<tamis.torch.SparseTensor {size} {self.dtype} {self.format}, {self.nnz} stored>"
