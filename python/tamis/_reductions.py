"""Reductions over axes. Unstored elements contribute without being visited: a run of fill values is reduced in one step."""

# These are the names that NumPy and the Array API give them.
# ruff: noqa: A001

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from . import _construct, _elementwise, _tamis
from ._fill_reductions import reduce_with_fill, reduces_with_fill
from ._coordinates import to_coordinates, from_array, ravel_multi_index
from ._errors import fail
from ._lazy_import import np
from ._returns import number
from ._shape_utils import normalize_axes, normalize_axis, num_elements, check_size, is_strided
from ._torch_operands import accepts_torch
from ._trace import Symbolic, Tracer, trace_reduction

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ._tensor import Tensor

_INDICES = "abcdefghijklmnopqrstuvwxyz"
Axis = Any


def _reduce(x: Any, word: str, axis: Axis, keepdims: bool, body: str = "{0}", idle: Any = None, **others: Any) -> Tensor:
    """Reduces by a word of index notation; ``idle`` is the value that does not change the result.

    ``others`` are tensors with the dimensions that are kept, which the body reads as ``{name}``.
    """
    if isinstance(x, Tracer):
        return trace_reduction(x, word, normalize_axes(axis, x.ndim), keepdims, body)
    axes = normalize_axes(axis, x.ndim)
    if len(_INDICES) < x.ndim:
        raise fail("E0404", f"{x.ndim} dimensions are too many", f"tensors have at most {len(_INDICES)} here")
    counts = not is_strided(x) and (idle is None or x.fill_value != idle)
    if counts and not others and reduces_with_fill(x, axes):
        made = reduce_with_fill(x, word, axes, body)
        return _kept(made, x, axes) if keepdims else made
    names = _INDICES[: x.ndim]
    kept = [n for d, n in enumerate(names) if d not in axes]
    gone = [names[a] for a in axes]
    access = f"[{','.join(kept)}]" if kept else ""
    term = body.format(f"x[{','.join(names)}]" if names else "x", **{name: name + access for name in others})
    text = f"r{access} = " + (f"{word}[{','.join(gone)}]({term})" if gone else term)
    order = None
    if gone and kept and counts:
        # With the reduced dimensions innermost, runs of unstored elements are reduced in one step.
        order = ",".join(kept + gone)
    if kept:
        shape = tuple(n for d, n in enumerate(x.shape) if d not in axes)
        entries_of = builtins.min(num_elements(shape), x.nnz) if not counts else num_elements(shape)
        check_size(word, shape, entries_of, x.dtype.itemsize)
    made = _tamis.einsum(text, x=x, order=order, format="dense" if is_strided(x) else None, **others)
    return _kept(made, x, axes) if keepdims else made


def _kept(made: Tensor, x: Any, axes: tuple[int, ...]) -> Tensor:
    from ._manipulation import expand_dims

    return expand_dims(made, axis=axes) if axes else made


def _plain(given: Any) -> Any:
    return given if isinstance(given, (_tamis.Tensor, Tracer)) else _construct.asarray(given)


def _over(word: str, x: Any, over: Any) -> Any:
    """The reduction of an expression of index variables over some of them."""
    from ._index_notation import reduced

    return reduced(word, x, () if over is None else over)


def _wide(dtype: np.dtype[Any]) -> str:
    """Sums of small integers are counted in 64 bits, as in NumPy."""
    if dtype.kind == "u" and dtype.itemsize < 8:
        return "u64({0})"
    return "i64({0})" if dtype.kind in "bi" and dtype.itemsize < 8 else "{0}"


@accepts_torch
def sum(
    x: Any, /, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False, over: Any = None
) -> Tensor:
    """The sum over axes, or of all elements; small integers are summed in 64 bits.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")
    >>> tm.sum(A).item(), A.sum(axis=0).to_numpy(), A.sum(axis=1, keepdims=True).shape
    (6.0, array([3., 3.]), (2, 1))
    """
    if over is not None or isinstance(x, Symbolic):
        return _over("sum", x, over)
    x = _plain(x)
    if dtype is not None:
        x = x.astype(dtype)
    made = _reduce(x, "sum", axis, keepdims, _wide(x.dtype) if dtype is None else "{0}", 0)
    return made if dtype is None else made.astype(dtype)


