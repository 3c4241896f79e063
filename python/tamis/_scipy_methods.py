"""Methods of tensors with the names of SciPy's sparse arrays and of its ``LinearOperator``.

``scipy.sparse.linalg`` takes every object with ``shape``, ``dtype``, ``matvec`` and ``rmatvec``, so tensors go into ``cg``, ``eigsh``
or ``svds`` as they are. What changes an array in place in SciPy gives a new tensor here, or says how to make one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from . import _elementwise, _linalg, _tamis
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import is_strided, normalize_axis

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from ._tensor import Tensor


def _function(name: str, ours: str) -> Callable[[Any], Tensor]:
    def method(self: Any) -> Tensor:
        found: Tensor = _elementwise.apply(ours, self)
        return found

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"See :func:`tamis.{ours}`; elementwise."
    return method


def _refused(name: str, *instead: str) -> Callable[..., Any]:
    """A method that would change the tensor; ``instead`` is what to write, or several such texts."""

    def method(self: Any, *given: Any, **options: Any) -> Any:
        texts = ", or ".join(f"`{text}`" for text in instead)
        raise fail("E0204", f"`{name}` would change the tensor, and tensors are immutable", f"make a new one: {texts}")

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"Refused, since tensors are immutable: write {', or '.join(f'``{text}``' for text in instead)}."
    return method


class SciPyMethods:
    """The methods of ``scipy.sparse`` arrays that are not NumPy's."""

    __slots__ = ()

    if TYPE_CHECKING:
        format: str
        shape: tuple[int, ...]
        ndim: int
        dtype: Any
        values: NDArray[Any] | None

    def toarray(self, order: str | None = None, out: NDArray[Any] | None = None) -> NDArray[Any]:
        """A NumPy array of every value, refused where it would be huge; see :meth:`tamis.Tensor.to_numpy`.

        >>> import tamis as tm
        >>> tm.eye(2, format="csr").toarray()
        array([[1., 0.],
               [0., 1.]])
        """
        if out is not None:
            out[...] = self._readable()  # type: ignore[attr-defined]
            return out
        made: NDArray[Any] = self.to_numpy()  # type: ignore[attr-defined]
        return made if order in (None, "C") else np.asarray(made, order="F")

    todense = toarray

    def asformat(self, format: str | None, copy: bool = False) -> Tensor:
        """The tensor in one of SciPy's formats (``"csr"``, ``"csc"``, ``"coo"``, ``"bsr"``, ``"dia"``) or any of ours.

        >>> import tamis as tm
        >>> tm.eye(4, format="csr").asformat("csc").format
        'csc'
        """
        if format is None:
            return self  # type: ignore[return-value]
        if format in ("bsr", "dia"):
            return self.tobsr() if format == "bsr" else self.todia()
        if format in ("lil", "dok"):
            raise fail(
                "E0601",
                f"`{format}` is a format for changing elements, and tensors are immutable",
                "`tamis.at(t)[i, j].set(value)` makes a new tensor",
                "`t.to_scipy().tolil()` gives SciPy's array",
            )
        return self.convert(format)  # type: ignore[attr-defined]

    def tocsr(self, copy: bool = False) -> Tensor:
        """The tensor in the format ``csr``."""
        return self.asformat("csr")

    def tocsc(self, copy: bool = False) -> Tensor:
        """The tensor in the format ``csc``."""
        return self.asformat("csc")

    def tocoo(self, copy: bool = False) -> Tensor:
        """The tensor in the format ``coo``."""
        return self.asformat("coo")

    def tobsr(self, blocksize: tuple[int, int] | None = None, copy: bool = False) -> Tensor:
        """The tensor in blocks of this size, 2 x 2 if none is given: ``bsr(R,C)``."""
        rows, columns = (2, 2) if blocksize is None else blocksize
        return self.convert(f"bsr({rows},{columns})")  # type: ignore[attr-defined]

    def todia(self, copy: bool = False) -> Tensor:
        """The tensor by diagonals: the format ``(i,j) -> (j-i, i): sparse, dense``."""
        return self.convert("(i,j) -> (j-i, i): sparse, dense")  # type: ignore[attr-defined]

    tolil = _refused("tolil", "tamis.at(t)[i, j].set(value)")
    todok = _refused("todok", "tamis.at(t)[i, j].set(value)")
    setdiag = _refused("setdiag", "tamis.at(t).diagonal(k).set(values)")
    resize = _refused("resize", "tamis.pad(t, widths)", "t[:rows, :columns]")

    @property
    def data(self) -> Any:
        """The stored values, read-only: ``values``, of a pattern as ``True``."""
        return np.ones(self.nnz, dtype=bool) if self.values is None else self.values  # type: ignore[attr-defined]

    @property
    def indptr(self) -> Any:
        """The positions of a matrix in CSR, CSC or BSR, in the type that SciPy uses; read-only."""
        return self._level("indptr", "pos")

    @property
    def indices(self) -> Any:
        """The coordinates of a matrix in CSR, CSC or BSR, in the type that SciPy uses; read-only."""
        return self._level("indices", "crd")

    def _level(self, name: str, array: str) -> Any:
        from ._interop import _kind, _signed

        if _kind(self) not in ("csr", "csc", "bsr"):  # type: ignore[arg-type]
            raise AttributeError(f"a tensor in the format `{self.format}` has no `{name}`: `t.level_arrays(k)` has its arrays")
        found = self.level_arrays(1)[array]  # type: ignore[attr-defined]
        return _signed(found, max(*self.shape, self.nnz), False)  # type: ignore[attr-defined]

    @property
    def coords(self) -> tuple[NDArray[np.int64], ...]:
        """The coordinates of what is stored, an array for each dimension."""
        return tuple(self.to_coo()[0])  # type: ignore[attr-defined]

    @property
    def row(self) -> NDArray[np.int64]:
        """The coordinates of what is stored in the first dimension."""
        return self.coords[0]

    @property
    def col(self) -> NDArray[np.int64]:
        """The coordinates of what is stored in the last dimension."""
        return self.coords[-1]

    @property
    def density(self) -> float:
        """The share of elements that are stored.

        >>> import tamis as tm
        >>> tm.eye(4, format="csr").density
        0.25
        """
        return self.nnz / self.size if self.size else 0.0  # type: ignore[attr-defined]

    def tensordot(self, other: Any, axes: Any = 2) -> Tensor:
        """See :func:`tamis.tensordot`."""
        return _linalg.tensordot(self, other, axes=axes)

    def getnnz(self, axis: int | None = None) -> Any:
        """How many elements are stored, in all or along an axis.

        >>> import tamis as tm
        >>> tm.eye(3, format="csr").getnnz(axis=1)
        array([1, 1, 1])
        """
        if axis is None:
            return self.nnz  # type: ignore[attr-defined]
        a = normalize_axis(axis, self.ndim)
        if self.ndim != 2:
            raise fail("E0401", "`getnnz(axis)` counts the elements of a matrix", "`tamis.count_nonzero(t, axis=...)` takes any rank")
        columns, _ = self.coordinates()  # type: ignore[attr-defined]
        return np.bincount(np.asarray(columns[1 - a], dtype=np.int64), minlength=self.shape[1 - a])

    def multiply(self, other: Any) -> Tensor:
        """``self * other``, element by element."""
        return self * other  # type: ignore[operator]

    def maximum(self, other: Any) -> Tensor:
        """The greater of both, element by element."""
        return _elementwise.apply("maximum", self, other)

    def minimum(self, other: Any) -> Tensor:
        """The less of both, element by element."""
        return _elementwise.apply("minimum", self, other)

    def power(self, n: Any, dtype: DTypeLike | None = None) -> Tensor:
        """``self ** n``, element by element."""
        base = self if dtype is None else self.astype(dtype)  # type: ignore[attr-defined]
        return base**n

    def eliminate_zeros(self) -> Tensor:
        """The tensor without stored elements that equal the fill value; a new one, unlike SciPy's.

        >>> import tamis as tm
        >>> tm.tensor(([[0, 1], [0, 1]], [0.0, 2.0], (2, 2))).eliminate_zeros().nnz
        1
        """
        from ._coordinates import from_coordinates, to_coordinates

        if is_strided(self) or self.values is None:  # type: ignore[arg-type]
            return self  # type: ignore[return-value]
        fill = self.fill_value  # type: ignore[attr-defined]
        unequal = self.values == self.values if fill != fill else self.values != fill
        if unequal.all():
            return self  # type: ignore[return-value]
        columns, values = to_coordinates(self)  # type: ignore[arg-type]
        keep = values == values if fill != fill else values != fill
        return from_coordinates(self, [c[keep] for c in columns], values[keep], self.shape)  # type: ignore[arg-type]

    def sum_duplicates(self) -> Tensor:
        """The tensor itself: equal coordinates are combined when a tensor is made."""
        return self  # type: ignore[return-value]

    def sort_indices(self) -> Tensor:
        """The tensor itself: coordinates are sorted when a tensor is made."""
        return self  # type: ignore[return-value]

    sorted_indices = sort_indices
    prune = sort_indices

    def check_format(self, full_check: bool = True) -> None:
        """Does nothing: arrays are checked when a tensor is made of them."""

    @property
    def has_sorted_indices(self) -> bool:
        """Always true."""
        return True

    @property
    def has_canonical_format(self) -> bool:
        """Always true."""
        return True

    def conjugate(self) -> Tensor:
        """The complex conjugates."""
        return self.conj()  # type: ignore[attr-defined, no-any-return]

    @property
    def H(self) -> Tensor:
        """The conjugate transpose."""
        return self.adjoint()

    def adjoint(self) -> Tensor:
        """The conjugate transpose; of real matrices a view.

        >>> import tamis as tm
        >>> tm.tensor([[1j, 0], [2, 3]], format="csr").adjoint()[0, 0]
        np.complex128(-1j)
        """
        transposed = self.transpose()  # type: ignore[attr-defined]
        return transposed.conj() if self.dtype.kind == "c" else transposed

    def matvec(self, x: Any) -> Any:
        """``A @ x`` with a vector or a column, as ``scipy.sparse.linalg.LinearOperator`` calls it."""
        return _linalg.product(self, x)

    def matmat(self, X: Any) -> Any:
        """``A @ X`` with a matrix, as ``scipy.sparse.linalg.LinearOperator`` calls it."""
        return _linalg.product(self, X)

    def rmatvec(self, x: Any) -> Any:
        """``A.adjoint() @ x``, as ``scipy.sparse.linalg.LinearOperator`` calls it."""
        return _linalg.product(self.adjoint(), x)

    def rmatmat(self, X: Any) -> Any:
        """``A.adjoint() @ X``, as ``scipy.sparse.linalg.LinearOperator`` calls it."""
        return _linalg.product(self.adjoint(), X)

    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """See :func:`tamis.swapaxes`."""
        from ._manipulation import swapaxes

        return swapaxes(self, axis1, axis2)

    def argsort(self, axis: int = -1, descending: bool = False) -> Any:
        """See :func:`tamis.argsort`."""
        from ._search import argsort

        return argsort(self, axis=axis, descending=descending)

    def cumsum(self, axis: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
        """See :func:`tamis.cumsum`."""
        from ._sets import cumsum

        return cumsum(self, axis=axis, dtype=dtype)

    def nansum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.nansum`."""
        return self._without_nan("nansum", axis, keepdims)

    def nanmin(self, axis: Any = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.nanmin`."""
        return self._without_nan("nanmin", axis, keepdims)

    def nanmax(self, axis: Any = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.nanmax`."""
        return self._without_nan("nanmax", axis, keepdims)

    def nanmean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """See :func:`tamis.nanmean`."""
        return self._without_nan("nanmean", axis, keepdims)

    def _without_nan(self, name: str, axis: Any, keepdims: bool) -> Any:
        from . import _nan_reductions
        from ._returns import number

        made = getattr(_nan_reductions, name)(self, axis=axis, keepdims=keepdims)
        return number(made) if axis is None and not keepdims else made

    sin, sinh, tan, tanh = (_function(name, name) for name in "sin sinh tan tanh".split())
    arcsin, arcsinh, arctan, arctanh = (_function(f"arc{name}", f"a{name}") for name in "sin sinh tan tanh".split())
    expm1, log1p, sqrt, sign = (_function(name, name) for name in "expm1 log1p sqrt sign".split())
    floor, ceil, trunc = (_function(name, name) for name in "floor ceil trunc".split())
    rint = _function("rint", "round")

    def round(self, decimals: int = 0) -> Tensor:
        """The numbers rounded to so many decimals; halves to even."""
        return round(self, decimals)  # type: ignore[call-overload]

    def deg2rad(self) -> Tensor:
        """Degrees as radians."""
        return self * (np.pi / 180)  # type: ignore[return-value, operator]

    def rad2deg(self) -> Tensor:
        """Radians as degrees."""
        return self * (180 / np.pi)  # type: ignore[return-value, operator]


def issparse(x: Any, /) -> bool:
    """Whether it is a tensor that does not store every element, or a sparse array of SciPy's.

    >>> import tamis as tm
    >>> tm.issparse(tm.eye(3, format="csr")), tm.issparse(tm.ones(3))
    (True, False)
    """
    if isinstance(x, _tamis.Tensor):
        return not is_strided(x)
    import sys

    scipy = sys.modules.get("scipy.sparse")
    return bool(scipy is not None and scipy.issparse(x))
