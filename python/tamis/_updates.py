"""Functional updates of elements: ``tamis.at(t)[key].set(values)``; tensors are immutable, so each gives a new one.

The cost is that of what is stored and of what is updated; a slice with a number stores every element of the slice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _construct, _tamis
from ._coordinates import as_tensor, check_nnz, from_array, from_coordinates, ravel_multi_index, to_coordinates, unravel_index
from ._errors import fail
from ._indexing import _parsed, slice_bounds
from ._lazy_import import np
from ._shape_utils import broadcast_shapes, format_levels, is_strided, num_elements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor

#: The function that combines what an element is with what is given, for each update.
_COMBINE = {"add": "add", "multiply": "multiply", "min": "minimum", "max": "maximum"}


class At:
    """Elements of a tensor to be updated; made by :func:`at`."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor

    def __getitem__(self, key: Any) -> Update:
        return Update(self._tensor, key)

    def diagonal(self, k: int = 0) -> Update:
        """The elements of a diagonal.

        >>> import tamis as tm
        >>> tm.at(tm.zeros((2, 2), format="csr")).diagonal().set(5.0).to_numpy()
        array([[5., 0.],
               [0., 5.]])
        """
        t = self._tensor
        if t.ndim != 2:
            raise fail("E0401", f"a tensor of {t.ndim} dimensions has no one diagonal", "give a matrix")
        along = np.arange(max(0, min(t.shape[0] + min(k, 0), t.shape[1] - max(k, 0))))
        return Update(t, (along - min(k, 0), along + max(k, 0)))


class Update:
    """An update of the elements of a key; each method gives a new tensor."""

    __slots__ = ("_key", "_tensor")

    def __init__(self, tensor: Tensor, key: Any) -> None:
        self._tensor, self._key = tensor, key

    def get(self) -> Any:
        """The elements as they are: ``t[key]``."""
        return self._tensor[self._key]

    def set(self, values: Any) -> Tensor:
        """The tensor with other elements there; of equal places the last counts."""
        return _updated(self._tensor, self._key, values, "set")

    def add(self, values: Any) -> Tensor:
        """The tensor with something added there; equal places add up."""
        return _updated(self._tensor, self._key, values, "add")

    def multiply(self, values: Any) -> Tensor:
        """The tensor with these elements multiplied."""
        return _updated(self._tensor, self._key, values, "multiply")

    def min(self, values: Any) -> Tensor:
        """The tensor with these elements lowered to at most the values."""
        return _updated(self._tensor, self._key, values, "min")

    def max(self, values: Any) -> Tensor:
        """The tensor with these elements raised to at least the values."""
        return _updated(self._tensor, self._key, values, "max")


def at(x: Any) -> At:
    """Elements to update: ``tm.at(t)[i, j].set(v)`` is a new tensor; ``add``, ``multiply``, ``min`` and ``max`` update.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [0.0, 2.0]], format="csr")
    >>> tm.at(A)[0, 1].set(9.0).to_numpy()
    array([[1., 9.],
           [0., 2.]])
    >>> tm.at(A)[[0, 0, 1], [0, 0, 0]].add(1.0).to_numpy()
    array([[3., 0.],
           [1., 2.]])
    >>> tm.at(A)[0].set(0.0).nnz
    1
    """
    return At(as_tensor(x))


def _updated(x: Tensor, key: Any, given: Any, how: str) -> Tensor:
    value: Any = given if isinstance(given, _tamis.Tensor) else _construct.asarray(given)
    # A Python number adapts to the tensor, as in operators.
    weak = given if isinstance(given, (bool, int, float, complex)) else value.dtype
    dtype = np.result_type(x.dtype, weak)
    x, value = x.astype(dtype), value.astype(dtype)
    keys = key if isinstance(key, tuple) else (key,)
    if len(keys) == 1 and isinstance(keys[0], _tamis.Tensor) and keys[0].dtype == bool and keys[0].ndim == x.ndim:
        parts: list[Any] = _parsed(keys, x)
    else:
        parts = _parsed(keys, x)
    if is_strided(x):
        array = x.to_numpy()
        place = tuple(parts)
        if how == "set":
            array[place] = value._readable()
        else:
            getattr(np, _COMBINE[how]).at(array, place, value._readable())
        return from_array(array)
    if any(k is None for k in parts):
        raise fail("E0305", "an update has no new dimensions", "leave `None` out of the index")
    if how == "set" and not value.ndim and np.asarray(value.element([])) == x.fill_value:
        nothing = [np.zeros(0, dtype=np.int64) for _ in x.shape]
        return _merged(x, parts, nothing, np.zeros(0, dtype=dtype), how)
    targets, numbers = _targets(x, parts, value, how)
    return _merged(x, parts, targets, numbers, how)


