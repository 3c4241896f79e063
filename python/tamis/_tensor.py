"""The tensor class: immutable, in any format, cheap to copy and to share between threads."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Iterable

from . import _tamis
from ._config import current
from ._display import Display
from ._errors import _warn, fail
from ._indexing import Indexing
from ._lazy_import import np
from ._operators import Operators, handed_over
from ._reductions import Reductions
from ._scipy_methods import SciPyMethods
from ._shape_utils import format_bytes
from ._array_methods import ArrayMethods

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from ._pattern import Pattern
    from ._protocols import Elementwise, Product, Reduction, Selection, Sign

#: An array of more bytes that another library makes of a sparse tensor is reported.
_QUIET = 8 << 20

#: Our names of value types, and NumPy's.
DTYPES = {
    "bool": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "u8": "uint8",
    "u16": "uint16",
    "u32": "uint32",
    "u64": "uint64",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}
OURS = {theirs: ours for ours, theirs in DTYPES.items()}


def dtype_of(dtype: DTypeLike) -> np.dtype[Any]:
    """NumPy's type for whatever names one of ours: ``"f32"``, ``numpy.float32``, ``float``.

    In NumPy's shorthand ``"f8"`` has eight bytes and ``"f64"`` is no type; here ``"f64"`` has 64 bits, and so have all names of
    that kind. Where both know a name, as with ``"i8"``, the number counts bits.
    """
    try:
        found = np.dtype(DTYPES[dtype]) if isinstance(dtype, str) and dtype in DTYPES else np.dtype(dtype)
    except TypeError:
        found = None  # type: ignore[assignment]
    if found is None or found.name not in OURS:
        raise fail(
            "E0308",
            f"`{dtype}` is not a value type",
            f"types are {', '.join(DTYPES.values())}",
            "convert it first, for example with `x.astype(numpy.float64)`",
        )
    return found.newbyteorder("=")


def order_of(axes: Iterable[int] | None, rank: int) -> list[int]:
    """Dimensions in another order, counted from 0; reversed if none is given."""
    try:
        order = list(range(rank))[::-1] if axes is None else [operator.index(axis) for axis in axes]
    except TypeError:
        raise fail("E0305", f"{axes!r} is not a permutation of the dimensions", f"name each of 0..{rank - 1} once, in a tuple") from None
    whole = [axis % rank for axis in order if -rank <= axis < rank]
    if sorted(whole) != list(range(rank)) or len(order) != rank:
        raise fail("E0401", f"{tuple(order)} is not a permutation of {rank} dimensions", f"name each of 0..{rank - 1} once")
    return whole


def contiguous(array: Any, dtype: DTypeLike | None = None) -> NDArray[Any]:
    """A contiguous, aligned array of at least one dimension; the array itself, if it already is."""
    plain = np.ascontiguousarray(array, dtype=dtype)
    return plain if plain.flags.aligned else plain.copy()


class Tensor(Operators, Reductions, Indexing, ArrayMethods, SciPyMethods, Display, _tamis.Tensor):
    """A tensor: a dense grid of numbers to its user, stored in a ``format``.

    Made by :func:`tamis.tensor`, :func:`tamis.asarray`, files and generators; never changed afterwards.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 3.0]], format="csr")
    >>> A.shape, A.dtype, A.nnz, A.format
    ((2, 3), dtype('float64'), 3, 'csr')
    >>> A
    <tamis.Tensor 2x3 f64 csr, 3 stored>
    [[1. 0. 2.]
     [0. 0. 3.]]
    """

    __slots__ = ("__weakref__",)

    if TYPE_CHECKING:
        __add__: Elementwise
        __sub__: Elementwise
        __mul__: Elementwise
        __truediv__: Elementwise
        __floordiv__: Elementwise
        __mod__: Elementwise
        __pow__: Elementwise
        __and__: Elementwise
        __or__: Elementwise
        __xor__: Elementwise
        __lshift__: Elementwise
        __rshift__: Elementwise
        __radd__: Elementwise
        __rsub__: Elementwise
        __rmul__: Elementwise
        __rtruediv__: Elementwise
        __rfloordiv__: Elementwise
        __rmod__: Elementwise
        __rpow__: Elementwise
        __rand__: Elementwise
        __ror__: Elementwise
        __rxor__: Elementwise
        __eq__: Elementwise  # type: ignore[assignment]
        __ne__: Elementwise  # type: ignore[assignment]
        __lt__: Elementwise
        __le__: Elementwise
        __gt__: Elementwise
        __ge__: Elementwise
        __neg__: Sign
        __pos__: Sign
        __abs__: Sign
        __invert__: Sign
        __matmul__: Product  # type: ignore[assignment]
        __rmatmul__: Product  # type: ignore[assignment]
        __getitem__: Selection  # type: ignore[assignment]
        sum: Reduction  # type: ignore[assignment]
        prod: Reduction  # type: ignore[assignment]
        min: Reduction  # type: ignore[assignment]
        max: Reduction  # type: ignore[assignment]
        mean: Reduction  # type: ignore[assignment]
        var: Reduction  # type: ignore[assignment]
        std: Reduction  # type: ignore[assignment]
        any: Reduction  # type: ignore[assignment]
        all: Reduction  # type: ignore[assignment]
        argmax: Reduction  # type: ignore[assignment]
        argmin: Reduction  # type: ignore[assignment]
        count_nonzero: Reduction  # type: ignore[assignment]

    @property
    def T(self) -> Tensor:
        """A view with the dimensions reversed: nothing is moved, CSR becomes CSC.

        >>> import tamis as tm
        >>> tm.tensor([[1, 2], [0, 3]], format="csr").T.format
        'csc'
        """
        return self.transpose()

    @property
    def pattern(self) -> Pattern:
        """The sparsity pattern: what is stored, without the values; see :class:`tamis.Pattern`.

        >>> import tamis as tm
        >>> tm.eye(3, format="csr").pattern
        <tamis.Pattern 3x3 csr, 3 stored>
        """
        from ._pattern import Pattern

        return Pattern(self)

    def transpose(self, axes: Iterable[int] | None = None) -> Tensor:
        """A view with the dimensions in another order, reversed if none is given; as ``numpy.transpose``.

        >>> import tamis as tm
        >>> tm.gallery.random((2, 3, 4), 0.5).transpose((2, 0, 1)).shape
        (4, 2, 3)
        """
        return self._permuted(order_of(axes, self.ndim))

    def astype(self, dtype: DTypeLike) -> Tensor:
        """The tensor converted to another value type.

        >>> import tamis as tm
        >>> tm.tensor([1.5, 2.5]).astype("i64").to_numpy()
        array([1, 2])
        """
        found = dtype_of(dtype)
        return self if found == self.dtype else self.cast(OURS[found.name])

    def to_numpy(self, copy: bool | None = None) -> NDArray[Any]:
        """Every value, as a NumPy array of its own, which may be written.

        ``copy=False`` gives a read-only view of a dense tensor, which costs nothing. A sparse tensor is written out in full, unless
        that would take more than ``tamis.config(dense_limit=...)`` bytes.

        >>> import tamis as tm
        >>> x = tm.tensor([[1, 0], [0, 2]], format="coo").to_numpy()
        >>> x[0, 1] = 5
        >>> x
        array([[1, 5],
               [0, 2]])
        >>> tm.ones(3).to_numpy(copy=False).flags.writeable
        False
        """
        if copy is False:
            return self._dense_or_fail("to_numpy(copy=False)")
        return self._written_array(current().dense_limit)

    def _readable(self) -> NDArray[Any]:
        """Every value as a NumPy array to read: a view of a dense tensor, else like :meth:`to_numpy`; as ``numpy.asarray(t)``."""
        return self._dense_array(current().dense_limit)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if (ours := handed_over(self)) is not None:
            return ours
        array = self._readable()
        if array.nbytes > _QUIET and not self.is_dense:
            # The caller may be a library to which the user gave a sparse tensor.
            _warn(
                f"an array of {format_bytes(array.nbytes)} was made of a sparse tensor with {self.nnz:,} stored elements: "
                "`t.to_numpy()` says that it is wanted, `t.to_scipy()` gives a sparse array"
            )
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"values of type {array.dtype} cannot be had as {np.dtype(dtype)} without a copy")
            return array.astype(dtype)
        if copy is False and not self.is_dense:
            raise ValueError("a sparse tensor cannot be had as an array without a copy")
        return array.copy() if copy else array

    def to_coo(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The stored elements, sorted by coordinates: an array with a row per dimension, and the values.

        >>> import tamis as tm
        >>> tm.tensor([[0.0, 5.0], [7.0, 0.0]], format="csr").to_coo()
        (array([[0, 1],
               [1, 0]]), array([5., 7.]))
        """
        columns, values = self.coordinates()
        coords = np.empty((self.ndim, len(values)), dtype=np.int64)
        for row, column in zip(coords, columns):
            row[:] = column
        return coords, values.copy()

    def to_scipy(self, copy: bool = True) -> Any:
        """A ``scipy.sparse`` array: CSR, CSC, COO or BSR as they are, other formats as CSR, and other ranks than 2 as COO.

        ``copy=False`` gives read-only views of the values. Unstored elements are zero in SciPy, so a
        tensor with another fill is refused.

        >>> import tamis as tm
        >>> tm.gallery.laplacian(3).to_scipy().format
        'csr'
        """
        from ._interop import to_scipy

        return to_scipy(self, copy)

    def to_pandas(self, names: Iterable[str] | None = None) -> Any:
        """A ``pandas.DataFrame`` of what is stored: a column of coordinates for each dimension, and the values.

        >>> import tamis as tm
        >>> tm.eye(2, format="csr").to_pandas(["row", "column"])        # doctest: +SKIP
        """
        from ._columns import LabeledTensor

        return LabeledTensor(self, [f"dim_{d}" for d in range(self.ndim)] if names is None else list(names)).to_pandas()

    def to_pydata(self) -> Any:
        """A ``sparse.COO`` array of pydata/sparse, with the same fill value.

        >>> import tamis as tm
        >>> tm.eye(2, format="csr").to_pydata().nnz                     # doctest: +SKIP
        2
        """
        from ._foreign import to_pydata

        return to_pydata(self)

    def to_arrow(self) -> Any:
        """A ``pyarrow.SparseCOOTensor``.

        >>> import tamis as tm
        >>> tm.eye(2, format="csr").to_arrow().non_zero_length          # doctest: +SKIP
        2
        """
        from ._foreign import to_arrow

        return to_arrow(self)

    def to_torch(self) -> Any:
        """A PyTorch tensor: strided if this one is dense, else sparse CSR, CSC, BSR or COO."""
        from ._torch import to_torch

        return to_torch(self)

    def __dlpack__(self, **options: Any) -> Any:
        array = self._dense_or_fail("__dlpack__")
        try:
            return array.__dlpack__(**options)
        except BufferError:  # The consumer does not know of read-only memory.
            return array.copy().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def _dense_or_fail(self, what: str) -> NDArray[Any]:
        if not self.is_dense:
            raise fail(
                "E0707",
                f"`{what}` exports memory, and a tensor in the format `{self.format}` is not an array in memory",
                "convert it first: `t.convert('dense')`",
            )
        return self._readable()

    def item(self) -> Any:
        """The value of a tensor with one element, as a Python number.

        >>> import tamis as tm
        >>> tm.einsum("s = x[i]", x=[1, 2, 3]).item()
        6
        """
        if self.size != 1:
            raise fail(
                "E0401",
                f"a tensor of shape {self.shape} is not one number",
                "select an element, as in `t[0, 0]`",
            )
        return self.element([0] * self.ndim).item()

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    def __bool__(self) -> bool:
        return bool(self.item())

    def __format__(self, spec: str) -> str:
        """A tensor of one element is formatted as its number: ``f"{tm.sum(A):.3f}"``."""
        if spec and self.size != 1:
            raise fail(
                "E0401",
                f"a tensor of shape {self.shape} cannot be formatted with `{spec}`: it is not one number",
                "select an element, as in `t[0, 0]`, or reduce it, as in `t.sum()`",
            )
        return format(self.item(), spec) if self.size == 1 else str(self)

    def __str__(self) -> str:
        return repr(self) if self.ndim else str(self.item())

    def tolist(self) -> Any:
        """Nested lists of Python numbers, as ``numpy.ndarray.tolist``; refused where they would be huge.

        >>> import tamis as tm
        >>> tm.eye(2, format="csr").tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        return self._readable().tolist()

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("a tensor without dimensions has no length")
        return int(self.shape[0])

    def copy(self) -> Tensor:
        """The same tensor with memory of its own; tensors are immutable, so this matters only if the memory is borrowed."""
        if not self.is_borrowed:
            return self
        return rebuild(*self.__reduce__()[1])

    __copy__ = copy

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        levels = [self.level_arrays(k) for k in range(len(self.levels))]
        return rebuild, (self.shape, self.full_format, levels, self.values, self.fill_value)

    def __repr__(self) -> str:
        return f"<tamis.Tensor {self.summary()}>\n{corner(self)}"


def rebuild(shape: tuple[int, ...], format: str, levels: list[dict[str, Any]], values: Any, fill: Any) -> Tensor:
    """A tensor of the arrays of its levels, all of which is checked: what pickles call.

    >>> from tamis._tensor import rebuild
    >>> import numpy as np
    >>> level = {"pos": np.array([0, 2]), "crd": np.array([1, 3])}
    >>> rebuild((4,), "sparse", [level], np.array([5.0, 6.0]), 0.0).to_numpy()
    array([0., 5., 0., 6.])
    """
    values = None if values is None else contiguous(values)
    levels = [{name: contiguous(array) for name, array in level.items()} for level in levels]
    return _tamis.from_parts(list(shape), format, levels, values, fill, False)


def corner(tensor: Tensor, edge: int = 3) -> str:
    """The elements at the ends of each dimension, as NumPy prints them with ``...`` between, and how much is stored.

    >>> import tamis as tm
    >>> from tamis._tensor import corner
    >>> print(corner(tm.gallery.laplacian(10), edge=1))
    [[4. ... 0.]
     ...
     [0. ... 4.]]
    460 of 10,000 elements stored (4.6 %), 5.9 kB
    """
    shape = tensor.shape
    if 0 in shape:
        return f"[], shape {shape}"
    if not shape:
        return str(tensor.element([]))
    edges = [edge if len(shape) - d <= 2 else 1 for d in range(len(shape))]
    whole = all(n <= 2 * e for n, e in zip(shape, edges))
    # A dimension that is cut has one element between its ends, which NumPy leaves out.
    places = [range(n) if n <= 2 * e else [*range(e), e, *range(n - e, n)] for n, e in zip(shape, edges)]
    array = np.empty([len(p) for p in places], dtype=tensor.dtype)
    for index in np.ndindex(*array.shape):
        array[index] = tensor.element([p[k] for p, k in zip(places, index)])
    if whole:
        return np.array2string(array)
    text = np.array2string(array, threshold=0, edgeitems=edge if len(shape) <= 2 else 1)
    return f"{text}\n{stored(tensor)}"


def stored(tensor: Tensor) -> str:
    """How many elements a tensor stores, their share, and the memory of all arrays.

    >>> import tamis as tm
    >>> from tamis._tensor import stored
    >>> stored(tm.eye(10, format="csr"))
    '10 of 100 elements stored (10 %), 164 bytes'
    """
    size = tensor.size
    share = f" ({100 * tensor.nnz / size:.3g} %)" if size else ""
    return f"{tensor.nnz:,} of {size:,} elements stored{share}, {format_bytes(tensor.nbytes)}"
