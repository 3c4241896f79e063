"""Shape manipulation: reshape, transpose, expand, squeeze, concatenate, stack, ..."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Sequence

from . import _tamis
from ._coordinates import (
    check_nnz,
    to_coordinates,
    from_array,
    ravel_multi_index,
    apply_if_strided,
    as_tensor,
    from_coordinates,
    unravel_index,
)
from ._config import current
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import (
    Shape,
    as_shape,
    broadcast_shapes,
    check_dimensions,
    default_sparse_format,
    is_strided,
    normalize_axes,
    normalize_axis,
    num_elements,
)
from ._trace import Tracer, trace_reshape

if TYPE_CHECKING:
    from ._tensor import Tensor

#: About what an object for a small tensor takes.
_TENSOR_BYTES = 1024


def expand_dims(x: Any, /, axis: int | tuple[int, ...] = 0) -> Tensor:
    """The tensor with a new dimension of size 1.

    >>> import tamis as tm
    >>> tm.expand_dims(tm.ones(3), axis=0).shape
    (1, 3)
    """
    count = len(axis) if isinstance(axis, tuple) else 1
    traced = isinstance(x, Tracer)
    x = x if traced else as_tensor(x)
    axes = normalize_axes(axis, x.ndim + count)
    shape = list(x.shape)
    for a in axes:
        shape.insert(a, 1)
    if traced:
        return trace_reshape(x, axes, ())
    return _same_entries(x, tuple(shape))


def squeeze(x: Any, /, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The tensor without these dimensions, which have size 1; without all such if none is named.

    >>> import tamis as tm
    >>> tm.squeeze(tm.ones((1, 3, 1)), 0).shape
    (3, 1)
    """
    traced = isinstance(x, Tracer)
    x = x if traced else as_tensor(x)
    axes = tuple(d for d, n in enumerate(x.shape) if n == 1) if axis is None else normalize_axes(axis, x.ndim)
    for a in axes:
        if x.shape[a] != 1:
            raise fail("E0402", f"dimension {a} has size {x.shape[a]}, not 1", "`t[0]` selects one of several")
    if traced:
        return trace_reshape(x, (), axes)
    return _same_entries(x, tuple(n for d, n in enumerate(x.shape) if d not in axes))


def _same_entries(x: Tensor, shape: Shape) -> Tensor:
    """Another shape whose elements are the same in row-major order, by dimensions of size 1 only."""
    if is_strided(x):
        return from_array(x.to_numpy().reshape(shape))
    columns, values = to_coordinates(x)
    real = iter(column for column, n in zip(columns, x.shape) if n != 1)
    zeros = np.zeros(len(values), dtype=np.int64)
    return from_coordinates(x, [zeros if n == 1 else next(real) for n in shape], values, shape)


def reshape(x: Any, /, shape: Any, *, copy: bool | None = None) -> Tensor:
    """The same elements in row-major order in another shape; one size may be -1.

    >>> import tamis as tm
    >>> tm.reshape(tm.eye(4), (2, 8)).nnz
    16
    >>> tm.reshape(tm.eye(4, format="csr"), (2, -1)).nnz
    4
    """
    traced = isinstance(x, Tracer)
    x = x if traced else as_tensor(x)
    try:
        sizes = [operator.index(n) for n in (shape if isinstance(shape, (tuple, list)) else (shape,))]
    except TypeError:
        raise fail("E0305", f"{shape!r} is not a shape", "sizes are integers; one of them may be -1") from None
    if sizes.count(-1) == 1:
        rest = num_elements(n for n in sizes if n != -1)
        if rest and num_elements(x.shape) % rest == 0:
            sizes[sizes.index(-1)] = num_elements(x.shape) // rest
    if min(sizes, default=0) < 0 or num_elements(sizes) != num_elements(x.shape):
        raise fail(
            "E0402",
            f"{num_elements(x.shape)} elements of shape {x.shape} do not fit the shape {tuple(shape) if isinstance(shape, list) else shape}",
            "the number of elements must stay the same; one size may be -1",
        )
    new = tuple(sizes)
    if new == x.shape:
        return x
    if traced:
        return _trace_reshaped(x, new)
    dense = apply_if_strided("reshape", x, lambda array: array.reshape(new))
    if dense is not None:
        return dense
    columns, values = to_coordinates(x)
    return from_coordinates(x, unravel_index(ravel_multi_index(columns, x.shape), new), values, new)


