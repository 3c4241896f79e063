"""Reductions over axes, against NumPy."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from strategies import few, many, same, tensors

import tamis as tm


def axes(rank: int) -> Any:
    if not rank:
        return st.none()
    one = st.integers(-rank, rank - 1)
    several = st.lists(st.integers(0, rank - 1), unique=True, min_size=1).map(tuple)
    return st.none() | one | several


@given(data=st.data())
@many
def test_reductions(data: Any) -> None:
    name = data.draw(st.sampled_from("sum prod any all count_nonzero max min mean".split()))
    t, x = data.draw(tensors())
    axis, keep = data.draw(axes(x.ndim)), data.draw(st.booleans())
    if name in ("max", "min", "mean") and x.size == 0:
        return
    expected = getattr(np, name)(x, axis=axis, keepdims=keep)
    same(getattr(tm, name)(t, axis=axis, keepdims=keep), expected, exact=True)
    same(getattr(t, name)(axis=axis, keepdims=keep), expected, exact=True)


@given(data=st.data())
@few
def test_other_fills(data: Any) -> None:
    t, x = data.draw(tensors(dtype="f8"))
    axis = data.draw(axes(x.ndim))
    if x.size:
        for name in ("sum", "max", "min", "prod", "var", "std"):
            same(getattr(t + 2, name)(axis=axis), getattr(x + 2, name)(axis=axis))


@given(data=st.data())
@many
def test_places(data: Any) -> None:
    t, x = data.draw(tensors())
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1)) if x.ndim else None
    if not x.size or not x.ndim:
        return
    same(t.argmax(axis=axis), np.argmax(x, axis=axis), exact=True)
    same(t.argmin(axis=axis), np.argmin(x, axis=axis), exact=True)
    same((t - 1).argmax(axis=axis), np.argmax(x - 1, axis=axis), exact=True)


def test_small_integers_are_summed_wide() -> None:
    x = np.full((3, 4), 100, dtype=np.int8)
    same(tm.tensor(x, format="csr").sum(axis=0), x.sum(axis=0), exact=True)
    same(tm.tensor(x.astype(np.uint8)).prod(axis=1), x.astype(np.uint8).prod(axis=1), exact=True)
    same(tm.sum(tm.tensor(x > 0)), (x > 0).sum(), exact=True)
    same(tm.sum(tm.tensor(x), dtype="f32"), x.sum(dtype="f4"), exact=True)


def test_nan_wins() -> None:
    x = np.array([[1.0, np.nan], [0.0, 2.0]])
    same(tm.tensor(x, format="csr").max(axis=0), x.max(axis=0))
    same(tm.tensor(x, format="csr").argmax(axis=1), x.argmax(axis=1))


def test_large_and_sparse() -> None:
    a = tm.gallery.random((100_000, 100_000), 1e-7, 3)
    assert a.max(axis=0).shape == (100_000,) and a.min() == 0.0
    coords, values = a.to_coo()
    top = np.zeros(100_000)
    np.maximum.at(top, coords[1], values)
    same(a.max(axis=0), top)
    assert np.isclose(a.mean(), values.sum() / 1e10)


def test_mistakes() -> None:
    t = tm.zeros((2, 0))
    with pytest.raises(ValueError):
        t.max()
    with pytest.raises(IndexError):
        t.sum(axis=2)
    with pytest.raises(ValueError):
        t.sum(axis=(0, 0))
    with pytest.raises(TypeError):
        t.sum(axis=0.5)
