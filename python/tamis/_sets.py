"""Counting and selecting by value: top-k, bin counts, membership, closeness, running sums as runs.

What a function gives for every element is computed for what is stored and for the fill value.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _construct, _elementwise, _tamis
from ._coordinates import as_tensor, from_array, ravel_multi_index, to_coordinates, unravel_index
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import check_size, is_strided, normalize_axis, num_elements

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from ._tensor import Tensor


class TopK(NamedTuple):
    """The greatest stored elements of each line, and where they are; -1 where a line has fewer."""

    #: The greatest elements of each line (or the least), in order.
    values: NDArray[Any]
    #: Their places along the axis; -1 where a line stores fewer.
    indices: NDArray[np.int64]


def topk(x: Any, k: int, /, axis: int = -1, *, largest: bool = True) -> TopK:
    """The ``k`` greatest *stored* elements of each line along an axis, in order, and their places along it.

    A line that stores fewer has the fill value and the place -1 at its end. Of a dense tensor everything is stored.

    >>> import tamis as tm
    >>> scores = tm.tensor([[0.0, 5.0, 7.0, 6.0], [1.0, 0.0, 0.0, 0.0]], format="csr")
    >>> tm.topk(scores, 2)
    TopK(values=array([[7., 6.],
           [1., 0.]]), indices=array([[ 2,  3],
           [ 0, -1]]))
    """
    t = as_tensor(x)
    count = operator.index(k)
    if count < 0:
        raise fail("E0709", f"the {count} greatest elements are none", "give 0 or more")
    a = normalize_axis(axis, t.ndim)
    others = t.shape[:a] + t.shape[a + 1 :]
    shape = (*others, count)
    check_size("topk", shape, num_elements(shape), t.dtype.itemsize + 8)
    columns, values = to_coordinates(t)
    along = columns.pop(a)
    line = ravel_multi_index(columns, others) if others else np.zeros(len(values), dtype=np.int64)
    key = values if not largest else (~values if values.dtype.kind in "ub" else -values)
    order = np.lexsort((along, key, line))
    line, along, values = line[order], along[order], values[order]
    rank = np.arange(len(line)) - np.searchsorted(line, line)
    keep = rank < count
    best = np.full((num_elements(others), count), t.fill_value, dtype=t.dtype)
    places = np.full(best.shape, -1, dtype=np.int64)
    best[line[keep], rank[keep]], places[line[keep], rank[keep]] = values[keep], along[keep]
    return TopK(np.moveaxis(best.reshape(shape), -1, a), np.moveaxis(places.reshape(shape), -1, a))


def bincount(x: Any, /, weights: Any = None, minlength: int = 0) -> NDArray[Any]:
    """How often each number from 0 on occurs, or the sum of its weights; what is not stored is counted.

    >>> import tamis as tm
    >>> tm.bincount(tm.tensor([0, 2, 0, 1, 2], format="sparse"))
    array([2, 1, 2])
    """
    t = as_tensor(x)
    if t.ndim != 1:
        raise fail("E0401", f"`bincount` counts the elements of a vector, not of {t.ndim} dimensions", "`t.ravel()` is one")
    if t.dtype.kind not in "biu":
        raise fail("E0305", f"bins are integers, not {t.dtype}", "convert them: `t.astype(int)`")
    if is_strided(t):
        data = t._readable()
        counts = data if weights is None else _construct.asarray(weights)._readable()  # type: ignore[attr-defined]
        _bins(data, minlength)
        return np.bincount(data, None if weights is None else counts, minlength)
    (place,), values = to_coordinates(t)
    _bins(values, minlength)
    rest = t.shape[0] - len(values)
    if weights is None:
        made = np.bincount(values, minlength=max(minlength, int(t.fill_value) + 1 if rest else 0))
        if rest:
            made[int(t.fill_value)] += rest
        return made
    w = as_tensor(weights)
    if w.shape != t.shape:
        raise fail("E0402", f"{w.shape} weights are given for {t.shape} elements", "give one weight for each element")
    mine = w[place]._readable()
    made = np.bincount(values, mine, max(minlength, int(t.fill_value) + 1 if rest else 0))
    if rest:
        from ._reductions import sum as total

        made[int(t.fill_value)] += float(total(w)) - float(mine.sum())
    return made


def _bins(values: NDArray[Any], minlength: int) -> None:
    if len(values) and int(values.min()) < 0:
        raise fail("E1001", f"{values.min()} is no bin", "bins are counted from 0")
    most = max(int(values.max()) + 1 if len(values) else 0, minlength)
    check_size("bincount", (most,), most, 8)


def isin(x: Any, test_elements: Any, /, *, invert: bool = False) -> Tensor:
    """Whether each element is one of these; in the format of the tensor.

    >>> import tamis as tm
    >>> tm.isin(tm.tensor([0, 5, 7], format="sparse"), [7, 9]).to_numpy()
    array([False, False,  True])
    """
    t = as_tensor(x)
    if isinstance(test_elements, _tamis.Tensor):
        from ._search import unique_values

        wanted = unique_values(test_elements)._readable()
    else:
        wanted = np.asarray(test_elements)
    if t.is_pattern:
        t = t.convert(t.format.split(";")[0])
    found = np.isin(t.values, wanted, invert=invert)  # type: ignore[arg-type]
    fill = np.isin(t.fill_value, wanted, invert=invert)[()]
    return t.with_values(_construct.tensor(found), np.bool_(False) if is_strided(t) else fill)


def isclose(a: Any, b: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether elements are equal up to a tolerance: ``abs(a - b) <= atol + rtol * abs(b)``; sparse where both are.

    >>> import tamis as tm
    >>> tm.isclose([1.0, 2.0], [1.0 + 1e-9, 2.1]).to_numpy()
    array([ True, False])
    """
    apply = _elementwise.apply
    a, b = _inexact(a), _inexact(b)
    distance = apply("abs", apply("subtract", a, b))
    bound = apply("add", apply("multiply", apply("abs", b), rtol), atol)
    near = apply("logical_and", apply("less_equal", distance, bound), apply("isfinite", b))
    same = apply("logical_or", near, apply("equal", a, b))
    if equal_nan:
        same = apply("logical_or", same, apply("logical_and", apply("isnan", a), apply("isnan", b)))
    return same  # type: ignore[no-any-return]


