"""NumPy's spelling of index notation, against NumPy."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from strategies import arrays, many, same, stored

import tamis as tm

SIZES = {"a": 2, "b": 3, "c": 4, "d": 1}


@given(data=st.data())
@many
def test_any_einsum(data: Any) -> None:
    count = data.draw(st.integers(1, 3))
    terms = [data.draw(st.lists(st.sampled_from("abcd"), min_size=1, max_size=3, unique=True)) for _ in range(count)]
    known = sorted({letter for term in terms for letter in term})
    result = data.draw(st.lists(st.sampled_from(known), max_size=3, unique=True))
    text = ",".join("".join(term) for term in terms) + "->" + "".join(result)
    plain = [data.draw(arrays(shape=tuple(SIZES[n] for n in term), dtype="f8")) for term in terms]
    same(tm.einsum(text, *(data.draw(stored(x)) for x in plain)), np.einsum(text, *plain))


@st.composite
def subscripts(draw: Any) -> tuple[str, list[Any]]:
    """Any text that NumPy might take, implicit or not, with ellipses, spaces and sizes of 1, and arrays for it."""
    count = draw(st.integers(1, 3))
    size = dict(zip("abcAi", draw(st.lists(st.integers(1, 3), min_size=5, max_size=5))))
    extra = draw(st.lists(st.integers(1, 3), max_size=2))
    parts, shapes = [], []
    for _ in range(count):
        letters = draw(st.lists(st.sampled_from("abcAi"), max_size=3))
        shape = [1 if draw(st.integers(0, 5)) == 0 else size[n] for n in letters]
        at = draw(st.none() | st.integers(0, len(letters)))
        part = "".join(letters)
        if at is not None:
            own = [1 if draw(st.integers(0, 3)) == 0 else n for n in extra[draw(st.integers(0, len(extra))) :]]
            part, shape = part[:at] + "..." + part[at:], shape[:at] + own + shape[at:]
        parts.append(part)
        shapes.append(shape)
    text = draw(st.sampled_from([",", " , "])).join(parts)
    if draw(st.booleans()):
        known = sorted(set("".join(parts)) - set(".")) or ["a"]
        result = "".join(draw(st.lists(st.sampled_from([*known, "c"]), max_size=3)))
        at = draw(st.none() | st.integers(0, len(result)))
        text += draw(st.sampled_from(["->", " -> "])) + (result if at is None else result[:at] + "..." + result[at:])
    dtype = draw(st.sampled_from(["f8", "f8", "i4", "?"]))
    return text, [draw(arrays(shape=tuple(shape), dtype=dtype)) for shape in shapes]


@given(case=subscripts(), data=st.data())
@many
def test_every_form_of_numpy(case: Any, data: Any) -> None:
    text, plain = case
    try:
        want = np.einsum(text, *plain)
    except (ValueError, TypeError):
        want = None
    given_ = [data.draw(stored(x)) if x.ndim else x for x in plain]
    if want is None:
        with pytest.raises(tm.Error) as caught:
            tm.einsum(text, *given_)
        assert caught.value.help
    else:
        made = tm.einsum(text, *given_)
        assert made.shape == want.shape and made.dtype == want.dtype
        same(made, want)


def test_lists_of_integers() -> None:
    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    same(tm.einsum(A, [0, 1], B, [1, 2]), A @ B)
    same(tm.einsum(A, [5, 1], B, [1, 2], [2, 5]), (A @ B).T)
    same(tm.einsum(A, [..., 0], [0, ...]), A.T)
    same(tm.einsum(A, [30, 2]), np.einsum(A, [30, 2]))
    for wrong in ([0, 99], [0, "i"], 5):
        with pytest.raises(tm.Error):
            tm.einsum(A, wrong)
    with pytest.raises(TypeError):
        tm.einsum(A)


def test_ellipses_are_explained_and_scheduled() -> None:
    A = tm.gallery.random((4, 5, 6), 0.3, seed=1)
    assert "for" in tm.explain("...ij->...i", A).program
    assert tm.einsum("...ij->...i", A, format="csr").format == "csr"
    assert tm.einsum("b...j->...b", A, order="j,b").shape == (5, 4)
    with pytest.raises(tm.Error) as caught:
        tm.einsum("...ij->ij", A)
    assert caught.value.code == "E0111" and "->...ij" in caught.value.help[0]


@given(data=st.data())
@many
def test_sums_of_products(data: Any) -> None:
    x, y = (data.draw(arrays(shape=(3, 4), dtype="f8")) for _ in range(2))
    v = data.draw(arrays(shape=(4,), dtype="f8"))
    a, b, c = (data.draw(stored(z)) for z in (x, y, v))
    same(tm.einsum("r[i] = A[i,j] * v[j] + max[k](B[i,k])", A=a, B=b, v=c), x @ v + y.max(axis=1))
    same(tm.einsum("r[i,j] = (A[i,j] + B[i,j]) * (v[j] + 1)", A=a, B=b, v=c), (x + y) * (v + 1))


def test_temporaries_are_named_around_later_statements() -> None:
    x = np.arange(9.0).reshape(3, 3)
    text = "t0[i] = sqrt(sum[j](A[i,j])); t1[i] = sqrt(t0[i] + 1); y[i] = t1[i] * t2[i]"
    same(tm.einsum(text, A=x, t2=np.ones(3)), np.sqrt(np.sqrt(x.sum(axis=1)) + 1))


def test_out() -> None:
    A, x = np.arange(12.0).reshape(3, 4), np.ones(4)
    out = np.zeros(3)
    assert tm.einsum("y[i] = A[i,j] * x[j]", A=tm.tensor(A, format="csr"), x=x, out=out) is out
    np.testing.assert_array_equal(out, A.sum(axis=1))
    assert tm.einsum("ij,j->i", A, x, out=out) is out
    # An operand is read before it is written, and other arrays may share its memory.
    tm.einsum("x[j] *= c", x=x, c=3.0, out=x)
    np.testing.assert_array_equal(x, np.full(4, 3.0))
    B = A.copy()
    tm.einsum("T[i,j] = B[j,i]", B=B[:, :3], out=B[:, :3])
    np.testing.assert_array_equal(B[:, :3], A[:, :3].T)
    strided = np.zeros((4, 6))[:, ::2]
    tm.einsum("C[j,i] = A[i,j]", A=A, out=strided)
    np.testing.assert_array_equal(strided, A.T)
    s, m = np.zeros(3), np.zeros(())
    tm.einsum("s[i] = A[i,j]; m = max[i,j](A[i,j])", A=A, out=(s, m))
    assert s[2] == A[2].sum() and m == 11
    for text, wrong in (
        ("y[i] = A[i,j]", np.zeros(4)),
        ("y[i] = A[i,j]", np.zeros(3, dtype="i4")),
        ("y[i] = A[i,j]", tm.zeros(3)),
        ("y[i] = A[i,j]; z[j] = A[i,j]", np.zeros(3)),
        ("y[i] = A[i,j]", (np.zeros(3), np.zeros(3))),
    ):
        with pytest.raises(tm.Error):
            tm.einsum(text, A=A, out=wrong)
