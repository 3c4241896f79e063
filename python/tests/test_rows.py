"""Compiled row operations of CSR matrices: against NumPy, on every type, wide coordinates, patterns and empty matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tamis as tm
from tamis import _tamis

TYPES = "bool i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()


def valid(t: tm.Tensor) -> tm.Tensor:
    """The tensor, made again of its arrays, which checks every invariant."""
    levels = [t.level_arrays(k) for k in range(len(t.levels))]
    return _tamis.from_parts(list(t.shape), t.full_format, levels, t.values, t.fill_value, False)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("format", ["csr", "csc"])
def test_every_type(dtype: str, format: str) -> None:
    x = np.random.default_rng(0).integers(0, 3, (5, 7)).astype(dtype)
    y = np.random.default_rng(1).integers(0, 3, (5, 7)).astype(dtype)
    a, b = tm.tensor(x, format), tm.tensor(y, format)
    for axis in (0, 1):
        made = valid(tm.concat([a, b, a], axis=axis))
        assert made.format == format and np.array_equal(made.to_numpy(), np.concatenate([x, y, x], axis))
        assert np.array_equal(valid(tm.flip(a, axis)).to_numpy(), np.flip(x, axis))
    assert np.array_equal(valid(tm.flip(a)).to_numpy(), np.flip(x))
    chosen = np.array([4, 0, 0, 2, -1])
    rows = a[chosen] if format == "csr" else a[:, chosen]
    assert np.array_equal(valid(rows).to_numpy(), x[chosen] if format == "csr" else x[:, chosen])


def test_patterns_and_fills() -> None:
    x = np.random.default_rng(0).random((6, 4)) < 0.4
    p = tm.tensor(x, "csr; pattern")
    assert np.array_equal(valid(tm.concat([p, p], axis=1)).to_numpy(), np.concatenate([x, x], 1))
    assert valid(tm.concat([p, p])).is_pattern and np.array_equal(tm.flip(p).to_numpy(), np.flip(x))
    assert np.array_equal(tm.concat([p, tm.tensor(x, "csr")]).to_numpy(), np.concatenate([x, x]))
    filled = tm.tensor(x * 2.0, "csr") + 3
    joined = valid(tm.hstack([filled, filled]))
    assert joined.fill_value == 3 and np.array_equal(joined.to_numpy(), np.hstack([x * 2.0 + 3] * 2))
    assert tm.concat([tm.tensor(x, "csr"), x * 2]).dtype == np.int64


def test_wide_and_empty_matrices() -> None:
    wide = tm.tensor((([0, 2], [5, 10**12]), [1.0, 2.0], (3, 10**12 + 1)), format="csr")
    both = valid(tm.hstack([wide, wide]))
    assert both.shape == (3, 2 * 10**12 + 2) and both[2, 2 * 10**12 + 1] == 2.0 and both.nnz == 4
    assert valid(tm.flip(wide, 1))[2, 0] == 2.0 and valid(wide[[2, 2]]).nnz == 2
    narrow = tm.tensor(np.eye(3), "csr")
    assert valid(tm.hstack([narrow, wide]))[2, 10**12 + 3] == 2.0
    for shape in ((0, 4), (4, 0), (0, 0)):
        empty = tm.zeros(shape, format="csr")
        assert valid(tm.vstack([empty, empty])).shape == (2 * shape[0], shape[1])
        assert valid(tm.hstack([empty, empty])).shape == (shape[0], 2 * shape[1])
        assert valid(tm.flip(empty)).shape == shape


def test_what_does_not_fit_is_refused() -> None:
    a, b = tm.eye(3, format="csr"), tm.eye(3, 4, format="csr")
    wrong: list[Any] = [
        lambda: _tamis.join_rows([a, b], 0),
        lambda: _tamis.join_rows([a, tm.eye(4, 3, format="csr")], 1),
        lambda: _tamis.join_rows([a, a.astype("f4")], 0),
        lambda: _tamis.join_rows([a, a.convert("csc")], 0),
        lambda: _tamis.join_rows([], 0),
        lambda: _tamis.join_rows([tm.zeros((1, 2**63 - 1), format="csr")] * 3, 1),
        lambda: _tamis.take_rows(a, np.array([3])),
        lambda: _tamis.take_rows(a, np.array([-1])),
        lambda: _tamis.flip_rows(tm.ones((2, 2)), True, True),
        lambda: tm.concat([a, b]),
    ]
    for attempt in wrong:
        with pytest.raises(tm.Error) as caught:
            attempt()
        assert caught.value.help
