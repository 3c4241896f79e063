"""Compile times of each kernel in a process that has compiled before, without the cache, against MLIR's pipeline."""

from __future__ import annotations

import itertools
import re
import statistics
import time
from typing import Any

#: Notation for each kernel, the formats of its operands and of its result.
KERNELS = {
    "SpMV": ("y[i] = A[i,j] * x[j]", {"A": "csr", "x": "dense"}, "dense"),
    "SpMM": ("C[i,k] = A[i,j] * D[j,k]", {"A": "csr", "D": "dense"}, "dense"),
    "SpGEMM": ("C[i,k] = A[i,j] * B[j,k]", {"A": "csr", "B": "csr"}, "csr"),
    "SDDMM": ("X[i,j] = S[i,j] * P[i,k] * Q[j,k]", {"S": "csr", "P": "dense", "Q": "dense"}, "csr"),
    "A + B": ("C[i,j] = A[i,j] + B[i,j]", {"A": "csr", "B": "csr"}, "csr"),
    "A + B + C": ("D[i,j] = A[i,j] + B[i,j] + C[i,j]", {"A": "csr", "B": "csr", "C": "csr"}, "csr"),
    "MTTKRP": ("A[i,j] = B[i,k,l] * C[k,j] * D[l,j]", {"B": "csf", "C": "dense", "D": "dense"}, "dense"),
    "TTV": ("A[i,j] = B[i,j,k] * x[k]", {"B": "csf", "x": "dense"}, "dcsr"),
    "TTM": ("A[i,j,l] = B[i,j,k] * C[k,l]", {"B": "csf", "C": "dense"}, "sparse, sparse, dense"),
    "convolution": ("O[y,x] = I[y+r,x+q] * F[r,q]", {"I": "csr", "F": "dense"}, "dense"),
}
SIZE = 40
#: The constants that make kernels new: one counter for the process, since families of kernels overlap.
FRESH = itertools.count(2)


def ranks(text: str) -> dict[str, int]:
    """The number of subscripts of each tensor in a text."""
    return {name: subscripts.count(",") + 1 for name, subscripts in re.findall(r"(\w+)\[([^\]]*)\]", text)}


def operands(text: str, formats: dict[str, str]) -> dict[str, Any]:
    import tamis as tm

    found, ranked = {}, ranks(text)
    for name, format in formats.items():
        rank = ranked[name]
        size = 3 if "+r" in text and name == "F" else SIZE if max(ranked.values()) < 4 else 6
        density = 1.0 if format == "dense" else 0.1
        found[name] = tm.gallery.random((size,) * rank, density, format=format if format != "dense" else None).convert(format)
    return found


def seconds(text: str, formats: dict[str, str], result: str, rounds: int) -> float:
    """The median time to schedule and compile. A fresh constant factor in each round makes a new kernel, so that nothing is cached."""
    import tamis as tm

    tensors, times = operands(text, formats), []
    left, right = text.split(" = ")
    for _ in range(rounds):
        fresh = f"{left} = {next(FRESH)}.5 * ({right})"
        start = time.perf_counter()
        tm.einsum(fresh, format=result, **tensors)
        first = time.perf_counter() - start
        start = time.perf_counter()
        tm.einsum(fresh, format=result, **tensors)
        times.append(first - (time.perf_counter() - start))
    return statistics.median(times[1:] or times)


def compile_times(quick: bool) -> dict[str, float]:
    """Milliseconds for each kernel."""
    return {name: round(seconds(*kernel, 3 if quick else 7) * 1e3, 2) for name, kernel in KERNELS.items()}


def sum_text(count: int) -> tuple[str, dict[str, str], str]:
    """A sum of `n` sparse matrices."""
    names = "ABCDEF"[:count]
    return f"R[i,j] = {' + '.join(f'{n}[i,j]' for n in names)}", {n: "csr" for n in names}, "csr"


def product_text(count: int) -> tuple[str, dict[str, str], str]:
    names = "ABCDEF"[:count]
    return f"R[i,j] = {' * '.join(f'{n}[i,j]' for n in names)}", {n: "csr" for n in names}, "csr"


def rank_text(rank: int) -> tuple[str, dict[str, str], str]:
    """A tensor with sparse levels times a vector along its last dimension."""
    subscripts = [f"i{k}" for k in range(rank)]
    lists = "csf" if rank > 2 else "dcsr" if rank == 2 else "sparse"
    return f"r = T[{','.join(subscripts)}] * x[{subscripts[-1]}]", {"T": lists, "x": "dense"}, "dense"


def growing(quick: bool) -> dict[str, list[tuple[int, float]]]:
    """Milliseconds against the number of operands, and against the rank."""
    rounds = 3 if quick else 5
    families = {"sums": sum_text, "products": product_text, "rank": rank_text}
    return {name: [(n, round(seconds(*make(n), rounds) * 1e3, 2)) for n in range(1, 7)] for name, make in families.items()}
