"""Searching and set functions: argmax, nonzero, where, unique values, ..."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ._coordinates import to_coordinates, from_array, as_tensor
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import num_elements, is_strided

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each of them occurs."""

    #: The distinct values.
    values: Tensor
    #: How often each of them occurs.
    counts: Tensor


class UniqueInverse(NamedTuple):
    """Distinct values, and for each element the index of its value."""

    #: The distinct values.
    values: Tensor
    #: The index in ``values`` of each element.
    inverse_indices: Tensor


class UniqueAll(NamedTuple):
    """Distinct values, their first positions, the index of each element, and counts."""

    #: The distinct values.
    values: Tensor
    #: The position of the first element that has each of them.
    indices: Tensor
    #: The index in ``values`` of each element.
    inverse_indices: Tensor
    #: How often each value occurs.
    counts: Tensor


def nonzero(x: Any, /) -> tuple[Tensor, ...]:
    """The coordinates of all elements that are not zero, an array for each dimension.

    >>> import tamis as tm
    >>> [i.to_numpy().tolist() for i in tm.nonzero(tm.tensor([[0, 5], [7, 0]], format="csr"))]
    [[0, 1], [1, 0]]
    """
    x = as_tensor(x)
    if x.ndim == 0:
        raise fail("E0401", "a tensor without dimensions has no coordinates", "compare it: `bool(t)`")
    if is_strided(x):
        return tuple(from_array(column) for column in np.nonzero(x._readable()))
    if x.fill_value:
        raise fail(
            "E0707",
            f"the fill value is {x.fill_value}, so nearly all of {num_elements(x.shape):,} elements are not zero",
            "`t.to_coo()` gives the stored elements",
        )
    columns, values = to_coordinates(x)
    stored = values != 0
    return tuple(from_array(column[stored]) for column in columns)


def unique_values(x: Any, /) -> Tensor:
    """The distinct values, sorted; the fill value counts where an element is not stored.

    >>> import tamis as tm
    >>> tm.unique_values(tm.tensor([[0, 5], [7, 5]], format="csr")).to_numpy()
    array([0, 5, 7])
    """
    return from_array(_unique(as_tensor(x))[0])


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct values, sorted, and how often each occurs; elements that are not stored are counted.

    >>> import tamis as tm
    >>> tm.unique_counts(tm.tensor([[0, 5], [7, 5]], format="csr")).counts.to_numpy()
    array([1, 2, 1])
    """
    values, counts = _unique(as_tensor(x))
    return UniqueCounts(from_array(values), from_array(counts))


def _unique(x: Tensor) -> tuple[NDArray[Any], NDArray[np.int64]]:
    data = x._readable().reshape(-1) if is_strided(x) else to_coordinates(x)[1]
    values, counts = np.unique(data, return_counts=True, equal_nan=False)
    rest = num_elements(x.shape) - len(data)
    if rest:
        if rest >= 1 << 63:
            raise fail("E0404", f"{rest:.3g} elements cannot be counted in 64 bits", "count the stored elements: `t.to_coo()[1]`")
        fill = np.asarray(x.fill_value, dtype=values.dtype)
        place = int(np.searchsorted(values, fill))
        if place < len(values) and values[place] == fill:
            counts[place] += rest
        else:
            values, counts = np.insert(values, place, fill), np.insert(counts, place, rest)
    return values, counts.astype(np.int64)


def unique(
    x: Any, /, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    """The different values, sorted, as ``numpy.unique``: an array, or a tuple of the requested arrays.

    >>> import tamis as tm
    >>> tm.unique(tm.tensor([[0, 5], [7, 5]], format="csr"), return_counts=True)
    (array([0, 5, 7]), array([1, 2, 1]))
    """
    x = as_tensor(x)
    if return_index or return_inverse:
        array = _dense(x, "unique with places")
        options: Any = {"return_index": return_index, "return_inverse": return_inverse, "return_counts": return_counts}
        return np.unique(array, **options)
    values, counts = _unique(x)
    return (values, counts) if return_counts else values


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct values of a dense tensor, and for each element the index of its value.

    >>> import tamis as tm
    >>> tm.unique_inverse([5, 7, 5]).inverse_indices.to_numpy()
    array([0, 1, 0])
    """
    array = _dense(as_tensor(x), "unique_inverse")
    values, inverse = np.unique(array, return_inverse=True, equal_nan=False)
    return UniqueInverse(from_array(values), from_array(inverse.reshape(array.shape)))


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct values of a dense tensor with positions, inverse and counts.

    >>> import tamis as tm
    >>> tm.unique_all([5, 7, 5]).indices.to_numpy()
    array([0, 1])
    """
    array = _dense(as_tensor(x), "unique_all")
    values, indices, inverse, counts = np.unique(
        array, return_index=True, return_inverse=True, return_counts=True, equal_nan=False
    )
    parts = (values, indices, inverse.reshape(array.shape), counts)
    return UniqueAll(*(from_array(part) for part in parts))


#: What takes sparse tensors instead.
_INSTEAD = {
    "argsort": "`tamis.topk(t, k)` gives the places of the greatest stored elements of each line, in order",
    "cumulative_sum": "`tamis.cumsum` takes sparse ones, and stores runs",
}


def _dense(x: Tensor, what: str) -> NDArray[Any]:
    if not is_strided(x):
        raise fail(
            "E0707",
            f"`{what}` returns a value for every element, {num_elements(x.shape):,} of them, so it needs a dense tensor",
            _INSTEAD.get(what, "`tamis.unique_counts` takes sparse ones"),
            "convert it first: `t.convert('dense')`",
        )
    return x._readable()


def sort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The tensor sorted along an axis; a sparse one stays sparse.

    >>> import tamis as tm
    >>> tm.sort([3, 1, 2]).to_numpy()
    array([1, 2, 3])
    >>> tm.sort(tm.tensor([[5, 0, -1, 0]], format="csr")).to_numpy()
    array([[-1,  0,  0,  5]])
    """
    x = as_tensor(x)
    if not is_strided(x):
        from ._sets import sort_sparse

        return sort_sparse(x, axis, descending)
    array = np.sort(_dense(as_tensor(x), "sort"), axis=axis, kind="stable" if stable else None)
    return from_array(np.flip(array, axis) if descending else array)


