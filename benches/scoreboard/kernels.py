"""The kernels of the scoreboard: operation, inputs, bytes moved, and comparison of results."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np
import scipy.sparse as sp

from .inputs import Inputs
from .measure import difference
from .tensors import small


@dataclass(frozen=True)
class Case:
    """One input of a kernel."""

    name: str
    operands: Callable[[Inputs], tuple[Any, ...]]
    #: Real data, which may be missing.
    real: bool = False


@dataclass(frozen=True)
class Kernel:
    """An operation on its inputs."""

    #: The key for `--only`.
    key: str
    title: str
    #: The method of each side.
    operation: str
    cases: tuple[Case, ...]
    #: The minimum bytes of operands that Tamis' format moves; `None` if the kernel is not memory-bound.
    moved: Callable[..., int] | None = None
    compare: Callable[..., str | None] = lambda operands, expected, found: difference(expected, found, 1e-9)


def bound(make: Callable[[Inputs, Any], tuple[Any, ...]], what: Any) -> Callable[[Inputs], tuple[Any, ...]]:
    """Operands of one thing out of a loop."""
    return lambda inputs: make(inputs, what)


def x_for(inputs: Inputs, a: sp.csr_array) -> Any:
    return inputs.dense(a.shape[1], 0, seed=2)


def matrices(*names: str, real: tuple[str, ...] = (), more: tuple[Any, ...] = (), make: Any = None) -> tuple[Case, ...]:
    """A case per matrix: `make` turns it into operands, by default a matrix and a vector."""
    build = make or (lambda inputs, a: (a, *more, x_for(inputs, a)))
    return tuple(
        Case(os.path.basename(name), bound(lambda inputs, name: build(inputs, inputs.matrix(name)), name), name in real) for name in (*names, *real)
    )


# Bytes: eight for a value, four for a coordinate or a position; vectors once.


def csr_bytes(a: sp.csr_array, x: Any) -> int:
    return 12 * a.nnz + 4 * (a.shape[0] + 1) + 8 * sum(a.shape)


def csc_bytes(a: sp.csr_array, x: Any) -> int:
    return 12 * a.nnz + 4 * (a.shape[1] + 1) + 8 * sum(a.shape)


def triangle_bytes(a: sp.csr_array, x: Any) -> int:
    n = a.shape[0]
    return 12 * ((a.nnz - n) // 2) + 4 * (n + 1) + 8 * 3 * n


def band_bytes(a: sp.csr_array, x: Any) -> int:
    return 8 * a.nnz + 8 * (a.shape[0] + 1) + 8 * sum(a.shape)


def block_bytes(a: sp.csr_array, block: int, x: Any) -> int:
    blocks = a.tobsr((block, block))
    return 8 * blocks.data.size + 4 * len(blocks.indices) + 4 * len(blocks.indptr) + 8 * sum(a.shape)


def pattern_bytes(a: sp.csr_array, x: Any) -> int:
    return 4 * a.nnz + 4 * (a.shape[0] + 1) + 8 * sum(a.shape)


def sum_bytes(*operands: sp.csr_array) -> int:
    """The bytes of all operands, and of a result with the nnz of their union."""
    places = sum((sp.csr_array((np.ones(m.nnz, np.int8), m.indices, m.indptr), shape=m.shape) for m in operands[1:]), operands[0])
    return 12 * (sum(m.nnz for m in operands) + places.nnz) + 4 * (operands[0].shape[0] + 1) * (len(operands) + 1)


def ttv_bytes(t: Any, x: Any) -> int:
    return 12 * t.nnz + 8 * len(t.pairs) + 12 * len(t.pairs) + 8 * len(x)


# Operands


def with_dense(dtype: Any, n: int) -> Any:
    def make(inputs: Inputs, a: sp.csr_array) -> tuple[Any, ...]:
        return a.astype(dtype), inputs.dense(a.shape[1], n, dtype)

    return make


def spmm_cases(dtype: Any) -> tuple[Case, ...]:
    found = []
    for name, widths in [("spmm20k", (1, 8, 32, 128, 512)), ("xenon1", (32, 128)), ("cage10", (8, 32)), ("graphml/amazon-cs.adj", (32, 128)), ("dlmc/rn50-0.96/final_dense.smtx.gz", (128,))]:
        for n in widths:
            operands = bound(lambda inputs, both: both[1](inputs, inputs.matrix(both[0])), (name, with_dense(dtype, n)))
            label = os.path.basename(name).replace(".smtx.gz", "")
            found.append(Case(f"{label}, N={n}", operands, name != "spmm20k"))
    return tuple(found)


def sampled(inputs: Inputs, a: sp.csr_array) -> tuple[Any, ...]:
    return a, inputs.dense(a.shape[0], 64, seed=3), inputs.dense(a.shape[1], 64, seed=4)


def shifted(a: sp.csr_array, by: int) -> sp.csr_array:
    """The same entries shifted by some columns, so that some coincide with those of the matrix."""
    entries = a.tocoo()
    return small(sp.csr_array((entries.data * 0.5, (entries.row, (entries.col + by) % a.shape[1])), shape=a.shape))


def pair(inputs: Inputs, a: sp.csr_array) -> tuple[Any, ...]:
    """The matrix and its transpose."""
    return a, small(a.T.tocsr())


def triple(inputs: Inputs, a: sp.csr_array) -> tuple[Any, ...]:
    return (*pair(inputs, a), shifted(a, 1))


def tensors(make: Any) -> tuple[Case, ...]:
    names = ("tens3", "online-retail.tns.gz", "brown-trigrams.tns.gz", "fb15k237.tns.gz")
    return tuple(Case(n.replace(".tns.gz", ""), bound(lambda inputs, n: make(inputs, inputs.tensor(n)), n), n != "tens3") for n in names)


def graphs(make: Any, *names: str, undirected: bool = False) -> tuple[Case, ...]:
    def operands(inputs: Inputs, name: str) -> tuple[Any, ...]:
        return make(inputs.undirected(name) if undirected else inputs.graph(name))

    return tuple(Case(n, bound(operands, n), not n.startswith("rmat")) for n in names)


def from_hub(graph: sp.csr_array) -> tuple[Any, ...]:
    """The search starts at the node of maximum degree."""
    return graph, int(np.argmax(np.diff(graph.indptr)))


def any_order(inputs: Inputs, a: sp.csr_array) -> tuple[Any, ...]:
    return a, np.random.default_rng(5).permutation(a.nnz)


def images(make: Any, *names: str) -> tuple[Case, ...]:
    return tuple(Case(n.replace(".pbm.gz", ""), bound(make, n), n != "img999") for n in names)


def masked(inputs: Inputs, name: str) -> tuple[Any, ...]:
    """A grey image, and a mask that is magnified to its size."""
    file, _, scale = name.partition("*")
    image = inputs.image(f"skimage-{file}.pgm.gz*{scale}" if scale else f"skimage-{file}.pgm.gz")
    mask = inputs.image("mask-triangle.pbm.gz")
    rows, columns = (np.arange(n) * m // n for n, m in zip(image.shape, mask.shape))
    return image, np.ascontiguousarray(mask[rows][:, columns])


_folder: list[tempfile.TemporaryDirectory[str]] = []


def file_for(inputs: Inputs, name: str, write: Any) -> str:
    """A file that is written once, and deleted with the process."""
    if not _folder:
        _folder.append(tempfile.TemporaryDirectory(prefix="scoreboard-"))
    path = os.path.join(_folder[0].name, name)
    if not os.path.exists(path):
        write(path)
    return path


def mtx_file(inputs: Inputs, a: sp.csr_array) -> tuple[Any, ...]:
    from scipy.io import mmwrite

    return (file_for(inputs, f"{a.nnz}.mtx", lambda path: mmwrite(path, a.tocoo(), symmetry="general")),)


def npz_file(inputs: Inputs, a: sp.csr_array) -> tuple[Any, ...]:
    return (file_for(inputs, f"{a.nnz}.npz", lambda path: sp.save_npz(path, a, compressed=False)),)


def tns_file(inputs: Inputs, t: Any) -> tuple[Any, ...]:
    def write(path: str) -> None:
        with open(path, "w", encoding="ascii") as file:
            file.writelines(f"{i + 1} {j + 1} {k + 1} {v:.6g}\n" for i, j, k, v in zip(*t.coords.tolist(), t.values.tolist()))

    return file_for(inputs, f"{t.nnz}.tns", write), t.shape


# Comparing parents: any tree of shortest paths is valid


def depths(graph: sp.csr_array, parents: Any, source: int) -> Any:
    """The distance of each node from the source along its parents; `None` if an edge does not exist."""
    parents = np.asarray(parents).astype(np.int64)
    others = np.flatnonzero(parents >= 0)
    others = others[others != source]
    if parents[source] != source or (len(others) and not np.all(np.asarray(graph[parents[others], others]).ravel() != 0)):
        return None
    depth = np.full(len(parents), -1)
    depth[source] = 0
    while len(others):
        above = depth[parents[others]]
        known = above >= 0
        if not known.any():
            return None
        depth[others[known]] = above[known] + 1
        others = others[~known]
    return depth


def same_depths(operands: tuple[Any, ...], expected: Any, found: Any) -> str | None:
    graph, source = operands
    depth = depths(graph, found, source)
    if depth is None:
        return "a parent that leads nowhere"
    return None if np.array_equal(depth, depths(graph, expected, source)) else "other depths"


def same_fibers(operands: tuple[Any, ...], expected: Any, found: Any) -> str | None:
    """Values by coordinates; sides may or may not store sums that are zero."""
    (places, values), (other_places, other_values) = ((p[v != 0], v[v != 0]) for p, v in (expected, found))
    return difference((places, values), (other_places, other_values), 1e-9)


def within(tolerance: float) -> Callable[..., str | None]:
    return lambda operands, expected, found: difference(expected, found, tolerance)


SPMV = matrices("rand200k", "lap1000", "band10k", "rmat17", real=("cage10", "xenon1", "memplus", "email-Enron", "mdual", "gowalla-user-item", "graphml/amazon-cs.features"))
SQUARE = ("spmm20k", "rmat14", "lap300")

KERNELS = (
    Kernel("spmv", "SpMV, CSR", "spmv_csr", SPMV, csr_bytes),
    Kernel("spmv", "SpMV, CSC", "spmv_csc", matrices("rand200k", "lap1000", "rmat17", real=("cage10", "xenon1", "gowalla-user-item")), csc_bytes),
    Kernel("spmv", "SpMV, symmetric", "spmv_symmetric", matrices("lap1000", real=("bcsstk16", "mdual")), triangle_bytes),
    Kernel("spmv", "SpMV, band", "spmv_band", matrices("band10k", "tri1m"), band_bytes),
    Kernel("spmv", "SpMV, blocks", "spmv_blocks", (*matrices("blocks4", more=(4,)), *matrices(real=("bcsstk16", "xenon1"), more=(3,))), block_bytes),
    Kernel("spmv", "SpMV, pattern", "spmv_pattern", matrices("rmat17", real=("email-Enron", "mdual")), pattern_bytes),
    Kernel("spmm", "SpMM, f32", "spmm", spmm_cases(np.float32), compare=within(1e-5)),
    Kernel("spmm", "SpMM, f64", "spmm", spmm_cases(np.float64)),
    Kernel("spgemm", "SpGEMM, A A", "spgemm", matrices("spgemm20k", "rmat14", "lap300", real=("cage10", "ca-CondMat", "wiki-Vote"), make=lambda i, a: (a, a))),
    Kernel("spgemm", "SpGEMM, A Aᵀ", "spgemm_transposed", matrices("spgemm20k", "lap300", real=("cage10", "Franz6_id1959_aug", "wiki-Vote"), make=lambda i, a: (a,))),
    Kernel("sddmm", "SDDMM, K=64", "sddmm", matrices("spmm20k", "rmat14", real=("xenon1", "graphml/amazon-cs.adj"), make=sampled)),
    Kernel("add", "A + B", "add", matrices(*SQUARE, real=("cage10", "xenon1", "email-Enron"), make=pair), sum_bytes),
    Kernel("add3", "A + B + C", "add_three", matrices(*SQUARE, real=("cage10", "xenon1", "email-Enron"), make=triple), sum_bytes),
    Kernel("multiply", "A * B", "multiply", matrices(*SQUARE, real=("cage10", "xenon1", "email-Enron"), make=pair)),
    Kernel("mttkrp", "MTTKRP, R=32", "mttkrp", tensors(lambda i, t: (t, i.dense(t.shape[1], 32, seed=5), i.dense(t.shape[2], 32, seed=6)))),
    Kernel("ttm", "TTM, R=32", "ttm", tensors(lambda i, t: (t, i.dense(t.shape[2], 32, seed=7)))),
    Kernel("ttv", "TTV", "ttv", tensors(lambda i, t: (t, i.dense(t.shape[2], 0, seed=8))), ttv_bytes, same_fibers),
    Kernel("convert", "CSR to CSC", "csr_to_csc", matrices("rand200k", "lap1000", real=("xenon1", "gowalla-user-item"), make=lambda i, a: (a,))),
    Kernel("convert", "COO to CSR", "coo_to_csr", matrices("rand200k", "lap1000", real=("xenon1", "gowalla-user-item"), make=any_order)),
    Kernel("convert", "CSR to COO", "csr_to_coo", matrices("rand200k", "lap1000", real=("xenon1",), make=lambda i, a: (a,))),
    Kernel("convert", "CSR to BSR", "csr_to_bsr", (*matrices("blocks4", make=lambda i, a: (a, 4)), *matrices(real=("bcsstk16", "xenon1"), make=lambda i, a: (a, 3)))),
    Kernel("convert", "transpose, CSR", "transpose", matrices("rand200k", "lap1000", real=("xenon1", "gowalla-user-item"), make=lambda i, a: (a,))),
    Kernel("read", "reading .mtx", "read_mtx", matrices("spmm20k", "lap300", real=("xenon1",), make=mtx_file)),
    Kernel("read", "reading .tns", "read_tns", tensors(tns_file)[1:3], compare=within(1e-5)),
    Kernel("read", "reading .npz", "read_npz", matrices("spmm20k", "lap300", real=("xenon1",), make=npz_file)),
    Kernel("convolution", "convolution 3x3", "convolution", images(lambda i, n: (i.sparse_image(n), np.random.default_rng(1).random((3, 3))), "img999", "scan-toc.99.pbm.gz", "scan-words.44.pbm.gz", "scan-patent.pbm.gz")),
    Kernel("bfs", "BFS", "bfs", graphs(from_hub, "rmat17", "email-Enron", "soc-Slashdot0902", "mdual"), compare=same_depths),
    Kernel("paths", "shortest paths", "shortest_paths", graphs(from_hub, "rmat17", "email-Enron", "soc-Slashdot0902", "mdual")),
    Kernel("pagerank", "PageRank, 10 rounds", "pagerank", graphs(lambda g: (g, 10), "rmat17", "email-Enron", "soc-Slashdot0902", "mdual")),
    Kernel("triangles", "triangle counting", "triangles", graphs(lambda g: (g,), "rmat14", "ca-CondMat", "email-Enron", "ego-facebook", undirected=True)),
    Kernel("erosion", "erosion 3x3", "erosion", images(lambda i, n: (i.image(n),), "scan-feyn.pbm.gz", "scan-patent.pbm.gz", "scan-arabic.pbm.gz", "scan-patent.pbm.gz*4")),
    Kernel("histogram", "histogram under a mask", "histogram", images(masked, "camera", "coins", "camera*4", "phantom*4")),
)
