"""Benchmark of the Python API against SciPy on the same matrices, one thread: python python.py [--rounds N] [MATRIX ...]

Every result is compared with SciPy's before anything is timed. Both run alternately; the minimum over the rounds counts. Times are in microseconds, ratios
are SciPy's time over Tamis' (above 1, Tamis is faster). The last lines are geometric means over the matrices, and the overhead of a call.
"""

import math
import os
import sys
import time

import numpy as np
import scipy.sparse as sp

import tamis as tm

DATA = os.environ.get("TAMIS_DATA", os.path.join(os.path.dirname(__file__), "../../shared/data")) + "/matrices"
MATRICES = ["bcsstk13", "bcsstk16", "cage10", "memplus", "wiki-Vote", "ca-CondMat", "email-Enron"]

#: A name, what we do, and what SciPy does, with the matrix, a transposed one, a vector and some dense columns.
WORK = [
    ("A @ x", lambda A, B, x, D: A @ x),
    ("A @ D", lambda A, B, x, D: A @ D),
    ("A @ A", lambda A, B, x, D: A @ A),
    ("A + B", lambda A, B, x, D: A + B),
    ("A * B", lambda A, B, x, D: A * B),
    ("A * 2", lambda A, B, x, D: A * 2.0),
    ("A.T", lambda A, B, x, D: A.T),
    ("A[rows]", lambda A, B, x, D: A[A.shape[0] // 4 : A.shape[0] // 2]),
    ("sum, axis 1", lambda A, B, x, D: A.sum(axis=1)),
    ("sum, axis 0", lambda A, B, x, D: A.sum(axis=0)),
]


def dense(result):
    """A result in a form that can be compared."""
    if isinstance(result, tm.Tensor):
        result = result.to_numpy() if result.ndim < 2 or result.is_dense else result.to_scipy()
    return sp.csr_array(result) if sp.issparse(result) else np.asarray(result)


def same(ours, theirs):
    """Whether both computed the same."""
    ours, theirs = dense(ours), dense(theirs)
    difference = abs(ours - theirs).max() if ours.size else 0.0
    return difference <= 1e-9 * max(1.0, abs(theirs).max())


def best(work, rounds):
    """The least times of both, in microseconds, interleaved."""
    least = [math.inf] * len(work)
    for _ in range(rounds):
        for k, function in enumerate(work):
            start = time.perf_counter()
            function()
            least[k] = min(least[k], time.perf_counter() - start)
    return [1e6 * seconds for seconds in least]


def measure(name, A, rounds, ratios):
    """The table of one matrix."""
    S = A.to_scipy()
    T = sp.csr_array(S.T)
    B = tm.asarray(T)
    rng = np.random.default_rng(0)
    x, D = rng.random(A.shape[1]), rng.random((A.shape[1], 16))
    print(f"\n{name}: {A.shape[0]} x {A.shape[1]}, {A.nnz} entries\n{'':12} {'ours':>10} {'SciPy':>10} {'ratio':>7}")
    for title, function in WORK:
        assert same(function(A, B, x, D), function(S, T, x, D)), f"{title} differs on {name}"
        ours, theirs = best([lambda: function(A, B, x, D), lambda: function(S, T, x, D)], rounds)
        ratios.setdefault(title, []).append(theirs / ours)
        print(f"{title:12} {ours:10.1f} {theirs:10.1f} {theirs / ours:7.2f}")


def main(arguments):
    """All matrices, then the means."""
    rounds = 15
    if "--rounds" in arguments:
        place = arguments.index("--rounds")
        rounds = int(arguments[place + 1])
        del arguments[place : place + 2]
    ratios = {}
    for name in arguments or MATRICES:
        path = name if os.path.exists(name) else f"{DATA}/{name}.mtx.gz"
        if not os.path.exists(path):
            print(f"{name} is NOT measured: there is no such file in {DATA} (TAMIS_DATA names another folder)")
            continue
        measure(name, tm.read(path).astype("f64").convert("csr"), rounds, ratios)
    if ratios:
        print("\ngeometric means of SciPy's time over ours")
        for title, found in ratios.items():
            print(f"{title:12} {math.exp(sum(map(math.log, found)) / len(found)):7.2f}   (least {min(found):.2f})")
    small = tm.gallery.random((100, 100), 0.05, 1)
    S, x = small.to_scipy(), np.ones(100)
    work = [lambda: tm.einsum("y[i] = A[i,j] * x[j]", A=small, x=x), lambda: small @ x, lambda: S @ x]
    text, operator, scipy = best(work, 2000)
    print(f"\n100 x 100 times a vector: einsum {text:.1f} us, A @ x {operator:.1f} us, SciPy {scipy:.1f} us")


if __name__ == "__main__":
    main(sys.argv[1:])