def argsort(x: Any, /, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Tensor:
    """The order that sorts a dense tensor along an axis.

    >>> import tamis as tm
    >>> tm.argsort([3, 1, 2]).to_numpy()
    array([1, 2, 0])
    """
    array = _dense(as_tensor(x), "argsort")
    if descending:
        # Equal elements keep their order: what is sorted is reversed before and after.
        order = np.argsort(np.flip(array, axis), axis=axis, kind="stable")
        return from_array(array.shape[axis] - 1 - np.flip(order, axis))
    return from_array(np.argsort(array, axis=axis, kind="stable"))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Tensor:
    """Insertion points of elements in a sorted dense tensor.

    >>> import tamis as tm
    >>> tm.searchsorted([1, 3, 5], [2, 5]).to_numpy()
    array([1, 2])
    """
    first, second = _dense(as_tensor(x1), "searchsorted"), _dense(as_tensor(x2), "searchsorted")
    order = None if sorter is None else np.asarray(sorter)
    found: Any = np.searchsorted(first, second, "right" if side == "right" else "left", order)
    return from_array(np.asarray(found))


def cumulative_sum(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative sum of a dense tensor along an axis.

    >>> import tamis as tm
    >>> tm.cumulative_sum([1, 2, 3]).to_numpy()
    array([1, 3, 6])
    """
    return _running(as_tensor(x), np.cumsum, 0, axis, dtype, include_initial, "cumulative_sum")


def cumulative_prod(x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False) -> Tensor:
    """The cumulative product of a dense tensor along an axis.

    >>> import tamis as tm
    >>> tm.cumulative_prod([1, 2, 3]).to_numpy()
    array([1, 2, 6])
    """
    return _running(as_tensor(x), np.cumprod, 1, axis, dtype, include_initial, "cumulative_prod")


def _running(x: Tensor, function: Any, start: int, axis: int | None, dtype: Any, initial: bool, what: str) -> Tensor:
    if axis is None and x.ndim != 1:
        raise fail("E0401", f"a tensor of {x.ndim} dimensions needs an axis", "write `axis=0`")
    axis = 0 if axis is None else axis
    array = _dense(x, what)
    made = function(array, axis=axis, dtype=dtype)
    if initial:
        shape = [1 if d == axis % array.ndim else n for d, n in enumerate(array.shape)]
        made = np.concatenate([np.full(shape, start, dtype=made.dtype), made], axis=axis)
    return from_array(made)


def diff(x: Any, /, *, axis: int = -1, n: int = 1) -> Tensor:
    """The differences of neighbours along an axis.

    >>> import tamis as tm
    >>> tm.diff([1, 4, 9]).to_numpy()
    array([3, 5])
    """
    from ._shape_utils import normalize_axis

    x = as_tensor(x)
    a = normalize_axis(axis, x.ndim)
    for _ in range(n):
        front = (slice(None),) * a
        later, earlier = x[(*front, slice(1, None))], x[(*front, slice(None, -1))]
        x = later != earlier if x.dtype == bool else later - earlier
    return x
