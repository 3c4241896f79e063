"""Gradients against central finite differences, in all formats; patterns that are shared; errors."""

from __future__ import annotations

import numpy as np
import pytest

import tamis as tm

FORMATS = ["dense", "csr", "csc", "coo", "dcsr", "bsr(2,2)"]


def rand(*shape, seed=0, density=1.0):
    random = np.random.default_rng(seed)
    values = random.uniform(-2, 2, shape)
    return np.where(random.uniform(size=shape) < density, values, 0.0)


def differences(f, x, step=1e-6):
    """The gradient of a function of one array."""
    x = np.array(x)
    gradient = np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        for sign in (1, -1):
            moved = x.copy()
            moved[at] += sign * step
            gradient[at] += sign * float(f(moved)) / (2 * step)
    return gradient


def close(gradient, expected, tolerance=1e-5):
    np.testing.assert_allclose(gradient.to_numpy(), expected, rtol=tolerance, atol=tolerance)


def loss(A, x):
    y = tm.tanh(A @ x)
    return tm.sum(y * y) + tm.max(A @ x)


@pytest.mark.parametrize("format", FORMATS)
def test_gradients_of_traced_functions(format):
    a, x = rand(4, 4, density=0.5), rand(4, seed=1)
    A = tm.tensor(a, format=format)
    gA, gx = tm.grad(loss, argnums=(0, 1))(A, x)
    close(gx, differences(lambda x: loss(a, x), x))
    full = differences(lambda a: loss(a, x), a)
    stored = np.zeros_like(a, dtype=bool) if format != "dense" else np.ones_like(a, dtype=bool)
    coords, _ = A.to_coo()
    stored[tuple(coords)] = True
    close(gA, np.where(stored, full, 0))
    if format != "dense":
        assert gA.pattern == A.pattern
        assert gA.nnz == A.nnz


def test_value_and_gradient():
    a, x = rand(3, 4, seed=2), rand(4, seed=3)
    value, gradient = tm.value_and_grad(loss, argnums=1)(a, x)
    assert value.item() == pytest.approx(float(loss(a, x)))
    close(gradient, differences(lambda x: loss(a, x), x))


def test_index_notation_by_name():
    a, x, b = rand(3, 4), rand(4, seed=1), rand(3, seed=2)
    text = "L = sum[i](max[j](A[i,j] * x[j]) * b[i])"
    gradient = tm.grad(text, argnums=("A", "x"))(A=a, x=x, b=b)
    close(gradient[0], differences(lambda a: tm.einsum(text, A=a, x=x, b=b), a))
    close(gradient[1], differences(lambda x: tm.einsum(text, A=a, x=x, b=b), x))


def test_numpy_spelling():
    a, b = rand(3, 4), rand(4, 2, seed=1)
    value, pullback = tm.vjp("ij,jk->ik", a, b)
    np.testing.assert_allclose(value.to_numpy(), a @ b)
    g = rand(3, 2, seed=5)
    ga, gb = pullback(g)
    close(ga, g @ b.T)
    close(gb, a.T @ g)


def test_vjp_of_sparse_products_stays_sparse():
    A = tm.gallery.random((30, 30), 0.1, seed=1)
    B = tm.gallery.random((30, 30), 0.1, seed=2)
    C, pullback = tm.vjp(lambda A, B: A @ B, A, B)
    gA, gB = pullback(C)
    assert gA.pattern == A.pattern and gB.pattern == B.pattern
    a, b, c = A.to_numpy(), B.to_numpy(), C.to_numpy()
    close(gA, (c @ b.T) * (a != 0))
    close(gB, (a.T @ c) * (b != 0))


def test_jvp():
    x, v = rand(5), rand(5, seed=1)
    f = lambda x: tm.exp(x) * tm.sum(x * x)  # noqa: E731
    value, tangent = tm.jvp(f, (x,), (v,))
    np.testing.assert_allclose(value.to_numpy(), f(tm.asarray(x)).to_numpy())
    step = 1e-6
    moved = (f(tm.asarray(x + step * v)).to_numpy() - f(tm.asarray(x - step * v)).to_numpy()) / (2 * step)
    np.testing.assert_allclose(tangent.to_numpy(), moved, rtol=1e-5)
    _, tangent = tm.jvp("y[i] = A[i,j] * x[j]", {"A": np.eye(5), "x": x}, {"x": v})
    np.testing.assert_allclose(tangent.to_numpy(), v)


