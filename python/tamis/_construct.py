"""Constructors of tensors from lists, arrays of other libraries, and coordinates."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Sequence

from . import _tamis
from ._errors import fail
from ._lazy_import import np
from ._tensor import Tensor, contiguous, dtype_of
from ._trace import Symbolic

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray


def tensor(
    data: Any,
    format: str | None = None,
    fill: Any = None,
    dtype: DTypeLike | None = None,
    *,
    duplicates: str = "sum",
) -> Tensor:
    """A new tensor that owns its memory.

    ``data`` is a number, nested lists, a NumPy array, a ``scipy.sparse`` array or matrix, a PyTorch tensor (strided or sparse), a
    triple ``(coords, values, shape)``, a tensor, or anything with ``__dlpack__`` or ``__array__``. In a triple, ``coords`` has a
    row for each dimension; entries may come in any order, and those with equal coordinates are combined as ``duplicates`` says:
    ``"sum"`` as SciPy does, ``"error"``, ``"prod"``, ``"min"``, ``"max"``, ``"any"``, ``"all"``, ``"first"`` or ``"last"``.

    ``format`` says how it is stored (``"csr"``, ``"dense, sparse"``, ...); by default, dense data stays dense, SciPy's
    and PyTorch's formats stay what they are, and coordinates become lists of their rank: ``csr`` for matrices. ``fill`` is the
    value of all that is not stored, 0 by default; of dense data, only what differs from it is stored in sparse formats.

    >>> import numpy as np, tamis as tm
    >>> tm.tensor([[1, 0], [0, 2]], format="csr").nnz
    2
    >>> tm.tensor(([[0, 1, 1], [2, 0, 0]], [1.0, 2.0, 3.0], (2, 3))).to_numpy()
    array([[0., 0., 1.],
           [5., 0., 0.]])
    >>> tm.tensor(np.full(3, np.inf), format="sparse", fill=np.inf).nnz
    0
    """
    if fill is not None:
        refuse_gradient(fill)
    return _make(data, format, fill, dtype, duplicates, borrow=False)


def asarray(
    data: Any,
    dtype: DTypeLike | None = None,
    *,
    device: Any = None,
    copy: bool | None = None,
    format: str | None = None,
) -> Tensor:
    """A tensor that shares memory with ``data`` where the layouts agree; else as :func:`tensor`.

    The values of contiguous NumPy arrays, of SciPy's CSR, CSC, COO and BSR, and of PyTorch tensors on the CPU are shared; booleans are
    not, since any byte of them that is not 0 or 1 would be a wrong answer. Who changes such values afterwards changes the tensor.
    With a ``format``, they are converted to it. Positions and coordinates are always copied, and checked: compiled code relies on them, so no other code may change them.

    >>> import numpy as np, tamis as tm
    >>> x = np.zeros(3)
    >>> t = tm.asarray(x)
    >>> x[1] = 5.0
    >>> t.to_numpy()
    array([0., 5., 0.])
    """
    if device not in (None, "cpu"):
        raise fail("E0709", f"there is no device {device!r}", "tensors live on the device 'cpu': leave `device` out")
    if isinstance(data, Tensor) or hasattr(data, "__tamis_tensor__"):
        tensor: Tensor = data if isinstance(data, Tensor) else data.__tamis_tensor__
        tensor = tensor if dtype is None else tensor.astype(dtype)
        return tensor if format is None else tensor.convert(format)
    return _make(data, format, None, dtype, "sum", borrow=not copy)


#: Libraries with sparse arrays that are taken by their arrays.
_FOREIGN = {"sparse", "pandas", "pyarrow", "jax", "jaxlib"}


def _make(data: Any, format: str | None, fill: Any, dtype: DTypeLike | None, duplicates: str, borrow: bool) -> Tensor:
    wanted = None if dtype is None else dtype_of(dtype)
    if isinstance(data, np.ndarray):
        return from_numpy(data, format, fill, wanted, borrow)
    if isinstance(data, Tensor):
        return _from_tensor(data, format, fill, wanted)
    if isinstance(data, Symbolic):
        raise fail("E0709", "an index expression is not a tensor yet", "choose its dimensions: `expression.evaluate(i, j)`")
    if hasattr(data, "__tamis_tensor__"):
        return _make(data.__tamis_tensor__, format, fill, dtype, duplicates, borrow)
    # A SciPy or PyTorch object exists only where that library was imported: it is never imported here.
    if "scipy.sparse" in sys.modules and sys.modules["scipy.sparse"].issparse(data):
        from ._interop import from_scipy

        return from_scipy(data, format, fill, wanted, borrow)
    if "torch" in sys.modules:
        from ._torch import from_torch

        # In lists and in coordinates and values a gradient would be lost as well.
        refuse_gradient(data)
        if isinstance(data, sys.modules["torch"].Tensor):
            return from_torch(data, format, fill, wanted, borrow)
    if type(data).__module__.split(".")[0] in _FOREIGN:
        from ._foreign import from_foreign

        taken = from_foreign(data, format, fill, wanted, borrow)
        if taken is not None:
            return taken
    if isinstance(data, tuple) and len(data) == 3 and isinstance(data[2], (tuple, list)) and _are_coordinates(data[0]):
        return from_coordinates(data[0], data[1], data[2], format, fill, wanted, duplicates)
    return from_numpy(_array(data), format, fill, wanted, borrow)


def refuse_gradient(*given: Any) -> None:
    """Refuses PyTorch tensors that require a gradient, also in nested lists: the result would not be connected to them."""
    if "torch" in sys.modules:
        from ._torch import refuse_gradient

        refuse_gradient(given)


def _are_coordinates(coords: Any) -> bool:
    """A triple of lists could be rows, too; coordinates are rows of integers."""
    if isinstance(coords, np.ndarray):
        return coords.ndim == 2
    return isinstance(coords, (tuple, list)) and all(
        np.ndim(row) == 1 if isinstance(row, np.ndarray) else isinstance(row, (tuple, list, range)) for row in coords
    )


def _array(data: Any) -> NDArray[Any]:
    if hasattr(data, "__dlpack__") and not hasattr(data, "__array__"):
        return np.from_dlpack(data)
    try:
        return np.asarray(data)
    except ValueError as error:
        raise fail(
            "E0701", f"no array can be made of this: {error}", "give lists of equal lengths, or `(coords, values, shape)`"
        ) from None


def _from_tensor(data: Tensor, format: str | None, fill: Any, dtype: Any) -> Tensor:
    made = data if dtype is None else data.astype(dtype)
    if fill is not None and not same_number(fill, made.fill_value):
        raise fail(
            "E0709",
            f"the tensor's fill is {made.fill_value}, and changing it to {fill} would change every unstored value",
            "leave `fill` out",
            "make it dense first: `tm.tensor(t.to_numpy(), format, fill=...)`",
        )
    return (made if format is None else made.convert(format)).copy()


def same_number(a: Any, b: Any) -> bool:
    """Whether both are the same number; NaN is."""
    return bool(a == b) or bool(a != a and b != b)


def from_numpy(array: NDArray[Any], format: str | None, fill: Any, dtype: Any, borrow: bool) -> Tensor:
    """A dense array, of any strides."""
    if isinstance(array, np.ma.MaskedArray):
        raise fail(
            "E0308",
            "a masked array has elements without a value",
            "fill them first: `array.filled(0)`",
        )
    if array.dtype == object and dtype is None:
        raise fail(
            "E0308",
            "an array of Python objects is not an array of numbers",
            "give rows of equal lengths, and numbers only",
            "convert it first, for example with `x.astype(numpy.float64)`",
        )
    plain = contiguous(array, dtype=dtype_of(array.dtype) if dtype is None else dtype)
    plain = plain.reshape(array.shape)  # A scalar stays without dimensions.
    # The arrays created here are not shared, so no copy is needed.
    ours = plain is not array and not np.may_share_memory(plain, array)
    return _tamis.from_dense(plain, format, 0 if fill is None else fill, borrow, ours)


def from_coordinates(
    coords: Any,
    values: Any,
    shape: Sequence[int],
    format: str | None,
    fill: Any,
    dtype: Any,
    duplicates: str,
) -> Tensor:
    """Entries in any order."""
    sizes = _shape(shape)
    columns = [_indices(column) for column in coords]
    count = len(columns[0]) if columns else 1
    array = np.asarray(values)
    found = dtype_of(array.dtype) if dtype is None else dtype
    if array.ndim == 0:
        array = np.full(count, array, dtype=found)
    plain = contiguous(array, dtype=found).reshape(-1)
    name = format or {0: "dense", 1: "sparse", 2: "csr"}.get(len(sizes), "csf")
    return _tamis.from_coordinates(columns, plain, sizes, name, 0 if fill is None else fill, duplicates)


def _shape(shape: Sequence[int]) -> list[int]:
    sizes = []
    for n in shape:
        if not hasattr(n, "__index__") or n.__index__() < 0:
            raise fail("E0403", f"{n!r} is not the size of a dimension", "sizes are integers, 0 or more")
        if n.__index__() >= 1 << 63:
            raise fail("E0404", f"a dimension of size {n} is too large", "a dimension has at most 2**63 - 1 coordinates")
        sizes.append(n.__index__())
    return sizes


def _indices(column: Any) -> NDArray[Any]:
    array = np.asarray(column)
    if array.size == 0:
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise fail("E0305", f"coordinates are integers, not {array.dtype}", "convert them: `coords.astype(numpy.int64)`")
    return contiguous(array).reshape(-1)
