"""Iterative solvers, preconditioners and triangular solution; :mod:`tamis.linalg` is their public name.

Each iteration makes one or two products with the matrix, in compiled code, and updates vectors in fused statements of index
notation. A matrix is a tensor, or any object with ``shape``, ``dtype``, ``matvec`` and ``rmatvec``.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from . import _tamis
from ._coordinates import as_tensor
from ._errors import fail
from ._lazy_import import np
from ._linalg import product
from ._manipulation import diagonal
from ._shape_utils import is_strided

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor


def square(A: Any, what: str) -> Tensor:
    """A square matrix as a tensor; anything else is a diagnostic."""
    t = as_tensor(A)
    if t.ndim != 2 or t.shape[0] != t.shape[1]:
        raise fail("E0402", f"`{what}` takes a square matrix, not one of shape {t.shape}", "`tamis.linalg.lsqr` takes any matrix")
    return t


def _half(t: Tensor, what: str) -> Tensor:
    """A square matrix as compiled substitution takes it."""
    if t.fill_value and not is_strided(t):
        raise fail("E0709", f"`{what}` needs a matrix whose fill value is 0, not {t.fill_value}", "subtract it: `t - t.fill_value`")
    if t.dtype.kind == "c":
        raise fail("E0308", f"`{what}` takes real matrices, not {t.dtype}", "`tamis.linalg.spsolve` takes complex ones")
    t = t if t.dtype == np.float64 else t.astype(float)
    return t if t.format == "csr" else t.convert("csr")


def solve_triangular(A: Any, b: Any, lower: bool = True, unit_diagonal: bool = False) -> NDArray[Any]:
    """The solution with the lower (or upper) triangle of a matrix, by substitution; the other triangle is not read.

    >>> import tamis as tm
    >>> tm.linalg.solve_triangular([[2.0, 9.0], [1.0, 4.0]], [2.0, 9.0])
    array([1., 2.])
    """
    t = _half(square(A, "solve_triangular"), "solve_triangular")
    right = np.ascontiguousarray(np.asarray(b), dtype=float)
    if right.ndim not in (1, 2) or right.shape[0] != t.shape[0]:
        raise fail("E0402", f"a right-hand side of shape {right.shape} does not fit {t.shape[0]} rows", "give one value for each row")
    if not right.size:
        return right.copy()
    made: NDArray[Any] = _tamis.substituted(t, right, lower, unit_diagonal)
    return made.reshape(right.shape)


def spsolve_triangular(A: Any, b: Any, lower: bool = True, unit_diagonal: bool = False) -> NDArray[Any]:
    """See :func:`solve_triangular`.

    >>> import tamis as tm
    >>> tm.linalg.spsolve_triangular(tm.eye(2, format="csr"), [3.0, 4.0])
    array([3., 4.])
    """
    return solve_triangular(A, b, lower, unit_diagonal)


# Preconditioners.


class Preconditioner:
    """An approximation of the inverse of a matrix: ``M @ r``, and what SciPy's solvers take as ``M``."""

    def __init__(self, size: int, name: str, solve: Callable[[NDArray[Any]], NDArray[Any]]) -> None:
        self.shape = size, size
        self.dtype = np.dtype(float)
        self._name, self._solve = name, solve

    def matvec(self, r: Any) -> NDArray[Any]:
        """The product with a vector."""
        array = np.asarray(r)
        return self._solve(array.ravel()).reshape(array.shape)

    def rmatvec(self, r: Any) -> NDArray[Any]:
        """The product with a vector; these preconditioners are used as if they were symmetric."""
        return self.matvec(r)

    __matmul__ = matvec

    def __repr__(self) -> str:
        return f"<tamis.linalg.{self._name} of a {self.shape[0]}x{self.shape[1]} matrix>"