def _inexact(x: Any) -> Any:
    """Truth values and integers as floats, whose differences do not wrap around."""
    t = x if hasattr(x, "_trace") else as_tensor(x)
    return t if t.dtype.kind in "fc" else t.astype(float)


def allclose(a: Any, b: Any, /, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether all elements are equal up to a tolerance.

    >>> import tamis as tm
    >>> A = tm.eye(1000, format="csr")
    >>> tm.allclose(A, A + 1e-12 * A)
    True
    """
    from ._reductions import all as every

    return bool(every(isclose(a, b, rtol, atol, equal_nan)))


def array_equal(a: Any, b: Any, /) -> bool:
    """Whether both have the same shape and the same elements, whatever their formats.

    >>> import tamis as tm
    >>> tm.array_equal(tm.eye(3, format="csr"), tm.eye(3, format="csc"))
    True
    """
    a, b = as_tensor(a), as_tensor(b)
    from ._reductions import all as every

    return a.shape == b.shape and bool(every(_elementwise.apply("equal", a, b)))


def cumsum(x: Any, /, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """Running sums along an axis. Those of a sparse tensor are stored as runs: a new one begins where something is stored.

    >>> import tamis as tm
    >>> A = tm.tensor([[0, 2, 0, 3], [0, 0, 1, 0]], format="csr")
    >>> tm.cumsum(A, axis=1)
    <tamis.Tensor 2x4 i64 dense, runs, ...
    [[0 2 2 5]
     [0 0 1 1]]
    """
    from ._manipulation import reshape
    from ._search import cumulative_sum

    t = as_tensor(x)
    if dtype is not None:
        t = t.astype(dtype)
    if axis is None and t.ndim != 1:
        t, axis = reshape(t, (num_elements(t.shape),)), 0
    a = normalize_axis(0 if axis is None else axis, t.ndim)
    if is_strided(t):
        return cumulative_sum(t, axis=a)
    if t.fill_value:
        raise fail(
            "E0707",
            f"the fill value is {t.fill_value}, so all running sums differ: they would take {num_elements(t.shape):,} elements",
            "`tamis.cumsum(t - t.fill_value)` sums what differs from it",
        )
    if t.ndim > 2:
        raise fail("E0401", f"running sums of sparse tensors have at most 2 dimensions, not {t.ndim}", "sum slices, as in `t[0]`")
    if t.ndim == 2 and a == 0:
        return cumsum(t.T, axis=1).T
    return _running_rows(t)


def _running_rows(t: Tensor) -> Tensor:
    """Running sums along the last axis, as runs."""
    columns, values = to_coordinates(t)
    rows, width = (1, t.shape[0]) if t.ndim == 1 else t.shape
    kind = np.result_type(values.dtype, np.int64) if values.dtype.kind in "biu" and values.dtype != np.uint64 else values.dtype
    line = columns[0] if t.ndim == 2 else np.zeros(len(values), dtype=np.int64)
    check_size("cumsum", t.shape, rows + len(values), 8 + kind.itemsize)
    if not width or not rows:
        return _construct.tensor(np.zeros(t.shape, dtype=kind))
    starts = np.searchsorted(line, np.arange(rows + 1))
    # A run of zeros leads each row whose first column is not stored.
    first = np.full(rows, width, dtype=np.int64)
    full = starts[1:] > starts[:-1]
    first[full] = columns[-1][starts[:-1][full]]
    leads = first > 0
    pos = np.concatenate([[0], np.cumsum(np.diff(starts) + leads)])
    target = np.arange(len(values)) + np.cumsum(leads)[line] if len(values) else np.zeros(0, dtype=np.int64)
    ends, sums = np.empty(int(pos[-1]), dtype=np.int64), np.zeros(int(pos[-1]), dtype=kind)
    ends[pos[:-1][leads]] = first[leads]
    following = np.append(columns[-1][1:], width)
    last = starts[1:][full] - 1
    following[last] = width
    ends[target] = following
    # Rows are summed one by one in effect: what came before a row is subtracted where types are exact, else rows are looped over.
    if kind.kind in "iu":
        with np.errstate(over="ignore"):
            total = np.cumsum(values.astype(kind))
            before = np.concatenate([[0], total])[starts[:-1]].astype(kind)
            sums[target] = total - before[line]
    else:
        running = np.empty(len(values), dtype=kind)
        for row in np.flatnonzero(full):
            part = slice(starts[row], starts[row + 1])
            np.cumsum(values[part], out=running[part])
        sums[target] = running
    level = {"pos": pos, "end": ends}
    if t.ndim == 1:
        return _tamis.from_parts([width], "runs", [level], sums, kind.type(0), False)
    return _tamis.from_parts([rows, width], "dense, runs", [{}, level], sums, kind.type(0), False)


def flatnonzero(x: Any, /) -> NDArray[np.int64]:
    """The places of all elements that are not zero, counted in row-major order.

    >>> import tamis as tm
    >>> tm.flatnonzero(tm.tensor([[0, 5], [7, 0]], format="csr"))
    array([1, 2])
    """
    from ._search import nonzero

    t = as_tensor(x)
    return ravel_multi_index([column._readable() for column in nonzero(t)], t.shape)


def sort_sparse(x: Tensor, axis: int, descending: bool) -> Tensor:
    """A sparse tensor sorted along an axis: the stored elements at both ends, the fill value between them."""
    from ._coordinates import from_coordinates

    a = normalize_axis(axis, x.ndim)
    columns, values = to_coordinates(x)
    along = columns.pop(a)
    others = x.shape[:a] + x.shape[a + 1 :]
    line = ravel_multi_index(columns, others) if others else np.zeros(len(values), dtype=np.int64)
    order = np.lexsort((values, line))
    if descending:
        order = order[np.lexsort((-np.arange(len(order)), line[order]))]
    line, values = line[order], values[order]
    rank = np.arange(len(line)) - np.searchsorted(line, line)
    counts = np.searchsorted(line, line, "right") - np.searchsorted(line, line)
    # NaN is the greatest of all.
    early = values > x.fill_value if descending else values < x.fill_value
    if descending:
        early |= values != values
    along = np.where(early, rank, x.shape[a] - counts + rank)
    made = unravel_index(line, others) if others else []
    return from_coordinates(x, [*made[:a], along, *made[a:]], values, x.shape)
