"""Operators and elementwise functions, against NumPy."""

from __future__ import annotations

import operator
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from strategies import FORMATS, arrays, few, many, same, stored, tensors

import tamis as tm

ARITHMETIC = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@given(data=st.data())
@many
def test_two_tensors(data: Any) -> None:
    op = data.draw(st.sampled_from(ARITHMETIC))
    a, x = data.draw(tensors())
    b, y = data.draw(tensors(shape=x.shape))
    same(op(a, b), op(x, y), exact=True)


@given(data=st.data())
@many
def test_broadcasting(data: Any) -> None:
    op = data.draw(st.sampled_from([operator.add, operator.mul, operator.ge]))
    a, x = data.draw(tensors(shape=(3, 4)))
    b, y = data.draw(tensors(shape=data.draw(st.sampled_from([(4,), (1, 4), (3, 1), (1, 1), (1,), (), (2, 1, 4), (2, 3, 1)]))))
    same(op(a, b), op(x, y), exact=True)
    same(op(b, a), op(y, x), exact=True)


@given(data=st.data())
@many
def test_numbers(data: Any) -> None:
    op = data.draw(st.sampled_from(ARITHMETIC))
    a, x = data.draw(tensors())
    numbers = [0, 1, 2.5, True, np.float32(1.5), np.int64(2), np.inf] + ([-3] if x.dtype.kind != "u" else [])
    number = data.draw(st.sampled_from(numbers))
    with np.errstate(all="ignore"):
        same(op(a, number), op(x, number), exact=True)
        same(op(number, a), op(number, x), exact=True)


