"""Functions of dense matrices by LAPACK, through NumPy: a sparse matrix is refused with the size that it would have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._coordinates import as_tensor, from_array
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import format_bytes, is_strided, num_elements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor


def refuse(t: Tensor, what: str, instead: str) -> None:
    """Raises E0706: the function needs every element."""
    size = num_elements(t.shape) * t.dtype.itemsize
    raise fail(
        "E0706",
        f"`{what}` needs an array of every element: {' x '.join(map(str, t.shape))} values, {format_bytes(size)}",
        instead,
        "`t.convert('dense')` makes it dense",
    )


def _dense(x: Any, what: str, instead: str) -> NDArray[Any]:
    t = as_tensor(x)
    if not is_strided(t):
        refuse(t, f"tamis.linalg.{what}", instead)
    return t._readable()


def as_tensors(made: Any) -> Any:
    """Several results with the names that NumPy gives them."""
    if hasattr(made, "_fields"):
        return type(made)(*(from_array(np.ascontiguousarray(part)) for part in made))
    return from_array(np.ascontiguousarray(made).reshape(np.shape(made)))


def inv(x: Any, /) -> Tensor:
    """The inverse of a dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).to_numpy()
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    return as_tensors(np.linalg.inv(_dense(x, "inv", "`tamis.linalg.solve(A, b)` needs no inverse")))  # type: ignore[no-any-return]


def pinv(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The pseudo-inverse of a dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.pinv([[2.0], [0.0]]).to_numpy()
    array([[0.5, 0. ]])
    """
    array = _dense(x, "pinv", "`tamis.linalg.lsqr(A, b)` needs no inverse")
    return as_tensors(np.linalg.pinv(array) if rtol is None else np.linalg.pinv(array, rtol))  # type: ignore[no-any-return]


_FEW = "`tamis.linalg.eigsh(A, k)` and `svds(A, k)` find a few of them for sparse matrices"


def cholesky(x: Any, /, *, upper: bool = False) -> Tensor:
    """The Cholesky factor of a dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.cholesky([[4.0, 0.0], [0.0, 9.0]]).to_numpy()
    array([[2., 0.],
           [0., 3.]])
    """
    factor = np.linalg.cholesky(_dense(x, "cholesky", "`tamis.linalg.ichol` is the incomplete one of sparse matrices"))
    return as_tensors(np.conj(np.swapaxes(factor, -1, -2)) if upper else factor)  # type: ignore[no-any-return]


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Tensor:
    """The cross product of dense vectors of three elements.

    >>> import tamis as tm
    >>> tm.linalg.cross([1, 0, 0], [0, 1, 0]).to_numpy()
    array([0, 0, 1])
    """
    instead = "write the three elements as index notation"
    return as_tensors(np.cross(_dense(x1, "cross", instead), _dense(x2, "cross", instead), axis=axis))  # type: ignore[no-any-return]


def eigh(x: Any, /) -> Any:
    """The eigenvalues and eigenvectors of a symmetric dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.eigh([[2.0, 0.0], [0.0, 1.0]]).eigenvalues.to_numpy()
    array([1., 2.])
    """
    return as_tensors(np.linalg.eigh(_dense(x, "eigh", _FEW)))


def eigvalsh(x: Any, /) -> Tensor:
    """The eigenvalues of a symmetric dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]]).to_numpy()
    array([1., 2.])
    """
    return as_tensors(np.linalg.eigvalsh(_dense(x, "eigvalsh", _FEW)))  # type: ignore[no-any-return]


def qr(x: Any, /, *, mode: Any = "reduced") -> Any:
    """The QR factorisation of a dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.qr([[2.0, 0.0], [0.0, 1.0]]).R.shape
    (2, 2)
    """
    return as_tensors(np.linalg.qr(_dense(x, "qr", "`tamis.linalg.lsqr` solves sparse least squares"), mode))


def svd(x: Any, /, *, full_matrices: bool = True) -> Any:
    """The singular value decomposition of a dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.svd([[2.0, 0.0], [0.0, 1.0]]).S.to_numpy()
    array([2., 1.])
    """
    return as_tensors(np.linalg.svd(_dense(x, "svd", _FEW), full_matrices))


def svdvals(x: Any, /) -> Tensor:
    """The singular values of a dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.svdvals([[2.0, 0.0], [0.0, 1.0]]).to_numpy()
    array([2., 1.])
    """
    return as_tensors(np.linalg.svd(_dense(x, "svdvals", _FEW), compute_uv=False))  # type: ignore[no-any-return]


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Tensor:
    """The rank of a dense matrix.

    >>> import tamis as tm
    >>> tm.linalg.matrix_rank([[1.0, 1.0], [1.0, 1.0]]).item()
    1
    """
    array = _dense(x, "matrix_rank", _FEW)
    values = np.linalg.svd(array, compute_uv=False)
    share = max(array.shape[-2:]) * np.finfo(values.dtype).eps if rtol is None else np.asarray(rtol)[..., None]
    bound = values.max(axis=-1, keepdims=True, initial=0) * share
    return from_array(np.asarray((values > bound).sum(axis=-1)))
