"""NumPy's spelling of index notation, against NumPy."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
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


@given(data=st.data())
@many
def test_sums_of_products(data: Any) -> None:
    x, y = (data.draw(arrays(shape=(3, 4), dtype="f8")) for _ in range(2))
    v = data.draw(arrays(shape=(4,), dtype="f8"))
    a, b, c = (data.draw(stored(z)) for z in (x, y, v))
    same(tm.einsum("r[i] = A[i,j] * v[j] + max[k](B[i,k])", A=a, B=b, v=c), x @ v + y.max(axis=1))
    same(tm.einsum("r[i,j] = (A[i,j] + B[i,j]) * (v[j] + 1)", A=a, B=b, v=c), (x + y) * (v + 1))
