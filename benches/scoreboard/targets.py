"""Performance targets: ratios of geometric means over the inputs of each kernel."""

from __future__ import annotations

from dataclasses import dataclass

#: A single input below this ratio needs an explanation.
LEAST = 0.8
#: The fraction of the triad's bandwidth, for products with vectors that exceed the caches.
STREAM = 0.85
#: The speed-up of two threads, for data that exceed the caches.
SCALING = 1.7

SPMV = ("SpMV, CSR", "SpMV, CSC", "SpMV, symmetric", "SpMV, band", "SpMV, blocks", "SpMV, pattern")
SPMM = ("SpMM, f32", "SpMM, f64")
SPGEMM = ("SpGEMM, A A", "SpGEMM, A Aᵀ")
SORTED = ("scipy", "mkl", "eigen", "graphblas", "mlir", "C loops", "pydata/sparse")


@dataclass(frozen=True)
class Target:
    """The target of the ratio of a peer's time to Tamis'."""

    text: str
    aim: float
    #: The kernels; all of them by default.
    kernels: tuple[str, ...] | None
    #: The peer; of several, the fastest on each input.
    peers: tuple[str, ...]


TARGETS = (
    Target("SpMV: Intel MKL, its inspector included", 1.0, SPMV, ("mkl",)),
    Target("SpMM: Intel MKL, its inspector included", 1.0, SPMM, ("mkl",)),
    Target("SpGEMM: the best sorted peer", 2.0, SPGEMM, SORTED),
    Target("SpGEMM, sorted: MKL's unsorted product (at most 1.5 times its time)", 1 / 1.5, SPGEMM, ("mkl: unsorted",)),
    Target("everything: SciPy", 1.3, None, ("scipy",)),
    Target("SpGEMM: Eigen", 2.0, SPGEMM, ("eigen",)),
    Target("SpMM: MLIR", 1.5, SPMM, ("mlir",)),
    Target("SpMM: C loops as TACO emits them", 1.5, SPMM, ("C loops",)),
    Target("MTTKRP: MLIR", 1.5, ("MTTKRP, R=32",), ("mlir",)),
    Target("MTTKRP: C loops as TACO emits them", 1.5, ("MTTKRP, R=32",), ("C loops",)),
    Target("SDDMM: PyTorch, unfused", 10.0, ("SDDMM, K=64",), ("torch: unfused",)),
    Target("A + B: SciPy", 1.2, ("A + B",), ("scipy",)),
    Target("A + B + C in one pass: SciPy", 1.5, ("A + B + C",), ("scipy",)),
)
