"""Traced functions and kernels."""

from __future__ import annotations

import pathlib
import sys
from typing import Any

import numpy as np
import pytest
from strategies import same

import tamis as tm

X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0], [4.0, 0.0, 5.0]])


def test_same_as_eager() -> None:
    def f(A: Any, x: Any, scale: Any = 2.0) -> Any:
        y = A @ x
        z = tm.maximum(y * scale, 1) + A.T @ y
        return {"z": z, "norm": tm.sqrt(tm.sum(z * z)), "rows": A.sum(axis=1, keepdims=True), "same": x}

    for format in ("csr", "dense", "coo"):
        A, x = tm.tensor(X, format=format), tm.tensor([1.0, 2.0, 3.0])
        eager, traced = f(A, x), tm.jit(f)(A, x)
        assert list(eager) == list(traced)
        for name in eager:
            same(traced[name], eager[name].to_numpy())


def test_broadcasting_and_views() -> None:
    @tm.jit
    def centred(A: Any) -> Any:
        return (A - A.mean(axis=0)).T, A[:, None, :] * A[None, :, :], A.mean(axis=1)[:, None], tm.expand_dims(A, axis=0), A > 0

    out = centred(X)
    same(out[0], (X - X.mean(axis=0)).T)
    same(out[1], X[:, None, :] * X[None, :, :])
    same(out[2], X.mean(axis=1)[:, None])
    same(out[3], X[None])
    same(out[4], X > 0, exact=True)


def test_traced_once_for_each_signature() -> None:
    calls = []

    @tm.jit
    def f(A: Any, k: int) -> Any:
        calls.append(k)
        return A * k

    A = tm.tensor(X, format="csr")
    for k in (2, 2, 3):
        same(f(A, k), X * k)
    assert calls == [2, 3]
    f(A.astype("f32"), 2), f(A.convert("csc"), 2)
    assert len(calls) == 3 and "2 traced" not in repr(f)


def test_captured_tensors_and_lists() -> None:
    W = tm.tensor(X)
    f = tm.jit(lambda parts: parts[0] @ W + parts[1])
    same(f([W, np.ones(3)]), X @ X + 1)
    assert "captured" in f.text([W, np.ones(3)])


def test_results_that_are_read_again() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        y = x + 1
        return y, y * 2

    y, z = f(np.arange(3.0))
    same(y, [1, 2, 3])
    same(z, [2, 4, 6])


def test_what_cannot_be_traced() -> None:
    for function in (
        lambda x: x if x.sum() > 0 else -x,
        lambda x: x[0],
        lambda x: np.asarray(x),
        lambda x: float(x.sum()),
        lambda x: tm.flip(x),
    ):
        with pytest.raises(tm.Error):
            tm.jit(function)(np.ones(3))
    with pytest.raises(tm.Error):
        tm.jit(lambda x: x)(1, 2)


def test_every_attribute_of_tensors_is_traced_or_a_diagnostic() -> None:
    for name in dir(tm.Tensor):
        if name.startswith("_"):
            continue

        def use(x: Any, name: str = name) -> Any:
            found = getattr(x, name)
            return found() if callable(found) else found

        try:
            tm.jit(use)(X)
        except tm.Error as error:
            assert error.help, name
        except TypeError as error:
            assert "positional argument" in str(error), name
    with pytest.raises(AttributeError):
        tm.jit(lambda x: x.nonsense)(X)
    assert tm.jit(lambda x: x * 2 if hasattr(x, "to_numpy") else x * 3)(X)[0, 0] == 3.0


def test_shapes_that_differ_by_dimensions_of_size_1() -> None:
    @tm.jit
    def f(x: Any) -> Any:
        y = x.reshape(1, 3, 1, 3) + 1
        return y, y.squeeze(), tm.reshape(x.sum(axis=0), (3, -1)) * x, x.sum().reshape(1, 1), x.mT, x.clip(0, 2), x.conj().real, x.size

    out = f(X)
    want = [(X + 1).reshape(1, 3, 1, 3), X + 1, X.sum(axis=0)[:, None] * X, X.sum().reshape(1, 1), X.T, X.clip(0, 2), X]
    for ours, theirs in zip(out, want):
        same(ours, theirs)
    assert out[-1] == 9
    for wrong in (lambda x: x.reshape(9), lambda x: x.reshape(-1), lambda x: x.ravel(), lambda x: x.reshape("a"), lambda x: x.reshape(7),
                  lambda x: x.transpose((0, 0)), lambda x: x.transpose(1), lambda x: x[np.array([0])], lambda x: x[:, :, :], lambda x: x[..., ...]):
        with pytest.raises(tm.Error) as caught:
            tm.jit(wrong)(X)
        assert caught.value.help


def test_values_of_another_call_are_refused() -> None:
    kept: list[Any] = []
    tm.jit(lambda x: kept.append(x) or x * 2)(X)
    with pytest.raises(tm.Error):
        tm.jit(lambda x: x + kept[0])(X + 1)


