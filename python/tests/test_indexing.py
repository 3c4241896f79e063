"""Parts of tensors, against NumPy."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as npst
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from strategies import FORMATS, many, same, tensors

import tamis as tm


def check(t: tm.Tensor, x: np.ndarray[Any, Any], key: Any) -> None:
    expected = x[key]
    made = t[key]
    if np.ndim(expected) == 0 and not isinstance(made, tm.Tensor):
        assert made == expected and made.dtype == x.dtype
    else:
        same(made, expected, exact=True)


@given(data=st.data())
@many
def test_basic(data: Any) -> None:
    t, x = data.draw(tensors())
    check(t, x, data.draw(npst.basic_indices(x.shape, allow_newaxis=True, max_dims=5)))


@given(data=st.data())
@many
def test_arrays_of_integers(data: Any) -> None:
    t, x = data.draw(tensors(shape=data.draw(st.sampled_from([(4,), (3, 5), (2, 3, 4)]))))
    axis = data.draw(st.integers(0, x.ndim - 1))
    shape = data.draw(st.sampled_from([(3,), (0,), (2, 2)]))
    index = np.random.default_rng(data.draw(st.integers(0, 9))).integers(-x.shape[axis], x.shape[axis], shape)
    rest = [
        data.draw(st.sampled_from([slice(None), slice(1, None), slice(None, None, -1), 0, None])) for _ in range(x.ndim - 1)
    ]
    rest = [slice(None) if k is None else k for k in rest]
    check(t, x, (*rest[:axis], index, *rest[axis:]))
    check(t, x, index % x.shape[0])


@given(data=st.data())
@many
def test_masks(data: Any) -> None:
    t, x = data.draw(tensors(shape=data.draw(st.sampled_from([(4,), (3, 5), (2, 3, 4)]))))
    check(t, x, x > 0)
    same(t[t > 0], x[x > 0], exact=True)
    rows = np.arange(x.shape[0]) % 2 == 0
    check(t, x, rows)
    check(t, x, (rows, ...))


def test_two_arrays_and_none() -> None:
    x = np.arange(60).reshape(3, 4, 5) * (np.arange(60).reshape(3, 4, 5) % 3 == 0)
    for format in FORMATS[3]:
        t = tm.tensor(x, format=format)
        for key in [
            ([0, 2], [1, 3]),
            (slice(None), [0, 2], [1, 3]),
            ([0, 2], slice(None), [1, 3]),
            (np.array([[0], [1]]), slice(1, 3), np.array([0, 1, 4])),
            (None, [0, 2], 1),
            (0, slice(None), [1, 1]),
            (..., [0, -1]),
        ]:
            check(t, x, key)


def test_rows_of_csr_keep_the_format() -> None:
    a = tm.gallery.random((1000, 1000), 0.01, 1)
    x = a.to_numpy()
    for key in [5, slice(10, 20), slice(None, None, 7), slice(None, None, -1), [3, 3, 999], slice(20, 10)]:
        same(a[key], x[key])
        assert a[key].format == ("sparse" if key == 5 else "csr")
        same(a.T[:, key], x.T[:, key])
    assert a.T[:, 10:20].format == "csc"
    p = (a > 0).convert("csr; pattern")
    same(p[3:9], x[3:9] > 0)


def test_one_truth_value() -> None:
    x = np.array([[1, 0], [0, 2]])
    for t in (tm.tensor(x), tm.tensor(x, format="csr")):
        for key in (True, False, np.bool_(True), np.array(False)):
            check(t, x, key)
    check(tm.tensor(5), np.array(5), True)


def test_iteration_and_membership() -> None:
    t = tm.tensor([[1, 0], [0, 2]], format="csr")
    assert [row.to_numpy().tolist() for row in t] == [[1, 0], [0, 2]]
    assert 2 in t and 3 not in t and 0 in t


def test_mistakes() -> None:
    t = tm.tensor([[1, 0], [0, 2]], format="csr")
    for key in [5, (0, 0, 0), [7], slice(None, None, 0), (..., ...), 0.5, [True, False, True], "x", (True, 0)]:
        with pytest.raises(tm.Error):
            t[key]
    with pytest.raises(IndexError):
        t[[0, 9]]
    with pytest.raises(IndexError):
        t[[True, False, True]]
    with pytest.raises(tm.Error) as caught:
        t[0, 0] = 1
    assert any("where" in help for help in caught.value.help)
    same(t[t == 0], [0, 0])
    huge = tm.full((10**6, 10**6), 0, format="coo")
    with pytest.raises(tm.Error) as caught:
        huge[huge == 0]
    assert caught.value.code == "E0707"