@accepts_torch
def prod(
    x: Any, /, axis: Axis = None, *, dtype: DTypeLike | None = None, keepdims: bool = False, over: Any = None
) -> Tensor:
    """The product over axes, or of all elements.

    >>> import tamis as tm
    >>> tm.prod([[1, 2], [3, 4]], axis=0).to_numpy()
    array([3, 8])
    """
    if over is not None or isinstance(x, Symbolic):
        return _over("prod", x, over)
    x = _plain(x)
    if dtype is not None:
        x = x.astype(dtype)
    made = _reduce(x, "prod", axis, keepdims, _wide(x.dtype) if dtype is None else "{0}", 1)
    return made if dtype is None else made.astype(dtype)


def _not_empty(x: Any, axis: Axis, what: str) -> None:
    if builtins.any(x.shape[a] == 0 for a in normalize_axes(axis, x.ndim)):
        raise fail(
            "E0402", f"`{what}` of an empty tensor has no value: the shape is {x.shape}", "reduce over non-empty axes"
        )


@accepts_torch
def min(x: Any, /, axis: Axis = None, *, keepdims: bool = False, over: Any = None) -> Tensor:
    """The least element over axes; NaN if there is one.

    >>> import tamis as tm
    >>> tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr").min(axis=1).to_numpy()
    array([0., 2.])
    """
    if over is not None or isinstance(x, Symbolic):
        return _over("min", x, over)
    x = _plain(x)
    _not_empty(x, axis, "min")
    return _reduce(x, "min", axis, keepdims)


@accepts_torch
def max(x: Any, /, axis: Axis = None, *, keepdims: bool = False, over: Any = None) -> Tensor:
    """The greatest element over axes; NaN if there is one.

    >>> import tamis as tm
    >>> tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr").max(axis=0).to_numpy()
    array([2., 3.])
    """
    if over is not None or isinstance(x, Symbolic):
        return _over("max", x, over)
    x = _plain(x)
    _not_empty(x, axis, "max")
    return _reduce(x, "max", axis, keepdims)


@accepts_torch
def any(x: Any, /, axis: Axis = None, *, keepdims: bool = False, over: Any = None) -> Tensor:
    """Whether there is an element that is not zero.

    >>> import tamis as tm
    >>> tm.any([[0, 1], [0, 0]], axis=1).to_numpy()
    array([ True, False])
    """
    if over is not None or isinstance(x, Symbolic):
        return _over("any", x, over)
    x = _plain(x)
    return _reduce(x, "any", axis, keepdims, "{0}" if x.dtype == bool else "{0} != 0", 0)


@accepts_torch
def all(x: Any, /, axis: Axis = None, *, keepdims: bool = False, over: Any = None) -> Tensor:
    """Whether no element is zero.

    >>> import tamis as tm
    >>> tm.all([[0, 1], [1, 1]], axis=1).to_numpy()
    array([False,  True])
    """
    if over is not None or isinstance(x, Symbolic):
        return _over("all", x, over)
    x = _plain(x)
    return _reduce(x, "all", axis, keepdims, "{0}" if x.dtype == bool else "{0} != 0")


