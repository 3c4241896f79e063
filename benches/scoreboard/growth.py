"""Asymptotic growth of Tamis' time with nnz, rows, operands and rank: slopes in log-log plots."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np

from .compiling import product_text, rank_text, sum_text
from .inputs import random_rows
from .measure import Budget, Prepared, take_turns

Point = tuple[int, float]


def slope(points: list[Point]) -> float:
    """The exponent of the power that fits best; of the larger half of the points, where calls and caches matter less."""
    kept = points[len(points) // 2 - 1 :] if len(points) > 4 else points
    xs, ys = ([math.log(v[k]) for v in kept] for k in (0, 1))
    return float(np.polyfit(xs, ys, 1)[0]) if len(kept) > 1 else math.nan


def timed(work: Callable[[], Any], quick: bool) -> float:
    """The least time, in milliseconds."""
    work()
    budget = Budget(0.03, 2, 5, sample=0.001) if quick else Budget(0.15, 3, 15)
    return take_turns({"": Prepared(work)}, budget)[""].least * 1e3


def matrix_work(a: Any) -> dict[str, Callable[[], Any]]:
    """Kernels on one sparse matrix in CSR."""
    import tamis as tm

    A, n = tm.tensor(a, format="csr"), a.shape[1]
    T = tm.tensor(a.T.tocsr(), format="csr")
    rng = np.random.default_rng(0)
    x, D = tm.tensor(rng.random(n)), tm.tensor(rng.random((n, 32)))
    return {
        "SpMV": lambda: tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=x),
        "SpMM, N=32": lambda: tm.einsum("C[i,k] = A[i,j] * D[j,k]", A=A, D=D),
        "SDDMM, K=32": lambda: tm.einsum("X[i,j] = A[i,j] * D[i,k] * D[j,k]", A=A, D=D, format="csr"),
        "A + Aᵀ": lambda: tm.einsum("C[i,j] = A[i,j] + B[i,j]", A=A, B=T, format="csr"),
        "CSR to CSC": lambda: A.convert("csc"),
    }


def against_entries(quick: bool) -> dict[str, list[Point]]:
    """A fixed number of rows with a growing number of entries. A matrix product grows quadratically, so its operations are counted."""
    import tamis as tm

    rows = 2_000 if quick else 20_000
    found: dict[str, list[Point]] = {}
    for entries in (1, 2, 4, 8, 16) if quick else (1, 2, 4, 8, 16, 32, 64):
        a = random_rows(rows, entries)
        for name, work in matrix_work(a).items():
            found.setdefault(name, []).append((a.nnz, timed(work, quick)))
        if entries <= 16:
            A = tm.tensor(a, format="csr")
            products = int(np.diff(a.indptr)[a.indices].sum())
            time = timed(lambda: tm.einsum("C[i,k] = A[i,j] * A[j,k]", A=A, format="csr"), quick)
            found.setdefault("SpGEMM (against products)", []).append((products, time))
    return found


def against_rows(quick: bool) -> dict[str, list[Point]]:
    """Eight entries in each row, and ever more rows."""
    import tamis as tm

    found: dict[str, list[Point]] = {}
    for rows in (1_000, 3_000, 10_000) if quick else (1_000, 3_000, 10_000, 30_000, 100_000, 300_000):
        a = random_rows(rows, 8)
        A = tm.tensor(a, format="csr")
        work = matrix_work(a) | {"SpGEMM": lambda: tm.einsum("C[i,k] = A[i,j] * A[j,k]", A=A, format="csr")}
        for name, run in work.items():
            found.setdefault(name, []).append((rows, timed(run, quick)))
    return found


def against_operands(quick: bool) -> dict[str, list[Point]]:
    """Sums and products of one to six matrices, element by element."""
    import tamis as tm

    rows = 2_000 if quick else 20_000
    matrices = [tm.tensor(random_rows(rows, 10, seed), format="csr") for seed in range(6)]
    found: dict[str, list[Point]] = {}
    for title, make in (("sum", sum_text), ("product", product_text)):
        for count in range(1, 7):
            text, names, format = make(count)
            tensors = dict(zip(names, matrices))
            found.setdefault(title, []).append((count, timed(lambda: tm.einsum(text, format=format, **tensors), quick)))
    return found


def against_rank(quick: bool) -> dict[str, list[Point]]:
    """As many entries in tensors of one to six dimensions, each times a vector along its last dimension."""
    import tamis as tm

    entries = 20_000 if quick else 400_000
    found = []
    for rank in range(1, 7):
        # As dense as each other, so that every fiber but the last is short.
        size = max(4, round((entries * 20) ** (1 / rank)))
        places = np.unique(np.random.default_rng(rank).integers(0, size**rank, entries))
        coords = np.unravel_index(places, (size,) * rank)
        text, formats, format = rank_text(rank)
        tensor = tm.tensor((list(coords), np.ones(len(places)), (size,) * rank), format=formats["T"])
        x = tm.tensor(np.ones(size))
        found.append((rank, timed(lambda: tm.einsum(text, T=tensor, x=x, format=format), quick)))
    return {"T x": found}


def growth(quick: bool) -> dict[str, dict[str, list[Point]]]:
    """All of it, by what it is plotted against."""
    return {
        "entries": against_entries(quick),
        "rows": against_rows(quick),
        "operands": against_operands(quick),
        "rank": against_rank(quick),
    }
