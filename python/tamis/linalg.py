"""Linear algebra: norms, direct and iterative solvers, preconditioners, eigenvalues; as ``scipy.sparse.linalg`` names them.

Iterative solvers run products and updates as compiled, fused statements. Direct solvers and eigenvalues of sparse matrices are
SciPy's, on the tensor's own memory; without SciPy they are refused. Functions that have a result for every element, such as ``inv``
and ``svd``, take dense tensors, as the ``linalg`` extension of the Array API standard names them.

>>> import numpy as np, tamis as tm
>>> A = tm.gallery.laplacian(8)
>>> x, info = tm.linalg.cg(A, np.ones(64), M=tm.linalg.ichol(A))
>>> info, bool(tm.linalg.norm(A @ x - np.ones(64)) < 1e-4)
(0, True)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _elementwise, _reductions, _tamis
from ._coordinates import as_tensor, from_array
from ._dense_linalg import (
    cholesky,
    cross,
    eigh,
    eigvalsh,
    inv,
    matrix_rank,
    pinv,
    qr,
    as_tensors,
    refuse,
    svd,
    svdvals,
)
from ._errors import fail
from ._lazy_import import np
from ._linalg import matmul, matrix_transpose, outer, tensordot, vecdot
from ._manipulation import diagonal, trace
from ._shape_utils import format_levels, is_strided, normalize_axes
from ._solvers import (
    LeastSquares,
    Preconditioner,
    bicgstab,
    cg,
    gmres,
    ichol,
    ilu,
    jacobi,
    lobpcg,
    lsqr,
    solve_triangular,
    spsolve_triangular,
    square,
    ssor,
)
from ._structured import kron, kronsum

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = [
    "LeastSquares",
    "LogDeterminant",
    "Preconditioner",
    "bicgstab",
    "cg",
    "cholesky",
    "cross",
    "det",
    "diagonal",
    "eigh",
    "eigs",
    "eigsh",
    "eigvalsh",
    "expm_multiply",
    "gmres",
    "ichol",
    "ilu",
    "inv",
    "jacobi",
    "kron",
    "kronsum",
    "lobpcg",
    "lsqr",
    "lstsq",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "splu",
    "spsolve",
    "spsolve_triangular",
    "ssor",
    "svd",
    "svds",
    "svdvals",
    "tensordot",
    "trace",
    "vecdot",
    "vector_norm",
]


# Norms.


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of a vector or matrix, as ``numpy.linalg.norm``: every order; a number unless axes are left.

    Orders of vectors are numbers, ``inf`` and ``-inf``; of matrices ``"fro"``, ``1``, ``-1``, ``inf``, ``-inf``, ``2``, ``-2`` and
    ``"nuc"``. Nothing that is not stored is visited; ``2`` of a sparse matrix is its greatest singular value, by SciPy.

    >>> import tamis as tm
    >>> A = tm.tensor([[3.0, 0.0], [0.0, -4.0]], format="csr")
    >>> tm.linalg.norm(A), tm.linalg.norm(A, 1), tm.linalg.norm(A, axis=1).to_numpy()
    (5.0, 4.0, array([3., 4.]))
    """
    from ._returns import number

    t = as_tensor(x)
    axes = normalize_axes(axis, t.ndim)
    given = axis if isinstance(axis, (tuple, list)) else axes
    if ord is None and axis is None or ord in (None, "fro", "f") and len(axes) == 2:
        made = _elementwise.apply("sqrt", _reductions.sum(_squares(t), axis=axes, keepdims=keepdims))
    elif len(axes) == 1:
        made = vector_norm(t, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    elif len(axes) == 2:
        order = [a % t.ndim for a in given]
        t = t if order == sorted(order) else t.transpose([{order[0]: order[1], order[1]: order[0]}.get(d, d) for d in range(t.ndim)])
        made = _matrix_norm(t, ord, axes, keepdims)
    else:
        raise fail("E0401", f"a norm of order {ord!r} over {len(axes)} axes has no meaning", "name one axis or two")
    return number(made) if made.ndim == 0 else made


def _squares(t: Tensor) -> Tensor:
    if t.dtype.kind == "c":
        real, imaginary = (_elementwise.apply("square", _elementwise.apply(part, t)) for part in ("real", "imag"))
        return real + imaginary  # type: ignore[no-any-return]
    return _elementwise.apply("square", t if t.dtype.kind == "f" else t.astype(float))  # type: ignore[no-any-return]


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Tensor:
    """The norm of vectors along axes, or of all elements; of any order.

    >>> import tamis as tm
    >>> tm.linalg.vector_norm([[3.0, 4.0], [1.0, 0.0]], axis=1).to_numpy()
    array([5., 1.])
    """
    t = as_tensor(x)
    size = _elementwise.apply("abs", t)
    if ord == 2:
        return _elementwise.apply("sqrt", _reductions.sum(_squares(t), axis=axis, keepdims=keepdims))  # type: ignore[no-any-return]
    if ord in (math.inf, -math.inf):
        extreme = _reductions.max if ord > 0 else _reductions.min
        return extreme(size, axis=axis, keepdims=keepdims)
    if ord == 0:
        return _reductions.count_nonzero(t, axis=axis, keepdims=keepdims).astype(float)
    if ord == 1:
        return _reductions.sum(size, axis=axis, keepdims=keepdims)
    if not isinstance(ord, (int, float)):
        raise fail("E0709", f"there is no norm of vectors of order {ord!r}", "orders are numbers, `inf` and `-inf`")
    size = size if size.dtype.kind == "f" else size.astype(float)
    total = _reductions.sum(_elementwise.apply("pow", size, float(ord)), axis=axis, keepdims=keepdims)
    return _elementwise.apply("pow", total, 1.0 / ord)  # type: ignore[no-any-return]


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Tensor:
    """The norm of matrices, those of the last two dimensions.

    >>> import tamis as tm
    >>> tm.linalg.matrix_norm([[3.0, 0.0], [0.0, -4.0]], ord=1).item()
    4.0
    """
    t = as_tensor(x)
    if t.ndim < 2:
        raise fail("E0401", f"a tensor of {t.ndim} dimensions contains no matrices", "`vector_norm` takes vectors")
    axes = (t.ndim - 2, t.ndim - 1)
    if ord == "fro":
        return _elementwise.apply("sqrt", _reductions.sum(_squares(t), axis=axes, keepdims=keepdims))  # type: ignore[no-any-return]
    return _matrix_norm(t, ord, axes, keepdims)


def _matrix_norm(t: Tensor, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Tensor:
    if ord in (1, -1, math.inf, -math.inf):
        inner, outside = axes if abs(ord) == 1 else axes[::-1]
        sums = _reductions.sum(_elementwise.apply("abs", t), axis=inner, keepdims=True)
        made = (_reductions.max if ord > 0 else _reductions.min)(sums, axis=outside, keepdims=True)
        from ._manipulation import squeeze

        return made if keepdims else squeeze(made, axes)
    if ord not in (2, -2, "nuc"):
        raise fail("E0709", f"there is no norm of matrices of order {ord!r}", "orders are 'fro', 'nuc', 1, -1, 2, -2, inf and -inf")
    if is_strided(t):
        return from_array(np.asarray(np.linalg.norm(t._readable(), ord, axes, keepdims)))
    if ord != 2 or t.ndim != 2:
        refuse(t, f"norm of order {ord!r}", "the orders 'fro', 1, inf and 2 are those of sparse matrices")
    small = min(t.shape) < 3
    value = svdvals(t.convert("dense"))._readable()[0] if small else svds(t, k=1, return_singular_vectors=False)[0]
    return from_array(np.asarray(value).reshape((1, 1) if keepdims else ()))


# Direct solvers.


def _scipy(what: str) -> Any:
    try:
        import scipy.sparse.linalg
    except ImportError:
        raise fail(
            "E0903",
            f"`{what}` of sparse matrices is SciPy's, which is not installed",
            "install it: `pip install scipy`",
            "`tamis.linalg.cg`, `gmres` and `bicgstab` need nothing else",
        ) from None
    return scipy.sparse.linalg


def _right(b: Any) -> Any:
    """A right-hand side as NumPy or SciPy has it."""
    if isinstance(b, _tamis.Tensor):
        return b._readable() if is_strided(b) else b.to_scipy()  # type: ignore[attr-defined]
    return b


def spsolve(A: Any, b: Any, permc_spec: str | None = None, use_umfpack: bool = True) -> Any:
    """The solution of ``A @ x = b`` with a sparse matrix by LU factorisation: SuperLU, through SciPy.

    >>> import numpy as np, tamis as tm
    >>> A = tm.gallery.laplacian(4)
    >>> x = tm.linalg.spsolve(A, np.ones(16))
    >>> bool(np.allclose(A @ x, 1))
    True
    """
    t = square(A, "spsolve")
    library = _scipy("spsolve")
    right = _right(b)
    made = library.spsolve(_compressed(t, "csc").to_scipy(copy=False), right, permc_spec, use_umfpack)
    return as_tensor(made) if hasattr(made, "format") else made


def _compressed(t: Tensor, format: str) -> Tensor:
    if t.dtype.kind not in "fc":
        t = t.astype(float)
    return t if t.format == format else t.convert(format)


def solve(A: Any, b: Any, /) -> Any:
    """The solution of ``A @ x = b``: by SuperLU if the matrix is sparse, by LAPACK if it is dense.

    The result is an array of NumPy's if ``b`` is one, else a tensor.

    >>> import tamis as tm
    >>> tm.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [1.0, 1.0]).to_numpy()
    array([0.5 , 0.25])
    """
    t = as_tensor(A)
    if is_strided(t):
        made = np.linalg.solve(t._readable(), np.asarray(b))
    else:
        made = spsolve(t, b)
    return made if isinstance(b, np.ndarray) else as_tensor(made)


def lstsq(A: Any, b: Any, rcond: Any = None) -> Any:
    """Least squares: by LAPACK of a dense matrix as ``numpy.linalg.lstsq``, by :func:`lsqr` of a sparse one.

    >>> import numpy as np, tamis as tm
    >>> tm.linalg.lstsq(tm.eye(2, format="csr"), np.array([1.0, 2.0]))[0].round(6)
    array([1., 2.])
    """
    t = as_tensor(A)
    if is_strided(t):
        return np.linalg.lstsq(t._readable(), np.asarray(b), rcond)
    return lsqr(t, b, atol=1e-12, btol=1e-12)


def splu(A: Any, **options: Any) -> Any:
    """The LU factorisation of a sparse matrix: SciPy's object, whose ``solve(b)`` uses it as often as needed.

    >>> import numpy as np, tamis as tm
    >>> lu = tm.linalg.splu(tm.gallery.laplacian(4))
    >>> lu.solve(np.ones(16)).shape
    (16,)
    """
    return _scipy("splu").splu(_compressed(square(A, "splu"), "csc").to_scipy(copy=False), **options)


# Eigenvalues and singular values, by SciPy.


def eigsh(A: Any, k: int = 6, **options: Any) -> Any:
    """A few eigenvalues of a symmetric matrix, and their vectors: ``scipy.sparse.linalg.eigsh``, on the tensor's memory.

    >>> import numpy as np, tamis as tm
    >>> tm.linalg.eigsh(tm.diag(np.arange(1.0, 41.0)), k=2, return_eigenvectors=False).round(6)
    array([39., 40.])
    """
    return _scipy("eigsh").eigsh(_view(A), k, **options)


def eigs(A: Any, k: int = 6, **options: Any) -> Any:
    """A few eigenvalues of a square matrix: ``scipy.sparse.linalg.eigs``.

    >>> import numpy as np, tamis as tm
    >>> np.sort(tm.linalg.eigs(tm.diag(np.arange(1.0, 41.0)), k=2, return_eigenvectors=False).real).round(6)
    array([39., 40.])
    """
    return _scipy("eigs").eigs(_view(A), k, **options)


def svds(A: Any, k: int = 6, **options: Any) -> Any:
    """The greatest singular values of a matrix, and their vectors: ``scipy.sparse.linalg.svds``.

    >>> import numpy as np, tamis as tm
    >>> tm.linalg.svds(tm.diag(np.arange(1.0, 41.0)), k=1, return_singular_vectors=False).round(6)
    array([40.])
    """
    return _scipy("svds").svds(_view(A), k, **options)


def expm_multiply(A: Any, B: Any, **options: Any) -> Any:
    """The exponential of a matrix times a vector or matrix, without making the exponential: SciPy's.

    SciPy's function takes tensors, too, but makes a dense identity matrix for them; here it gets a sparse view.

    >>> import numpy as np, tamis as tm
    >>> tm.linalg.expm_multiply(tm.diag([0.0, 1.0]), np.ones(2)).round(4)
    array([1.    , 2.7183])
    """
    return _scipy("expm_multiply").expm_multiply(_view(A), _right(B), **options)


def _view(A: Any) -> Any:
    """A matrix as SciPy's functions take it: an array of SciPy's that shares the values, or a dense array."""
    if hasattr(A, "matvec") and not isinstance(A, _tamis.Tensor):
        return A
    t = as_tensor(A)
    t = t if t.dtype.kind in "fc" else t.astype(float)
    if is_strided(t):
        return t._readable()
    return (t if format_levels(t) in ("csr", "csc") else t.convert("csr")).to_scipy(copy=False)


# Determinants and powers.


def det(x: Any, /) -> Any:
    """The determinant: of a dense matrix a tensor, of a sparse one a number by SuperLU.

    >>> import tamis as tm
    >>> round(tm.linalg.det(tm.diag([2.0, 3.0])), 6)
    6.0
    """
    t = as_tensor(x)
    if is_strided(t):
        return as_tensors(np.linalg.det(t._readable()))
    sign, size = slogdet(t)
    return sign * math.exp(size)


class LogDeterminant(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    #: The sign of the determinant; for complex matrices, a number of absolute value 1.
    sign: Any
    #: The natural logarithm of the absolute value of the determinant.
    logabsdet: Any


def slogdet(x: Any, /) -> LogDeterminant:
    """The sign and the logarithm of the determinant; of a sparse matrix by SuperLU.

    >>> import math, tamis as tm
    >>> sign, size = tm.linalg.slogdet(tm.diag([2.0, -3.0]))
    >>> sign, round(math.exp(size), 6)
    (-1.0, 6.0)
    """
    t = as_tensor(x)
    if is_strided(t):
        return LogDeterminant(*(from_array(np.asarray(part)) for part in np.linalg.slogdet(t._readable())))
    if t.dtype.kind == "c":
        raise fail("E0308", "the sign of the determinant of a complex sparse matrix is not supported", "use a real matrix")
    try:
        lu = splu(t)
    except RuntimeError:
        return LogDeterminant(0.0, -math.inf)  # The matrix is singular.
    pivots = lu.U.diagonal()
    odd = _is_odd(lu.perm_r) ^ _is_odd(lu.perm_c) ^ bool(np.count_nonzero(pivots < 0) % 2)
    return LogDeterminant(-1.0 if odd else 1.0, float(np.log(np.abs(pivots)).sum()))


def _is_odd(permutation: Any) -> bool:
    seen, odd = np.zeros(len(permutation), dtype=bool), False
    for start in range(len(permutation)):
        length, k = 0, start
        while not seen[k]:
            seen[k] = True
            k, length = int(permutation[k]), length + 1
        odd ^= length > 0 and length % 2 == 0
    return odd


def matrix_power(x: Any, n: int, /) -> Tensor:
    """The product of so many copies of a square matrix; of a sparse one sparse.

    >>> import tamis as tm
    >>> tm.linalg.matrix_power(tm.diag([2.0, 3.0]), 3).to_numpy()
    array([[ 8.,  0.],
           [ 0., 27.]])
    """
    t = as_tensor(x)
    if is_strided(t):
        return as_tensors(np.linalg.matrix_power(t._readable(), n))  # type: ignore[no-any-return]
    if n < 0:
        refuse(t, "matrix_power with a negative exponent", "`tamis.linalg.solve(A, b)` needs no inverse")
    from ._creation import eye

    made, base = eye(square(t, "matrix_power").shape[0], format="csr", dtype=t.dtype), t
    while n:
        made = matmul(made, base) if n & 1 else made
        n >>= 1
        base = matmul(base, base) if n else base
    return made