def jacobi(A: Any) -> Preconditioner:
    """The Jacobi preconditioner: division by the diagonal.

    >>> import numpy as np, tamis as tm
    >>> tm.linalg.jacobi(tm.diag([2.0, 4.0])) @ np.ones(2)
    array([0.5 , 0.25])
    """
    t = square(A, "jacobi")
    along = diagonal(t)._readable()
    if not np.all(along):
        row = int(np.flatnonzero(along == 0)[0])
        raise fail("E0709", f"the diagonal element of row {row} is 0", "permute the rows so that the diagonal is not zero")
    inverse = 1 / along
    return Preconditioner(t.shape[0], "jacobi", lambda r: inverse * r)


def ssor(A: Any, omega: float = 1.0) -> Preconditioner:
    """The symmetric successive over-relaxation preconditioner: a forward and a backward substitution.

    >>> import numpy as np, tamis as tm
    >>> tm.linalg.ssor(tm.diag([2.0, 4.0])) @ np.ones(2)
    array([0.5 , 0.25])
    """
    if not 0 < omega < 2:
        raise fail("E0709", f"the relaxation factor is {omega}", "give a number between 0 and 2")
    t = _half(square(A, "ssor"), "ssor")
    along = diagonal(t)._readable()
    from ._structured import diags

    scaled = _half((t + diags([along * (1 / omega - 1)], [0])).convert("csr"), "ssor")
    factor = (2 - omega) / omega

    def solve(r: NDArray[Any]) -> NDArray[Any]:
        middle = solve_triangular(scaled, r) * along * factor
        return solve_triangular(scaled, middle, lower=False)

    return Preconditioner(t.shape[0], "ssor", solve)


def ilu(A: Any) -> Preconditioner:
    """The incomplete LU factorisation without fill-in, ILU(0), as a preconditioner.

    >>> import numpy as np, tamis as tm
    >>> bool(np.allclose(tm.linalg.ilu(tm.diag([2.0, 4.0])) @ np.ones(2), [0.5, 0.25]))
    True
    """
    factors = _tamis.factorised(_half(square(A, "ilu"), "ilu"), False)

    def solve(r: NDArray[Any]) -> NDArray[Any]:
        return solve_triangular(factors, solve_triangular(factors, r, unit_diagonal=True), lower=False)

    return Preconditioner(factors.shape[0], "ilu", solve)


def ichol(A: Any) -> Preconditioner:
    """The incomplete Cholesky factorisation without fill-in, IC(0), of a symmetric positive definite matrix.

    >>> import numpy as np, tamis as tm
    >>> bool(np.allclose(tm.linalg.ichol(tm.diag([4.0, 9.0])) @ np.ones(2), [1 / 4, 1 / 9]))
    True
    """
    from ._manipulation import tril

    t = _half(square(A, "ichol"), "ichol")
    lower = _tamis.factorised(_half(tril(t), "ichol"), True)
    upper = _half(lower.T, "ichol")

    def solve(r: NDArray[Any]) -> NDArray[Any]:
        return solve_triangular(upper, solve_triangular(lower, r), lower=False)

    return Preconditioner(t.shape[0], "ichol", solve)


# Iterative solvers.


class _System(NamedTuple):
    """A linear system as solvers take it: products as functions of arrays."""

    size: tuple[int, int]
    apply: Callable[[Any], Any]
    adjoint: Callable[[Any], Any]
    precondition: Callable[[Any], Any]
    right: NDArray[Any]
    start: NDArray[Any]
    bound: float


def _system(A: Any, b: Any, x0: Any, M: Any, rtol: float, atol: float, what: str, any_shape: bool = False) -> _System:
    if not hasattr(A, "matvec") or isinstance(A, _tamis.Tensor):
        A = as_tensor(A) if any_shape else square(A, what)
        A = A if A.dtype.kind in "fc" else A.astype(float)
    shape = tuple(A.shape)
    right = np.asarray(b)
    flat = right.ravel()
    if right.ndim > 2 or right.ndim == 2 and right.shape[1] != 1 or len(flat) != shape[0]:
        raise fail("E0402", f"a right-hand side of shape {right.shape} does not fit {shape[0]} rows", "give one value for each row")
    kind = np.result_type(A.dtype, flat.dtype, np.float32 if A.dtype == np.float32 else np.float64)
    flat = flat.astype(kind)
    start = np.zeros(shape[1], dtype=kind) if x0 is None else np.array(x0, dtype=kind).ravel()
    if len(start) != shape[1]:
        raise fail("E0402", f"a start of {len(start)} elements does not fit {shape[1]} columns", "give one value for each column")
    if M is None:
        precondition: Any = lambda r: r  # noqa: E731
    elif hasattr(M, "matvec"):
        precondition = M.matvec
    else:
        precondition = M if callable(M) else lambda r: product(as_tensor(M), r)
    bound = max(atol, rtol * float(np.linalg.norm(flat)))
    return _System(shape, A.matvec, A.rmatvec, precondition, flat, start, bound)  # type: ignore[arg-type]


