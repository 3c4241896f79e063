"""Which library's array comes out: the rule of return types, numbers of full reductions, and writing into arrays."""

from __future__ import annotations

import json
import warnings
from typing import Any, Callable

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl

import tamis as tm

X = np.array([[2.0, 0.0, 1.0], [0.0, 3.0, 0.0], [1.0, 0.0, 4.0]])
A = tm.tensor(X, format="csr")
x = np.array([1.0, 10.0, 100.0])


@pytest.mark.parametrize(
    "operation",
    [
        lambda a, b: a @ b,
        lambda a, b: b @ a,
        lambda a, b: a @ np.stack([b, b], axis=1),
        lambda a, b: np.matmul(a, b),
        lambda a, b: np.dot(a, b),
        lambda a, b: a + b,
        lambda a, b: b - a,
        lambda a, b: np.add(a, b),
        lambda a, b: a == b,
        lambda a, b: np.einsum("ij,j->i", a, b),
    ],
)
def test_dense_results_of_arrays_are_arrays(operation: Callable[[Any, Any], Any]) -> None:
    made, expected = operation(A, x), operation(X, x)
    assert isinstance(made, np.ndarray) and made.dtype == expected.dtype and made.flags.writeable
    np.testing.assert_allclose(made, expected)
    with tm.config(returns="tensors"):
        kept = operation(A, x)
    assert isinstance(kept, tm.Tensor)
    np.testing.assert_allclose(np.asarray(kept), expected)


def test_other_results_are_tensors() -> None:
    for made in (A @ A, A * x, A @ tm.asarray(x), A + A, A @ [1.0, 2.0, 3.0], A * 2, tm.matmul(A, x), tm.add(A, x)):
        assert isinstance(made, tm.Tensor)
    assert not tm.issparse(tm.matmul(A, x)) and tm.issparse(A * x)


def test_results_are_written_into_arrays() -> None:
    y = np.ones(3)
    y += A @ x
    np.testing.assert_allclose(y, 1 + X @ x)
    before = y
    y += A @ tm.asarray(x)
    assert y is before
    np.testing.assert_allclose(y, 1 + 2 * (X @ x))
    Y = np.ones((3, 3))
    Y *= A
    np.testing.assert_allclose(Y, X)
    assert np.matmul(A, x, out=y) is y
    np.testing.assert_allclose(y, X @ x)
    whole = np.ones(3, dtype=int)
    with pytest.raises(TypeError):
        whole += A @ tm.asarray(x)
    with pytest.raises(tm.Error):
        np.add(A, x, out=tm.ones(3))


def test_arrays_are_owned() -> None:
    t = tm.tensor(X)
    own = t.to_numpy()
    own[0, 0] = 99.0
    assert t[0, 0] == 2.0 and own.flags.writeable
    view = t.to_numpy(copy=False)
    assert not view.flags.writeable and np.shares_memory(view, t.to_numpy(copy=False))
    assert np.array(t).flags.writeable and not np.asarray(t).flags.writeable
    product = A @ x
    product[:] = 0
    np.testing.assert_allclose(A @ x, X @ x)
    with pytest.raises(tm.Error):
        A.to_numpy(copy=False)


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i2", "u1", "c16", "bool"])
def test_full_reductions_are_numbers(dtype: str) -> None:
    values = X.astype(dtype)
    t = tm.tensor(values, format="csr")
    for name in ("sum", "prod", "any", "all", "count_nonzero") + (("min", "max", "mean", "argmax") if dtype != "c16" else ()):
        number = getattr(t, name)()
        assert type(number) in (int, float, complex, bool), name
        assert number == getattr(np, name)(values) and getattr(t, name)(axis=0).shape == (3,)
        assert getattr(tm, name)(t).shape == ()
        if dtype != "c16":
            assert json.loads(json.dumps({"n": number}))["n"] == number
            assert f"{number:8.3f}" == f"{float(number):8.3f}"
    with tm.config(returns="tensors"):
        assert isinstance(t.sum(), tm.Tensor)