def test_gradients_of_gradients():
    x, v = rand(4), rand(4, seed=1)
    f = lambda x: tm.sum(x * x * x)  # noqa: E731
    hessian_times = tm.grad(lambda x, v: tm.sum(tm.grad(f)(x) * v))
    close(hessian_times(x, v), 6 * x * v)
    assert tm.grad(tm.grad(lambda s: s * s * s))(tm.asarray(2.0)).item() == pytest.approx(12.0)


def test_structures_of_arguments():
    def f(parameters, x):
        y = tm.tanh(x @ parameters["w"] + parameters["b"])
        return tm.sum(y * y)

    w, b, x = rand(3, 2), rand(2, seed=1), rand(4, 3, seed=2)
    gradient = tm.grad(f)({"w": w, "b": b}, x)
    close(gradient["w"], differences(lambda w: f({"w": w, "b": b}, x), w))
    close(gradient["b"], differences(lambda b: f({"w": w, "b": b}, x), b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_types_are_kept(dtype):
    A = tm.tensor(rand(4, 4, density=0.5).astype(dtype), format="csr")
    x = rand(4).astype(dtype)
    for f in (lambda A, x: tm.sum(A @ x), lambda A, x: tm.max(A @ x), lambda A, x: tm.sum(tm.max(A, axis=1))):
        gA, gx = tm.grad(f, argnums=(0, 1))(A, x)
        assert gA.dtype == gx.dtype == np.dtype(dtype)


def test_complex_gradients_follow_torch():
    a, x = rand(3, 3) + 1j * rand(3, 3, seed=1), rand(3, seed=2) + 1j * rand(3, seed=3)

    def f(x):
        y = tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x)
        return tm.sum(tm.abs(y) ** 2)

    gradient = tm.grad("L = sum[i](abs(sum[j](A[i,j] * x[j])) ** 2)", "x")(A=a, x=x).to_numpy()
    parts = [differences(lambda d: f(x + unit * d), np.zeros(3)) for unit in (1, 1j)]
    np.testing.assert_allclose(gradient, parts[0] + 1j * parts[1], rtol=1e-5)


def test_loop_programs():
    @tm.kernel
    def smooth(A, x):
        y = tensor("dense")  # noqa: F821
        for i in _:  # noqa: F821
            s = scalar(0.0)  # noqa: F821
            for j in _:  # noqa: F821
                if j <= i:
                    s += A[i, j] * x[j]
            y[i] = exp(s)  # noqa: F821
        return y

    a, x, g = rand(4, 4), rand(4, seed=1), rand(4, seed=2)
    y, pullback = tm.vjp(smooth, a, x)
    np.testing.assert_allclose(y.to_numpy(), np.exp(np.tril(a) @ x))
    close(pullback(g)[1], np.tril(a).T @ (g * y.to_numpy()))


def test_loops_that_carry_values_are_named():
    program = tm.program(
        """
def running(x):
    y = tensor("dense")
    s = scalar(0.0)
    for i in _:
        s += x[i]
        y[i] = s
    return y
"""
    )
    with pytest.raises(tm.Error) as error:
        tm.vjp(program, np.ones(3))
    assert error.value.code == "E0118"
    assert "y[i] = s" in str(error.value)


def test_errors():
    x = np.ones(3)
    cases = [
        (lambda: tm.grad(lambda x: x * x)(x), "dimensions"),
        (lambda: tm.grad(lambda x: tm.sum(x))(np.ones(3, dtype=int)), "discrete"),
        (lambda: tm.grad(lambda x: tm.sum(x), argnums=3)(x), "no argument"),
        (lambda: tm.grad("L = x[i]", "z")(x=x), "no argument"),
        (lambda: tm.grad(3), "cannot be differentiated"),
    ]
    for call, message in cases:
        with pytest.raises(tm.Error, match=message) as error:
            call()
        assert error.value.code == "E0116"


def test_zero_gradients():
    A = tm.gallery.laplacian(3)
    gradient = tm.grad(lambda A, x: tm.sum(tm.floor(A @ x)))(A, np.ones(9))
    assert gradient.pattern == A.pattern and not gradient.to_numpy().any()


def test_explain_shows_what_is_saved():
    f = tm.value_and_grad(lambda A, x: tm.sum(tm.tanh(A @ x) ** 2), argnums=(0, 1))
    text = tm.explain(f, tm.gallery.laplacian(3), np.ones(9)).schedule
    assert "saved by the forward pass" in text and "recomputed by the adjoint" in text


def test_patterns():
    A = tm.gallery.random((50, 40), 0.1, seed=3)
    P = A.pattern
    assert P == tm.Pattern(A) and hash(P) == hash(tm.Pattern(A)) and P != A.T.pattern
    v = rand(P.nnz, seed=1)
    B = P.with_values(v)
    assert np.shares_memory(B.level_arrays(1)["crd"], A.level_arrays(1)["crd"])
    np.testing.assert_allclose(B.values, v)
    assert {P: 1}[B.pattern] == 1
    with pytest.raises(tm.Error):
        P.with_values(v[:-1])


@pytest.mark.parametrize("format", ["csc", "coo", "dcsr", "dense", "csr"])
def test_conversions_of_patterns_are_gathers(format):
    A = tm.gallery.random((50, 40), 0.1, seed=4)
    P = A.pattern
    before = tm.cache_info()
    for seed in range(3):
        v = rand(P.nnz, seed=seed)
        B = P.with_values(v)
        np.testing.assert_allclose(B.convert(format).to_numpy(), B.to_numpy())
    after = tm.cache_info()
    # The same levels need no conversion, and a permutation of every coordinate would be larger than the tensor.
    if format not in ("csr", "dense"):
        assert after.hits >= before.hits + 2 and after.misses == before.misses + 1
        assert after.nbytes > 0


def test_declared_derivatives() -> None:
    tm.op("softer", "a, b", "max(a, b) + log1p(exp(-abs(a - b)))", derivative=("sigmoid(a - b)", "sigmoid(b - a)"))
    tm.op("through", "a", "round(a)", derivative="1")
    tm.op("twice_declared", "a", "a * a", derivative="7 * a")
    rng = np.random.default_rng(0)
    x, y = rng.random(5), rng.random(5)
    value = lambda x: float(tm.einsum("s = sum[i](softer(x[i], y[i]) * x[i])", x=x, y=y))
    step = 1e-6
    wanted = [(value(x + step * e) - value(x - step * e)) / (2 * step) for e in np.eye(5)]
    np.testing.assert_allclose(tm.grad("s = sum[i](softer(x[i], y[i]) * x[i])", "x")(x=x, y=y), wanted, rtol=1e-6)
    np.testing.assert_array_equal(tm.grad("s = sum[i](through(x[i]))")(x=x), np.ones(5))
    # What is declared is used, and not the body.
    np.testing.assert_allclose(tm.grad("s = sum[i](twice_declared(x[i]))")(x=x), 7 * x)
    loops = tm.program("def f(x):\n    s = scalar(0.0)\n    for i in _:\n        s += twice_declared(x[i])\n    return s\n")
    np.testing.assert_allclose(tm.grad(loops)(x), 7 * x)
    _, tangent = tm.jvp("y[i] = twice_declared(x[i])", {"x": x}, {"x": np.ones(5)})
    np.testing.assert_allclose(np.asarray(tangent), 7 * x)

    @tm.op(derivative=("b", "a"))
    def times(a: Any, b: Any) -> Any:
        return a * b

    np.testing.assert_allclose(tm.grad("s = sum[i](times(x[i], y[i]))", "x")(x=x, y=y), y)
    for wrong in (["1"], ["1", "1", "1"], ["c", "1"], ["a +", "1"]):
        with pytest.raises(tm.Error):
            tm.op("wrong", "a, b", "a * b", derivative=wrong)
