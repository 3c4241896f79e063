"""Index notation, programs, operators, settings and explanations."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import tamis as tm
from hypothesis import given, settings
from hypothesis import strategies as st

SPGEMM = """
def gustavson(A, B):
    C = tensor("csr")
    for i in _:
        w = tensor("bytemap")
        for j in _:
            for k in _:
                w[k] += A[i,j] * B[j,k]
        for k in _:
            C[i,k] = w[k]
    return C
"""
BOTH = """
def both(x, y):
    s = scalar(0.0)
    z = tensor("dense")
    for i in _:
        s += x[i]
        z[i] = x[i] + y[i]
    return s, z
"""


@pytest.mark.parametrize("left", ["dense", "csr", "csc", "coo", "dcsr"])
@pytest.mark.parametrize("right", ["dense", "csr", "csc"])
def test_products(left: str, right: str) -> None:
    a, b = tm.gallery.random((12, 15), 0.3, 1), tm.gallery.random((15, 9), 0.3, 2)
    expected = a.to_numpy() @ b.to_numpy()
    a, b = a.convert(left), b.convert(right)
    for made in (
        tm.einsum("C[i,k] = A[i,j] * B[j,k]", A=a, B=b),
        tm.einsum("C[i,k] = A[i,j] * B[j,k]", a, b),
        tm.einsum("C[i,k] = A[i,j] * B[j,k]", a, B=b),
        tm.einsum("ij,jk->ik", a, b),
        tm.einsum("ij,jk", a, b),
        tm.einsum("ij,jk->ik", a.to_numpy(), b),
    ):
        assert type(made) is tm.Tensor
        np.testing.assert_allclose(made.to_numpy(), expected)


@given(st.integers(0, 2**31), st.sampled_from(["ij->ji", "ij->i", "ij->", "ij,ij->ij", "ij,kj->ik", "ii->i", "i,j->ij", "ij"]))
@settings(max_examples=60, deadline=None)
def test_numpys_spelling(seed: int, text: str) -> None:
    random = np.random.default_rng(seed)
    sizes = {"i": 4, "j": 5, "k": 3}
    operands = [random.integers(-2, 3, [sizes[c] for c in part]).astype(float) for part in text.split("->")[0].split(",")]
    formats = ["dense" if random.random() < 0.5 else "csf" for _ in operands]
    made = tm.einsum(text, *(tm.tensor(o, f) for o, f in zip(operands, formats)))
    np.testing.assert_allclose(made.to_numpy(), np.einsum(text, *operands))


def test_formats_orders_and_schedules() -> None:
    a = tm.gallery.random((10, 12), 0.3)
    text = "C[i,k] = A[i,j] * B[k,j]"
    expected = a.to_numpy() @ a.to_numpy().T
    for options in (
        {"format": "csr"},
        {"format": "csc"},
        {"format": {"C": "coo"}},
        {"format": "dense", "order": "j,i,k"},
        {"order": ["i", "k", "j"]},
    ):
        made = tm.einsum(text, A=a, B=a, **options)
        np.testing.assert_allclose(made.to_numpy(), expected)
    assert tm.einsum(text, A=a, B=a, format="csc").format == "csc"
    x = np.ones(12)
    made = tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x, schedule="split(i, i0, i1, 4)")
    np.testing.assert_allclose(made.to_numpy(), a.to_numpy().sum(axis=1))


def test_several_statements() -> None:
    r = tm.einsum("t[i] = 2 * x[i]\nu[i] = t[i] + 1\nv = x[i]", x=[1.0, 2.0])
    u, v = r
    assert r._fields == ("u", "v") and r.u is u
    assert u.to_numpy().tolist() == [3.0, 5.0] and v.item() == 3.0


def test_types_of_every_kind() -> None:
    for dtype in "int8 int64 uint8 float32 float64 complex128".split():
        x = np.array([1, 2, 3], dtype=dtype)
        made = tm.einsum("y[i] = x[i] + x[i]", x=x)
        assert made.dtype == x.dtype
        np.testing.assert_array_equal(made.to_numpy(), x + x)
    assert tm.einsum("y = any[i](x[i])", x=np.array([False, True])).item() is True


def test_sizes_change_and_plans_follow() -> None:
    for n in (1, 2, 3, 10, 100, 1000, 7, 0, 64, 65):
        a = tm.tensor(np.eye(n), "csr")
        x = np.arange(float(n))
        np.testing.assert_array_equal(tm.einsum("y[i] = M[i,j] * x[j]", M=a, x=x).to_numpy(), x)


def test_widths_of_indices_change() -> None:
    a = tm.gallery.random((10, 12), 0.5)
    for format in ("csr", "dense, sparse[u64,u64]", "dense, sparse[u8,u8]", "csr", "dense, sparse[u16,u64]"):
        made = tm.einsum("y[j] = A[i,j] * x[i] + z[j]", A=a.convert(format), x=np.ones(10), z=np.zeros(12))
        np.testing.assert_allclose(made.to_numpy(), a.to_numpy().sum(axis=0))


def test_programs() -> None:
    gustavson = tm.program(SPGEMM)
    assert (gustavson.name, gustavson.parameters, gustavson.results) == ("gustavson", ("A", "B"), ("C",))
    a = tm.gallery.random((20, 20), 0.2)
    expected = a.to_numpy() @ a.to_numpy()
    for made in (gustavson(a, a), gustavson(A=a, B=a), gustavson(a, B=a), pickle.loads(pickle.dumps(gustavson))(a, a)):
        np.testing.assert_allclose(made.to_numpy(), expected)
        assert made.format == "csr"
    s, z = tm.program(BOTH)([1.0, 2.0], np.array([3.0, 4.0]))
    assert s.item() == 3.0 and z.to_numpy().tolist() == [4.0, 6.0]
    assert "for i" in str(gustavson) and "gustavson" in repr(gustavson)
    for wrong in (lambda: gustavson(a), lambda: gustavson(a, a, a), lambda: gustavson(a, a, B=a), lambda: gustavson(a, D=a)):
        with pytest.raises(KeyError) as caught:
            wrong()
        assert isinstance(caught.value, tm.Error) and "gustavson" in str(caught.value) or "twice" in str(caught.value)


def test_operators() -> None:
    tm.op("nearer", "a, b", "select(abs(a) < abs(b), a, b)", associative=True)
    made = tm.einsum("z[i] = nearer(x[i], y[i])", x=[1.0, -5.0], y=[-2.0, 3.0])
    assert made.to_numpy().tolist() == [1.0, 3.0]
    tm.op("nearer", "a, b", "a + b")
    assert tm.einsum("z[i] = nearer(x[i], y[i])", x=[1.0, -5.0], y=[-2.0, 3.0]).to_numpy().tolist() == [-1.0, -2.0]

    @tm.op(commutative=True)
    def twice_the_sum(a, b):  # type: ignore[no-untyped-def]
        """Something."""
        return 2 * (a + b)

    assert tm.einsum("z[i] = twice_the_sum(x[i], 1)", x=[1.0]).to_numpy().tolist() == [4.0]
    tm.op("wrong_law", "a, b", "a - b", commutative=True)
    with pytest.raises(tm.Error) as caught:
        tm.einsum("z[i] = wrong_law(x[i], y[i])", x=[1.0], y=[2.0])
    assert caught.value.code == "E0309"
    for arguments in (("1x", "a", "a"), ("f", "a", "b"), ("f", "a", "a +"), ("f", "a")):
        with pytest.raises(tm.Error):
            tm.op(*arguments)


def test_explanations() -> None:
    a, x = tm.gallery.laplacian(5), np.ones(25)
    e = tm.explain("y[i] = A[i,j] * x[j]", A=a, x=x)
    assert e.cost and e.cost > 0 and e.passes and e.warnings == []
    assert "loops i, j" in e.schedule and "for i, j in _" in e.program and "A1_pos" in e.c
    assert "define" in e.llvm and "ret" in e.asm and "A1_crd" in e.kernel and e.looplets
    assert "y[i] = A[i,j] * x[j]" in repr(e)
    p = tm.explain(tm.program(SPGEMM), a, a)
    assert p.cost is None and "gustavson" in repr(p) and p.c
    assert tm.explain(SPGEMM, A=a, B=a).program == p.program
    assert e.after("compact_ids") == [e.kernel]
    with pytest.raises(tm.Error, match="there is no pass `csee`"):
        e.after("csee")
    assert "loops j, i" in tm.explain("y[i] = A[i,j] * x[j]", A=a, x=x, order="j").schedule


def test_settings() -> None:
    x = np.array([np.nan, 1.0])
    a = tm.tensor(([[1], [1]], [1.0], (2, 2)), "csr")
    assert not np.isnan(tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x).to_numpy()).any()
    with tm.config(strict=True):
        assert np.isnan(tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x).to_numpy()).any()
        with tm.config(strict=False) as inner:
            assert not inner.strict
            assert not np.isnan(tm.einsum("y[i] = A[i,j] * x[j]", A=a, x=x).to_numpy()).any()
    for options in ({"check": True}, {"interpret": True}):
        with tm.config(**options):
            assert tm.einsum("y[i] = A[i,j] * z[j]", A=a, z=[1.0, 2.0]).to_numpy().tolist() == [0.0, 2.0]
    with tm.config(check=True, check_limit=1), pytest.raises(tm.Error) as caught:
        tm.einsum("y[i] = A[i,j] * z[j]", A=a, z=[1.0, 2.0])
    assert caught.value.code == "E1003"
    before = tm.settings()
    tm.config(threads=2)
    assert tm.settings().threads == 2
    tm.config(threads=None)
    assert tm.settings() == before
    for wrong in ({"thread": 1}, {"threads": 0}, {"check": 1}, {"threads": "2"}, {"dense_limit": None}, {"check_limit": True}):
        with pytest.raises(tm.Error):
            tm.config(**wrong)
    assert tm.settings() == before


def test_advice() -> None:
    advice = tm.advise(tm.gallery.banded(200, 3), seconds=2)
    assert advice.task and advice.best and any(row["seconds"] for row in advice.candidates)
    assert "bytes" in repr(advice)


def test_gallery() -> None:
    g = tm.gallery
    for made, shape in (
        (g.laplacian(4), (16, 16)),
        (g.laplacian(4, 5), (20, 20)),
        (g.laplacian3(3), (27, 27)),
        (g.banded(9, 2, 1), (9, 9)),
        (g.blocked(8, 2), (8, 8)),
        (g.triangular(5, "upper"), (5, 5)),
        (g.diagonal(4), (4, 4)),
        (g.identity(4), (4, 4)),
        (g.permutation(6), (6, 6)),
        (g.rmat(6, 4), (64, 64)),
        (g.ones((2, 3)), (2, 3)),
        (g.random((2, 3, 4), 0.5, 7), (2, 3, 4)),
        (g.random(5), (5,)),
    ):
        assert made.shape == shape
    assert g.laplacian(4, format="csc").format == "csc" and g.laplacian(4).format == "csr"
    for wrong in (lambda: g.laplacian(-1), lambda: g.generate("nothing(3)"), lambda: g.random((2,), 2.0), lambda: g.laplacian(10**12)):
        with pytest.raises(tm.Error):
            wrong()


def test_files(tmp_path) -> None:  # type: ignore[no-untyped-def]
    from scipy import sparse

    a = tm.gallery.random((6, 5), 0.4)
    for name in ("a.mtx", "a.mtx.gz", "a.tns", "a.npz", "a.npy", "a.bsp.npz", "a.bsp.npz.gz"):
        path = tmp_path / name
        assert tm.write(path, a, header=name == "a.tns") == path.stat().st_size
        assert tm.read(path, "csr").same_values(a)
    for format, fill in (("dcsc", 0.0), ("csf", np.inf), ("(i,j,k) -> (k,i,j): sparse, dense, sparse", 1.0)):
        rank = 2 if format == "dcsc" else 3
        t = tm.tensor(np.where(np.random.default_rng(0).random((3, 4, 2)[:rank]) < 0.5, fill, 2.0), format, fill=fill)
        tm.write(tmp_path / "t.bsp.npz", t)
        again = tm.read(tmp_path / "t.bsp.npz")
        assert (again.format, again.fill_value) == (t.format, fill) and again.same_values(t)
    np.testing.assert_array_equal(sparse.load_npz(tmp_path / "a.npz").toarray(), a.to_numpy())
    sparse.save_npz(tmp_path / "b.npz", a.to_scipy().tocsc())
    assert tm.read(tmp_path / "b.npz").same_values(a)
    tm.write(tmp_path / "s.mtx", np.eye(3), comments=["an identity"], symmetric=True)
    assert "an identity" in (tmp_path / "s.mtx").read_text()
    with pytest.raises(OSError) as caught:
        tm.read(tmp_path / "missing.mtx")
    assert isinstance(caught.value, tm.Error) and caught.value.code == "E0801" and "missing.mtx" in str(caught.value)
    (tmp_path / "bad.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 1.0\n")
    with pytest.raises(IndexError) as wrong:
        tm.read(tmp_path / "bad.mtx")
    assert wrong.value.span.line == 3
    with pytest.raises(tm.Error):
        tm.write(tmp_path / "a.unknown", a)
    with pytest.raises(OSError):
        tm.write(tmp_path / "no" / "such" / "folder.mtx", a)