def test_each_value_is_one_statement() -> None:
    def f(x: Any) -> Any:
        for _ in range(20):
            x = x * 1.5 + x
        return x

    text = tm.jit(f).text(X)
    assert len(text.splitlines()) == 40 and len(text) < 40 * 40
    g = tm.jit(lambda x: tm.exp(x) / tm.sum(tm.exp(x), axis=1, keepdims=True) + tm.exp(x))
    assert g.text(X).count("exp(") == 1
    h = tm.jit(lambda x: tm.exp(x) * tm.exp(x) - tm.exp(x))
    assert h.text(X).count("exp(") == 1
    same(h(X), np.exp(2 * X) - np.exp(X))


def test_explained() -> None:
    f = tm.jit(lambda A, x: tm.sum(A @ x))
    e = tm.explain(f, tm.tensor(X, format="csr"), np.ones(3))
    assert "for" in e.program and "<pre" in e._repr_html_()


def test_einsum_is_traced() -> None:
    A = tm.tensor(X, format="csr")
    n, m = X.shape
    x, c = np.arange(1.0, m + 1), np.ones(n)
    cases: list[tuple[Any, Any]] = [
        (lambda A, x: tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=x) + 1, X @ x + 1),
        (lambda A, x: tm.einsum("ij,j->i", A, x * 2) - x.sum(), X @ x * 2 - x.sum()),
        (lambda A, x: tm.einsum("...j,j", A + A, x), 2 * X @ x),
        (lambda A, x: tm.einsum("y[j] = B[j,i] * x[j]", B=A.T, x=x), X.sum(axis=0) * x),
        (lambda A, x: tm.einsum("t[i] = A[i,j]; y[i] = t[i] * s", A=A, s=2.5) + 0.5, X.sum(axis=1) * 2.5 + 0.5),
        (lambda A, x: tm.einsum("x[i] *= c", x=x * 1, c=3) + x, 4 * x),
        (lambda A, x: tm.einsum("O[i+k] += x[i] * f[k]", x=x, f=x), np.convolve(x, x)),
        (lambda A, x: tm.einsum("m[i] = max[j](A[i,j])", A=A) * tm.einsum("t0[i] = c[i]", c=tm.asarray(c)), X.max(axis=1)),
        (lambda A, x: tm.einsum("x[A] = t0[A] * 2", t0=tm.exp(x)), 2 * np.exp(x)),
    ]
    for f, wanted in cases:
        same(tm.jit(f)(A, x), wanted)
    both = tm.jit(lambda A, x: tm.einsum("s[i] = A[i,j]; m = max[i,j](A[i,j])", A=A))(A, x)
    same(both.s, X.sum(axis=1))
    same(both.m, X.max())
    # The pieces are scheduled together.
    f = tm.jit(lambda A, x: A * tm.einsum("C[i,j] = r[i] * x[j]", r=tm.asarray(c), x=x))
    assert tm.explain(f, A, x).program.count("tensor(") == 1
    for wrong in (
        lambda A, x: tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=x, format="dense"),
        lambda A, x: tm.einsum("y[i] = A[i,j]", A=x),
        lambda A, x: tm.einsum("y[i] = B[i]", A=x),
    ):
        with pytest.raises(tm.Error):
            tm.jit(wrong)(A, x)


@tm.kernel
def rowsum(A):  # type: ignore[no-untyped-def] # noqa
    """Sums of rows."""
    y = tensor("dense")  # noqa: F821
    for i, j in _:  # noqa: F821
        y[i] += A[i, j]
    return y


def test_kernel() -> None:
    same(rowsum(tm.tensor(X, format="csr")), X.sum(axis=1))
    same(rowsum(A=X), X.sum(axis=1))
    assert rowsum.__doc__ == "Sums of rows." and "rowsum(A)" in repr(rowsum)
    assert "for i" in tm.explain(rowsum, X).program


def test_errors_point_into_the_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrong_kernel.py").write_text(
        "import tamis as tm\n\nclass Box:\n    @tm.kernel\n    def f(A):\n        y = tensor('dense')\n"
        "        for i, j in _:\n            y[i] += A[i,j] * bb[j]\n        return y\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(tm.Error) as caught:
        import wrong_kernel  # type: ignore[import-not-found]  # noqa: F401
    span = caught.value.span
    assert span is not None and span.source.endswith("wrong_kernel.py") and span.line == 8
    line = (tmp_path / "wrong_kernel.py").read_text().splitlines()[7]
    assert span.column is not None and line[span.column - 1 :].startswith("bb")
    assert "bb[j]" in str(caught.value) and "^" in str(caught.value)
    sys.modules.pop("wrong_kernel", None)


def test_errors_of_calls_point_there_too() -> None:
    with pytest.raises(tm.Error) as caught:
        add(tm.ones((2, 3)), tm.ones((3, 2)))
    span = caught.value.span
    assert span is not None and span.source == __file__ and span.line is not None
    assert "A[i, j] + B[i, j]" in pathlib.Path(__file__).read_text().splitlines()[span.line - 1]


@tm.kernel
def add(A, B):  # type: ignore[no-untyped-def] # noqa
    C = tensor("dense")  # noqa: F821
    for i, j in _:  # noqa: F821
        C[i, j] = A[i, j] + B[i, j]
    return C
