"""Reductions that leave NaN out, as NumPy names them; a sparse operand is reduced as sparse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _construct, _elementwise, _reductions
from ._coordinates import as_tensor
from ._lazy_import import np
from ._shape_utils import normalize_axes, num_elements

if TYPE_CHECKING:
    from ._tensor import Tensor


def _replaced(x: Any, number: float) -> tuple[Tensor, Tensor | None]:
    """The tensor with a number for each NaN, and where NaN was; ``None`` if the type has none."""
    t = as_tensor(x)
    if t.dtype.kind not in "fc":
        return t, None
    lost = _elementwise.apply("isnan", t)
    return _elementwise.apply("where", lost, t.dtype.type(number), t), lost


def nansum(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The sum of all that is not NaN.

    >>> import tamis as tm
    >>> tm.nansum([1.0, float("nan"), 2.0]).item()
    3.0
    """
    return _reductions.sum(_replaced(x, 0)[0], axis=axis, keepdims=keepdims)


def nanprod(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The product of all that is not NaN.

    >>> import tamis as tm
    >>> tm.nanprod([3.0, float("nan"), 2.0]).item()
    6.0
    """
    return _reductions.prod(_replaced(x, 1)[0], axis=axis, keepdims=keepdims)


def nanmin(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The least of all that is not NaN; NaN where there is nothing else.

    >>> import tamis as tm
    >>> tm.nanmin([1.0, float("nan"), 2.0]).item()
    1.0
    """
    return _extreme(x, "min", axis, keepdims)


def nanmax(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The greatest of all that is not NaN; NaN where there is nothing else.

    >>> import tamis as tm
    >>> tm.nanmax([1.0, float("nan"), 2.0]).item()
    2.0
    """
    return _extreme(x, "max", axis, keepdims)


def _extreme(x: Any, name: str, axis: Any, keepdims: bool) -> Tensor:
    t, lost = _replaced(x, np.inf if name == "min" else -np.inf)
    made: Tensor = getattr(_reductions, name)(t, axis=axis, keepdims=keepdims)
    if lost is None or not lost.fill_value and not _reductions.any(lost):
        return made
    count = _reductions.sum(lost, axis=axis, keepdims=keepdims)
    whole = num_elements(t.shape[a] for a in normalize_axes(axis, t.ndim))
    found: Tensor = _elementwise.apply("where", _elementwise.apply("equal", count, whole), made.dtype.type(np.nan), made)
    return found


def nanmean(x: Any, /, axis: Any = None, *, keepdims: bool = False) -> Tensor:
    """The arithmetic mean of all that is not NaN.

    >>> import tamis as tm
    >>> tm.nanmean(tm.tensor([[1.0, 0.0], [float("nan"), 3.0]], format="csr"), axis=0).to_numpy()
    array([1. , 1.5])
    """
    t, lost = _replaced(x, 0)
    if lost is None:
        return _reductions.mean(t, axis=axis, keepdims=keepdims)
    whole = num_elements(t.shape[a] for a in normalize_axes(axis, t.ndim))
    count = _reductions.sum(lost, axis=axis, keepdims=keepdims)
    total = _reductions.sum(t, axis=axis, keepdims=keepdims)
    left = _elementwise.apply("subtract", _construct.asarray(np.asarray(float(whole))), count)
    found: Tensor = _elementwise.apply("divide", total, left)
    return found
