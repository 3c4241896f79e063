"""Shapes, joins, creation, search and the namespace, against NumPy."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from strategies import few, same, tensors

import tamis as tm


@given(data=st.data())
@few
def test_shapes(data: Any) -> None:
    t, x = data.draw(tensors())
    axis = data.draw(st.integers(-x.ndim - 1, x.ndim))
    same(tm.expand_dims(t, axis=axis), np.expand_dims(x, axis), exact=True)
    same(tm.squeeze(t), np.squeeze(x))
    same(t.ravel(), x.ravel())
    same(t.T, x.T)
    same(tm.flip(t), np.flip(x))
    same(tm.roll(t, 2), np.roll(x, 2))
    same(tm.broadcast_to(t, (2, *x.shape)), np.broadcast_to(x, (2, *x.shape)))
    same(tm.stack([t, t + t]), np.stack([x, x + x]))
    same(tm.stack([t, t], axis=-1), np.stack([x, x], axis=-1))
    if x.ndim:
        a = data.draw(st.integers(-x.ndim, x.ndim - 1))
        same(tm.flip(t, axis=a), np.flip(x, a))
        same(tm.roll(t, -1, axis=a), np.roll(x, -1, a))
        same(tm.concat([t, tm.tensor(x), t], axis=a), np.concatenate([x, x, x], axis=a), exact=True)
        same(tm.concat([t, t], axis=None), np.concatenate([x, x], axis=None))
        same(tm.moveaxis(t, a, 0), np.moveaxis(x, a, 0))
        same(tm.tile(t, (2, 3)), np.tile(x, (2, 3)))
        same(tm.repeat(t, 2, axis=a), np.repeat(x, 2, axis=a))
        same(tm.diff(t, axis=a), np.diff(x, axis=a)) if x.shape[a] else None
    if x.ndim >= 2:
        k = data.draw(st.integers(-3, 3))
        same(tm.tril(t, k=k), np.tril(x, k), exact=True)
        same(tm.triu(t, k=k), np.triu(x, k), exact=True)
        same(tm.diagonal(t, offset=k), np.diagonal(x, k, -2, -1))
        same(tm.trace(t, offset=k), np.trace(x, k, -2, -1))
        same(t.mT, np.matrix_transpose(x))


@given(data=st.data())
@few
def test_values(data: Any) -> None:
    t, x = data.draw(tensors())
    same(tm.unique_values(t), np.unique(x))
    values, counts = np.unique(x, return_counts=True)
    same(tm.unique_counts(t).values, values)
    same(tm.unique_counts(t).counts, counts)
    if x.ndim:
        for ours, theirs in zip(tm.nonzero(t), np.nonzero(x)):
            same(ours, theirs)


def test_reshape() -> None:
    x = np.arange(24) * (np.arange(24) % 5 == 0)
    for format in ("sparse", "dense", "runs"):
        t = tm.tensor(x, format=format)
        for shape in [(4, 6), (2, 3, 4), (24, 1), (-1, 8)]:
            same(t.reshape(shape), x.reshape(shape))
    assert tm.tensor(x, format="sparse").reshape(4, 6).format == "csr"
    with pytest.raises(ValueError):
        tm.zeros(4).reshape(3)


def test_creation() -> None:
    for ours, theirs in [
        (tm.zeros((2, 3)), np.zeros((2, 3))),
        (tm.ones(3, dtype="i32"), np.ones(3, dtype="i4")),
        (tm.full((2,), 2.5), np.full((2,), 2.5)),
        (tm.eye(3, 4, k=1), np.eye(3, 4, 1)),
        (tm.eye(4, 3, k=-1, format="csr"), np.eye(4, 3, -1)),
        (tm.arange(2, 11, 3), np.arange(2, 11, 3)),
        (tm.arange(0.0, 1.0, 0.25), np.arange(0.0, 1.0, 0.25)),
        (tm.linspace(0, 1, 5, endpoint=False), np.linspace(0, 1, 5, endpoint=False)),
        (tm.zeros_like(tm.eye(2, format="csr")), np.zeros((2, 2))),
        (tm.ones_like(tm.eye(2, format="csr")), np.ones((2, 2))),
        (tm.full((3, 3), 4, format="coo"), np.full((3, 3), 4)),
    ]:
        same(ours, theirs, exact=True)
    assert tm.ones_like(tm.eye(2, format="csr")).nnz == 0
    for huge in (lambda: tm.ones((10**6, 10**6)), lambda: tm.eye(10**7, format="dense"), lambda: tm.arange(10**15)):
        with pytest.raises(MemoryError):
            huge()
    with pytest.raises(ValueError):
        tm.zeros(-1)
    for wrong in (lambda: tm.full(3, 300, dtype="u8"), lambda: tm.full(3, "a", dtype="f8"), lambda: tm.full(3, -1, dtype="u8")):
        with pytest.raises(tm.Error):
            wrong()


def test_dense_only() -> None:
    x = np.array([[3, 1, 2], [9, 7, 9]])
    same(tm.sort(x), np.sort(x))
    same(tm.argsort(x, descending=True), [[0, 2, 1], [0, 2, 1]])
    same(tm.cumulative_sum(x, axis=1), np.cumsum(x, 1))
    same(tm.searchsorted([1, 3], x), np.searchsorted([1, 3], x))
    same(tm.take_along_axis(x, tm.argsort(x), axis=-1), np.sort(x))
    same(tm.take(x, [1, 0], axis=1), x[:, [1, 0]])
    with pytest.raises(tm.Error):
        tm.argsort(tm.eye(3, format="csr"))


def test_joins_of_other_fills() -> None:
    a = tm.eye(2, format="csr") + 1
    same(tm.concat([a, a]), np.concatenate([np.eye(2) + 1] * 2))
    assert tm.concat([a, a]).nnz == 4
    with pytest.raises(tm.Error) as caught:
        tm.concat([a, tm.eye(2, format="csr")])
    assert caught.value.code == "E0709"


def test_namespace() -> None:
    t = tm.eye(2)
    assert t.__array_namespace__() is tm and tm.isdtype(t.dtype, "real floating") and t.device == "cpu"
    info = tm.__array_namespace_info__()
    assert len(info.dtypes()) == 13 and set(info.dtypes(kind="bool")) == {"bool"}
    assert tm.result_type(tm.int8, 3) == np.int8 and tm.can_cast(tm.int8, tm.int16)
    missing = [name for name in tm.__all__ if not hasattr(tm, name)]
    assert not missing
    from_standard = (
        "abs acos add all any arange argmax astype broadcast_to ceil concat cos divide einsum exp expand_dims eye flip full "
    )
    from_standard += "greater isnan less log matmul max mean meshgrid min moveaxis multiply nonzero ones permute_dims prod reshape roll sort "
    from_standard += (
        "sqrt squeeze stack std sum take tensordot tril triu unique_all var vecdot where zeros finfo iinfo float64 bool pi"
    )
    assert not [name for name in from_standard.split() if not hasattr(tm, name)]
