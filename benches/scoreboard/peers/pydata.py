"""The pydata/sparse side: COO tensors of any rank, by NumPy and Numba."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from ..tensors import Coordinates
from .base import Peer, Unsupported, Ways

#: Maximum scalar products of a sparse product.
MOST_PRODUCTS = 10_000_000


def matrix(result: Any) -> sp.csr_array:
    return sp.csr_array(result.to_scipy_sparse())


class PyData(Peer):
    name = "pydata/sparse"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import sparse

        self.sparse = sparse
        self.version = sparse.__version__

    def gcxs(self, a: sp.csr_array) -> Any:
        return self.sparse.GCXS.from_scipy_sparse(a)

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Ways:
        left = self.gcxs(a)
        return Prepared(lambda: left @ x)

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        left = self.gcxs(a)
        return Prepared(lambda: left @ d)

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        if int(np.diff(b.indptr)[a.indices].sum()) > MOST_PRODUCTS:
            raise Unsupported("it would take many seconds")
        left, right = self.gcxs(a), self.gcxs(b)
        return Prepared(lambda: left @ right, matrix)

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        left, right = self.gcxs(a), self.gcxs(b)
        return Prepared(lambda: left + right, matrix)

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        x, y, z = map(self.gcxs, (a, b, c))
        return Prepared(lambda: x + y + z, matrix)

    def multiply(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        left, right = self.gcxs(a), self.gcxs(b)
        return Prepared(lambda: left * right, matrix)

    def coo(self, t: Coordinates) -> Any:
        return self.sparse.COO(t.coords, t.values, shape=t.shape, sorted=True, has_duplicates=False)

    def ttv(self, t: Coordinates, x: Any) -> Ways:
        if t.shape[0] * t.shape[1] > 100_000_000:
            raise Unsupported("it counts through all fibers, stored or not, which would take gigabytes")
        tensor = self.coo(t)
        vector = self.sparse.COO.from_numpy(x)

        def read(found: Any) -> Any:
            return found.coords[0] * t.shape[1] + found.coords[1], found.data

        return Prepared(lambda: self.sparse.tensordot(tensor, vector, axes=([2], [0]), return_type=self.sparse.COO), read)

    def transpose(self, a: sp.csr_array) -> Ways:
        entries = self.sparse.COO.from_scipy_sparse(a)
        return Prepared(lambda: entries.T, matrix)

    def coo_to_csr(self, a: sp.csr_array, order: Any) -> Ways:
        entries = a.tocoo()
        coords, values = np.stack([entries.row[order], entries.col[order]]), entries.data[order]

        def run() -> Any:
            return self.sparse.COO(coords, values, shape=a.shape).asformat("gcxs", compressed_axes=[0])

        return Prepared(run, matrix)
