"""Creation functions: tensors from a shape and a rule (zeros, eye, arange, ...)."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from . import _construct, _tamis, _tensor
from ._coordinates import as_tensor
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import format_levels, num_elements, check_size, is_strided, as_shape

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from ._tensor import Tensor


def _on(device: Any) -> None:
    if device not in (None, "cpu"):
        raise fail("E0709", f"there is no device {device!r}", "tensors live on the device 'cpu': leave `device` out")


def full(shape: Any, fill_value: Any, *, dtype: DTypeLike | None = None, device: Any = None, format: str = "dense") -> Tensor:
    """A tensor of one value; in a sparse format that value is the fill, and nothing is stored.

    >>> import tamis as tm
    >>> tm.full((2, 2), 7).to_numpy()
    array([[7, 7],
           [7, 7]])
    >>> tm.full((10**6, 10**6), 7.0, format="coo").nnz
    0
    """
    _on(device)
    _construct.refuse_gradient(fill_value)
    sizes = as_shape(shape)
    found = _tensor.dtype_of(np.asarray(fill_value).dtype if dtype is None else dtype)
    try:
        value = found.type(np.asarray(fill_value)[()])
        exact = found.kind not in "iu" or isinstance(fill_value, float) or int(fill_value) == int(value)
    except (OverflowError, TypeError, ValueError):
        exact = False
    if not exact:
        raise fail("E0306", f"{fill_value!r} does not fit the type {found}", "give another `dtype`, or leave it out")
    if format == "dense" or not sizes:
        check_size("full", sizes, num_elements(sizes), found.itemsize)
        return _construct.tensor(np.full(sizes, value, dtype=found))
    nothing = [np.zeros(0, dtype=np.int64) for _ in sizes]
    return _tamis.from_coordinates(nothing, np.zeros(0, dtype=found), list(sizes), format, value, "error")


def zeros(shape: Any, *, dtype: DTypeLike | None = None, device: Any = None, format: str = "dense") -> Tensor:
    """A tensor of zeros; nothing is stored in a sparse format.

    >>> import tamis as tm
    >>> tm.zeros((3, 4), format="csr")
    <tamis.Tensor 3x4 f64 csr, 0 stored>
    [[0. 0. 0. 0.]
     [0. 0. 0. 0.]
     [0. 0. 0. 0.]]
    """
    return full(shape, 0, dtype=np.float64 if dtype is None else dtype, device=device, format=format)


def ones(shape: Any, *, dtype: DTypeLike | None = None, device: Any = None, format: str = "dense") -> Tensor:
    """A tensor of ones.

    >>> import tamis as tm
    >>> tm.ones(3).to_numpy()
    array([1., 1., 1.])
    """
    return full(shape, 1, dtype=np.float64 if dtype is None else dtype, device=device, format=format)


empty = zeros


def _like(x: Any, value: Any, dtype: DTypeLike | None) -> Tensor:
    x = as_tensor(x)
    return full(x.shape, value, dtype=x.dtype if dtype is None else dtype, format="dense" if is_strided(x) else format_levels(x))


def zeros_like(x: Any, /, *, dtype: DTypeLike | None = None, device: Any = None) -> Tensor:
    """Zeros of the shape, type and format of a tensor.

    >>> import tamis as tm
    >>> tm.zeros_like(tm.eye(3, format="csr")).nnz
    0
    """
    _on(device)
    return _like(x, 0, dtype)


def ones_like(x: Any, /, *, dtype: DTypeLike | None = None, device: Any = None) -> Tensor:
    """Ones of the shape, type and format of a tensor.

    >>> import tamis as tm
    >>> tm.ones_like([1.5, 2.5]).to_numpy()
    array([1., 1.])
    """
    _on(device)
    return _like(x, 1, dtype)


def full_like(x: Any, /, fill_value: Any, *, dtype: DTypeLike | None = None, device: Any = None) -> Tensor:
    """One value in the shape, type and format of a tensor.

    >>> import tamis as tm
    >>> tm.full_like([1, 2], 9).to_numpy()
    array([9, 9])
    """
    _on(device)
    return _like(x, fill_value, dtype)


empty_like = zeros_like


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: Any = None,
    format: str = "dense",
) -> Tensor:
    """Ones on a diagonal, zeros elsewhere.

    >>> import tamis as tm
    >>> tm.eye(1000, format="csr").nnz
    1000
    """
    _on(device)
    rows, columns = as_shape((n_rows, n_rows if n_cols is None else n_cols))
    found = _tensor.dtype_of(np.float64 if dtype is None else dtype)
    if format == "dense":
        check_size("eye", (rows, columns), rows * columns, found.itemsize)
        return _construct.tensor(np.eye(rows, columns, k, dtype=found))
    length = max(0, min(rows, columns - k) if k >= 0 else min(rows + k, columns))
    check_size("eye", (rows, columns), length, found.itemsize + 16)
    along = np.arange(length, dtype=np.int64)
    diagonal = [along - min(k, 0), along + max(k, 0)]
    return _tamis.from_coordinates(diagonal, np.ones(length, dtype=found), [rows, columns], format, 0, "error")


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: DTypeLike | None = None, device: Any = None) -> Tensor:
    """Evenly spaced numbers, up to but not including ``stop``.

    >>> import tamis as tm
    >>> tm.arange(3).to_numpy()
    array([0, 1, 2])
    """
    _on(device)
    _construct.refuse_gradient(start, stop, step)
    if step == 0:
        raise fail("E0405", "the step is 0", "give another step")
    first, last = (0, start) if stop is None else (start, stop)
    count = max(0, -(-(last - first) // step))
    check_size("arange", (int(count),), int(count), 8)
    return _construct.tensor(np.arange(first, last, step, dtype=dtype and _tensor.dtype_of(dtype)))


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: DTypeLike | None = None, device: Any = None, endpoint: bool = True
) -> Tensor:
    """``num`` evenly spaced numbers.

    >>> import tamis as tm
    >>> tm.linspace(0, 1, 3).to_numpy()
    array([0. , 0.5, 1. ])
    """
    _on(device)
    _construct.refuse_gradient(start, stop)
    count = operator.index(num)
    if count < 0:
        raise fail("E0403", f"the number of samples is {num}", "give 0 or more")
    check_size("linspace", (count,), count, 16)
    return _construct.tensor(np.linspace(start, stop, count, endpoint=endpoint, dtype=dtype and _tensor.dtype_of(dtype)))


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Tensor]:
    """The coordinates of a grid, as ``numpy.meshgrid``; dense.

    >>> import tamis as tm
    >>> [g.shape for g in tm.meshgrid([1, 2], [3, 4, 5])]
    [(3, 2), (3, 2)]
    """
    parts = [as_tensor(a).to_numpy() for a in arrays]
    shape = tuple(len(p) for p in parts)
    check_size("meshgrid", shape, num_elements(shape), 8)
    return [_construct.tensor(g) for g in np.meshgrid(*parts, indexing=indexing)]  # type: ignore[call-overload]


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Tensor:
    """A tensor that shares the memory of another library's dense array.

    >>> import numpy as np, tamis as tm
    >>> tm.from_dlpack(np.ones(2)).to_numpy()
    array([1., 1.])
    """
    _construct.refuse_gradient(x)
    if not hasattr(x, "__dlpack__"):
        raise fail("E0709", f"{type(x).__name__} has no `__dlpack__`", "`tamis.asarray(x)` takes lists and arrays")
    array = np.from_dlpack(x)
    return _construct.tensor(array) if copy else _construct.asarray(array)
