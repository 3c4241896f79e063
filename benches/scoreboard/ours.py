"""The Tamis side: index notation and loop programs, on tensors in the formats that an expert would choose."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp

from .measure import Prepared
from .peers.base import Peer, Ways
from .tensors import Coordinates

EXAMPLES = os.path.join(os.path.dirname(__file__), "../../examples")


def example(name: str) -> Any:
    """A loop program of `examples/`."""
    import tamis as tm

    with open(os.path.join(EXAMPLES, f"{name}.py"), encoding="utf-8") as file:
        return tm.program(file.read(), source=f"examples/{name}.py")


def dense(result: Any) -> Any:
    return result.to_numpy()


def matrix(result: Any) -> sp.csr_array:
    return sp.csr_array(result.to_scipy())


def first(result: Any) -> Any:
    return result[0].to_numpy()


class Tamis(Peer):
    name = "tamis"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import tamis as tm

        self.tm = tm
        self.version = tm.__version__
        tm.config(threads=threads)

    def _einsum(self, text: str, read: Any, format: str | None = None, **tensors: Any) -> Prepared:
        einsum = self.tm.einsum
        if format is None:
            return Prepared(lambda: einsum(text, **tensors), read)
        return Prepared(lambda: einsum(text, format=format, **tensors), read)

    def csr(self, a: sp.csr_array) -> Any:
        """A private copy, so that the caches hold no other side's arrays."""
        return self.tm.tensor(a, format="csr")

    # Matrix times vector

    def _spmv(self, a: Any, x: Any) -> Prepared:
        return self._einsum("y[i] = A[i,j] * x[j]", dense, A=a, x=self.tm.tensor(x))

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Prepared:
        return self._spmv(self.csr(a), x)

    def spmv_csc(self, a: sp.csr_array, x: Any) -> Ways:
        return self._spmv(self.csr(a).convert("csc"), x)

    def spmv_symmetric(self, a: sp.csr_array, x: Any) -> Ways:
        """One triangle and the diagonal, each entry used twice."""
        lower = self.tm.tensor(sp.csr_array(sp.tril(a, -1, format="csr")), format="csr")
        diagonal, vector, program = self.tm.tensor(a.diagonal()), self.tm.tensor(x), example("spmv_triangle")
        return {"": Prepared(lambda: program(lower, diagonal, vector), dense), "all of it": self.spmv_csr(a, x)}

    def spmv_band(self, a: sp.csr_array, x: Any) -> Ways:
        return {"": self._spmv(self.csr(a).convert("dense, band"), x), "csr": self.spmv_csr(a, x)}

    def spmv_blocks(self, a: sp.csr_array, block: int, x: Any) -> Ways:
        return {"": self._spmv(self.csr(a).convert(f"bsr({block},{block})"), x), "csr": self.spmv_csr(a, x)}

    def spmv_pattern(self, a: sp.csr_array, x: Any) -> Ways:
        places = sp.csr_array((np.ones(a.nnz, bool), a.indices, a.indptr), shape=a.shape)
        return self._spmv(self.tm.tensor(places, format="csr; pattern"), x)

    # Other products

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        return self._einsum("C[i,k] = A[i,j] * D[j,k]", dense, A=self.csr(a), D=self.tm.tensor(d))

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        tensors = {"S": self.csr(s), "P": self.tm.tensor(p), "Q": self.tm.tensor(q)}
        return self._einsum("X[i,j] = S[i,j] * P[i,k] * Q[j,k]", matrix, "csr", **tensors)

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        text, x, y = "C[i,k] = A[i,j] * B[j,k]", self.csr(a), self.csr(b)
        unsorted = self._einsum(text, matrix, "dense, sparse(nonordered)", A=x, B=y)
        return {"": self._einsum(text, matrix, "csr", A=x, B=y), "unsorted": unsorted}

    def spgemm_transposed(self, a: sp.csr_array) -> Ways:
        return self._einsum("C[i,k] = A[i,j] * A[k,j]", matrix, "csr", A=self.csr(a))

    # Element by element

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return self._einsum("C[i,j] = A[i,j] + B[i,j]", matrix, "csr", A=self.csr(a), B=self.csr(b))

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        tensors = {"A": self.csr(a), "B": self.csr(b), "C": self.csr(c)}
        fused = self._einsum("D[i,j] = A[i,j] + B[i,j] + C[i,j]", matrix, "csr", **tensors)
        x, y, z = tensors.values()
        einsum = self.tm.einsum

        def two() -> Any:
            text = "C[i,j] = A[i,j] + B[i,j]"
            return einsum(text, A=einsum(text, A=x, B=y, format="csr"), B=z, format="csr")

        return {"": fused, "two sums": Prepared(two, matrix)}

    def multiply(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return self._einsum("C[i,j] = A[i,j] * B[i,j]", matrix, "csr", A=self.csr(a), B=self.csr(b))

    # Tensors

    def csf(self, t: Coordinates) -> Any:
        return self.tm.tensor((list(t.coords), t.values, t.shape), format="csf")

    def mttkrp(self, t: Coordinates, c: Any, d: Any) -> Ways:
        tensors = {"B": self.csf(t), "C": self.tm.tensor(c), "D": self.tm.tensor(d)}
        return self._einsum("A[i,j] = B[i,k,l] * C[k,j] * D[l,j]", dense, "dense", **tensors)

    def ttv(self, t: Coordinates, x: Any) -> Ways:
        def read(result: Any) -> Any:
            coords, values = result.to_coo()
            return coords[0] * t.shape[1] + coords[1], values

        return self._einsum("A[i,j] = B[i,j,k] * x[k]", read, "dcsr", B=self.csf(t), x=self.tm.tensor(x))

    def ttm(self, t: Coordinates, c: Any) -> Ways:
        rank = c.shape[1]

        def read(result: Any) -> Any:
            level, above = result.level_arrays(1), result.level_arrays(0)
            rows = np.repeat(above["crd"].astype(np.int64), np.diff(level["pos"].astype(np.int64)))
            return rows * t.shape[1] + level["crd"], result.values.reshape(-1, rank)

        text = "A[i,j,l] = B[i,j,k] * C[k,l]"
        return self._einsum(text, read, "sparse, sparse, dense", B=self.csf(t), C=self.tm.tensor(c))

    # Conversions

    def csr_to_csc(self, a: sp.csr_array) -> Ways:
        x = self.csr(a)
        return Prepared(lambda: x.convert("csc"), lambda r: r.to_scipy())

    def coo_to_csr(self, a: sp.csr_array, order: Any) -> Ways:
        """Unordered coordinates from NumPy arrays, like SciPy's."""
        entries = a.tocoo()
        coords, values = (entries.row[order], entries.col[order]), entries.data[order]
        tensor, shape = self.tm.tensor, a.shape
        return Prepared(lambda: tensor((coords, values, shape), format="csr"), matrix)

    def csr_to_coo(self, a: sp.csr_array) -> Ways:
        x = self.csr(a)
        return Prepared(lambda: x.convert("coo"), matrix)

    def csr_to_bsr(self, a: sp.csr_array, block: int) -> Ways:
        x = self.csr(a)
        return Prepared(lambda: x.convert(f"bsr({block},{block})"), matrix)

    def transpose(self, a: sp.csr_array) -> Ways:
        x = self.csr(a)
        return Prepared(lambda: x.T.convert("csr"), matrix)

    # Files

    def read_mtx(self, path: str) -> Ways:
        read = self.tm.read
        return Prepared(lambda: read(path, "csr"), lambda r: matrix(r.astype("f64")))

    def read_tns(self, path: str, shape: tuple[int, ...]) -> Ways:
        read = self.tm.read

        def entries(result: Any) -> Any:
            coords, values = result.to_coo()
            return tuple(coords), values

        return {"": Prepared(lambda: read(path, "coo", shape=shape), entries), "csf": Prepared(lambda: read(path, "csf", shape=shape), entries)}

    def read_npz(self, path: str) -> Ways:
        read = self.tm.read
        return Prepared(lambda: read(path), matrix)

    # Graphs

    def edges(self, graph: sp.csr_array) -> Any:
        places = sp.csr_array((np.ones(graph.nnz, bool), graph.indices, graph.indptr), shape=graph.shape)
        return self.tm.tensor(places, format="csr; pattern")

    def bfs(self, graph: sp.csr_array, source: int) -> Ways:
        out, into = self.edges(graph), self.edges(sp.csr_array(graph.T.tocsr()))
        both_ways, queue = example("bfs_both_ways"), example("bfs")
        return {"": Prepared(lambda: both_ways(out, into, source), dense), "queue": Prepared(lambda: queue(out, source), dense)}

    def shortest_paths(self, graph: sp.csr_array, source: int) -> Ways:
        edges, program = self.csr(graph), example("shortest_paths")
        return Prepared(lambda: program(edges, source), first)

    def pagerank(self, graph: sp.csr_array, rounds: int) -> Ways:
        """PageRank with two kernels per iteration: each is a single loop nest, which can be parallelised."""
        tm, n = self.tm, graph.shape[0]
        into = self.edges(sp.csr_array(graph.T.tocsr()))
        share = tm.tensor(0.85 / np.maximum(np.diff(graph.indptr), 1))
        start, rest = tm.tensor(np.full(n, 1.0 / n)), tm.tensor(np.array(0.15 / n))

        def run() -> Any:
            rank = start
            for _ in range(rounds):
                handed_on = tm.einsum("s[j] = share[j] * rank[j]", share=share, rank=rank)
                rank = tm.einsum("next[i] = rest + G[i,j] * s[j]", G=into, s=handed_on, rest=rest)
            return rank

        return Prepared(run, dense)

    def triangles(self, graph: sp.csr_array) -> Ways:
        lower = self.tm.tensor(sp.csr_array(sp.tril(graph, -1, format="csr")).astype(np.int64), format="csr")
        return self._einsum("t = L[i,j] * L[j,k] * L[i,k]", lambda r: int(r), L=lower)

    # Images

    def convolution(self, image: sp.csr_array, kernel: Any) -> Ways:
        tensors = {"I": self.csr(image), "F": self.tm.tensor(kernel)}
        return self._einsum("O[y,x] = I[y+r,x+q] * F[r,q]", dense, "dense", **tensors)

    def erosion(self, image: Any) -> Ways:
        tensor, pixels = self.tm.tensor, image != 0
        runs, rows, plain = example("erosion_runs"), example("erosion_rows"), example("erosion")
        words = example("erosion_words")
        by_runs = tensor(pixels, format="dense, sparse_runs; pattern")
        by_rows = tensor(pixels, format="runs, sparse_runs; pattern")
        dense_pixels, packed = tensor(pixels), tensor(in_words(pixels))
        return {
            "": Prepared(lambda: words(packed), lambda r: from_words(r.to_numpy(), pixels.shape[1])),
            "runs": Prepared(lambda: runs(by_runs), dense),
            "equal rows": Prepared(lambda: rows(by_rows), dense),
            "bytes": Prepared(lambda: plain(dense_pixels), dense),
        }

    def histogram(self, image: Any, mask: Any) -> Ways:
        tensor, program = self.tm.tensor, example("histogram_runs")
        runs, pixels = tensor(mask != 0, format="dense, sparse_runs; pattern"), tensor(image)
        grey, marks = tensor(image, format="dense, runs"), tensor(mask != 0)
        return {
            "": Prepared(lambda: program(pixels, runs), dense),
            "runs": Prepared(lambda: program(grey, runs), dense),
            "bytes": Prepared(lambda: program(pixels, marks), dense),
        }


def in_words(pixels: Any) -> Any:
    """64 pixels per word; missing pixels of the last word of a row are set."""
    width = -(-pixels.shape[1] // 64) * 64
    wide = np.ones((pixels.shape[0], width), bool)
    wide[:, : pixels.shape[1]] = pixels
    return np.packbits(wide, axis=1, bitorder="little").view(np.uint64)


def from_words(words: Any, columns: int) -> Any:
    """The pixels of words."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8), axis=1, count=columns, bitorder="little").astype(bool)
