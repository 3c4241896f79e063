"""The SciPy and NumPy side: the most widely used libraries, and the reference for results."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp
from scipy.sparse import csgraph

from ..measure import Prepared
from ..tensors import Coordinates
from .base import Peer, Ways


class SciPy(Peer):
    name = "scipy"
    version = scipy.__version__

    # Products with dense operands

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Ways:
        return Prepared(lambda: a @ x)

    def spmv_csc(self, a: sp.csr_array, x: Any) -> Ways:
        columns = a.tocsc()
        return Prepared(lambda: columns @ x)

    def spmv_symmetric(self, a: sp.csr_array, x: Any) -> Ways:
        return Prepared(lambda: a @ x)

    def spmv_band(self, a: sp.csr_array, x: Any) -> Ways:
        diagonals = a.todia()
        return {"": Prepared(lambda: a @ x), "dia": Prepared(lambda: diagonals @ x)}

    def spmv_blocks(self, a: sp.csr_array, block: int, x: Any) -> Ways:
        blocks = a.tobsr((block, block))
        return {"": Prepared(lambda: blocks @ x), "csr": Prepared(lambda: a @ x)}

    def spmv_pattern(self, a: sp.csr_array, x: Any) -> Ways:
        ones = sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape)
        return Prepared(lambda: ones @ x)

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        return Prepared(lambda: a @ d)

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        """SDDMM by gathered rows; the alternative without it is a dense product."""
        rows = np.repeat(np.arange(s.shape[0]), np.diff(s.indptr))

        def sampled(values: Any) -> sp.csr_array:
            return sp.csr_array((values, s.indices, s.indptr), shape=s.shape)

        return Prepared(lambda: sampled(s.data * np.einsum("nk,nk->n", p[rows], q[s.indices])))

    # Sparse results

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return {"": Prepared(lambda: ordered(a @ b)), "unsorted": Prepared(lambda: a @ b)}

    def spgemm_transposed(self, a: sp.csr_array) -> Ways:
        return Prepared(lambda: ordered(a @ a.T))

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return Prepared(lambda: a + b)

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        return Prepared(lambda: a + b + c)

    def multiply(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return Prepared(lambda: a.multiply(b))

    # Tensors: unfolded into matrices

    def mttkrp(self, t: Coordinates, c: Any, d: Any) -> Ways:
        i, k, l = t.coords
        rows = sp.csr_array((t.values, np.arange(t.nnz), np.concatenate([[0], np.cumsum(np.bincount(i, minlength=t.shape[0]))])), shape=(t.shape[0], t.nnz))
        return Prepared(lambda: rows @ (c[k] * d[l]))

    def ttv(self, t: Coordinates, x: Any) -> Ways:
        unfolded, pairs = t.unfolded, t.pairs
        return Prepared(lambda: (pairs, unfolded @ x))

    def ttm(self, t: Coordinates, c: Any) -> Ways:
        unfolded, pairs = t.unfolded, t.pairs
        return Prepared(lambda: (pairs, unfolded @ c))

    # Conversions

    def csr_to_csc(self, a: sp.csr_array) -> Ways:
        return Prepared(lambda: a.tocsc())

    def coo_to_csr(self, a: sp.csr_array, order: Any) -> Ways:
        entries = a.tocoo()
        entries = sp.coo_array((entries.data[order], (entries.row[order], entries.col[order])), shape=a.shape)
        return Prepared(lambda: ordered(entries.tocsr()))

    def csr_to_coo(self, a: sp.csr_array) -> Ways:
        return Prepared(lambda: a.tocoo())

    def csr_to_bsr(self, a: sp.csr_array, block: int) -> Ways:
        return Prepared(lambda: a.tobsr((block, block)))

    def transpose(self, a: sp.csr_array) -> Ways:
        return Prepared(lambda: a.T.tocsr())

    # Files

    def read_mtx(self, path: str) -> Ways:
        from scipy.io import mmread

        return Prepared(lambda: sp.csr_array(mmread(path, spmatrix=False)))

    def read_tns(self, path: str, shape: tuple[int, ...]) -> Ways:
        """NumPy has no reader for such files: they are read as a table."""

        def read() -> Any:
            table = np.loadtxt(path)
            return tuple(table[:, :-1].T.astype(np.int64) - 1), table[:, -1]

        return Prepared(read)

    def read_npz(self, path: str) -> Ways:
        return Prepared(lambda: sp.csr_array(sp.load_npz(path)))

    # Graphs and images

    def convolution(self, image: sp.csr_array, kernel: Any) -> Ways:
        from scipy import ndimage

        dense = image.toarray()
        return Prepared(lambda: ndimage.correlate(dense, kernel, mode="constant")[1:-1, 1:-1])

    def bfs(self, graph: sp.csr_array, source: int) -> Ways:
        def parents(found: Any) -> Any:
            result = found[1].astype(np.int64)
            result[source] = source
            return np.where(result < 0, -1, result)

        return Prepared(lambda: csgraph.breadth_first_order(graph, source, return_predecessors=True), parents)

    def shortest_paths(self, graph: sp.csr_array, source: int) -> Ways:
        return Prepared(lambda: csgraph.dijkstra(graph, indices=source, return_predecessors=True), lambda found: found[0])

    def pagerank(self, graph: sp.csr_array, rounds: int) -> Ways:
        n = graph.shape[0]
        degree = np.diff(graph.indptr)
        ones = sp.csr_array((np.ones(graph.nnz), graph.indices, graph.indptr), shape=graph.shape)
        into = ones.T.tocsr()
        share = 0.85 / np.maximum(degree, 1)

        def run() -> Any:
            rank = np.full(n, 1.0 / n)
            for _ in range(rounds):
                rank = 0.15 / n + into @ (share * rank)
            return rank

        return Prepared(run)

    def triangles(self, graph: sp.csr_array) -> Ways:
        lower = sp.csr_array(sp.tril(graph, -1, format="csr"))
        return Prepared(lambda: int((lower @ lower).multiply(lower).sum()))

    def erosion(self, image: Any) -> Ways:
        from scipy import ndimage

        pixels, square = image != 0, np.ones((3, 3), bool)
        return Prepared(lambda: ndimage.binary_erosion(pixels, square, border_value=1))

    def histogram(self, image: Any, mask: Any) -> Ways:
        return Prepared(lambda: np.bincount(image[mask != 0] >> 4, minlength=16))


def ordered(matrix: sp.csr_array) -> sp.csr_array:
    """The same matrix with sorted rows."""
    matrix.sort_indices()
    return matrix
