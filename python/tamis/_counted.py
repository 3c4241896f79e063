"""Reductions in which what is not stored counts, by how much of it there is: nothing is visited that is not stored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _construct, _elementwise, _tamis
from ._entries import entries, linear, rebuilt, unlinear
from ._lazy import np
from ._shapes import Shape, bare, cells

if TYPE_CHECKING:
    from ._tensor import Tensor

#: Formats that have one value for each coordinate that they store.
_LISTS = ("csr", "csc", "coo", "dcsr", "dcsc", "csf", "sparse")

#: Dense results of so many elements are always fine.
_SMALL = 1 << 22

#: NumPy's functions of two numbers.
_FUNCTIONS = {
    "sum": "add",
    "prod": "multiply",
    "min": "minimum",
    "max": "maximum",
    "any": "logical_or",
    "all": "logical_and",
}


def is_counted(x: Tensor, axes: tuple[int, ...]) -> bool:
    """Whether a reduction over these axes, in which the fill counts, is done here: over everything, or with a result that is mostly fill."""
    if bare(x) not in _LISTS or not axes:
        return False
    kept = cells(n for d, n in enumerate(x.shape) if d not in axes)
    return len(axes) == x.ndim or kept > max(_SMALL, 8 * x.nnz)


def counted(x: Tensor, word: str, axes: tuple[int, ...], body: str) -> Tensor:
    """The reduction by a word of index notation, of what a body makes of each element."""
    if body != "{0}" or x.is_pattern:
        x = _elementwise._on_values(body, [x], x)
    lines = cells(x.shape[a] for a in axes)
    if len(axes) < x.ndim:
        return _grouped(x, word, axes, lines)
    rest = lines - x.nnz
    values = x.values
    if values is None or not len(values):
        return _construct.asarray(np.asarray(_repeated(word, x.fill_value, rest)))
    found = _tamis.einsum(f"r = {word}[a](x[a])", x=values, format="dense")
    if not rest:
        return found  # type: ignore[no-any-return]
    both = getattr(np, _FUNCTIONS[word])(found.element([]), _repeated(word, x.fill_value, rest))
    return _construct.asarray(np.asarray(both, dtype=found.dtype))


def _repeated(word: str, fill: Any, count: int) -> Any:
    """So many fills, reduced."""
    kind = fill.dtype
    if word in ("any", "all"):
        return np.bool_(bool(fill) if count else word == "all")
    if word in ("min", "max"):
        return fill
    if kind.kind in "iu":
        bits = 8 * kind.itemsize
        found = int(fill) * count if word == "sum" else pow(int(fill), count, 1 << bits)
        found %= 1 << bits
        return kind.type(found - (1 << bits) if kind.kind == "i" and found >> (bits - 1) else found)
    if kind.kind == "b":
        return np.int64(int(fill) * min(count, (1 << 63) - 1)) if word == "sum" else np.int64(bool(fill) or not count)
    with np.errstate(all="ignore"):
        # Zero times infinitely many, and one to their power, stay what they are.
        if word == "sum":
            return fill if fill == 0 else kind.type(fill * np.float64(count))
        return fill if fill in (0, 1) and count else kind.type(fill ** np.float64(count))


def _grouped(x: Tensor, word: str, axes: tuple[int, ...], lines: int) -> Tensor:
    columns, values = entries(x)
    kept = [d for d in range(x.ndim) if d not in axes]
    shape: Shape = tuple(x.shape[d] for d in kept)
    line = linear([columns[d] for d in kept], shape)
    order = np.argsort(line, kind="stable")
    line, values = line[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]])) if len(line) else np.zeros(0, dtype=np.int64)
    whole = np.asarray(_repeated(word, x.fill_value, lines))
    function = getattr(np, _FUNCTIONS[word])
    with np.errstate(all="ignore"):
        made = function.reduceat(values, starts) if len(starts) else values[:0]
        counts = np.diff(np.append(starts, len(line)))
        rest = [_repeated(word, x.fill_value, lines - int(count)) for count in np.unique(counts)]
        others = np.asarray(rest, dtype=whole.dtype)[np.searchsorted(np.unique(counts), counts)] if len(counts) else made
        made = np.where(counts < lines, function(made, others), made).astype(whole.dtype)
    like = x.with_values(_construct.tensor(np.zeros(len(x.values), dtype=whole.dtype)), whole[()])  # type: ignore[arg-type]
    return rebuilt(like, unlinear(line[starts], shape), made, shape, "sparse" if len(shape) == 1 else None)