def _targets(x: Tensor, parts: list[Any], value: Tensor, how: str) -> tuple[list[NDArray[np.int64]], NDArray[Any]]:
    """The coordinates that an update names, and the number for each."""
    arrays = [k for k in parts if isinstance(k, (int, np.ndarray))]
    group = np.broadcast_shapes(*(np.shape(k) for k in arrays)) if arrays else ()
    advanced = [p for p, k in enumerate(parts) if isinstance(k, (int, np.ndarray))]
    together = not advanced or advanced == list(range(advanced[0], advanced[-1] + 1))
    first = advanced[0] if advanced and together else 0
    lengths = {p: len(range(*slice_bounds(k, x.shape[p]))) for p, k in enumerate(parts) if isinstance(k, slice)}
    before = [n for p, n in lengths.items() if p < first]
    shape = (*before, *group, *(n for p, n in lengths.items() if p >= first))
    if broadcast_shapes([value.shape, shape]) != shape:
        raise fail("E0402", f"values of shape {value.shape} do not fit elements of shape {shape}", "give one value, or one for each")
    if not is_strided(value) and value.fill_value == 0 and x.fill_value == 0 and how in ("set", "add") and value.shape == shape:
        columns, numbers = to_coordinates(value)
    else:
        check_nnz("at", x, shape, num_elements(shape))
        columns = unravel_index(np.arange(num_elements(shape)), shape)
        numbers = np.broadcast_to(value._readable(), shape).ravel()
    axes = iter(range(len(shape)))
    of_slices = {p: columns[next(axes)] for p in lengths if p < first}
    of_group = [columns[next(axes)] for _ in group]
    of_slices |= {p: columns[next(axes)] for p in lengths if p >= first}
    made: list[Any] = []
    for p, k in enumerate(parts):
        if isinstance(k, slice):
            start, _, step = slice_bounds(k, x.shape[p])
            made.append(start + step * of_slices[p])
        else:
            whole = np.broadcast_to(np.asarray(k, dtype=np.int64), group)
            made.append(whole[tuple(of_group)] if group else np.full(len(numbers), int(whole), dtype=np.int64))
    return made, numbers


def _merged(x: Tensor, parts: list[Any], targets: list[NDArray[np.int64]], numbers: NDArray[Any], how: str) -> Tensor:
    columns, values = to_coordinates(x)
    place, wanted = ravel_multi_index(columns, x.shape), ravel_multi_index(targets, x.shape)
    order = np.argsort(wanted, kind="stable")
    wanted, numbers = wanted[order], numbers[order]
    new = np.append(wanted[1:] != wanted[:-1], True) if len(wanted) else np.zeros(0, dtype=bool)
    if how == "set":
        wanted, numbers = wanted[new], numbers[new]
        keep = ~_inside(x, parts, columns, place, wanted)
    else:
        starts = np.flatnonzero(np.concatenate([[True], new[:-1]])) if len(new) else np.zeros(0, dtype=np.int64)
        combine = getattr(np, _COMBINE[how])
        numbers = combine.reduceat(numbers, starts) if len(starts) else numbers
        wanted = wanted[new]
        # What is there already: a stored element, or the fill.
        at_most = np.minimum(np.searchsorted(place, wanted), max(len(place) - 1, 0))
        stored = place[at_most] == wanted if len(place) else np.zeros(len(wanted), dtype=bool)
        before = np.full(len(wanted), x.fill_value, dtype=x.dtype)
        before[stored] = values[at_most[stored]]
        numbers = combine(before, numbers)
        keep = np.ones(len(place), dtype=bool)
        keep[at_most[stored]] = False
    fill = x.fill_value
    changed = numbers == numbers if fill != fill else numbers != fill
    joined = np.concatenate([place[keep], wanted[changed]])
    merged = np.concatenate([values[keep], numbers[changed]])
    return from_coordinates(x, unravel_index(joined, x.shape), merged.astype(x.dtype), x.shape, format_levels(x))


def _inside(x: Tensor, parts: list[Any], columns: Any, place: Any, wanted: Any) -> NDArray[np.bool_]:
    """Which stored elements a key names."""
    if any(isinstance(k, np.ndarray) for k in parts):
        axes = [p for p, k in enumerate(parts) if not isinstance(k, slice)]
        sizes = tuple(x.shape[p] for p in axes)
        arrays = np.broadcast_arrays(*(np.asarray(parts[p], dtype=np.int64) for p in axes))
        named = ravel_multi_index([a.ravel() for a in arrays], sizes)
        found = np.isin(ravel_multi_index([columns[p] for p in axes], sizes), named)
    else:
        found = np.ones(len(place), dtype=bool)
        for p, k in enumerate(parts):
            if isinstance(k, int):
                found &= columns[p] == k
    for p, k in enumerate(parts):
        if isinstance(k, slice):
            start, stop, step = slice_bounds(k, x.shape[p])
            offset = (columns[p] - start) * (1 if step > 0 else -1)
            length = len(range(start, stop, step))
            found &= (offset >= 0) & (offset < length * abs(step)) & (offset % abs(step) == 0)
    return found