@given(data=st.data())
@few
def test_division_and_powers(data: Any) -> None:
    a, x = data.draw(tensors(dtype="f8"))
    b, y = data.draw(tensors(shape=x.shape, dtype="f8"))
    with np.errstate(all="ignore"):
        same(a / b, x / y)
        same(a / 2, x / 2)
        same(2 / a, 2 / x)
        same(a**2, x**2)
        same(abs(a) ** 0.5, abs(x) ** 0.5)
        same(a // 2, x // 2)
        same(a % 3, x % 3)


@given(data=st.data())
@few
def test_integers_and_booleans(data: Any) -> None:
    a, x = data.draw(tensors(dtype="i4"))
    b, y = data.draw(tensors(dtype="i4", shape=x.shape))
    for op in (operator.and_, operator.or_, operator.xor):
        same(op(a, b), op(x, y), exact=True)
        same(op(a > 0, b > 0), op(x > 0, y > 0), exact=True)
    same(~a, ~x, exact=True)
    same(~(a > 0), ~(x > 0), exact=True)
    same((a > 0) + (b > 0), (x > 0) + (y > 0), exact=True)
    same((a > 0) * (b > 0), (x > 0) * (y > 0), exact=True)
    same(a // 3, x // 3, exact=True)
    same(a << 2, x << 2, exact=True)
    same(-a, -x, exact=True)


@pytest.mark.parametrize(
    "name", "sqrt cbrt exp exp2 expm1 log log2 log10 log1p sin cos tan asin atan sinh cosh tanh asinh acosh abs sign floor ceil trunc "
    "square negative isnan isinf isfinite logical_not".split()
)  # fmt: skip
@pytest.mark.parametrize("format", ["csr", "dense", "dense, runs"])
def test_functions_of_one(name: str, format: str) -> None:
    x = np.array([[0.0, 0.5, 0.0], [-0.25, 0.0, 2.0]])
    theirs = getattr(np, {"asin": "arcsin", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh"}.get(name, name))
    a = tm.tensor(x, format=format)
    with np.errstate(all="ignore"):
        expected = theirs(x)
    for made in (getattr(tm, name)(a), theirs(a)):
        same(made, expected)
        assert made.format == a.format


def test_functions_of_two() -> None:
    x, y = np.array([[0.0, -2.0], [3.0, 0.0]]), np.array([[1.0, 0.0], [-0.5, 0.0]])
    a, b = tm.tensor(x, format="csr"), tm.tensor(y, format="coo")
    names = "minimum maximum hypot arctan2 logaddexp copysign logical_and logical_or logical_xor".split()
    for name in names:
        same(getattr(np, name)(a, b), getattr(np, name)(x, y))
    same(tm.where(a > 0, a, b), np.where(x > 0, x, y))
    same(tm.where(a > 0, 1.0, b), np.where(x > 0, 1.0, y))
    same(tm.clip(a, -1, 1), np.clip(x, -1, 1))
    same(tm.signbit(tm.tensor([0.0, -0.0, -1.0, 2.0])), np.signbit([0.0, -0.0, -1.0, 2.0]))
    assert tm.minimum(a, 1).fill_value == 0 and tm.minimum(a, -1).fill_value == -1


def test_complex_numbers() -> None:
    z = np.array([[1 + 2j, 0], [0, -1j]])
    t = tm.tensor(z, format="csr")
    for name in ("real", "imag", "conj", "abs", "exp", "negative"):
        same(getattr(tm, name)(t), getattr(np, name)(z))
    far = np.array([2 + 0j, -2 + 0j, 0.5, 1 + 2731j, -6e8 - 6e8j, 0.3 - 0.4j, -2731 + 1j, 5j])
    for name, theirs in {"asin": "arcsin", "acos": "arccos", "asinh": "arcsinh", "log1p": "log1p", "log2": "log2", "round": "round"}.items():
        same(getattr(tm, name)(far), getattr(np, theirs)(far))
    same(t * (2 - 1j), z * (2 - 1j))
    same(t @ t, z @ z)
    with pytest.raises(TypeError):
        t < 0  # noqa: B015


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_scipy_on_either_side(kind: Any) -> None:
    x = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [0.0, 0.0, 4.0]])
    a, m = tm.tensor(x, format="csr"), kind(x)
    for made, expected in [(a + m, x + x), (m + a, x + x), (m - a, x - x), (m @ a, x @ x), (a @ m, x @ x), (a * m, x * x)]:
        assert isinstance(made, tm.Tensor)
        same(made, expected)
    assert isinstance(m @ a, tm.Tensor) and (m @ a).format in ("csr", "coo")


def test_matrices_of_scipy_multiply_as_they_do() -> None:
    x = np.array([[1.0, 2.0], [0.0, 3.0]])
    a = tm.tensor(x, format="csr")
    same(sp.csr_matrix(x) * a, x @ x)
    same(sp.csr_array(x) * a, x * x)


def test_functions_of_numpy() -> None:
    x = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    a = tm.tensor(x, format="csr")
    for made, expected in [
        (np.sum(a), np.sum(x)),
        (np.sum(a, 0), np.sum(x, 0)),
        (np.mean(a, axis=1), np.mean(x, axis=1)),
        (np.max(a, axis=1, keepdims=True), np.max(x, axis=1, keepdims=True)),
        (np.concatenate([a, a], axis=1), np.concatenate([x, x], axis=1)),
        (np.stack([a, a]), np.stack([x, x])),
        (np.where(a > 0, a, 0), np.where(x > 0, x, 0)),
        (np.reshape(a, (3, 2)), np.reshape(x, (3, 2))),
    ]:
        assert isinstance(made, tm.Tensor)
        same(made, expected)
    assert np.concatenate([a, a]).format == "csr"
    assert np.allclose(a, x) and np.array_equal(a, x)
    assert isinstance(np.dot(a, np.ones(3)), np.ndarray)
    with pytest.raises(tm.TooLarge):
        np.median(a)
    same(round(a / 3, 2), np.round(x / 3, 2))


def test_arrays_on_the_left() -> None:
    x = np.array([[1.0, 0.0], [0.0, 3.0]])
    a = tm.tensor(x, format="csr")
    v = np.array([2.0, 5.0])
    for made, expected in [
        (v * a, v * x),
        (np.float64(2) * a, 2 * x),
    ]:
        assert isinstance(made, tm.Tensor)
        same(made, expected)
    # Dense results of arrays are arrays.
    for made, expected in [(v + a, v + x), (x @ a, x @ x), (v @ a, v @ x), (v < a, v < x)]:
        assert isinstance(made, np.ndarray)
        same(made, expected)
    b = a
    b += 1
    assert b is not a and a.fill_value == 0 and b.fill_value == 1
    with pytest.raises(tm.Error):
        v += a
    same(np.add.reduce(a), np.add.reduce(x))
    with pytest.raises(tm.Error):
        np.add.accumulate(a)


def test_fills_change_and_nothing_becomes_dense() -> None:
    a = tm.gallery.random((100_000, 100_000), 1e-7, 1)
    assert (a + 1).fill_value == 1 and (a + 1).nnz == a.nnz
    assert tm.exp(a).fill_value == 1 and tm.cos(a).format == "csr"
    assert (a == 0).dtype == bool and (a == 0).fill_value
    assert (a + a.T).nnz <= 2 * a.nnz and (a * np.ones(100_000)).nnz == a.nnz
    assert (a / np.full(100_000, 2.0)).nnz == a.nnz
    assert tm.where(a > 0.5, a, 0).format == "csr"
    for huge in (lambda: a + np.ones(100_000), lambda: a / np.zeros(100_000), lambda: tm.maximum(a, np.ones((1, 100_000)))):
        with pytest.raises(MemoryError) as caught:
            huge()
        assert caught.value.code == "E0706" and "80.0 GB" in str(caught.value)  # type: ignore[attr-defined]


def test_mistakes() -> None:
    a = tm.tensor([[1, 0], [0, 2]], format="csr")
    with pytest.raises(ValueError) as caught:
        a + tm.ones(3)
    assert caught.value.code == "E0402"  # type: ignore[attr-defined]
    with pytest.raises(ValueError):
        a @ tm.ones(3)
    with pytest.raises(ValueError):
        a[0, 0] = 5
    with pytest.raises(TypeError):
        -(a > 0)
    with pytest.raises(tm.Error):
        tm.tensor([1], dtype="u8") + 300
    same(tm.tensor([1, 2], dtype="u8") < 300, [True, True])
    with pytest.raises(TypeError):
        a + object()
    with pytest.raises(tm.Error):
        np.nextafter(a, 1)
    with pytest.raises(ValueError):
        bool(a)
    with pytest.raises(TypeError):
        hash(a)


@given(data=st.data())
@few
def test_products(data: Any) -> None:
    n, k, m = (data.draw(st.integers(0, 4)) for _ in range(3))
    x, y = data.draw(arrays(shape=(n, k))), data.draw(arrays(shape=(k, m)))
    v, w = data.draw(arrays(shape=(k,))), data.draw(arrays(shape=(n,)))
    a, b = data.draw(stored(x)), data.draw(stored(y))
    same(a @ b, x @ y, exact=True)
    same(a @ data.draw(stored(v)), x @ v, exact=True)
    same(data.draw(stored(w)) @ a, w @ x, exact=True)
    same(a @ v, x @ v)
    same(w @ a, w @ x)
    same(tm.tensordot(a, b, axes=1), x @ y)
    same(tm.outer(v, w), np.outer(v, w))


def test_stacks_of_matrices() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.random((2, 3, 4)), rng.random((4, 5))
    same(tm.tensor(x) @ y, x @ y)
    same(tm.tensor(x, format="csf") @ y, x @ y)
    same(tm.tensor(x[:1], format="csf") @ rng.random((2, 4, 5)) * 0, (x[:1] @ np.ones((2, 4, 5))) * 0)
    same(tm.tensor(x) @ y[:, 0], x @ y[:, 0])
    same(tm.vecdot(tm.tensor(x, format="csf"), y[:, 0]), np.vecdot(x, y[:, 0]))
    same(tm.tensordot(x, x, axes=([0, 2], [0, 2])), np.tensordot(x, x, axes=([0, 2], [0, 2])))
    same(tm.matmul(tm.tensor([[True, False]], format="csr"), [[True], [True]]), [[True]], exact=True)


def test_every_format_is_kept() -> None:
    for rank, formats in FORMATS.items():
        for format in formats:
            a = tm.tensor(np.arange(2**rank).reshape((2,) * rank), format=format)
            assert (a * 2).format == a.format and (a + a).format == a.format


def test_one_coordinate_for_each_row() -> None:
    """A result, or another order of loops, has more than one where the operand has one."""
    p, q = np.eye(2), np.eye(2)[::-1].copy()
    a, b = tm.tensor(p, format="dense, singleton"), tm.tensor(q, format="dense, singleton")
    for op in (operator.add, operator.sub, operator.ne):
        assert (op(a, b).to_numpy() == op(p, q)).all()
    assert (tm.where(a > 0, a, 3).to_numpy() == np.where(p > 0, p, 3)).all()
    s = np.array([[0, 2.0], [0, 2]])
    tensor = tm.tensor(s, format="dense, singleton")
    assert (tensor.max(axis=0).to_numpy() == s.max(axis=0)).all()
    assert (tensor.sum(axis=0).to_numpy() == s.sum(axis=0)).all()
    t = np.array([[[4]], [[3]], [[0]], [[0]]])
    tensor = tm.tensor(t, format="dense, singleton, runs")
    assert tensor.sum() == 7
    assert tm.einsum("s = A[i,j,k]", A=tensor).item() == 7
    assert tm.tensor(np.zeros((3, 0)), format="singleton, sparse").sum() == 0