def count_nonzero(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The number of nonzero elements.

    >>> import tamis as tm
    >>> tm.count_nonzero([[0, 1], [1, 1]], axis=0).to_numpy()
    array([1, 2])
    """
    x = _plain(x)
    return _reduce(x, "sum", axis, keepdims, "i64({0})" if x.dtype == bool else "i64({0} != 0)", 0)


def _count(x: Any, axis: Axis) -> int:
    return num_elements(x.shape[a] for a in normalize_axes(axis, x.ndim))


@accepts_torch
def mean(x: Any, /, axis: Axis = None, *, keepdims: bool = False) -> Tensor:
    """The arithmetic mean over axes; of integers as ``float64``.

    >>> import tamis as tm
    >>> tm.mean(tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")).item()
    1.5
    """
    x = _plain(x)
    body = "{0}" if x.dtype.kind in "fc" else "f64({0})"
    return _elementwise.apply("divide", _reduce(x, "sum", axis, keepdims, body, 0), float(_count(x, axis)))


@accepts_torch
def var(x: Any, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The variance over axes; the sum of squares is divided by ``n - correction``.

    >>> import tamis as tm
    >>> tm.var([1.0, 2.0, 3.0, 4.0]).item()
    1.25
    """
    x = _plain(x)
    if isinstance(x, Tracer):
        centred = x - mean(x, axis=axis, keepdims=True)
        total = sum(centred * centred, axis=axis, keepdims=keepdims)
    else:
        if not is_strided(x) and x.dtype.kind != "c" and reduces_with_fill(x, normalize_axes(axis, x.ndim)) and axis is None:
            # Full reduction: the stored elements, then the fill times the number of unstored ones.
            away = _elementwise.apply("subtract", x, float(mean(x)))
            return _elementwise.apply(
                "divide",
                _reduce(_elementwise.apply("square", away), "sum", None, keepdims, "{0}", 0),
                _spread(x, axis, correction),
            )
        middle = mean(x, axis=axis)
        body = "abs({0} - {m}) * abs({0} - {m})" if x.dtype.kind == "c" else "({0} - {m}) * ({0} - {m})"
        total = _reduce(x, "sum", axis, keepdims, body, m=middle)
    return _elementwise.apply("divide", total, _spread(x, axis, correction))


def _spread(x: Any, axis: Axis, correction: float) -> float:
    return builtins.max(float(_count(x, axis)) - correction, 0.0)


@accepts_torch
def std(x: Any, /, axis: Axis = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
    """The standard deviation over axes.

    >>> import tamis as tm
    >>> tm.std([1.0, 3.0]).item()
    1.0
    """
    return _elementwise.apply("sqrt", var(x, axis=axis, correction=correction, keepdims=keepdims))


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the greatest element along an axis; of equal ones, the first.

    >>> import tamis as tm
    >>> tm.argmax(tm.tensor([[0, 5, 5], [-1, 0, 0]], format="csr"), axis=1).to_numpy()
    array([1, 1])
    """
    return _where(_plain(x), "max", axis, keepdims)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
    """The index of the least element along an axis; of equal ones, the first.

    >>> import tamis as tm
    >>> tm.argmin([[3, 1], [0, 0]], axis=1).to_numpy()
    array([1, 0])
    """
    return _where(_plain(x), "min", axis, keepdims)


def _where(x: Any, word: str, axis: int | None, keepdims: bool) -> Tensor:
    from ._coordinates import as_tensor
    from ._manipulation import expand_dims, reshape

    x = as_tensor(x)
    if axis is None:
        found = _where(reshape(x, (num_elements(x.shape),)), word, 0, False)
        return reshape(found, (1,) * x.ndim) if keepdims else found
    a = normalize_axis(axis, x.ndim)
    _not_empty(x, a, f"arg{word}")
    if is_strided(x):
        array = x._readable()
        made = from_array((np.argmax if word == "max" else np.argmin)(array, axis=a))
        return expand_dims(made, axis=a) if keepdims else made
    shape = x.shape[:a] + x.shape[a + 1 :]
    check_size(f"arg{word}", shape, num_elements(shape), 8)
    best = _reduce(x, word, a, False)._readable()
    columns, values = to_coordinates(x)
    along = columns.pop(a)
    line = ravel_multi_index(columns, shape) if shape else np.zeros(len(values), dtype=np.int64)
    flat = best.reshape(-1)
    result = np.full(len(flat), x.shape[a], dtype=np.int64)
    target = flat[line]
    hit = (values == target) | ((values != values) & (target != target))
    np.minimum.at(result, line[hit], along[hit])
    # The first place where nothing is stored counts, if the fill is the best there is.
    fill = x.fill_value
    order = np.lexsort((along, line))
    line, along = line[order], along[order]
    starts = np.searchsorted(line, np.arange(len(flat)))
    rank = np.arange(len(line)) - starts[line]
    gap = np.bincount(line, minlength=len(flat)).astype(np.int64)
    ahead = along != rank
    np.minimum.at(gap, line[ahead], rank[ahead])
    free = (flat == fill) | ((flat != flat) & (fill != fill))
    free &= gap < x.shape[a]
    result[free] = np.minimum(result[free], gap[free])
    made = from_array(result.reshape(shape))
    return expand_dims(made, axis=a) if keepdims else made


class Reductions:
    """Reductions as methods of tensors; each is the function of its name, and of a whole tensor a number."""

    __slots__ = ()

    def sum(self, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.sum`."""
        made = sum(self, axis=axis, dtype=dtype, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def prod(self, axis: Axis = None, dtype: DTypeLike | None = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.prod`."""
        made = prod(self, axis=axis, dtype=dtype, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def min(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.min`."""
        made = min(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def max(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.max`."""
        made = max(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def mean(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.mean`."""
        made = mean(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def var(self, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
        """See :func:`tamis.var`."""
        made = var(self, axis=axis, correction=correction, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def std(self, axis: Axis = None, correction: float = 0.0, keepdims: bool = False) -> Any:
        """See :func:`tamis.std`."""
        made = std(self, axis=axis, correction=correction, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def any(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.any`."""
        made = any(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def all(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.all`."""
        made = all(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.argmax`."""
        made = argmax(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.argmin`."""
        made = argmin(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    def count_nonzero(self, axis: Axis = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.count_nonzero`."""
        made = count_nonzero(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made