#: The fused updates of conjugate gradients.
_STEP = "x2[i] = x[i] + a * p[i]; r2[i] = r[i] - a * q[i]"


def cg(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[NDArray[Any]], Any] | None = None,
) -> tuple[NDArray[Any], int]:
    """Conjugate gradients, for symmetric positive definite matrices: the solution, and 0 if it converged, else the iterations.

    >>> import numpy as np, tamis as tm
    >>> A = tm.gallery.laplacian(8)
    >>> x, info = tm.linalg.cg(A, np.ones(64))
    >>> info, bool(np.linalg.norm(A @ x - 1) < 1e-4)
    (0, True)
    """
    s = _system(A, b, x0, M, rtol, atol, "cg")
    x, r = s.start, s.right - s.apply(s.start)
    most = 10 * s.size[0] if maxiter is None else maxiter
    before, p = 0.0, r
    for _ in range(most):
        if np.linalg.norm(r) <= s.bound:
            return np.array(x), 0
        z = s.precondition(r)
        rho = np.vdot(r, z)
        p = z.copy() if not before else z + (rho / before) * p
        q = s.apply(p)
        curvature = np.vdot(p, q)
        if not curvature:
            break
        made = _tamis.einsum(_STEP, x=x, a=np.asarray(rho / curvature), p=p, r=r, q=q)
        x, r, before = made.x2._readable(), made.r2._readable(), rho
        if callback is not None:
            callback(x)
    return np.array(x), 0 if np.linalg.norm(r) <= s.bound else most


def bicgstab(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[NDArray[Any]], Any] | None = None,
) -> tuple[NDArray[Any], int]:
    """The stabilised biconjugate gradient method, for any square matrix; results as those of :func:`cg`.

    >>> import numpy as np, tamis as tm
    >>> A = tm.gallery.laplacian(8) + tm.triu(tm.gallery.laplacian(8), k=1)
    >>> x, info = tm.linalg.bicgstab(A, np.ones(64))
    >>> info, bool(np.linalg.norm(A @ x - 1) < 1e-4)
    (0, True)
    """
    s = _system(A, b, x0, M, rtol, atol, "bicgstab")
    x = s.start
    r = s.right - s.apply(x)
    shadow, p = r.copy(), r
    rho = alpha = omega = 1.0
    q: Any = None
    most = 10 * s.size[0] if maxiter is None else maxiter
    for _ in range(most):
        if np.linalg.norm(r) <= s.bound:
            return np.array(x), 0
        new = np.vdot(shadow, r)
        if not new or not omega:
            return np.array(x), -10
        p = r.copy() if q is None else r + (new / rho) * (alpha / omega) * (p - omega * q)
        rho = new
        y = s.precondition(p)
        q = s.apply(y)
        alpha = rho / np.vdot(shadow, q)
        half = r - alpha * q
        z = s.precondition(half)
        t = s.apply(z)
        square = np.vdot(t, t)
        omega = np.vdot(t, half) / square if square else 0.0
        given = {"x": x, "a": np.asarray(alpha), "y": y, "w": np.asarray(omega), "z": z, "h": half, "t": t}
        made = _tamis.einsum("x2[i] = x[i] + a * y[i] + w * z[i]; r2[i] = h[i] - w * t[i]", **given)
        x, r = made.x2._readable(), made.r2._readable()
        if callback is not None:
            callback(x)
    return np.array(x), 0 if np.linalg.norm(r) <= s.bound else most


