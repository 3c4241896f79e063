"""The SuiteSparse:GraphBLAS side, through python-graphblas: products, sums, and LAGraph's graph algorithms."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from .base import Peer, Ways


class GraphBlas(Peer):
    name = "graphblas"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import graphblas
        import suitesparse_graphblas

        self.gb = graphblas
        graphblas.ss.config["nthreads"] = threads
        self.version = suitesparse_graphblas.__version__

    def matrix(self, a: sp.csr_array) -> Any:
        made = self.gb.io.from_scipy_sparse(a)
        made.ss.config["format"] = "by_row"
        made.wait()
        return made

    def vector(self, x: Any) -> Any:
        """A dense vector: every element is present."""
        made = self.gb.Vector.from_dense(x)
        made.ss.config["sparsity_control"] = "full"
        return made

    def _matrix_result(self, work: Any) -> Prepared:
        def run() -> Any:
            result = work()
            result.wait()
            return result

        def read(result: Any) -> sp.csr_array:
            parts = result.ss.export("csr", sort=True)
            values = parts["values"]
            if parts.get("is_iso"):
                values = np.full(len(parts["col_indices"]), values[0] if len(values) else 0.0)
            return sp.csr_array((values, parts["col_indices"], parts["indptr"]), shape=result.shape)

        return Prepared(run, read)

    # Products

    def _spmv(self, a: Any, x: Any, semiring: Any) -> Prepared:
        vector = self.vector(x)

        def run() -> Any:
            result = a.mxv(vector, semiring).new()
            result.wait()
            return result

        return Prepared(run, lambda y: y.to_dense(fill_value=0.0))

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Ways:
        return self._spmv(self.matrix(a), x, self.gb.semiring.plus_times)

    def spmv_csc(self, a: sp.csr_array, x: Any) -> Ways:
        columns = self.gb.io.from_scipy_sparse(a)
        columns.ss.config["format"] = "by_col"
        columns.wait()
        return self._spmv(columns, x, self.gb.semiring.plus_times)

    def spmv_pattern(self, a: sp.csr_array, x: Any) -> Ways:
        ones = self.matrix(sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape))
        return self._spmv(ones.apply(self.gb.unary.one).new(), x, self.gb.semiring.plus_second)

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        x = self.matrix(a)
        dense = self.gb.Matrix.from_dense(d)
        dense.ss.config["format"] = "by_row"
        times = self.gb.semiring.plus_times

        def run() -> Any:
            # The result is dense on all sides: it accumulates into a dense matrix of zeros.
            result = self.gb.Matrix(x.dtype, a.shape[0], d.shape[1])
            result << 0
            result(self.gb.binary.plus) << x.mxm(dense, times)
            result.wait()
            return result

        return Prepared(run, lambda c: c.to_dense(fill_value=0.0))

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        mask, left, right = self.matrix(s), self.gb.Matrix.from_dense(p), self.gb.Matrix.from_dense(q)
        times, binary = self.gb.semiring.plus_times, self.gb.binary.times

        def work() -> Any:
            products = left.mxm(right.T, times).new(mask=mask.S)
            return mask.ewise_mult(products, binary).new()

        return self._matrix_result(work)

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        x, y, times = self.matrix(a), self.matrix(b), self.gb.semiring.plus_times
        return {
            "": self._matrix_result(lambda: x.mxm(y, times).new(sort=True)),
            "unsorted": self._matrix_result(lambda: x.mxm(y, times).new()),
        }

    def spgemm_transposed(self, a: sp.csr_array) -> Ways:
        x, times = self.matrix(a), self.gb.semiring.plus_times
        return self._matrix_result(lambda: x.mxm(x.T, times).new(sort=True))

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        x, y, plus = self.matrix(a), self.matrix(b), self.gb.binary.plus
        return self._matrix_result(lambda: x.ewise_add(y, plus).new())

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        x, y, z, plus = self.matrix(a), self.matrix(b), self.matrix(c), self.gb.binary.plus
        return self._matrix_result(lambda: x.ewise_add(y, plus).new().ewise_add(z, plus).new())

    def multiply(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        x, y, times = self.matrix(a), self.matrix(b), self.gb.binary.times
        return self._matrix_result(lambda: x.ewise_mult(y, times).new())

    def transpose(self, a: sp.csr_array) -> Ways:
        x = self.matrix(a)
        return self._matrix_result(lambda: x.T.new())

    # Graphs

    def bfs(self, graph: sp.csr_array, source: int) -> Ways:
        """BFS parents, direction-optimising like LAGraph."""
        gb, n, degrees = self.gb, graph.shape[0], np.diff(graph.indptr)
        edges = self.matrix(graph).apply(gb.unary.one).new(dtype=gb.dtypes.BOOL)
        back = edges.T.new()
        for matrix in (edges, back):
            matrix.ss.config["format"] = "by_row"
            matrix.wait()
        any_second = gb.semiring.ss.any_secondi

        def run() -> Any:
            parents, frontier = gb.Vector(gb.dtypes.INT64, n), gb.Vector(gb.dtypes.INT64, n)
            parents[source] = source
            frontier[source] = source
            parents.ss.config["sparsity_control"] = "bitmap"
            unexplored, pushing, last = int(degrees.sum()), True, 0
            while frontier.nvals:
                count = frontier.nvals
                growing = count > last
                if pushing and growing:
                    leaving = int(degrees[frontier.to_coo(values=False)[0]].sum())
                    unexplored -= leaving
                    pushing = leaving <= unexplored / 8 or count <= n / 512
                elif not pushing and not growing:
                    pushing = count <= n / 512
                last = count
                if pushing:
                    frontier(~parents.S, replace=True) << frontier.vxm(edges, any_second)
                else:
                    frontier(~parents.S, replace=True) << back.mxv(frontier, any_second)
                parents(frontier.S) << frontier
            return parents

        return Prepared(run, lambda found: found.to_dense(fill_value=-1))

    def shortest_paths(self, graph: sp.csr_array, source: int) -> Ways:
        """Bellman-Ford distances; only nodes with a reduced distance are relaxed again."""
        gb, n, weights = self.gb, graph.shape[0], self.matrix(graph)
        kind, smaller = gb.dtypes.FP64, gb.binary.min

        def run() -> Any:
            distance = gb.Vector(kind, n)
            distance[source] = 0.0
            near = distance.dup()
            while near.nvals:
                reached = near.vxm(weights, gb.semiring.min_plus).new()
                nearer = reached.ewise_mult(distance, gb.binary.lt).new()
                near = gb.Vector(kind, n)
                near(nearer.V) << reached
                near(~distance.S) << reached
                distance(smaller) << near
            return distance

        return Prepared(run, lambda found: found.to_dense(fill_value=np.inf))

    def pagerank(self, graph: sp.csr_array, rounds: int) -> Ways:
        gb, n = self.gb, graph.shape[0]
        into = self.matrix(graph).apply(gb.unary.one).new(dtype=gb.dtypes.FP64).T.new()
        into.ss.config["format"] = "by_row"
        into.wait()
        share = self.vector(0.85 / np.maximum(np.diff(graph.indptr), 1))

        def run() -> Any:
            rank = gb.Vector(gb.dtypes.FP64, n)
            rank << 1.0 / n
            for _ in range(rounds):
                passed = rank.ewise_mult(share, gb.binary.times).new()
                rank << 0.15 / n
                rank(gb.binary.plus) << into.mxv(passed, gb.semiring.plus_second)
            rank.wait()
            return rank

        return Prepared(run, lambda found: found.to_dense(fill_value=0.0))

    def triangles(self, graph: sp.csr_array) -> Ways:
        """The lower triangle times its transpose, masked by itself: LAGraph's fourth method."""
        gb = self.gb
        lower = self.matrix(sp.csr_array(sp.tril(graph, -1, format="csr"))).apply(gb.unary.one).new(dtype=gb.dtypes.INT64)

        def run() -> int:
            found = lower.mxm(lower.T, gb.semiring.plus_pair).new(mask=lower.S)
            return int(found.reduce_scalar(gb.monoid.plus).new(allow_empty=False).value)

        return Prepared(run)
