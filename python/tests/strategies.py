"""Tensors for properties: small arrays with many zeros, and formats to store them in."""

from __future__ import annotations

import os
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings

import tamis as tm

#: Compiling costs some milliseconds for each new text and format, so a property has few examples.
#: ``TAMIS_EXAMPLES=20`` tries twenty times as many, others each time.
_TIMES = int(os.environ.get("TAMIS_EXAMPLES", "0"))


def _settings(count: int) -> settings:
    checks = list(HealthCheck)
    return settings(max_examples=count * max(_TIMES, 1), deadline=None, suppress_health_check=checks, derandomize=not _TIMES)


few, many = _settings(40), _settings(150)

FORMATS = {
    0: ["dense"],
    1: ["dense", "sparse", "sparse_runs", "runs"],
    2: ["dense", "csr", "csc", "coo", "dcsr", "dense, runs", "dense, hash", "dense, blocks", "dense, bytemap", "sparse, dense"],
    3: ["dense", "csf", "coo"],
    4: ["dense", "csf"],
    5: ["dense", "coo"],
}


@st.composite
def arrays(draw: Any, shape: tuple[int, ...] | None = None, dtype: Any = None, max_rank: int = 3) -> np.ndarray[Any, Any]:
    """An array whose elements are mostly zero."""
    if shape is None:
        shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 3, 5]), max_size=max_rank)))
    found = np.dtype(draw(st.sampled_from(["f8", "i4", "f4", "i8", "u1"])) if dtype is None else dtype)
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    array = rng.integers(-4 if found.kind != "u" else 0, 5, shape) * (
        rng.random(shape) < draw(st.sampled_from([0.1, 0.4, 1.0]))
    )
    return np.asarray(array != 0 if found == bool else array, dtype=found).reshape(shape)


@st.composite
def stored(draw: Any, array: np.ndarray[Any, Any]) -> tm.Tensor:
    """The array in some format."""
    return tm.tensor(array, format=draw(st.sampled_from(FORMATS[array.ndim])))


@st.composite
def tensors(draw: Any, **options: Any) -> tuple[tm.Tensor, np.ndarray[Any, Any]]:
    """A tensor, and the array that it means."""
    array = draw(arrays(**options))
    return draw(stored(array)), array


def same(ours: Any, theirs: Any, exact: bool = False) -> None:
    """Whether a tensor holds what NumPy says, with its shape and, if requested, its type."""
    theirs = np.asarray(theirs)
    if isinstance(ours, (bool, int, float, complex)):
        # A method that reduces everything gives a number of Python's, of the kind of NumPy's type.
        assert not exact or np.asarray(ours).dtype.kind == theirs.dtype.kind.replace("u", "i"), (type(ours), theirs.dtype)
        ours = np.asarray(ours)
        exact = False
    assert tuple(ours.shape) == theirs.shape, (ours.shape, theirs.shape)
    if exact:
        assert ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
    close = 1e-5 if theirs.dtype in (np.float32, np.complex64) or np.asarray(ours).dtype == np.float32 else 1e-12
    np.testing.assert_allclose(np.asarray(ours), theirs, rtol=close, atol=close, equal_nan=True)
