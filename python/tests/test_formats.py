"""Every format under every kind of operation, against NumPy."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
from strategies import same

import tamis as tm

RNG = np.random.default_rng(0)
X = (RNG.integers(-3, 4, (6, 8)) * (RNG.random((6, 8)) < 0.4)).astype(float)
X[2] = 0

FORMATS = [
    "csr", "csc", "coo", "dcsr", "dcsc", "bsr(2,2)", "dense, hash", "dense, bytemap", "dense, runs", "dense, sparse_runs",
    "dense, blocks", "dense, band", "sparse, dense", "(i,j) -> (j,i): dense, dense", "dense, sparse[u64,u16]",
    "(i,j) -> (j,i): sparse, runs", "hash, sparse", "bytemap, sparse_runs",
]  # fmt: skip

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "t + 1": lambda t: t + 1,
    "t * t": lambda t: t * t,
    "t + t": lambda t: t + t,
    "(t + 1) * (t - 1)": lambda t: (t + 1) * (t - 1),
    "t @ x": lambda t: t @ np.ones(8),
    "(t + 1) @ x": lambda t: (t + 1) @ np.ones(8),
    "t.T @ t": lambda t: t.T @ t,
    "sum": lambda t: t.sum(axis=0),
    "sum of another fill": lambda t: (t + 1).sum(axis=0),
    "max, axis 0": lambda t: t.max(axis=0),
    "max, axis 1": lambda t: t.max(axis=1),
    "prod": lambda t: t.prod(axis=1),
    "all": lambda t: t.all(),
    "std": lambda t: t.std(axis=0),
    "argmax": lambda t: t.argmax(axis=1),
    "rows": lambda t: t[1:4],
    "columns": lambda t: t[:, ::-2],
    "a row": lambda t: t[2],
    "some rows": lambda t: t[[3, 0]],
    "mask": lambda t: t[t > 0],
    "reshape": lambda t: t.reshape(8, 6),
    "exp": lambda t: np.exp(t),
    "not": lambda t: ~(t > 0),
    "t * row": lambda t: t * np.arange(8.0),
    "t + row": lambda t: t + np.arange(8.0),
    "t / row": lambda t: t / np.arange(1.0, 9.0),
    "t * its column": lambda t: t * t[:, :1],
    "t + its row": lambda t: t + t[0],
    "triangle": lambda t: np.tril(t),
    "where": lambda t: np.where(t > 0, t, -1.0),
    "concatenate": lambda t: np.concatenate([t, t]),
    "diagonal": lambda t: t.diagonal(),
}


@pytest.mark.parametrize("format", FORMATS)
def test_format(format: str) -> None:
    t = tm.tensor(X, format=format)
    for name, operation in OPERATIONS.items():
        try:
            same(operation(t), operation(X))
        except AssertionError as error:
            raise AssertionError(f"{name} in the format {format}: {error}") from None


PATTERNS = {
    "t + 1": lambda t: t + 1,
    "t | t": lambda t: t | t,
    "not": lambda t: ~t,
    "sum": lambda t: t.sum(axis=0),
    "all": lambda t: t.all(axis=1),
    "max": lambda t: t.max(axis=0),
    "min": lambda t: t.min(),
    "mean": lambda t: t.mean(),
    "rows": lambda t: t[1:3],
    "transposed": lambda t: t.T,
    "t * 2.5": lambda t: t * 2.5,
    "t @ x": lambda t: t @ np.ones(8),
    "itself as a mask": lambda t: t[t],
    "triangle": lambda t: np.tril(t),
}


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dense, sparse_runs"])
def test_pattern(format: str) -> None:
    t = tm.tensor(X != 0, format=f"{format}; pattern")
    for name, operation in PATTERNS.items():
        try:
            same(operation(t), operation(X != 0))
        except AssertionError as error:
            raise AssertionError(f"{name} of a pattern in the format {format}: {error}") from None


def test_convert_takes_its_format_by_name() -> None:
    t = tm.tensor(X, format="csr")
    assert t.convert(format="csc").format == "csc"