def gmres(
    A: Any,
    b: Any,
    x0: Any = None,
    *,
    rtol: float = 1e-5,
    atol: float = 0.0,
    restart: int | None = None,
    maxiter: int | None = None,
    M: Any = None,
    callback: Callable[[Any], Any] | None = None,
) -> tuple[NDArray[Any], int]:
    """The generalised minimal residual method with restarts, for any square matrix; results as those of :func:`cg`.

    ``maxiter`` counts restarts, as in SciPy; ``callback`` gets the norm of the residual at each restart.

    >>> import numpy as np, tamis as tm
    >>> A = tm.gallery.laplacian(8) + tm.triu(tm.gallery.laplacian(8), k=1)
    >>> x, info = tm.linalg.gmres(A, np.ones(64))
    >>> info, bool(np.linalg.norm(A @ x - 1) < 1e-3)
    (0, True)
    """
    s = _system(A, b, x0, M, rtol, atol, "gmres")
    n = s.size[0]
    inner = min(20 if restart is None else restart, n)
    most = 10 * n if maxiter is None else maxiter
    x = s.start
    kind = s.right.dtype
    for cycle in range(most):
        r = s.right - s.apply(x)
        size = float(np.linalg.norm(r))
        if callback is not None and cycle:
            callback(size)
        if size <= s.bound:
            return np.array(x), 0
        # Arnoldi's process with modified Gram-Schmidt; right preconditioning keeps the residual true.
        basis = np.zeros((inner + 1, n), dtype=kind)
        upper = np.zeros((inner + 1, inner), dtype=kind)
        basis[0] = r / size
        used = inner
        for k in range(inner):
            w = s.apply(s.precondition(basis[k]))
            for _ in range(2):
                h = basis[: k + 1].conj() @ w
                w = w - h @ basis[: k + 1]
                upper[: k + 1, k] += h
            length = np.linalg.norm(w)
            upper[k + 1, k] = length
            target = np.zeros(k + 2, dtype=kind)
            target[0] = size
            y, *_ = np.linalg.lstsq(upper[: k + 2, : k + 1], target, rcond=None)
            rest = np.linalg.norm(target - upper[: k + 2, : k + 1] @ y)
            if length <= 1e-14 * size or rest <= s.bound:
                used = k + 1
                break
            basis[k + 1] = w / length
        x = x + s.precondition(y @ basis[:used])
    r = s.right - s.apply(x)
    return np.array(x), 0 if np.linalg.norm(r) <= s.bound else most


class LeastSquares(NamedTuple):
    """What :func:`lsqr` finds."""

    #: The solution.
    x: NDArray[Any]
    #: Why it stopped: 0 if zero is a solution, 1 if the system is solved, 2 if ``x`` is the least-squares solution, 7 if
    #: ``iter_lim`` was reached.
    istop: int
    #: The number of iterations.
    itn: int
    #: The norm of the residual ``b - A @ x``; with ``damp``, that of ``b - A @ x`` and ``damp * x`` together.
    r1norm: float


