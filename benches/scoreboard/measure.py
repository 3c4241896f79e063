"""Interleaved measurements: the sides of a comparison, the comparison of their results, and their times."""

from __future__ import annotations

import gc
import statistics
import time
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy as np
import scipy.sparse as sp


def same(value: Any) -> Any:
    """The identity, for results that are already in the form that is compared."""
    return value


def nothing(_: Any) -> None:
    """No operation, for results that need not be freed."""


@dataclass
class Prepared:
    """One side that has its operands in its own format, ready to be called again and again."""

    run: Callable[[], Any]
    #: From what `run` gives to NumPy's or SciPy's arrays.
    read: Callable[[Any], Any] = same
    #: Gives back what `run` gave, where that is not Python's doing.
    free: Callable[[Any], None] = nothing
    #: Seconds spent once to look at the operands (MKL's inspector).
    inspection: float = 0.0


@dataclass
class Times:
    """The seconds of each call of one side."""

    seconds: list[float] = field(default_factory=list)

    @property
    def least(self) -> float:
        return min(self.seconds)

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True)
class Budget:
    """The time limits of a measurement of each side on each input."""

    seconds: float
    least_rounds: int
    most_rounds: int
    #: A sample is at least so long: short kernels are called several times, after one call that is not counted.
    sample: float = 0.002
    #: Pause before a sample, so that threads of the side before, which still spin, are gone.
    pause: float = 0.0


def once(side: Prepared) -> float:
    """The seconds of one call."""
    start = time.perf_counter()
    result = side.run()
    seconds = time.perf_counter() - start
    side.free(result)
    return seconds


def take_turns(sides: dict[str, Prepared], budget: Budget, failed: dict[str, str] | None = None) -> dict[str, Times]:
    """Times of all sides, which run alternately, with another one first in every round; failing sides are excluded and reported in `failed`.

    A slow side takes part in fewer rounds, spread over all of them, so that disturbances affect all sides.
    """
    sides = dict(sides)
    times = {name: Times() for name in sides}
    rounds, calls, cold = {}, {}, {}
    for name, side in list(sides.items()):
        try:
            estimate = max(once(side), 1e-6)
        except Exception as problem:
            if failed is None:
                raise
            failed[name] = f"{type(problem).__name__}: {problem}"
            del sides[name], times[name]
            continue
        calls[name] = max(1, min(50, round(budget.sample / estimate)))
        # The first call of a sample finds caches full of the others' operands; one that takes long does not notice.
        cold[name] = estimate < 0.02
        cost = (calls[name] + cold[name]) * estimate
        rounds[name] = max(budget.least_rounds, min(budget.most_rounds, int(budget.seconds / cost)))
        if estimate > 0.3:
            # It was called once before, too, to look at its result.
            times[name].seconds.append(estimate)
            rounds[name] = 1
    names, total = list(sides), max(rounds.values(), default=0)
    gc.collect()
    gc.disable()
    try:
        for sample in range(total):
            for k in range(len(names)):
                name = names[(sample + k) % len(names)]
                if (sample + 1) * rounds[name] // total == sample * rounds[name] // total:
                    continue
                side = sides[name]
                if budget.pause:
                    time.sleep(budget.pause)
                if cold[name]:
                    once(side)
                times[name].seconds.extend(once(side) for _ in range(calls[name]))
    finally:
        gc.enable()
    return times


def difference(expected: Any, found: Any, tolerance: float) -> str | None:
    """The first difference, if there is one: arrays, sparse matrices, numbers, and tuples of these."""
    if isinstance(expected, tuple):
        if not isinstance(found, tuple) or len(found) != len(expected):
            return "another number of results"
        return next((d for e, f in zip(expected, found) if (d := difference(e, f, tolerance))), None)
    if sp.issparse(expected):
        if not sp.issparse(found) or expected.shape != found.shape:
            return f"a result of shape {getattr(found, 'shape', None)}, not {expected.shape}"
        return _sparse_difference(sp.csr_array(expected), sp.csr_array(found), tolerance)
    expected, found = np.asarray(expected), np.asarray(found)
    if expected.shape != found.shape:
        return f"a result of shape {found.shape}, not {expected.shape}"
    return _values(expected, found, tolerance)


def _values(expected: np.ndarray, found: np.ndarray, tolerance: float) -> str | None:
    if expected.size == 0:
        return None
    if expected.dtype.kind in "biu" and found.dtype.kind in "biu":
        return None if np.array_equal(expected, found) else "other values"
    infinite = np.isinf(expected)
    if not np.array_equal(infinite, np.isinf(found)):
        return "infinities at other places"
    finite = ~infinite
    scale = np.abs(expected[finite]).max(initial=0.0) or 1.0
    worst = np.abs(expected[finite] - found[finite]).max(initial=0.0) / scale
    return None if worst <= tolerance else f"values differ by {worst:.1e} of the largest"


def _sparse_difference(expected: sp.csr_array, found: sp.csr_array, tolerance: float) -> str | None:
    for matrix in (expected, found):
        matrix.sort_indices()
    if np.array_equal(expected.indptr, found.indptr) and np.array_equal(expected.indices, found.indices):
        return _values(expected.data, found.data, tolerance)
    # Whether a sum that is zero is stored is everyone's own choice.
    scale = abs(expected).max() if expected.nnz else 1.0
    worst = abs(expected - found).max() / (scale or 1.0)
    return None if worst <= tolerance else f"other entries, which differ by {worst:.1e} of the largest"
