"""Linear algebra against NumPy and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import tamis as tm

RNG = np.random.default_rng(3)
X = RNG.standard_normal((8, 6)) * (RNG.random((8, 6)) < 0.5)
FORMATS = ["dense", "csr", "csc", "coo", "dense, sparse_runs"]
L = tm.gallery.laplacian(12)
#: Not symmetric, with a dominant diagonal.
U = L + 0.3 * tm.triu(L, k=1) + 0.1 * tm.identity(144)
B = RNG.standard_normal(144)


@pytest.mark.parametrize("format", FORMATS)
def test_norms(format: str) -> None:
    for x in (X, X * (1 + 2j)):
        t = tm.tensor(x, format=format)
        for order in (None, "fro", 1, -1, np.inf, -np.inf, 2):
            np.testing.assert_allclose(tm.linalg.norm(t, order), np.linalg.norm(x, order), rtol=1e-7)
        for order in (None, 0, 1, 2, 3, 0.5, np.inf, -np.inf):
            for axis in (0, 1, -1):
                if order == 0.5 and x.dtype.kind == "c":
                    continue
                made, expected = tm.linalg.norm(t, order, axis), np.linalg.norm(x, order, axis)
                np.testing.assert_allclose(np.asarray(made), expected, rtol=1e-12)
        np.testing.assert_allclose(np.asarray(tm.linalg.norm(t, 1, (1, 0))), np.linalg.norm(x, 1, (1, 0)))
        assert tm.linalg.norm(t, "fro", (0, 1), keepdims=True).shape == (1, 1)
        np.testing.assert_allclose(tm.linalg.vector_norm(t).item(), np.linalg.norm(x))
        np.testing.assert_allclose(tm.linalg.matrix_norm(t, ord=np.inf).item(), np.linalg.norm(x, np.inf))
    assert isinstance(tm.linalg.norm(t), float)
    v = tm.tensor([3, 0, -4], format="sparse")
    assert tm.linalg.norm(v) == 5 and tm.linalg.norm(v, 1) == 7 and tm.linalg.norm(v, np.inf) == 4 and tm.linalg.norm(v, 0) == 2
    assert tm.linalg.norm(tm.tensor(X, "dense"), "nuc") == pytest.approx(np.linalg.norm(X, "nuc"))
    for wrong in (lambda: tm.linalg.norm(tm.eye(5, format="csr"), "nuc"), lambda: tm.linalg.norm(t, 7), lambda: tm.linalg.norm(v, "x")):
        with pytest.raises(tm.Error):
            wrong()


@pytest.mark.parametrize("format", ["dense", "csr", "csc", "coo"])
def test_direct_solvers(format: str) -> None:
    A = U.convert(format)
    dense = U.to_numpy()
    for b in (B, np.stack([B, 2 * B], axis=1)):
        made = tm.linalg.solve(A, b)
        assert isinstance(made, np.ndarray)
        np.testing.assert_allclose(dense @ made, b, atol=1e-9)
    assert isinstance(tm.linalg.solve(A, tm.asarray(B)), tm.Tensor)
    np.testing.assert_allclose(dense @ tm.linalg.spsolve(A, B), B, atol=1e-9)
    np.testing.assert_allclose(dense @ tm.linalg.splu(A).solve(B), B, atol=1e-9)
    np.testing.assert_allclose(dense @ np.linalg.solve(A, B), B, atol=1e-9)
    sign, size = tm.linalg.slogdet(A)
    expected = np.linalg.slogdet(dense)
    assert float(sign) == expected[0] and float(size) == pytest.approx(expected[1])


def test_determinants() -> None:
    for seed in range(12):
        x = np.random.default_rng(seed).integers(-3, 4, (5, 5)) * 1.0
        assert float(tm.linalg.det(tm.tensor(x, format="csr"))) == pytest.approx(np.linalg.det(x), abs=1e-9)


@pytest.mark.parametrize("format", ["dense", "csr", "csc"])
def test_triangles(format: str) -> None:
    dense = U.to_numpy()
    A = U.convert(format)
    for b in (B, np.stack([B, 2 * B, 3 * B], axis=1)):
        np.testing.assert_allclose(np.tril(dense) @ tm.linalg.solve_triangular(A, b), b, atol=1e-9)
        np.testing.assert_allclose(np.triu(dense) @ tm.linalg.spsolve_triangular(A, b, lower=False), b, atol=1e-9)
        unit = np.tril(dense, -1) + np.eye(144)
        np.testing.assert_allclose(unit @ tm.linalg.solve_triangular(A, b, unit_diagonal=True), b, atol=1e-9)
    for wrong in (
        lambda: tm.linalg.solve_triangular(np.ones((2, 3)), [1.0, 2.0]),
        lambda: tm.linalg.solve_triangular(tm.eye(3, format="csr"), [1.0]),
        lambda: tm.linalg.solve_triangular(tm.zeros((2, 2), format="csr"), [1.0, 1.0]),
        lambda: tm.linalg.solve_triangular(tm.tensor([[0.0]], dtype="f8"), [1.0]),
        lambda: tm.linalg.solve_triangular(tm.eye(2, format="csr") * 1j, [1.0, 1.0]),
        lambda: tm.linalg.solve_triangular(tm.eye(2, format="csr") + 1, [1.0, 1.0]),
    ):
        with pytest.raises(tm.Error) as caught:
            wrong()
        assert caught.value.help


def reference_ilu(a: Any) -> Any:
    """ILU(0) of a dense array, as the textbook writes it."""
    a, pattern = a.copy(), a != 0
    for i in range(len(a)):
        for k in range(i):
            if pattern[i, k]:
                a[i, k] /= a[k, k]
                for j in range(k + 1, len(a)):
                    if pattern[i, j]:
                        a[i, j] -= a[i, k] * a[k, j]
    return a


def test_incomplete_factorisations() -> None:
    A = U[:40, :40].convert("csr")
    dense = A.to_numpy()
    factors = reference_ilu(dense)
    lower, upper = np.tril(factors, -1) + np.eye(40), np.triu(factors)
    r = B[:40]
    np.testing.assert_allclose(tm.linalg.ilu(A) @ r, np.linalg.solve(upper, np.linalg.solve(lower, r)), atol=1e-10)
    # Without fill-in to leave out, they are exact.
    band = tm.gallery.banded(30, 1)
    band = band + 5 * tm.identity(30)
    whole = (band + band.T).convert("csr")
    np.testing.assert_allclose(whole @ (tm.linalg.ilu(whole) @ r[:30]), r[:30], atol=1e-10)
    np.testing.assert_allclose(whole @ (tm.linalg.ichol(whole) @ r[:30]), r[:30], atol=1e-10)
    np.testing.assert_allclose(tm.linalg.jacobi(A) @ r, r / np.diag(dense))
    d = np.diag(np.diag(dense))
    for omega in (1.0, 1.3):
        left, right = d / omega + np.tril(dense, -1), d / omega + np.triu(dense, 1)
        expected = np.linalg.solve(left @ np.linalg.inv(d) @ right * (omega / (2 - omega)), r)
        np.testing.assert_allclose(tm.linalg.ssor(A, omega) @ r, expected, atol=1e-10)
    for wrong in (
        lambda: tm.linalg.jacobi(tm.zeros((2, 2), format="csr")),
        lambda: tm.linalg.ilu(tm.tensor([[0.0, 1.0], [1.0, 0.0]], format="csr")),
        lambda: tm.linalg.ichol(tm.tensor([[1.0, 2.0], [2.0, 1.0]], format="csr")),
        lambda: tm.linalg.ssor(A, 2.5),
    ):
        with pytest.raises(tm.Error):
            wrong()


@pytest.mark.parametrize("precondition", [None, "jacobi", "ssor", "ilu", "ichol"])
def test_iterative_solvers(precondition: str | None) -> None:
    for solve in (tm.linalg.cg, tm.linalg.gmres, tm.linalg.bicgstab):
        A = L if solve is tm.linalg.cg or precondition == "ichol" else U
        M = None if precondition is None else getattr(tm.linalg, precondition)(A)
        seen: list[Any] = []
        made, info = solve(A, B, rtol=1e-10, M=M, callback=seen.append)
        assert info == 0 and isinstance(made, np.ndarray) and made.flags.writeable
        np.testing.assert_allclose(A @ made, B, atol=1e-8)
        again, info = solve(A, B, x0=made, rtol=1e-9, M=M)
        assert info == 0
        theirs, info = getattr(sl, solve.__name__)(A.to_scipy(), B, rtol=1e-10, M=M)
        assert info == 0
        np.testing.assert_allclose(made, theirs, atol=1e-6)
    _, info = tm.linalg.cg(L, B, maxiter=2)
    assert info == 2
    assert np.array_equal(tm.linalg.cg(L, np.zeros(144))[0], np.zeros(144))


def test_solvers_take_types_and_operators() -> None:
    for dtype in ("f4", "c16", "i8"):
        A = L.astype(dtype) if dtype != "c16" else L * (1 + 0j)
        made, info = tm.linalg.cg(A, B.astype("f4") if dtype == "f4" else B, rtol=1e-4)
        assert info == 0 and made.dtype == {"f4": np.float32, "c16": np.complex128, "i8": np.float64}[dtype]
    operator = sl.aslinearoperator(L.to_scipy())
    assert tm.linalg.cg(operator, B)[1] == 0
    Z = (U * (1 + 0.5j)).convert("csr")
    for solve in (tm.linalg.gmres, tm.linalg.bicgstab):
        made, info = solve(Z, B * 1j, rtol=1e-10)
        assert info == 0
        np.testing.assert_allclose(Z @ made, B * 1j, atol=1e-7)
    for wrong in (
        lambda: tm.linalg.cg(np.ones((2, 3)), [1.0, 2.0]),
        lambda: tm.linalg.cg(L, [1.0]),
        lambda: tm.linalg.cg(L, B, x0=[1.0]),
    ):
        with pytest.raises(tm.Error):
            wrong()


def test_least_squares() -> None:
    R = tm.gallery.random((60, 20), 0.3, 5) + tm.eye(60, 20, format="csr")
    b = RNG.standard_normal(60)
    expected = np.linalg.lstsq(R.to_numpy(), b, rcond=None)[0]
    np.testing.assert_allclose(tm.linalg.lsqr(R, b, atol=1e-12, btol=1e-12).x, expected, atol=1e-8)
    np.testing.assert_allclose(tm.linalg.lstsq(R, b)[0], expected, atol=1e-8)
    np.testing.assert_allclose(np.linalg.lstsq(R, b)[0], expected, atol=1e-8)
    damped = tm.linalg.lsqr(R, b, damp=0.7, atol=1e-13, btol=1e-13).x
    np.testing.assert_allclose(damped, sl.lsqr(R.to_scipy(), b, damp=0.7, atol=1e-13, btol=1e-13)[0], atol=1e-8)
    wide = R.T
    found = tm.linalg.lsqr(wide, b[:20], atol=1e-12, btol=1e-12)
    np.testing.assert_allclose(wide @ found.x, b[:20], atol=1e-8)
    assert found.istop == 1 and tm.linalg.lsqr(R, np.zeros(60)).itn == 0


def test_eigenvalues() -> None:
    dense = L.to_numpy()
    expected = np.linalg.eigvalsh(dense)
    start = RNG.random((144, 4))
    values, vectors = tm.linalg.lobpcg(L, start, tol=1e-7, maxiter=500)
    np.testing.assert_allclose(values, expected[::-1][:4], rtol=1e-8)
    np.testing.assert_allclose(dense @ vectors, vectors * values, atol=1e-5)
    values, _ = tm.linalg.lobpcg(L, start, M=tm.linalg.ichol(L), tol=1e-7, maxiter=500, largest=False)
    np.testing.assert_allclose(values, expected[:4], rtol=1e-7)
    np.testing.assert_allclose(np.sort(tm.linalg.eigsh(L, 3)[0]), expected[-3:])
    np.testing.assert_allclose(np.sort(tm.linalg.eigsh(L, 2, sigma=0)[0]), expected[:2])
    np.testing.assert_allclose(tm.linalg.svds(L, 2)[1], expected[-2:])
    np.testing.assert_allclose(tm.linalg.expm_multiply(-L, B), sl.expm_multiply(-L.to_scipy(), B))


def test_functions_of_dense_matrices() -> None:
    x = RNG.standard_normal((5, 5))
    spd = x @ x.T + np.eye(5)
    t, s = tm.tensor(x), tm.tensor(spd)
    for made, expected in [
        (tm.linalg.inv(t), np.linalg.inv(x)),
        (tm.linalg.pinv(t), np.linalg.pinv(x)),
        (tm.linalg.det(t), np.linalg.det(x)),
        (tm.linalg.cholesky(s), np.linalg.cholesky(spd)),
        (tm.linalg.cholesky(s, upper=True), np.linalg.cholesky(spd).T),
        (tm.linalg.eigvalsh(s), np.linalg.eigvalsh(spd)),
        (tm.linalg.eigh(s).eigenvalues, np.linalg.eigvalsh(spd)),
        (tm.linalg.svdvals(t), np.linalg.svd(x, compute_uv=False)),
        (tm.linalg.svd(t).S, np.linalg.svd(x, compute_uv=False)),
        (tm.linalg.qr(t).R, np.linalg.qr(x).R),
        (tm.linalg.matrix_rank(t), 5),
        (tm.linalg.matrix_power(t, 3), x @ x @ x),
        (tm.linalg.matrix_power(t.convert("csr"), 5), np.linalg.matrix_power(x, 5)),
        (tm.linalg.matrix_power(t.convert("csr"), 0), np.eye(5)),
    ]:
        assert isinstance(made, tm.Tensor)
        np.testing.assert_allclose(np.asarray(made), expected, atol=1e-9)
    sparse = t.convert("csr")
    for name in ("inv", "pinv", "cholesky", "eigh", "eigvalsh", "svd", "svdvals", "qr", "matrix_rank"):
        with pytest.raises(tm.TooLarge) as caught:
            getattr(tm.linalg, name)(sparse)
        assert "200 bytes" in str(caught.value)
    assert set(tm.linalg.__all__) <= set(dir(tm.linalg))
    assert sp.issparse(tm.linalg.splu(U).L)