def test_tensors_of_one_element_format_and_compare() -> None:
    total = tm.sum(A)
    assert f"{total:.3f}" == "11.000" and f"{total}" == "11.0" and str(total) == "11.0"
    assert total > 10 and total == 11 and round(float(total)) == 11 and sorted([total, tm.min(A)])[0] == 0
    assert f"{A}".startswith("<tamis.Tensor")
    with pytest.raises(tm.Error) as caught:
        f"{A:.3f}"
    assert caught.value.code == "E0401"
    assert A.tolist() == X.tolist()


def test_solvers_of_scipy_take_tensors() -> None:
    L, b = tm.gallery.laplacian(10), np.ones(100)
    S = L.to_scipy()
    for solve in (sl.cg, sl.gmres, sl.bicgstab, sl.minres, sl.qmr):
        made, info = solve(L, b, rtol=1e-10)
        assert info == 0
        np.testing.assert_allclose(S @ made, b, atol=1e-6)
    np.testing.assert_allclose(sl.lsqr(L, b, atol=1e-12, btol=1e-12)[0], sl.spsolve(S.tocsc(), b), atol=1e-6)
    np.testing.assert_allclose(sl.lsmr(L, b, atol=1e-12, btol=1e-12)[0], sl.spsolve(S.tocsc(), b), atol=1e-5)
    np.testing.assert_allclose(sl.eigsh(L, k=3)[0], sl.eigsh(S, k=3)[0])
    np.testing.assert_allclose(np.sort(sl.eigs(L, k=2)[0].real), np.sort(sl.eigs(S, k=2)[0].real))
    R = tm.gallery.random((30, 20), 0.3)
    np.testing.assert_allclose(sl.svds(R, k=3)[1], sl.svds(R.to_scipy(), k=3)[1])
    np.testing.assert_allclose(sl.expm_multiply(-L, b), sl.expm_multiply(-S, b))
    np.testing.assert_allclose(sl.onenormest(L), sl.onenormest(S))


def test_linear_operators() -> None:
    Z = tm.tensor(X * (1 + 2j), format="csr")
    operator = sl.aslinearoperator(Z)
    dense = Z.to_numpy()
    assert operator.shape == (3, 3) and operator.dtype == Z.dtype
    M = np.stack([x, 2 * x], axis=1)
    for made, expected in [
        (operator.matvec(x), dense @ x),
        (operator.rmatvec(x), dense.conj().T @ x),
        (operator.matmat(M), dense @ M),
        (operator.rmatmat(M), dense.conj().T @ M),
        (operator.H @ x, dense.conj().T @ x),
        (operator.matvec(x[:, None]), dense @ x[:, None]),
        (Z.adjoint() @ x, dense.conj().T @ x),
        (Z.H @ x, dense.conj().T @ x),
    ]:
        assert isinstance(made, np.ndarray)
        np.testing.assert_allclose(made, expected)
    composed = operator @ operator + 2 * operator
    np.testing.assert_allclose(composed @ x, dense @ (dense @ x) + 2 * dense @ x)


def test_settings_are_checked() -> None:
    with pytest.raises(tm.Error):
        tm.config(returns="numpy")
    assert tm.settings().returns == "operands"


def test_scipy_on_the_other_side() -> None:
    S = sp.csr_array(X)
    for made, expected in [(S @ A, X @ X), (A @ S, X @ X), (A + S, X + X), (S * A, X * X)]:
        assert isinstance(made, tm.Tensor)
        np.testing.assert_allclose(made.to_numpy(), expected)


def test_large_arrays_of_sparse_tensors_are_reported() -> None:
    large = tm.eye(3000, format="csr")
    with pytest.warns(tm.SparseEfficiencyWarning, match="72.0 MB"):
        np.asarray(large)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.asarray(tm.eye(100, format="csr"))
        large.to_numpy()
        np.asarray(tm.ones((2000, 2000)))
