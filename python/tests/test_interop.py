"""Sparse arrays of other libraries: taken by their arrays, and made from tensors, without a dense array in between."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tamis as tm

LARGE = (np.array([[0, 10**8], [5, 10**8]]), np.array([1.0, 2.0]), (10**9, 10**9))


def test_pydata_in_and_out() -> None:
    sparse = pytest.importorskip("sparse")
    for shape in ((20,), (20, 30), (4, 5, 6)):
        for kind in (sparse.COO, sparse.GCXS, sparse.DOK):
            given: Any = sparse.random(shape, 0.2, random_state=0)
            given = given if kind is sparse.COO else kind(given)
            dense = given.todense()
            for make in (tm.asarray, tm.tensor):
                t = make(given)
                assert t.nnz == np.count_nonzero(dense) and np.array_equal(t.to_numpy(), dense)
        back = t.to_pydata()
        assert isinstance(back, sparse.COO) and np.array_equal(back.todense(), dense)
    filled = sparse.COO(np.array([[1]]), np.array([5.0]), shape=(3,), fill_value=2.0)
    t = tm.asarray(filled)
    assert t.tolist() == [2.0, 5.0, 2.0] and t.nnz == 1 and t.to_pydata().fill_value == 2.0
    by_columns = sparse.GCXS.from_numpy(np.eye(3), compressed_axes=(1,))
    assert tm.asarray(by_columns).format == "csc" and tm.asarray(by_columns, format="csr").format == "csr"
    huge = tm.asarray(sparse.COO(LARGE[0], LARGE[1], shape=LARGE[2]))
    assert huge.nnz == 2 and huge.to_pydata().nnz == 2
    assert (tm.asarray(filled) + 1).fill_value == 3.0
    with pytest.raises(tm.Error):
        tm.tensor(filled, fill=0)


def test_pandas_sparse() -> None:
    pandas = pytest.importorskip("pandas")
    S = tm.gallery.random((30, 20), 0.1).to_scipy()
    frame = pandas.DataFrame.sparse.from_spmatrix(S)
    t = tm.asarray(frame)
    assert t.format == "coo" and np.array_equal(t.to_numpy(), S.toarray())
    dense = tm.asarray(pandas.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]}))
    assert dense.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert tm.asarray(pandas.Series([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_arrow_sparse() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    S = tm.gallery.random((30, 20), 0.1).to_scipy().tocsr()
    for made in (
        pyarrow.SparseCOOTensor.from_scipy(S.tocoo()),
        pyarrow.SparseCSRMatrix.from_dense_numpy(S.toarray()),
        pyarrow.SparseCSCMatrix.from_dense_numpy(S.toarray()),
    ):
        assert np.array_equal(tm.asarray(made).to_numpy(), S.toarray())
    back = tm.asarray(S).to_arrow()
    assert back.non_zero_length == S.nnz and np.array_equal(tm.asarray(back).to_numpy(), S.toarray())
    with pytest.raises(tm.Error):
        (tm.asarray(S) + 1).to_arrow()


def test_jax() -> None:
    """A stand-in with the attributes of BCOO, whose padding lies outside."""

    class BCOO:
        __module__ = "jax.experimental.sparse.bcoo"
        data = np.array([1.0, 2.0, 0.0])
        indices = np.array([[0, 1], [1, 0], [2, 2]])
        shape = (2, 2)
        n_dense = n_batch = 0

    assert tm.asarray(BCOO()).tolist() == [[0.0, 1.0], [2.0, 0.0]]
    BCOO.n_batch = 1
    with pytest.raises(tm.Error):
        tm.asarray(BCOO())


@pytest.mark.parametrize("name", ["LogisticRegression", "KMeans", "TruncatedSVD", "NearestNeighbors", "TfidfTransformer"])
def test_estimators(name: str) -> None:
    sklearn = pytest.importorskip("sklearn")
    import sklearn.cluster
    import sklearn.decomposition
    import sklearn.feature_extraction.text
    import sklearn.linear_model
    import sklearn.neighbors

    places = [sklearn.linear_model, sklearn.cluster, sklearn.decomposition, sklearn.neighbors, sklearn.feature_extraction.text]
    kind = next(getattr(place, name) for place in places if hasattr(place, name))
    options = {"KMeans": {"n_clusters": 2, "n_init": 1}, "TruncatedSVD": {"n_components": 2}}.get(name, {})
    A = tm.gallery.random((60, 15), 0.3)
    labels = np.arange(60) % 2
    fitted = kind(**options).fit(A.to_scipy(copy=False), labels)
    assert fitted.n_features_in_ == 15
    vectors = sklearn.feature_extraction.text.TfidfVectorizer().fit_transform(["a bb cc", "bb dd"])
    assert tm.asarray(vectors).is_borrowed


def test_xarray() -> None:
    xarray = pytest.importorskip("xarray")
    A = tm.gallery.random((20, 10), 0.2)
    array = xarray.DataArray(A, dims=["row", "column"])
    assert isinstance(array.data, tm.Tensor) and isinstance((array * 2).data, tm.Tensor)
    np.testing.assert_allclose(np.asarray(array.sum("column").data), A.to_numpy().sum(axis=1))


def test_dask_chunks() -> None:
    array = pytest.importorskip("dask.array")
    A = tm.gallery.random((400, 300), 0.05)
    chunked = array.from_array(A, chunks=(100, 300), asarray=False)
    x = np.ones(300)
    assert isinstance(chunked.compute(), tm.Tensor) and (chunked * 2 + chunked).compute().nnz == A.nnz
    np.testing.assert_allclose((chunked @ x).compute(), A @ x)
    np.testing.assert_allclose(np.asarray(chunked.sum(axis=1).compute()), np.asarray(A.sum(axis=1)))
    assert array.concatenate([chunked, chunked]).compute().nnz == 2 * A.nnz


def test_importing_loads_nothing() -> None:
    code = "import sys, tamis, numpy\ntamis.asarray(numpy.eye(2)) @ numpy.ones(2)\n"
    code += "print([m for m in ('scipy', 'pandas', 'polars', 'pyarrow', 'torch', 'sparse', 'jax', 'xarray', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr
