"""NumPy's spelling of index notation, against NumPy."""

from __future__ import annotations

import subprocess
import sys
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
    fixed = np.zeros(3)
    fixed.flags.writeable = False
    for text, wrong in (
        ("y[i] = A[i,j]", fixed),
        ("y[i] = A[i,j]", np.zeros(4)),
        ("y[i] = A[i,j]", np.zeros(3, dtype="i4")),
        ("y[i] = A[i,j]", tm.zeros(3)),
        ("y[i] = A[i,j]; z[j] = A[i,j]", np.zeros(3)),
        ("y[i] = A[i,j]", (np.zeros(3), np.zeros(3))),
    ):
        with pytest.raises(tm.Error):
            tm.einsum(text, A=A, out=wrong)


FORMATS = ["dense", "csr", "csc", "coo", "dcsr", "bsr(2,2)", "dense, blocks", "hash, hash"]


@pytest.mark.parametrize("format", FORMATS)
def test_out_is_updated_in_place(format: str) -> None:
    rng = np.random.default_rng(0)
    dense = np.where(rng.random((6, 4)) < 0.5, rng.random((6, 4)), 0)
    A, x = tm.tensor(dense, format=format), rng.random(4)
    direct = lambda text, out, **given: tm._tamis.einsum_into(text, [out], format="dense", **given) == [None]
    y = rng.random(6)
    before = y.copy()
    assert direct("y[i] += A[i,j] * x[j]", y, y=y, A=A, x=x)
    np.testing.assert_allclose(y, before + dense @ x)
    Y = rng.random((6, 4))
    before = Y.copy()
    # Kernels over blocks write the fill value first.
    assert direct("Y[i,j] = Y[i,j] * 2 + A[i,j]", Y, Y=Y, A=A) or "b" in format
    if "b" not in format:
        np.testing.assert_allclose(Y, before * 2 + dense)
    assert direct("z[i] = A[i,j] * x[j]", y, A=A, x=x)
    np.testing.assert_allclose(y, dense @ x)
    # Where what is not stored makes zeros, and where other elements are read, the result is copied.
    for text, expected in (
        ("Y[i,j] *= A[i,j]", lambda Y: Y * dense),
        ("Y[i,j] = Y[i,j] * 2 + A[i,j]", lambda Y: Y * 2 + dense),
        ("Y[i,j] += Y[i,k] * A[i,j]", lambda Y: Y + Y.sum(axis=1)[:, None] * dense),
        ("Y[i,j] = Y[i,j] - Y[0,j] * A[i,j]", lambda Y: Y - Y[0] * dense),
    ):
        Y = rng.random((6, 4))
        wanted = expected(Y.copy())
        assert tm.einsum(text, Y=Y, A=A, out=Y) is Y
        np.testing.assert_allclose(Y, wanted)


def test_out_overlaps_operands() -> None:
    base = np.arange(10.0)
    for text, operand, out, wanted in (
        ("y[i] = 2 * x[i]", slice(0, 8), slice(2, 10), 2 * base[:8]),
        ("y[i] = 2 * x[i]", slice(2, 10), slice(0, 8), 2 * base[2:]),
        ("y[i] = x[i] + x[7]", slice(0, 8), slice(0, 8), base[:8] + 7),
        ("y[i] = 2 * x[i]", slice(0, 10, 2), slice(5, 10), 2 * base[::2]),
        ("y[i] = 2 * x[i]", slice(0, 5), slice(0, 10, 2), 2 * base[:5]),
        ("y[i] = x[i] + z[i]", slice(0, 8), slice(0, 8), 2 * base[:8]),
    ):
        x = base.copy()
        more = {"z": x[operand]} if "z" in text else {}
        tm.einsum(text, x=x[operand], out=x[out], **more)
        np.testing.assert_array_equal(x[out], wanted)
    # Two places in the same memory: the last result stays, as if they were copied one by one.
    x = base.copy()
    tm.einsum("a[i] = 2 * x[i]; b[i] = 3 * x[i]", x=base, out=(x, x))
    np.testing.assert_array_equal(x, 3 * base)
    # A tensor that borrows the array.
    x = base.copy()
    tm.einsum("y[i] = x[i] + x[0]", x=tm.asarray(x), out=x)
    np.testing.assert_array_equal(x, base + base[0])
    flags = np.array([True, False, True])
    tm.einsum("f[i] = not g[i]", g=flags, out=flags)
    np.testing.assert_array_equal(flags, [False, True, False])


def test_out_needs_no_temporary() -> None:
    # A result of 256 MB: the memory of the process does not grow.
    code = """
import resource, numpy as np, tamis as tm
x, y = np.ones(1 << 25), np.ones(1 << 25)
small = np.ones(8)
tm.einsum("y[i] = 2 * x[i]", x=small, out=small.copy())
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tm.einsum("y[i] = 2 * x[i]", x=x, out=y)
tm.einsum("x[i] *= c", x=x, c=3.0, out=x)
assert y[-1] == 2 and x[-1] == 3
np.add(tm.asarray(x), 1.0, out=y)
assert y[0] == 4
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=120)
    assert int(done.stdout) < 100, f"{done.stdout} MB"


def test_sizes_of_temporaries() -> None:
    A, x = np.arange(12.0).reshape(3, 4), np.arange(3.0)
    same(tm.einsum("y[i]=x[i]*2; z[i]=y[i]*y.shape[0]", x=x), 6 * x)
    same(tm.einsum("y[i]=A[i,j]; z=y[i]/y.shape[0]", A=A), A.sum(axis=1).mean())
    same(tm.einsum("y[i,j]=x[i]*2*w[j]; z[i]=y[i,j]*y.shape[1]", x=x, w=np.ones(5)), 50 * x)
    same(tm.einsum("x[i] *= 2; z[i]=x[i]*x.shape[0]; w[i]=z[i]*z.shape[0]", x=x), 18 * x)
    same(tm.einsum("y[i]=x[i]*2; z[k]=x[k] for k in range(y.shape[0]); w[i]=y[i]+z[i]", x=x), 3 * x)
    # A size that is no operand's.
    same(tm.einsum("y[i]=x[i+1]*2 for i in range(2); z[i]=y[i]*y.shape[0]", x=x), 4 * x[1:])

    @tm.jit
    def mean(x: Any) -> Any:
        y = x * 2
        return tm.einsum("m = y[i] / y.shape[0]", y=y)

    same(mean(x), 2 * x.mean())