def _trace_reshaped(x: Any, shape: Shape) -> Any:
    """A traced value in another shape, if the shapes differ by dimensions of size 1 only."""
    if [n for n in x.shape if n != 1] != [n for n in shape if n != 1]:
        as_tensor(x)  # Elements would have to be moved: it is refused there.
    bare_value = trace_reshape(x, (), tuple(d for d, n in enumerate(x.shape) if n == 1))
    return trace_reshape(bare_value, tuple(d for d, n in enumerate(shape) if n == 1), ())


def permute_dims(x: Any, /, axes: Sequence[int]) -> Tensor:
    """A view with the dimensions in another order.

    >>> import tamis as tm
    >>> tm.permute_dims(tm.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    x = x if isinstance(x, Tracer) else as_tensor(x)
    order = [normalize_axis(a, x.ndim) for a in (axes if isinstance(axes, (tuple, list)) else (axes,))]
    if sorted(order) != list(range(x.ndim)):
        raise fail("E0401", f"{tuple(order)} is not a permutation of {x.ndim} dimensions", "name each dimension once")
    return x.transpose(order)


def moveaxis(x: Any, source: Any, destination: Any, /) -> Tensor:
    """A view with some dimensions at other positions.

    >>> import tamis as tm
    >>> tm.moveaxis(tm.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = x if isinstance(x, Tracer) else as_tensor(x)
    sources = [normalize_axis(a, x.ndim) for a in (source if isinstance(source, (tuple, list)) else (source,))]
    places = [normalize_axis(a, x.ndim) for a in (destination if isinstance(destination, (tuple, list)) else (destination,))]
    if len(sources) != len(places) or len(set(sources)) != len(sources) or len(set(places)) != len(places):
        raise fail("E0401", "`source` and `destination` have different lengths", "name each dimension once")
    order = [d for d in range(x.ndim) if d not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return x.transpose(order)


def flip(x: Any, /, *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements in reverse order along these axes, all of them if none is named.

    >>> import tamis as tm
    >>> tm.flip([1, 2, 3]).to_numpy()
    array([3, 2, 1])
    """
    x = as_tensor(x)
    axes = normalize_axes(axis, x.ndim)
    dense = apply_if_strided("flip", x, lambda array: np.flip(array, axes))
    if dense is not None:
        return dense
    columns, values = to_coordinates(x)
    moved = [x.shape[d] - 1 - column if d in axes else column for d, column in enumerate(columns)]
    return from_coordinates(x, moved, values, x.shape)


def roll(x: Any, /, shift: int | tuple[int, ...], *, axis: int | tuple[int, ...] | None = None) -> Tensor:
    """The elements shifted along axes; those beyond the last position are reintroduced at the first.

    >>> import tamis as tm
    >>> tm.roll([1, 2, 3, 4], 1).to_numpy()
    array([4, 1, 2, 3])
    """
    x = as_tensor(x)
    if axis is None:
        if isinstance(shift, tuple):
            raise fail("E0401", "several shifts need as many axes", "write `axis=(0, 1)`")
        return reshape(roll(reshape(x, (-1,) if num_elements(x.shape) else (0,)), shift, axis=0), x.shape)
    axes = [normalize_axis(a, x.ndim) for a in (axis if isinstance(axis, tuple) else (axis,))]
    shifts = list(shift) if isinstance(shift, tuple) else [shift] * len(axes)
    if len(shifts) != len(axes):
        raise fail("E0401", f"{len(shifts)} shifts are given for {len(axes)} axes", "give one for each axis")
    try:
        shifts = [operator.index(by) % max(x.shape[a], 1) for a, by in zip(axes, shifts)]
    except TypeError:
        raise fail("E0305", f"a shift is an integer, not {shift!r}", "give one integer, or one for each axis") from None
    dense = apply_if_strided("roll", x, lambda array: np.roll(array, shifts, axes))
    if dense is not None:
        return dense
    columns, values = to_coordinates(x)
    for a, by in zip(axes, shifts):
        column, kept = columns[a], x.shape[a] - by
        columns[a] = np.where(column < kept, column + by * (column < kept), column - kept)
    return from_coordinates(x, columns, values, x.shape)


def concat(tensors: Sequence[Any], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along one axis; sparse ones stay sparse, and have one fill.

    >>> import tamis as tm
    >>> tm.concat([tm.eye(2, format="csr"), tm.zeros((1, 2), format="csr")]).shape
    (3, 2)
    """
    parts = [as_tensor(t) for t in tensors]
    if not parts:
        raise fail("E0401", "no tensors to concatenate", "give one tensor or more")
    if axis is None:
        parts, axis = [reshape(p, (num_elements(p.shape),)) for p in parts], 0
    first = parts[0]
    a = normalize_axis(axis, first.ndim)
    for p in parts:
        if p.ndim != first.ndim or p.shape[:a] + p.shape[a + 1 :] != first.shape[:a] + first.shape[a + 1 :]:
            raise fail(
                "E0402",
                f"shapes {first.shape} and {p.shape} cannot be concatenated along axis {a}",
                "all other dimensions must have equal sizes; `tamis.stack` adds a dimension",
            )
    dtype = np.result_type(*[p.dtype for p in parts])
    parts = [p.astype(dtype) for p in parts]
    sparse = [p for p in parts if not is_strided(p)]
    if not sparse:
        return from_array(np.concatenate([p.to_numpy() for p in parts], axis=a))
    fill = sparse[0].fill_value
    for p in sparse:
        if not _same(p.fill_value, fill):
            raise fail(
                "E0709",
                f"the tensors have different fill values, {fill} and {p.fill_value}",
                "store them densely: `t.convert('dense')`",
                "give them the same fill value first, as in `t - t.fill_value`",
            )
    shape = first.shape[:a] + (sum(p.shape[a] for p in parts),) + first.shape[a + 1 :]
    check_nnz("concat", first, check_dimensions(shape), sum(p.nnz for p in parts))
    columns: list[list[Any]] = [[] for _ in shape]
    values = []
    start = 0
    for p in parts:
        found, data = to_coordinates(p)
        if is_strided(p):
            stored = data != fill if fill == fill else ~np.isnan(data)
            found, data = [column[stored] for column in found], data[stored]
        for d, column in enumerate(found):
            columns[d].append(column + start if d == a else column)
        values.append(data)
        start += p.shape[a]
    like = sparse[0]
    return from_coordinates(like, [np.concatenate(column) for column in columns], np.concatenate(values), shape)


def _same(a: Any, b: Any) -> bool:
    return bool(a == b or (a != a and b != b))


def stack(tensors: Sequence[Any], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis.

    >>> import tamis as tm
    >>> tm.stack([tm.ones(3), tm.zeros(3)]).shape
    (2, 3)
    """
    parts = [as_tensor(t) for t in tensors]
    if not parts:
        raise fail("E0401", "no tensors to stack", "give one tensor or more")
    a = normalize_axis(axis, parts[0].ndim + 1)
    for p in parts:
        if p.shape != parts[0].shape:
            raise fail("E0402", f"shapes {parts[0].shape} and {p.shape} cannot be stacked", "give tensors of one shape")
    return concat([expand_dims(p, axis=a) for p in parts], axis=a)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis.

    >>> import tamis as tm
    >>> [t.shape for t in tm.unstack(tm.zeros((2, 3)))]
    [(3,), (3,)]
    """
    x = as_tensor(x)
    a = normalize_axis(axis, x.ndim)
    if x.shape[a] * _TENSOR_BYTES > current().dense_limit:
        raise fail("E0706", f"`unstack` would make {x.shape[a]} tensors", "take slices one by one, as in `x[k]`")
    front = moveaxis(x, a, 0)
    return tuple(front[k] for k in range(x.shape[a]))


def broadcast_to(x: Any, /, shape: Any) -> Tensor:
    """The tensor broadcast to a shape; stored elements are repeated, all others stay implicit.

    >>> import tamis as tm
    >>> tm.broadcast_to([1, 2], (3, 2)).to_numpy()
    array([[1, 2],
           [1, 2],
           [1, 2]])
    """
    x, shape = as_tensor(x), as_shape(shape)
    if broadcast_shapes([x.shape, shape]) != shape:
        raise fail("E0402", f"the shape {x.shape} cannot be broadcast to {shape}", "sizes must be equal, or 1")
    if shape == x.shape:
        return x
    count = x.nnz * (num_elements(shape) // max(num_elements(x.shape), 1))
    check_nnz("broadcast_to", x, shape, count)
    dense = apply_if_strided("broadcast_to", x, lambda array: np.broadcast_to(array, shape))
    if dense is not None:
        return dense
    columns, values = to_coordinates(x)
    first = len(shape) - x.ndim
    free = [d for d, n in enumerate(shape) if d < first or (x.shape[d - first] == 1 and n != 1)]
    copies = num_elements(shape[d] for d in free)
    grid = unravel_index(np.arange(copies), tuple(shape[d] for d in free))
    spread: list[Any] = [None] * len(shape)
    for d, column in zip(free, grid):
        spread[d] = np.tile(column, len(values))
    for d in range(len(shape)):
        if spread[d] is None:
            spread[d] = np.repeat(columns[d - first], copies)
    return from_coordinates(x, spread, np.repeat(values, copies), shape)


def broadcast_arrays(*tensors: Any) -> list[Tensor]:
    """Tensors broadcast to one shape.

    >>> import tamis as tm
    >>> [t.shape for t in tm.broadcast_arrays([1, 2], [[3], [4]])]
    [(2, 2), (2, 2)]
    """
    parts = [as_tensor(t) for t in tensors]
    shape = broadcast_shapes(p.shape for p in parts)
    return [broadcast_to(p, shape) for p in parts]


def tile(x: Any, repetitions: Any, /) -> Tensor:
    """The tensor repeated side by side.

    >>> import tamis as tm
    >>> tm.tile([1, 2], (2, 2)).to_numpy()
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    x = as_tensor(x)
    times = as_shape(repetitions)
    rank = max(x.ndim, len(times))
    times = (1,) * (rank - len(times)) + times
    x = _same_entries(x, (1,) * (rank - x.ndim) + x.shape) if rank > x.ndim else x
    shape = check_dimensions(tuple(n * count for n, count in zip(x.shape, times)))
    check_nnz("tile", x, shape, x.nnz * num_elements(times))
    dense = apply_if_strided("tile", x, lambda array: np.tile(array, times))
    if dense is not None:
        return dense
    columns, values = to_coordinates(x)
    for a, count in enumerate(times):
        if count != 1 and len(values):
            before = len(values)
            columns, values = [np.tile(column, count) for column in columns], np.tile(values, count)
            columns[a] = columns[a] + np.repeat(np.arange(count) * x.shape[a], before)
    return from_coordinates(x, columns, values, shape)


def repeat(x: Any, repeats: int, /, *, axis: int | None = None) -> Tensor:
    """Every element several times in a row.

    >>> import tamis as tm
    >>> tm.repeat([1, 2], 2).to_numpy()
    array([1, 1, 2, 2])
    """
    x = as_tensor(x)
    if axis is None:
        x, axis = reshape(x, (num_elements(x.shape),)), 0
    a = normalize_axis(axis, x.ndim)
    try:
        count = operator.index(repeats)
    except TypeError:
        raise fail("E0305", f"the number of repetitions is an integer, not {repeats!r}", "repeat slices one by one") from None
    if count < 0:
        raise fail("E0709", f"nothing is repeated {count} times", "give 0 or more")
    shape = check_dimensions(x.shape[:a] + (x.shape[a] * count,) + x.shape[a + 1 :])
    check_nnz("repeat", x, shape, x.nnz * count)
    dense = apply_if_strided("repeat", x, lambda array: np.repeat(array, count, axis=a))
    if dense is not None:
        return dense
    columns, values = to_coordinates(x)
    count = count if len(values) else 1
    columns = [np.repeat(column, count) for column in columns]
    columns[a] = columns[a] * count + np.tile(np.arange(count), len(values))
    return from_coordinates(x, columns, np.repeat(values, count), shape)


def tril(x: Any, /, *, k: int = 0) -> Tensor:
    """The lower triangle of the last two dimensions: elements on and below a diagonal; zero elsewhere.

    >>> import tamis as tm
    >>> tm.tril([[1, 2], [3, 4]]).to_numpy()
    array([[1, 0],
           [3, 4]])
    """
    return _triangle(as_tensor(x), operator.index(k), "<=")


def triu(x: Any, /, *, k: int = 0) -> Tensor:
    """The upper triangle of the last two dimensions: elements on and above a diagonal; zero elsewhere.

    >>> import tamis as tm
    >>> tm.triu([[1, 2], [3, 4]], k=1).to_numpy()
    array([[0, 2],
           [0, 0]])
    """
    return _triangle(as_tensor(x), operator.index(k), ">=")


def _triangle(x: Tensor, k: int, relation: str) -> Tensor:
    if x.ndim < 2:
        raise fail("E0401", f"a tensor of {x.ndim} dimensions has no triangle", "give a matrix, or a stack of them")
    rows, columns = x.shape[-2:]
    k = max(-rows, min(k, columns))
    if not is_strided(x) and x.fill_value:
        raise fail(
            "E0709",
            f"the fill value is {x.fill_value}, so the other triangle would have to be stored",
            "take the triangle before the fill value changes, or convert it: `t.convert('dense')`",
        )
    names = "abcdefghijklmnopqrstuvwxyz"[: x.ndim]
    row, column = names[-2], names[-1]
    access = f"[{','.join(names)}]"
    # A mask bounds the loops: what lies outside is never visited.
    text = f"r{access} = ({column} - {row} {relation} {k}) {'and' if x.dtype == bool else '*'} A{access}"
    from ._shape_utils import format_levels

    return _tamis.einsum(text, x, format=format_levels(x)).astype(x.dtype)


def diagonal(x: Any, /, *, offset: int = 0) -> Tensor:
    """The diagonal of the last two dimensions.

    >>> import tamis as tm
    >>> tm.diagonal(tm.eye(3, format="csr")).nnz
    3
    """
    x = as_tensor(x)
    if x.ndim < 2:
        raise fail("E0401", f"a tensor of {x.ndim} dimensions has no diagonal", "give a matrix, or a stack of them")
    dense = apply_if_strided("diagonal", x, lambda array: np.diagonal(array, offset, -2, -1))
    if dense is not None:
        return dense
    columns, values = to_coordinates(x)
    row, column = columns[-2:]
    on = column - row == offset
    rows, width = x.shape[-2:]
    length = max(0, min(rows, width - offset) if offset >= 0 else min(rows + offset, width))
    place = (row if offset >= 0 else column)[on]
    shape = (*x.shape[:-2], length)
    return from_coordinates(x, [*(c[on] for c in columns[:-2]), place], values[on], shape, default_sparse_format(len(shape)))


def trace(x: Any, /, *, offset: int = 0) -> Tensor:
    """The sum of a diagonal.

    >>> import tamis as tm
    >>> tm.trace(tm.eye(3)).item()
    3.0
    """
    from ._reductions import sum as total

    return total(diagonal(x, offset=offset), axis=-1)
