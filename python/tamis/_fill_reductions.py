"""Reductions that include the fill value: the stored elements are reduced, then the implicit ones by their count.

The cost is linear in ``nnz``; no implicit element is visited.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _construct, _elementwise, _tamis
from ._coordinates import to_coordinates, ravel_multi_index, from_coordinates, unravel_index
from ._lazy_import import np
from ._shape_utils import Shape, format_levels, num_elements

if TYPE_CHECKING:
    from ._tensor import Tensor

#: Formats that store exactly one value per stored coordinate.
_COORDINATE_FORMATS = ("csr", "csc", "coo", "dcsr", "dcsc", "csf", "sparse")

#: A dense result of up to this many elements is always acceptable.
_SMALL = 1 << 22

#: The NumPy ufunc of each reduction of index notation.
_UFUNCS = {
    "sum": "add",
    "prod": "multiply",
    "min": "minimum",
    "max": "maximum",
    "any": "logical_or",
    "all": "logical_and",
}


def reduces_with_fill(x: Tensor, axes: tuple[int, ...]) -> bool:
    """Whether this module computes the reduction: a full reduction, or one whose result is mostly fill."""
    if format_levels(x) not in _COORDINATE_FORMATS or not axes:
        return False
    kept = num_elements(n for d, n in enumerate(x.shape) if d not in axes)
    return len(axes) == x.ndim or kept > max(_SMALL, 8 * x.nnz) or "nonunique" in x.full_format


def reduce_with_fill(x: Tensor, word: str, axes: tuple[int, ...], body: str) -> Tensor:
    """Reduces ``body`` of every element by a reduction of index notation, implicit elements included."""
    if body != "{0}" or x.is_pattern:
        x = _elementwise._on_values(body, [x], x)
    lines = num_elements(x.shape[a] for a in axes)
    if len(axes) < x.ndim:
        return _reduce_by_key(x, word, axes, lines)
    rest = lines - x.nnz
    values = x.values
    if values is None or not len(values):
        return _construct.asarray(np.asarray(_reduce_repeated(word, x.fill_value, rest)))
    found = _tamis.einsum(f"r = {word}[a](x[a])", x=values, format="dense")
    if not rest:
        return found  # type: ignore[no-any-return]
    both = getattr(np, _UFUNCS[word])(found.element([]), _reduce_repeated(word, x.fill_value, rest))
    return _construct.asarray(np.asarray(both, dtype=found.dtype))


def _reduce_repeated(word: str, fill: Any, count: int) -> Any:
    """The reduction of ``count`` copies of the fill value."""
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
        # 0 * count and 1 ** count are exact even where count overflows to infinity.
        if word == "sum":
            return fill if fill == 0 else kind.type(fill * np.float64(count))
        return fill if fill in (0, 1) and count else kind.type(fill ** np.float64(count))


def _reduce_by_key(x: Tensor, word: str, axes: tuple[int, ...], lines: int) -> Tensor:
    """A partial reduction: sorts by the kept coordinates, then reduces each segment (``ufunc.reduceat``)."""
    columns, values = to_coordinates(x)
    kept = [d for d in range(x.ndim) if d not in axes]
    shape: Shape = tuple(x.shape[d] for d in kept)
    line = ravel_multi_index([columns[d] for d in kept], shape)
    order = np.argsort(line, kind="stable")
    line, values = line[order], values[order]
    starts = np.flatnonzero(np.concatenate([[True], line[1:] != line[:-1]])) if len(line) else np.zeros(0, dtype=np.int64)
    whole = np.asarray(_reduce_repeated(word, x.fill_value, lines))
    function = getattr(np, _UFUNCS[word])
    with np.errstate(all="ignore"):
        made = function.reduceat(values, starts) if len(starts) else values[:0]
        counts = np.diff(np.append(starts, len(line)))
        rest = [_reduce_repeated(word, x.fill_value, lines - int(count)) for count in np.unique(counts)]
        others = np.asarray(rest, dtype=whole.dtype)[np.searchsorted(np.unique(counts), counts)] if len(counts) else made
        made = np.where(counts < lines, function(made, others), made).astype(whole.dtype)
    like = x.with_values(_construct.tensor(np.zeros(len(x.values), dtype=whole.dtype)), whole[()])  # type: ignore[arg-type]
    reduced = from_coordinates(like, unravel_index(line[starts], shape), made, shape, "sparse" if len(shape) == 1 else None)
    return reduced.convert("dense") if num_elements(shape) <= _SMALL else reduced
