"""Index variables as objects: expressions and results, against NumPy."""

from __future__ import annotations

from typing import Any, Callable

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from strategies import arrays, many, same, stored

import tamis as tm

i, j, k = tm.indices("i j k")
X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0]])
A = tm.tensor(X, format="csr")

UNARY: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda a: -a, lambda a: -a),
    (abs, np.abs),
    (lambda a: tm.sqrt(abs(a)), lambda a: np.sqrt(np.abs(a))),
    (tm.relu, lambda a: np.maximum(a, 0)),
    (lambda a: a.astype("i32"), lambda a: a.astype(np.int32)),
    (lambda a: (a > 1) * a, lambda a: (a > 1) * a),
    (tm.square, np.square),
    (tm.tanh, np.tanh),
]
BINARY: list[tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = [
    (lambda a, b: a + b, np.add),
    (lambda a, b: a - b, np.subtract),
    (lambda a, b: a * b, np.multiply),
    (lambda a, b: a / (abs(b) + 1), lambda a, b: a / (np.abs(b) + 1)),
    (tm.maximum, np.maximum),
    (tm.minimum, np.minimum),
    (lambda a, b: tm.where(a < b, a, b * 2), lambda a, b: np.where(a < b, a, b * 2)),
    (lambda a, b: tm.where((a <= b) & ~(b == 0), a, 1.0), lambda a, b: np.where((a <= b) & ~(b == 0), a, 1.0)),
]


@st.composite
def expressions(draw: Any) -> tuple[Any, Any, dict[str, Any]]:
    """An expression of `i` and `j`, and the array that it means; both indices are bounded by a matrix."""
    plain = {name: draw(arrays(shape=shape, dtype="f8")) for name, shape in (("A", (3, 4)), ("B", (4, 3)), ("x", (3,)), ("y", (4,)))}
    held = {name: draw(stored(array)) for name, array in plain.items()}
    leaves = [
        (held["A"][i, j], plain["A"]),
        (held["B"][j, i], plain["B"].T),
        (held["x"][i], plain["x"][:, None]),
        (held["y"][j], plain["y"][None, :]),
        (2.5, 2.5),
        (3, 3),
        (i + 2 * j, np.arange(3)[:, None] + 2 * np.arange(4)),
    ]
    made = [leaves[0]]
    for _ in range(draw(st.integers(1, 6))):
        one, other = (draw(st.sampled_from(leaves + made + made[-1:])) for _ in range(2))
        if draw(st.booleans()):
            ours, theirs = draw(st.sampled_from(UNARY))
            made.append((ours(made[-1][0]), theirs(made[-1][1])))
        else:
            ours2, theirs2 = draw(st.sampled_from(BINARY))
            both = (one, made[-1]) if draw(st.booleans()) else (made[-1], other)
            made.append((ours2(both[0][0], both[1][0]), theirs2(both[0][1], both[1][1])))
    return *made[-1], held


@given(case=expressions())
@many
def test_any_expression(case: Any) -> None:
    ours, theirs, held = case
    want = np.broadcast_to(theirs, (3, 4))
    C = tm.result("C")
    C[i, j] = ours + 0 * held["A"][i, j]
    same(C, want + 0.0)
    s = tm.result()
    s[j] = tm.sum(ours + 0 * held["A"][i, j], over=i)
    same(s, want.sum(axis=0))
    same((ours + 0 * held["A"][i, j]).max(i, j).evaluate(), want.max())
    # The same text by hand is the same program.
    same(tm.einsum(C.text, **C.__tamis_notation__()[1]), C.to_numpy())


def test_first_examples() -> None:
    C = tm.result()
    C[i, j] = A[i, j] + A[j, i]
    same(C, X + X.T)
    y, x = tm.result(), tm.tensor([1.0, 2.0, 3.0])
    y[i] = A[i, j] * x[j]
    same(y, X @ [1, 2, 3])
    y[i] = tm.sum(A[i, j] * x[j], over=j) + 1
    same(y, X @ [1, 2, 3] + 1)
    s = tm.result()
    s[None] = tm.sum(tm.sum(A[i, j], over=i), over=j)
    assert float(s) == X.sum()
    s[()] = A[i, j]
    assert s.item() == X.sum() and s.shape == ()
    D = tm.result(format="csc")
    D[i, j] = A[i, k] * A[k, j]
    assert D.format == "csc"
    same(D, X @ X)
    P, Q = np.ones((3, 2)), np.arange(6.0).reshape(3, 2)
    p, q = tm.asarray(P), tm.asarray(Q)
    D[i, j] = A[i, j] * p[i, k] * q[j, k]
    same(D, X * (P @ Q.T))
    B = tm.asarray(np.arange(24.0).reshape(2, 3, 4))
    a, b, c, d = tm.indices(4)
    E = tm.result()
    E[a, d] = B[a, b, c] * p[b, d] * tm.asarray(np.ones((4, 2)))[c, d]
    same(E, np.einsum("abc,bd,cd->ad", B.to_numpy(), P, np.ones((4, 2))))


def test_affine_subscripts_and_gathers() -> None:
    signal, kernel = np.arange(10.0), np.array([1.0, 2.0, 3.0])
    I, F = tm.asarray(signal), tm.asarray(kernel)
    O = tm.result()
    O[i] = I[i + k] * F[k]
    same(O, np.convolve(signal, kernel[::-1], "valid"))
    O[i] = I[2 * i + k] * F[k]
    same(O, np.convolve(signal, kernel[::-1], "valid")[::2])
    # A filter that is larger than its tensor has no place in it.
    for n in range(4):
        O[i] = tm.asarray(signal[:n])[i + k] * F[k]
        assert O.shape == (max(0, n - 2),)
        text = "O[i] = I[i+k] * F[k]"
        assert tm.einsum(text, I=tm.tensor(signal[:n], format="sparse"), F=kernel).shape == (max(0, n - 2),)
    full = tm.result()
    full[i + k] += I[i] * F[k]
    same(full, np.convolve(signal, kernel))
    G = tm.result()
    G[i] = I[tm.asarray([3, 0, 7])[i]] + I[0]
    same(G, signal[[3, 0, 7]])
    G[i] = tm.call("coalesce", I[~(i - 1)], 0.0) * I[i]
    same(G, np.r_[0.0, signal[:-1]] * signal)
    G[i, j] = A[i, j] * (i <= j)
    same(G, np.triu(X))
    G[i] = A[i, i] * i
    same(G, np.diag(X) * np.arange(3))


def test_updates() -> None:
    y, x = tm.result("y"), tm.tensor([1.0, 2.0, 3.0])
    y[i] = x[i]
    y[i] += A[i, j] * x[j]
    y[i] -= 1
    y[i] *= 2.0
    same(y, (np.arange(1, 4) + X @ [1, 2, 3] - 1) * 2)
    assert y.text.splitlines()[1] == "y[i] += B[i,j] * A[j]"
    d = tm.result()
    d[i] = tm.minimum(d[i], A[i, j] + x[j])
    same(d, (X + [1, 2, 3]).min(axis=1))
    d[i] = x[i]
    d[i] = tm.maximum(d[i], A[i, j])
    same(d, np.maximum([1, 2, 3], X.max(axis=1)))
    d[i] = d[i] + A[i, j]
    same(d, np.maximum([1, 2, 3], X.max(axis=1)) + X.sum(axis=1))


def test_assignments_read_what_was_there_before() -> None:
    C = tm.result("C")
    C[i, j] = A[i, j] * 2
    before = C[i, j] + 0
    C[i, j] = C[j, i] + 1
    same(C, 2 * X.T + 1)
    same(before.evaluate(i, j), 2 * X)
    C[i, j] += 1
    after = tm.result()
    after[i] = C[i, j]
    same(after, (2 * X.T + 2).sum(axis=1))


def test_results_that_results_read() -> None:
    t, m, o = tm.result("t"), tm.result("m"), tm.result("o")
    t[i, j] = A[i, j] + 1
    m[i] = tm.max(t[i, j], over=j)
    o[i, j] = A[i, j] * m[i]
    found = tm.evaluate(m, o)
    assert isinstance(found, tuple)
    same(found[0], (X + 1).max(axis=1))
    same(found[1], X * (X + 1).max(axis=1)[:, None])
    # What was computed is an operand from then on.
    n = tm.result()
    n[i] = m[i] * 2
    assert n.text == "R0[i] = m[i] * 2"
    same(n, (X + 1).max(axis=1) * 2)
    both, twice = tm.result(), tm.result()
    both[i] = A[i, j]
    twice[i] = both[i] * 2
    one, two = tm.evaluate(twice, both)  # type: ignore[misc]
    same(one, X.sum(axis=1) * 2)
    same(two, X.sum(axis=1))


def test_what_is_shared_or_deep_is_stated_once() -> None:
    x = tm.asarray(np.ones(3))
    e = x[i]
    for _ in range(60):
        e = e * 0.5 + e * 0.25
    y = tm.result()
    y[i] = e
    assert len(y.text) < 60 * 80
    e = x[i]
    for n in range(90):
        e = tm.sqrt(e + 1.0) if n % 2 else e * (e + 2.0)
    y[i] = e
    assert len(y.text) < 90 * 80
    chain = A[i, 0] * x[i]
    for _ in range(700):
        chain = chain + x[i]
    assert "((" not in repr(chain)
    deep = tm.sum(A[i, j] * x[j], over=j)
    for _ in range(70):
        deep = tm.sqrt(abs(deep) + 1)
    y[i] = deep
    want = X.sum(axis=1)
    for _ in range(70):
        want = np.sqrt(np.abs(want) + 1)
    same(y, want)


def test_looks_inside_and_options() -> None:
    C = tm.result("C", format="csr", order="k,i,j")
    C[i, j] = A[i, k] * A[k, j]
    assert "for k" in tm.explain(C).program and C.format == "csr"
    assert "nothing" in repr(tm.result()) and "csr" in repr(C)
    same(C + 1, X @ X + 1)
    same(A @ C, X @ X @ X)
    same(np.asarray(C), X @ X)
    same(tm.sum(C, axis=0), (X @ X).sum(axis=0))
    same(tm.einsum("y[i] = C[i,j]", C=C), (X @ X).sum(axis=1))
    assert C[0, 0] == (X @ X)[0, 0] and len(C) == 3 and [r.shape for r in C] == [(3,)] * 3
    D = tm.result(schedule="reorder(j,i)")
    D[i, j] = A[i, j]
    same(D, X)


def test_own_operators_and_numbers() -> None:
    apart = tm.op("apart", "a, b", "abs(a - b) > 1", commutative=True)
    x = tm.asarray(np.array([1.0, 2.0, 5.0], dtype=np.float32))
    same(tm.call(apart, x[i], 2.5).evaluate(i), [True, False, True])
    assert (x[i] * 2.5).evaluate(i).dtype == np.float32
    assert (np.float64(2.5) * x[i]).evaluate(i).dtype == np.float64
    assert (x[i] * tm.asarray(2.0)).evaluate(i).dtype == np.float64
    same((x[i] - np.inf).evaluate(i), [-np.inf] * 3)
    same((x[i] * (1 - 2j)).evaluate(i), np.array([1, 2, 5]) * (1 - 2j))
    same((-1 * x[i] ** 2 - (-3)).evaluate(i), [2, -1, -22])
    same(tm.any(x[i] > 4, over=i).evaluate(), True)
    same((x[i] > 4).all(i).evaluate(), False)
    same(x[i].prod(i).evaluate(), 10)


def test_mistakes() -> None:
    C, x = tm.result("C"), tm.ones(3)

    def assign(key: Any, value: Any) -> None:
        C[key] = value

    def chained() -> Any:
        return 0 < x[i] < 2

    for call in (
        lambda: A[i],
        lambda: A[i, :],
        lambda: A[i, 1.5],
        lambda: x[i] + np.ones(3),
        lambda: A * x[i],
        chained,
        lambda: bool(x[i]),
        lambda: tm.sum(x[i]),
        lambda: tm.sum(x[i], axis=0),
        lambda: tm.sum(x[i], over=3),
        lambda: tm.mean(x[i]),
        lambda: tm.asarray(x[i]),
        lambda: tm.index("sum"),
        lambda: tm.index("a b"),
        lambda: C.tensor,
        lambda: C.to_numpy(),
        lambda: tm.evaluate(C),
        lambda: tm.evaluate(x),  # type: ignore[arg-type]
        lambda: (C[i] + x[i]).evaluate(i),
        lambda: assign((i, slice(None)), x[i]),
        lambda: assign(i, "text"),
        lambda: (x[i] * A[i, j]).evaluate(k),
        lambda: tm.call(5, x[i]),
        lambda: abs(A[i, j]).evaluate(i),
    ):
        with pytest.raises(tm.Error) as caught:
            call()
        assert caught.value.help and caught.value.code
    with pytest.raises(TypeError):
        x[i] + "text"
    with pytest.raises(TypeError):
        list(x[i])
    with pytest.raises(AttributeError):
        C._nothing
    with pytest.raises(tm.Error) as caught:
        x[i] = 3  # type: ignore[index]
    assert "tamis.result()" in " ".join(caught.value.help)
