"""The PyTorch side, if it is installed here or in TAMIS_TORCH_PATH (the packages of another environment)."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from .base import Peer, Unsupported, Ways

#: Maximum scalar products of a sparse product.
MOST_PRODUCTS = 10_000_000
#: Maximum elements of a dense product.
MOST_ELEMENTS = 450_000_000


class Torch(Peer):
    name = "torch"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        elsewhere = os.environ.get("TAMIS_TORCH_PATH")
        if elsewhere:
            # Last, so that this environment provides every other package.
            sys.path.append(elsewhere)
        try:
            import torch
        except ImportError as problem:
            raise Unsupported(f"{problem} (`--torch` installs it, `--torch-python` names a Python that has it)") from None
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        self.torch = torch
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.version = torch.__version__

    def csr(self, a: sp.csr_array) -> Any:
        tensor = self.torch.from_numpy
        return self.torch.sparse_csr_tensor(tensor(a.indptr.copy()), tensor(a.indices.copy()), tensor(a.data.copy()), size=a.shape)

    @staticmethod
    def read(found: Any) -> sp.csr_array:
        if str(found.layout) != "torch.sparse_csr":
            found = found.to_sparse_csr()
        arrays = found.values().numpy(), found.col_indices().numpy(), found.crow_indices().numpy()
        return sp.csr_array(arrays, shape=tuple(found.shape))

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Ways:
        left, right = self.csr(a), self.torch.from_numpy(x)
        return Prepared(lambda: left @ right, lambda y: y.numpy())

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        left, right = self.csr(a), self.torch.from_numpy(d)
        return Prepared(lambda: left @ right, lambda c: c.numpy())

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        """SDDMM: sampled directly, and as a dense product that is sampled afterwards."""
        torch, pattern = self.torch, self.csr(s)
        left, right = torch.from_numpy(p), torch.from_numpy(np.ascontiguousarray(q.T))
        zeros = torch.sparse_csr_tensor(pattern.crow_indices(), pattern.col_indices(), torch.zeros(s.nnz, dtype=left.dtype), size=s.shape)
        rows = torch.from_numpy(np.repeat(np.arange(s.shape[0]), np.diff(s.indptr)))
        columns, values = torch.from_numpy(s.indices.astype(np.int64)), torch.from_numpy(s.data)

        def sampled() -> Any:
            return torch.sparse.sampled_addmm(zeros, left, right, beta=0.0).values() * values

        def unfused() -> Any:
            return (left @ right)[rows, columns] * values

        def read(found: Any) -> sp.csr_array:
            return sp.csr_array((found.numpy(), s.indices, s.indptr), shape=s.shape)

        ways = {"": Prepared(sampled, read)}
        if s.shape[0] * s.shape[1] <= MOST_ELEMENTS:
            ways["unfused"] = Prepared(unfused, read)
        return ways

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        if int(np.diff(b.indptr)[a.indices].sum()) > MOST_PRODUCTS:
            raise Unsupported("each product keeps its memory for ever, which would be gigabytes")
        left, right = self.csr(a), self.csr(b)
        return Prepared(lambda: left @ right, self.read)

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        left, right = self.csr(a), self.csr(b)
        return Prepared(lambda: left + right, self.read)

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        x, y, z = map(self.csr, (a, b, c))
        return Prepared(lambda: x + y + z, self.read)

    def convolution(self, image: sp.csr_array, kernel: Any) -> Ways:
        torch = self.torch
        pixels, weights = (torch.from_numpy(array)[None, None] for array in (image.toarray(), kernel))
        return Prepared(lambda: torch.nn.functional.conv2d(pixels, weights), lambda found: found[0, 0].numpy())
