"""SciPy's sparse arrays and matrices, both ways."""

from __future__ import annotations

import numpy as np
import pytest
import tamis as tm
from scipy import sparse

FORMATS = "csr csc coo bsr dia lil dok".split()
DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
SHAPES = [(6, 4), (1, 1), (0, 4), (4, 0), (3, 3)]


def sample(shape: tuple[int, int], dtype: str) -> np.ndarray:
    return np.random.default_rng(1).integers(0, 3, size=shape).astype(dtype)


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_round_trips(format: str, dtype: str) -> None:
    for shape in SHAPES:
        array = sample(shape, dtype)
        for make in (getattr(sparse, f"{format}_array"), getattr(sparse, f"{format}_matrix")):
            try:
                given = make(array)
            except ValueError:  # SciPy has no BSR without rows.
                assert 0 in shape
                continue
            for t in (tm.tensor(given), tm.asarray(given)):
                assert t.shape == shape and t.dtype == np.dtype(dtype)
                np.testing.assert_array_equal(t.to_numpy(), array)
                for copy in (True, False):
                    back = t.to_scipy(copy=copy)
                    assert back.dtype == np.dtype(dtype) and back.shape == shape
                    np.testing.assert_array_equal(back.toarray(), array)
                    if format in ("csr", "csc", "coo", "bsr"):
                        assert back.format == format


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("format", ["csr", "csc", "coo", "bsr"])
def test_index_types(format: str, index: type) -> None:
    given = sparse.random(20, 30, 0.2, format=format, random_state=0)
    if format == "coo":
        given.sum_duplicates()
        given.row, given.col = given.row.astype(index), given.col.astype(index)
    else:
        given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    t = tm.asarray(given)
    np.testing.assert_array_equal(t.to_numpy(), given.toarray())
    assert t.is_borrowed and np.shares_memory(t.values, given.data)


def test_values_are_shared_and_indices_are_not() -> None:
    given = sparse.random(50, 50, 0.1, format="csr", random_state=0)
    t = tm.asarray(given)
    before = t.to_numpy().copy()
    given.data *= 2
    np.testing.assert_array_equal(t.to_numpy(), 2 * before)
    given.indices[:] = 10**6
    given.indptr[:] = -5
    np.testing.assert_array_equal(t.to_numpy(), 2 * before)
    assert tm.einsum("s = A[i,j]", A=t).item() == pytest.approx(2 * before.sum())


def test_what_is_not_canonical() -> None:
    data, indices, indptr = np.arange(1.0, 6.0), np.array([2, 0, 2, 1, 1]), np.array([0, 3, 3, 5])
    for make, name in ((sparse.csr_array, "csr"), (sparse.csc_array, "csc")):
        given = make((data, indices, indptr), shape=(3, 3))
        for t in (tm.tensor(given), tm.asarray(given)):
            np.testing.assert_array_equal(t.to_numpy(), given.toarray())
            assert t.format == name
        given.has_canonical_format = True  # It is not, whatever it says.
        np.testing.assert_array_equal(tm.asarray(given).to_numpy(), make((data, indices, indptr), shape=(3, 3)).toarray())
    coo = sparse.coo_array((data, ([2, 0, 2, 1, 1], [0, 1, 0, 2, 2])), shape=(3, 3))
    np.testing.assert_array_equal(tm.asarray(coo).to_numpy(), coo.toarray())
    blocks = sparse.bsr_array((np.arange(12.0).reshape(3, 2, 2), [1, 0, 1], [0, 3, 3]), shape=(4, 4))
    np.testing.assert_array_equal(tm.asarray(blocks).to_numpy(), blocks.toarray())
    longer = sparse.csr_array((np.ones(2), [0, 1], [0, 1, 2]), shape=(2, 2))
    longer.data, longer.indices = np.append(longer.data, 9.0), np.append(longer.indices, 1)
    np.testing.assert_array_equal(tm.asarray(longer).to_numpy(), np.eye(2))


def test_what_is_broken_is_refused() -> None:
    def broken(**arrays: object) -> sparse.csr_array:
        given = sparse.csr_array(np.eye(3))
        for name, array in arrays.items():
            setattr(given, name, np.asarray(array))
        return given

    for given in (
        broken(indices=[0, 1, 7]),
        broken(indices=[0, -1, 2]),
        broken(indptr=[0, 2, 1, 3]),
        broken(indptr=[1, 1, 2, 3]),
        broken(indptr=[0, 1, 2, 9]),
        broken(indptr=[0, 1, 3]),
        broken(indices=[0, 1]),
        broken(indptr=[]),
        broken(data=np.ones(2)),
    ):
        for make in (tm.tensor, tm.asarray):
            with pytest.raises(tm.Error):
                make(given)
    coo = sparse.coo_array(np.eye(3))
    coo.coords = (np.array([0, 1, 5]), np.array([0, 1, 2]))
    with pytest.raises(IndexError):
        tm.asarray(coo)


def test_other_ranks() -> None:
    vector = sparse.coo_array(np.array([0.0, 1.0, 0.0, 2.0]))
    t = tm.asarray(vector)
    assert t.shape == (4,)
    np.testing.assert_array_equal(t.to_scipy().toarray(), vector.toarray())
    cube = tm.gallery.random((3, 4, 5), 0.3)
    try:
        back = cube.to_scipy()
    except tm.Error as error:
        assert error.code == "E0707"
    else:
        np.testing.assert_array_equal(back.toarray(), cube.to_numpy())
    with pytest.raises(tm.Error):
        tm.tensor(1.0).to_scipy()


def test_other_formats_become_csr() -> None:
    a = tm.gallery.banded(20, 2)
    for format in ("dense", "dcsr", "dense, band", "dense, runs", "bsr(3,3)", "dense, sparse[u64,u64]", "dense, sparse[u32,u8]"):
        back = a.convert(format).to_scipy()
        assert back.format == "csr"
        np.testing.assert_array_equal(back.toarray(), a.to_numpy())


def test_scipy_works_with_what_it_gets() -> None:
    from scipy.sparse import linalg

    for copy in (True, False):
        m = tm.gallery.laplacian(8).to_scipy(copy=copy)
        dense = m.toarray()
        np.testing.assert_allclose((m @ m).toarray(), dense @ dense)
        np.testing.assert_allclose((m + m.T).toarray(), dense + dense.T)
        np.testing.assert_allclose(m[3:9, [1, 2, 5]].toarray(), dense[3:9, [1, 2, 5]])
        np.testing.assert_allclose(dense @ linalg.spsolve(m.tocsc(), np.ones(64)), np.ones(64))
        np.testing.assert_allclose(m.sum(axis=0), dense.sum(axis=0))
    m = tm.gallery.laplacian(8).to_scipy()
    m[0, 0] = 17.0
    m.data *= 2
    assert m[0, 0] == 34.0


def test_scipy_operands_need_no_conversion() -> None:
    a = sparse.random(30, 20, 0.2, format="csr", random_state=1)
    x = np.random.default_rng(0).random(20)
    for given in (a, a.tocsc(), a.tocoo(), a.todok(), a.tolil()):
        np.testing.assert_allclose(tm.einsum("y[i] = A[i,j] * x[j]", A=given, x=x).to_numpy(), a @ x)