def lsqr(A: Any, b: Any, damp: float = 0.0, atol: float = 1e-6, btol: float = 1e-6, iter_lim: int | None = None) -> LeastSquares:
    """Least squares by Golub-Kahan bidiagonalisation: the ``x`` that minimises ``norm(A @ x - b)``, for any shape.

    >>> import numpy as np, tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0]], format="csr")
    >>> tm.linalg.lsqr(A, np.array([1.0, 3.0, 5.0])).x.round(4)
    array([1., 2.])
    """
    s = _system(A, b, None, None, 0.0, 0.0, "lsqr", any_shape=True)
    rows, columns = s.size
    u, x = s.right, s.start
    beta = size = float(np.linalg.norm(u))
    if not beta:
        return LeastSquares(x, 0, 0, 0.0)
    u = u / beta
    v = s.adjoint(u)
    alpha = float(np.linalg.norm(v))
    if not alpha:
        return LeastSquares(x, 0, 0, size)
    v = v / alpha
    w, rho_bar, phi_bar, total = v.copy(), alpha, beta, alpha**2 + damp**2
    most = 2 * columns if iter_lim is None else iter_lim
    rest = 0.0
    for iteration in range(1, most + 1):
        u = s.apply(v) - alpha * u
        beta = float(np.linalg.norm(u))
        if beta:
            u = u / beta
        v = s.adjoint(u) - beta * v
        alpha = float(np.linalg.norm(v))
        if alpha:
            v = v / alpha
        total += alpha**2 + beta**2 + damp**2
        damped = math.hypot(rho_bar, damp)
        rest += (damp / damped * phi_bar) ** 2 if damp else 0.0
        phi_bar *= rho_bar / damped
        rho = math.hypot(damped, beta)
        cosine, sine = damped / rho, beta / rho
        theta, rho_bar = sine * alpha, -cosine * alpha
        phi, phi_bar = cosine * phi_bar, sine * phi_bar
        made = _tamis.einsum(
            "x2[i] = x[i] + a * w[i]; w2[i] = v[i] - c * w[i]", x=x, a=np.asarray(phi / rho), w=w, v=v, c=np.asarray(theta / rho)
        )
        x, w = made.x2._readable(), made.w2._readable()
        residual = math.sqrt(phi_bar**2 + rest)
        scale = math.sqrt(total)
        if residual <= btol * size + atol * scale * float(np.linalg.norm(x)):
            return LeastSquares(np.array(x), 1, iteration, residual)
        if not residual or abs(phi_bar * alpha * cosine) <= atol * scale * residual:
            return LeastSquares(np.array(x), 2, iteration, residual)
    return LeastSquares(np.array(x), 7, most, math.sqrt(phi_bar**2 + rest))


def lobpcg(
    A: Any, X: Any, M: Any = None, *, tol: float = 1e-6, maxiter: int = 200, largest: bool = True
) -> tuple[NDArray[Any], NDArray[Any]]:
    """The extreme eigenvalues of a symmetric matrix, and their vectors, by the locally optimal block method.

    ``X`` is the start, a column for each eigenvalue that is wanted.

    >>> import numpy as np, tamis as tm
    >>> A = tm.diag(np.arange(1.0, 101.0))
    >>> values, vectors = tm.linalg.lobpcg(A, np.random.default_rng(0).random((100, 3)), tol=1e-8)
    >>> values.round(5)
    array([100.,  99.,  98.])
    """
    if not hasattr(A, "matmat") or isinstance(A, _tamis.Tensor):
        A = square(A, "lobpcg")
        A = A if A.dtype.kind in "fc" else A.astype(float)
    X = np.array(X, dtype=np.result_type(A.dtype, float))
    if X.ndim != 2 or X.shape[0] != A.shape[0] or not X.shape[1]:
        raise fail("E0402", f"a start of shape {X.shape} does not fit {A.shape[0]} rows", "give a column for each eigenvalue")
    count = X.shape[1]
    X, _ = np.linalg.qr(X)
    P: Any = X[:, :0]
    values = np.zeros(count)
    for _ in range(maxiter):
        AX = A.matmat(np.ascontiguousarray(X))
        values = np.real(np.einsum("ij,ij->j", X.conj(), AX))
        R = AX - X * values
        if np.all(np.linalg.norm(R, axis=0) <= tol * np.maximum(np.abs(values), 1e-300)):
            break
        W = R if M is None else np.stack([(M.matvec if hasattr(M, "matvec") else M)(column) for column in R.T], axis=1)
        basis, _ = np.linalg.qr(np.hstack([X, W - X @ (X.conj().T @ W), P]))
        small = basis.conj().T @ A.matmat(np.ascontiguousarray(basis))
        found, vectors = np.linalg.eigh((small + small.conj().T) / 2)
        chosen = np.argsort(found)[::-1][:count] if largest else np.argsort(found)[:count]
        new = basis @ vectors[:, chosen]
        P = new - X @ (X.conj().T @ new)
        X = new
    order = np.argsort(values)[::-1] if largest else np.argsort(values)
    return values[order], X[:, order]
