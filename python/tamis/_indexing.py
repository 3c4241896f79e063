"""Indexing: integers, slices, ``...``, ``None``, masks and integer arrays, with NumPy's semantics.

Dense tensors are sliced by NumPy, as views. Rows of CSR and columns of CSC are cut out of their arrays, at the cost of what is cut
out. Everything else goes through the coordinates of what is stored.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from . import _tamis
from ._config import current
from ._coordinates import check_nnz, to_coordinates, from_array, ravel_multi_index, as_tensor, from_coordinates
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import Shape, format_levels, num_elements, is_strided
from ._trace import Symbolic

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor


class Indexing:
    """``t[...]``, of tensors."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        """A part of the tensor; one element is a number, everything else a tensor.

        >>> import tamis as tm
        >>> A = tm.tensor([[1, 0, 2], [0, 3, 0]], format="csr")
        >>> A[0, 2], A[1].to_numpy(), A[:, ::-1].to_numpy().tolist(), A[A > 1].to_numpy()
        (np.int64(2), array([0, 3, 0]), [[2, 0, 1], [0, 3, 0]], array([2, 3]))
        """
        return getitem(self, key)  # type: ignore[arg-type]


def getitem(x: Tensor, key: Any) -> Any:
    """The result of ``x[key]``."""
    keys = key if isinstance(key, tuple) else (key,)
    for k in keys:
        if isinstance(k, Symbolic):
            from ._index_notation import access

            return access(x, key)
    if len(keys) == x.ndim and all(isinstance(k, (int, np.integer)) and not isinstance(k, bool) for k in keys):
        return x.element([_at(k, d, n) for d, (k, n) in enumerate(zip(keys, x.shape))])
    if len(keys) == 1 and _is_truth(keys[0]):
        # One truth value is a mask of no dimensions: it selects everything or nothing, in a new dimension.
        return getitem(getitem(x, None), slice(0, int(bool(keys[0]))))
    if len(keys) == 1 and isinstance(keys[0], _tamis.Tensor) and _is_own_mask(keys[0], x):
        return _selected(x, keys[0])  # type: ignore[arg-type]
    parts = _parsed(keys, x)
    if is_strided(x):
        found = x._readable()[tuple(parts)]
        return found if found.ndim == 0 and not isinstance(found, np.ndarray) else from_array(np.asarray(found))
    return _sparse(x, parts)


def _is_own_mask(mask: _tamis.Tensor, x: Tensor) -> bool:
    """Whether a mask stores the coordinates that the tensor stores, as ``x > 0`` does, and nothing else is true."""
    if mask.dtype != bool or mask.shape != x.shape or is_strided(x) or mask.fill_value or mask.is_pattern or x.is_pattern:
        return False
    if mask.format.split(";")[0] != x.format.split(";")[0] or len(mask.values) != len(x.values):  # type: ignore[arg-type]
        return False
    # A function of one tensor shares its arrays; equal addresses need no comparison.
    return all(
        len(a) == len(b) and a.__array_interface__["data"] == b.__array_interface__["data"]
        for k in range(len(x.levels))
        for a, b in zip(x.level_arrays(k).values(), mask.level_arrays(k).values())
    )


def _selected(x: Tensor, mask: Tensor) -> Tensor:
    """The stored elements where a mask of the same coordinates is true: all are stored in the result."""
    chosen, values = mask.values, x.values
    if format_levels(x) not in ("csr", "coo", "csf", "sparse", "dcsr"):
        _, chosen = to_coordinates(mask)
        _, values = to_coordinates(x)
    found = values[chosen]  # type: ignore[index]
    level = {"pos": np.array([0, len(found)]), "crd": np.arange(len(found))}
    return _tamis.from_parts([len(found)], "sparse", [level], found, x.fill_value, False)


def slice_bounds(key: slice, size: int) -> tuple[int, int, int]:
    """Start, stop and step of a slice of a dimension; a step beyond the dimension is as long as the dimension."""
    start, stop, step = key.indices(size)
    most = max(size, 1)
    return start, stop, max(-most, min(step, most))


def _is_truth(key: Any) -> bool:
    return isinstance(key, (bool, np.bool_)) or (getattr(key, "dtype", None) == bool and getattr(key, "ndim", 1) == 0)


def _at(k: Any, d: int, n: int) -> int:
    place: int = operator.index(k)
    if not -n <= place < n:
        raise fail("E1001", f"index {place} is out of bounds for dimension {d} of size {n}", f"give one from {-n} to {n - 1}")
    return place + n if place < 0 else place


def _parsed(keys: tuple[Any, ...], x: Tensor) -> list[Any]:
    """One key for each dimension and each new one: integers, slices, ``None``, and arrays of integers; all inside."""
    found: list[Any] = []
    used = 0
    for k in keys:
        if k is None or k is Ellipsis or isinstance(k, slice):
            used += isinstance(k, slice)
            found.append(k)
        elif isinstance(k, (bool, np.bool_)):
            raise fail("E0305", f"{k} is not an index", "give a mask of the tensor's shape, or write `t[None]` for a new dimension")
        elif isinstance(k, (int, np.integer)) or (hasattr(k, "__index__") and not hasattr(k, "ndim")):
            used += 1
            found.append(operator.index(k))
        else:
            arrays = _arrays(k, x, used)
            used += len(arrays)
            found.extend(arrays)
    if (
        found.count(Ellipsis) > 1
        if not any(isinstance(k, np.ndarray) for k in found)
        else sum(k is Ellipsis for k in found) > 1
    ):
        raise fail("E0401", "`...` occurs twice in one index", "write it once")
    if used > x.ndim:
        raise fail("E0401", f"{used} indices are given for {x.ndim} dimensions", f"give at most {x.ndim}")
    rest = [slice(None)] * (x.ndim - used)
    place = next((p for p, k in enumerate(found) if k is Ellipsis), None)
    found = found + rest if place is None else found[:place] + rest + found[place + 1 :]
    d = 0
    for p, k in enumerate(found):
        if k is None:
            continue
        if isinstance(k, int):
            found[p] = _at(k, d, x.shape[d])
        elif isinstance(k, slice):
            if k.step is not None and operator.index(k.step) == 0:
                raise fail("E0405", "a slice cannot have step 0", "give a step of 1, -1 or more")
        else:
            found[p] = _inside(k, d, x.shape[d])
        d += 1
    return found


def _arrays(key: Any, x: Tensor, used: int) -> list[Any]:
    """Arrays of integers for a list, an array or a tensor; a mask becomes the coordinates where it is true."""
    if isinstance(key, _tamis.Tensor) and key.dtype == bool:
        shape = key.shape
        if is_strided(key) or (key.fill_value and num_elements(shape) * 8 <= current().dense_limit):
            columns: Any = np.nonzero(np.asarray(key))
        elif key.fill_value:
            raise fail(
                "E0707",
                f"a mask with the fill value `True` selects nearly all of {num_elements(shape):,} elements",
                "select the others instead: `t[~mask]`",
                "keep the tensor, and mask it: `tamis.where(mask, t, 0)`",
            )
        else:
            found, values = to_coordinates(key)  # type: ignore[arg-type]
            columns = [column[values] for column in found]
        array = None
    else:
        array = np.asarray(key)
        if array.size == 0 and array.dtype.kind == "f":
            array = array.astype(np.int64)
        if array.dtype.kind not in "iub":
            raise fail("E0305", f"indices are integers or truth values, not {array.dtype}", "convert them: `index.astype(int)`")
        if array.dtype != bool:
            return [array]
        shape, columns = array.shape, np.nonzero(array)
    there = x.shape[used : used + len(shape)]
    if shape != there:
        raise fail(
            "E0405",
            f"a mask of shape {shape} does not fit dimensions of shape {there}",
            f"the tensor has shape {x.shape}; a mask covers whole dimensions, as in `t[t > 0]` or `t[row_mask]`",
        )
    return list(columns)


def _inside(array: NDArray[Any], d: int, n: int) -> NDArray[np.int64]:
    found = array.astype(np.int64)
    if found.size and (found.min() < -n or found.max() >= n):
        bad = found[(found < -n) | (found >= n)].flat[0]
        raise fail("E1001", f"index {bad} is out of bounds for dimension {d} of size {n}", f"indices are {-n}..{n - 1}")
    return np.where(found < 0, found + n, found)


def _sparse(x: Tensor, parts: list[Any]) -> Any:
    real = [k for k in parts if k is not None]
    if len(real) == len(parts) and x.ndim == 2:
        whole = [isinstance(k, slice) and k == slice(None) for k in real]
        if x.format in ("csr", "csr; pattern") and whole[1] and _is_row_key(real[0]):
            return _rows(x, real[0])
        if x.format in ("csc", "csc; pattern") and whole[0] and _is_row_key(real[1]):
            cut = _rows(x.T, real[1])
            return cut if cut.ndim == 1 else cut.T
    if any(isinstance(k, np.ndarray) for k in real):
        return _gathered(x, parts)
    columns, values = to_coordinates(x)
    keep: NDArray[np.bool_] | None = None
    made: list[Any] = []
    for d, k in enumerate(real):
        column, n = columns[d], x.shape[d]
        if isinstance(k, slice):
            start, stop, step = slice_bounds(k, n)
            length = len(range(start, stop, step))
            made.append((column, start, step, length))
            if (start, step, length) == (0, 1, n):
                continue
            offset = (column - start) * (1 if step > 0 else -1)
            here = (offset >= 0) & (offset < length * abs(step))
            if abs(step) != 1:
                here &= offset % abs(step) == 0
        else:
            here = column == k
        keep = here if keep is None else keep & here
    if keep is None:
        keep = np.ones(len(values), dtype=bool)
    moved = iter(((column[keep] - start) // step, length) for column, start, step, length in made)
    shape, final = [], []
    for k in parts:
        if k is None:
            shape.append(1)
            final.append(np.zeros(int(keep.sum()), dtype=np.int64))
        elif isinstance(k, slice):
            column, length = next(moved)
            shape.append(length)
            final.append(column)
    return from_coordinates(x, final, values[keep], tuple(shape))


def _is_row_key(key: Any) -> bool:
    return not isinstance(key, np.ndarray) or key.ndim == 1


def _rows(x: Tensor, key: Any) -> Tensor:
    """Rows of a CSR matrix, for the price of those rows."""
    arrays = x.level_arrays(1)
    pos, crd, values = arrays["pos"], arrays["crd"], x.values
    width = x.shape[1]
    leaf = "; pattern" if values is None else ""
    if isinstance(key, int):
        first, last = int(pos[key]), int(pos[key + 1])
        level = {"pos": np.array([0, last - first], dtype=pos.dtype), "crd": crd[first:last]}
        part = None if values is None else values[first:last]
        return _tamis.from_parts([width], "sparse" + leaf, [level], part, x.fill_value, False)
    if isinstance(key, slice):
        start, stop, step = slice_bounds(key, x.shape[0])
        if step == 1:
            stop = max(start, stop)
            first, last = int(pos[start]), int(pos[stop])
            cut, index = pos[start : stop + 1] - pos[start], slice(first, last)
            level = {"pos": np.ascontiguousarray(cut), "crd": crd[index]}
            part = None if values is None else values[index]
            return _tamis.from_parts([stop - start, width], "csr" + leaf, [{}, level], part, x.fill_value, False)
        key = np.arange(start, stop, step)
    lengths = pos[key + 1].astype(np.int64) - pos[key]
    check_nnz("rows", x, (len(key), width), int(lengths.sum()))
    return _tamis.take_rows(x, np.ascontiguousarray(key, dtype=np.int64))


def _gathered(x: Tensor, parts: list[Any]) -> Any:
    """Arrays of integers, broadcast together, with slices beside them."""
    # Integers count as arrays where there are arrays, as in NumPy.
    advanced = [p for p, k in enumerate(parts) if isinstance(k, (int, np.ndarray))]
    together = advanced == list(range(advanced[0], advanced[-1] + 1))
    axes = {p: d for d, p in enumerate(q for q, k in enumerate(parts) if k is not None)}
    try:
        arrays = np.broadcast_arrays(*(parts[p] for p in advanced))
    except ValueError:
        shapes = " and ".join(str(np.shape(parts[p])) for p in advanced)
        raise fail("E0402", f"index arrays of shapes {shapes} do not fit together", "give arrays of one shape") from None
    # First the slices and new dimensions, then the gather: its axes are those that were left whole.
    before = [slice(None) if p in advanced else k for p, k in enumerate(parts)]
    basic = _sparse(x, before) if any(k is None or k != slice(None) for k in before) else x
    group = arrays[0].shape
    sizes = tuple(x.shape[axes[p]] for p in advanced)
    wanted = ravel_multi_index([a.ravel() for a in arrays], sizes)
    columns, values = to_coordinates(basic)
    place = ravel_multi_index([columns[p] for p in advanced], sizes)
    if len(advanced) == x.ndim and advanced == list(range(x.ndim)):
        order = None  # Coordinates are sorted already.
    else:
        order = np.argsort(place, kind="stable")
        place = place[order]
    low, high = np.searchsorted(place, wanted, "left"), np.searchsorted(place, wanted, "right")
    counts = high - low
    total = int(counts.sum())
    first = advanced[0] if together else 0
    rest = [p for p in range(len(parts)) if p not in advanced]
    shape = [basic.shape[p] for p in rest]
    target = sum(p < first for p in rest)
    final: Shape = (*shape[:target], *group, *shape[target:])
    check_nnz("take", x, final, total)
    ends = np.cumsum(counts)
    chosen = np.arange(total) + np.repeat(low - (ends - counts), counts)
    chosen = chosen if order is None else order[chosen]
    which = np.repeat(np.arange(len(wanted)), counts)
    grouped = list(np.unravel_index(which, group)) if group else []
    kept = [columns[p][chosen] for p in rest]
    return from_coordinates(x, [*kept[:target], *grouped, *kept[target:]], values[chosen], final)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """The slices at these indices along an axis.

    >>> import tamis as tm
    >>> tm.take([10, 20, 30], [2, 0]).to_numpy()
    array([30, 10])
    """
    from ._manipulation import reshape
    from ._shape_utils import normalize_axis

    x = as_tensor(x)
    if axis is None:
        x, axis = reshape(x, (num_elements(x.shape),)) if x.ndim != 1 else x, 0
    a = normalize_axis(axis, x.ndim)
    index = indices._readable() if isinstance(indices, _tamis.Tensor) else np.asarray(indices)  # type: ignore[attr-defined]
    found: Tensor = x[(slice(None),) * a + (index,)]
    return found


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Tensor:
    """For each line along an axis, the elements at the positions that ``indices`` has there.

    >>> import tamis as tm
    >>> tm.take_along_axis([[10, 20], [30, 40]], [[1], [0]], axis=1).to_numpy()
    array([[20],
           [30]])
    """
    from ._shape_utils import normalize_axis

    x = as_tensor(x)
    a = normalize_axis(axis, x.ndim)
    index = np.asarray(indices)
    if index.ndim != x.ndim:
        raise fail("E0401", f"indices of {index.ndim} dimensions do not fit {x.ndim}", "give as many dimensions")
    grids = np.ogrid[tuple(slice(n) for n in (index.shape[d] if d == a else x.shape[d] for d in range(x.ndim)))]
    found: Tensor = x[tuple(index if d == a else grids[d] for d in range(x.ndim))]
    return found
