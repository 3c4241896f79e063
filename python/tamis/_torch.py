"""PyTorch interoperability: conversion of strided and sparse tensors, both ways. Imported on first use.

Every layout comes in with its own levels: batch dimensions are dense levels above a compressed matrix, dense dimensions are
dense levels below it. Conversion records no derivatives, so a tensor that requires a gradient is refused: what differentiates is in
`_torch_autograd`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _tamis
from ._construct import from_coordinates, from_numpy
from ._errors import Error, fail
from ._interop import _as_matrix, _block, _finish, _from_compressed, _kind, _parts, _plain, _zero_fill
from ._lazy_import import np
from ._tensor import Tensor

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _requires_gradient(data: Any, torch: Any) -> bool:
    """Whether PyTorch would record what is computed from this tensor, in reverse or in forward mode."""
    if data.requires_grad:
        # Where recording is off, as in `torch.no_grad()` and in `autograd.Function.forward`, no gradient is lost.
        return bool(torch.is_grad_enabled())
    try:
        return torch.autograd.forward_ad.unpack_dual(data).tangent is not None
    except (AttributeError, RuntimeError, NotImplementedError):
        return False


def refuse_gradient(data: Any) -> None:
    """Raises E0710 if a gradient is required of ``data``, or of a tensor in nested lists and tuples."""
    torch: Any = sys.modules["torch"]
    if isinstance(data, (list, tuple)):
        for part in data:
            if isinstance(part, (list, tuple, torch.Tensor)):
                refuse_gradient(part)
    elif isinstance(data, torch.Tensor) and _requires_gradient(data, torch):
        raise fail(
            "E0710",
            f"a PyTorch tensor of shape {tuple(data.shape)} requires a gradient, which would be lost here",
            "write `x.detach()` if no gradient is needed",
            "compute inside `with torch.no_grad():`, where PyTorch records nothing either",
            "operands of `tamis.einsum`, of operators, and arguments of `tamis.jit` functions and kernels have derivatives: pass it there",
        )


def from_torch(data: Any, format: str | None, fill: Any, dtype: Any, borrow: bool) -> Tensor:
    """A PyTorch tensor: strided, COO, CSR, CSC, BSR or BSC, the sparse ones with batch and dense dimensions, too."""
    import torch

    refuse_gradient(data)
    data = _on_cpu(data.detach())
    if data.layout == torch.strided:
        return from_numpy(_values(data), format, fill, dtype, borrow)
    if data.layout == torch.sparse_coo:
        return _finish(_from_coo(_read(data.coalesce), dtype, borrow), format, fill)
    if data.layout in (torch.sparse_csr, torch.sparse_bsr):
        pos, crd = data.crow_indices(), data.col_indices()
    elif data.layout in (torch.sparse_csc, torch.sparse_bsc):
        pos, crd = data.ccol_indices(), data.row_indices()
    else:
        raise fail(
            "E0601",
            f"`{data.layout}` is not a supported layout",
            "convert it first: `x.to_dense()` or `x.to_sparse_csr()`",
        )
    by_columns = data.layout in (torch.sparse_csc, torch.sparse_bsc)
    blocked = data.layout in (torch.sparse_bsr, torch.sparse_bsc)
    positions, coordinates, values = _values(pos), _values(crd), _values(data.values())
    if data.dim() == 2 and not (blocked and by_columns):
        view = _Compressed(tuple(data.shape), positions, coordinates, values)
        kind = "bsr" if blocked else "csc" if by_columns else "csr"
        return _finish(_from_compressed(view, kind, dtype, borrow), format, fill)
    made = _from_batches(tuple(data.shape), positions, coordinates, values, by_columns, blocked, dtype, borrow)
    if data.dim() == 2 and format is None:
        format = "csc"
    return _finish(made, format, fill)


def _on_cpu(data: Any) -> Any:
    if data.device.type == "meta":
        raise fail(
            "E0709",
            f"a meta tensor of shape {tuple(data.shape)} has no values to compute with",
            "give it values first: `torch.zeros_like(x, device='cpu')`",
        )
    if getattr(data, "is_nested", False):
        raise fail(
            "E0707",
            "a nested tensor has rows of several lengths",
            "convert it first: `x.to_padded_tensor(0)`",
            "a `band` level stores such rows: `tamis.tensor((coords, values, shape), 'dense, band')`",
        )
    if data.is_quantized:
        raise fail("E0308", f"`{data.dtype}` is not a value type", "convert it first: `x.dequantize()`")
    return data if data.device.type == "cpu" else _read(data.cpu)


def _read(read: Callable[[], Any]) -> Any:
    """Calls into PyTorch; its exceptions (fake, batched and other tensors without memory) become diagnostics."""
    try:
        return read()
    except (RuntimeError, NotImplementedError, ValueError, TypeError) as error:
        if isinstance(error, Error):
            raise
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise fail(
            "E0709",
            f"the values of this PyTorch tensor cannot be read: {reason}",
            "give a tensor on the CPU, outside `torch.vmap`, `torch.compile` and other transformations",
        ) from None


def _values(data: Any) -> NDArray[Any]:
    try:
        return np.asarray(_read(lambda: data.resolve_conj().resolve_neg().numpy()))
    except Error as error:
        if "ScalarType" not in error.message and "dtype" not in error.message:
            raise
        raise fail("E0308", f"`{data.dtype}` is not a value type", "convert it first: `x.float()`") from None


def _from_coo(data: Any, dtype: Any, borrow: bool) -> Tensor:
    """Coordinates of the sparse dimensions; the dense ones are levels below each entry."""
    coords, values = _values(data.indices()), _values(data.values())
    shape = list(data.shape)
    sparse = int(data.sparse_dim())
    if sparse == len(shape):
        return from_coordinates(list(coords), values, shape, "coo", None, dtype, "sum")
    array = _plain(values, dtype)
    shared = borrow and np.may_share_memory(array, values)
    if not sparse:
        # At most one entry, which is the whole tensor.
        whole = array.sum(axis=0, dtype=array.dtype)
        return from_numpy(np.asarray(whole), None, None, None, False)
    format = ", ".join([*_coordinate_levels(sparse), *["dense"] * (len(shape) - sparse)])
    levels: list[dict[str, Any]] = [{"crd": _plain(row)} for row in coords]
    levels[0]["pos"] = np.array([0, len(array)], dtype=np.int64)
    levels += [{} for _ in range(len(shape) - sparse)]
    return _tamis.from_parts(shape, format, levels, array.reshape(-1), 0, shared)


def _coordinate_levels(rank: int) -> list[str]:
    if rank == 1:
        return ["sparse"]
    return ["sparse(nonunique)", *["singleton"] * (rank - 1)]


def _from_batches(
    shape: tuple[int, ...],
    pos: NDArray[Any],
    crd: NDArray[Any],
    values: NDArray[Any],
    by_columns: bool,
    blocked: bool,
    dtype: Any,
    borrow: bool,
) -> Tensor:
    """Compressed matrices, one for each batch, whose entries are blocks and have dense dimensions."""
    batch = pos.shape[:-1]
    first = len(batch)
    dense = shape[first + 2 :]
    count = crd.shape[-1]
    entries = int(np.prod(batch, dtype=np.int64)) * count
    array = _plain(values.reshape((entries, *values.shape[first + 1 :])), dtype)
    shared = borrow and np.may_share_memory(array, values)
    # Every batch holds as many entries, so its positions begin where those of the ones before it end.
    starts = np.arange(int(np.prod(batch, dtype=np.int64)), dtype=np.int64) * count
    ends = pos.reshape(len(starts), -1)
    if count and (np.any(ends[:, 0] != 0) or np.any(ends[:, -1] != count)):
        raise fail("E0702", "the positions of a batch must start at 0 and end at its nnz", "check the tensor's invariants")
    flat = np.append((ends[:, :-1].astype(np.int64) + starts[:, None]).reshape(-1), entries)
    indices = _plain(crd.reshape(-1))
    block = array.shape[1:3] if blocked else (1, 1)
    format = _batched_format(first, len(dense), by_columns, block if blocked else None)
    levels: list[dict[str, Any]] = [{} for _ in range(first + 1)]
    levels += [{"pos": flat, "crd": indices}]
    levels += [{} for _ in range(len(dense) + (2 if blocked else 0))]
    try:
        return _tamis.from_parts(list(shape), format, levels, array.reshape(-1), 0, shared)
    except Error as error:
        if error.code != "E0704":
            raise
    # Unsorted rows or duplicates: conversion through coordinates sorts and sums them.
    lines = ends.shape[1] - 1
    line = np.repeat(np.arange(len(flat) - 1), np.diff(flat))
    outer, major = np.divmod(line, max(lines, 1))
    columns: list[Any] = list(np.unravel_index(outer, batch)) if batch else []
    places = [indices, major] if by_columns else [major, indices]
    full = (entries, *block, *dense)
    grid = np.indices((*block, *dense), dtype=np.int64)
    columns += [place * n + k for place, n, k in zip((_column(p, full) for p in places), block, grid[:2])]
    columns = [_column(c, full) if c.ndim == 1 else c for c in columns]
    columns += list(grid[2:])
    coords = [np.broadcast_to(column, full).reshape(-1) for column in columns]
    return from_coordinates(coords, array.reshape(-1), list(shape), format, None, None, "sum")


def _column(values: Any, shape: Sequence[int]) -> Any:
    """One number for each entry, against whatever each entry holds."""
    return np.asarray(values, dtype=np.int64).reshape((-1, *[1] * (len(shape) - 1)))


def _batched_format(batch: int, dense: int, by_columns: bool, block: Sequence[int] | None) -> str:
    names = [f"d{k}" for k in range(batch + 2 + dense)]
    row, column = names[batch : batch + 2]
    outer, inner = (column, row) if by_columns else (row, column)
    sizes = {row: 1, column: 1} if block is None else {row: block[0], column: block[1]}
    stored = [*names[:batch]]
    if block is None:
        stored += [outer, inner]
    else:
        stored += [f"{n}/{sizes[n]}" for n in (outer, inner)] + [f"{n}%{sizes[n]}" for n in (row, column)]
    stored += names[batch + 2 :]
    levels = ["dense"] * (batch + 1) + ["sparse"] + ["dense"] * (dense + (2 if block is not None else 0))
    return f"({','.join(names)}) -> ({', '.join(stored)}): {', '.join(levels)}"


class _Compressed:
    """PyTorch's arrays by SciPy's names."""

    def __init__(self, shape: tuple[int, ...], indptr: Any, indices: Any, data: Any) -> None:
        self.shape, self.indptr, self.indices, self.data = shape, indptr, indices, data
        self.blocksize = data.shape[1:]


def to_torch(tensor: Tensor) -> Any:
    """See :meth:`Tensor.to_torch`."""
    import torch

    if tensor.is_dense:
        return torch.from_numpy(tensor.to_numpy(copy=True))
    _zero_fill(tensor, "PyTorch")
    if tensor.ndim == 2 and _kind(tensor) != "coo":
        tensor = _as_matrix(tensor)
        kind, pos, crd, values = _parts(tensor, True)
        if kind == "bsr":
            values = values.reshape(-1, *_block(tensor))
        make = {"csr": torch.sparse_csr_tensor, "csc": torch.sparse_csc_tensor, "bsr": torch.sparse_bsr_tensor}[kind]
        return make(torch.from_numpy(pos), torch.from_numpy(crd), torch.from_numpy(values), size=tensor.shape)
    coords, values = tensor.to_coo()
    made = torch.sparse_coo_tensor(torch.from_numpy(coords), torch.from_numpy(values), size=tensor.shape)
    return made.coalesce()
