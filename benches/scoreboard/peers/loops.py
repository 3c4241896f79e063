"""C loops: as a compiler of sparse tensor algebra emits them (`native/loops.c`), and by hand (`benches/baseline`)."""

from __future__ import annotations

import ctypes
import glob
import os
import subprocess
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from ..tensors import Coordinates
from .base import Peer, Unsupported, Ways, build, build_folder

HERE = os.path.dirname(__file__)
FLAGS = ["-O3", "-march=native", "-ffast-math", "-fno-loop-unroll-and-jam", "-fopenmp", "-shared", "-fPIC"]


class CLoops(Peer):
    """Functions of a C library that take arrays and sizes, in the order in which they are given here."""

    name = "C loops"
    sources = [os.path.join(HERE, "../native/loops.c")]

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        target = os.path.join(build_folder(), self.name.replace(" ", "-") + ".so")
        build(["gcc", *FLAGS, "-o", target, *self.sources], target, self.sources)
        self.library = ctypes.CDLL(target)
        try:
            words = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError) as problem:
            raise Unsupported(str(problem)) from None
        self.version = f"gcc {words.strip()}"

    def _call(self, function: str, result: Any, *operands: Any, read: Any = None) -> Prepared:
        """A function whose last argument is the dense result."""
        work = getattr(self.library, function)
        work.restype = ctypes.c_int64
        arguments = [ctypes.c_int64(o) if isinstance(o, int) else ctypes.c_void_p(o.ctypes.data) for o in (*operands, result)]

        def run() -> Any:
            work(*arguments)
            # The operands have to live as long as this function does.
            return operands, result

        return Prepared(run, lambda found: read(found[1]) if read else found[1])

    def _sparse(self, function: str, room: int, shape: tuple[int, int], *operands: Any, full: bool = False) -> Prepared:
        """A function that writes a sparse matrix into pretouched memory, and returns its nnz unless they fill it."""
        work = getattr(self.library, function)
        work.restype = ctypes.c_int64
        pos, crd, val = np.zeros(shape[0] + 1, np.int32), np.zeros(room, np.int32), np.zeros(room)
        arguments = [ctypes.c_int64(o) if isinstance(o, int) else ctypes.c_void_p(o.ctypes.data) for o in (*operands, pos, crd, val)]

        def run() -> Any:
            entries = work(*arguments)
            return room if full else entries, operands

        def read(found: Any) -> sp.csr_array:
            if found[0] < 0:
                raise Unsupported("there is not enough memory")
            return sp.csr_array((val[: found[0]].copy(), crd[: found[0]].copy(), pos.copy()), shape=shape)

        return Prepared(run, read)

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Ways:
        return self._call("spmv", np.zeros(a.shape[0]), a.shape[0], a.indptr, a.indices, a.data, x)

    spmv_band = spmv_csr

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        function = "spmm_f32" if a.dtype == np.float32 else "spmm_f64"
        result = np.zeros((a.shape[0], d.shape[1]), a.dtype)
        return self._call(function, result, a.shape[0], int(d.shape[1]), a.indptr, a.indices, a.data, d)

    def mttkrp(self, t: Coordinates, c: Any, d: Any) -> Ways:
        if len(t.shape) != 3:
            raise Unsupported("it is written for tensors of rank 3")
        lists, rank = t.lists, int(c.shape[1])
        arrays = [array for level in zip(lists.pos, lists.crd) for array in level]
        return self._call("mttkrp", np.zeros((t.shape[0], rank)), t.shape[0], rank, *arrays, lists.values, c, d)

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        arrays = [a.indptr, a.indices, a.data, b.indptr, b.indices, b.data]
        return self._sparse("add", a.nnz + b.nnz, a.shape, a.shape[0], *arrays)

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        products = int(np.diff(b.indptr)[a.indices].sum())
        if products > 400_000_000:
            raise Unsupported("memory for all products would take gigabytes")
        arrays = [a.indptr, a.indices, a.data, b.indptr, b.indices, b.data]
        return self._sparse("spgemm", products, (a.shape[0], b.shape[1]), a.shape[0], b.shape[1], *arrays)


class Emitted(CLoops):
    """Loops as TACO emits them."""

    def spmv_csc(self, a: sp.csr_array, x: Any) -> Ways:
        c = a.tocsc()
        return self._call("spmv_csc", np.zeros(a.shape[0]), *a.shape, c.indptr, c.indices, c.data, x)

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        def read(values: Any) -> sp.csr_array:
            return sp.csr_array((values, s.indices, s.indptr), shape=s.shape)

        return self._call("sddmm", np.zeros(s.nnz), s.shape[0], int(p.shape[1]), s.indptr, s.indices, s.data, p, q, read=read)

    def ttv(self, t: Coordinates, x: Any) -> Ways:
        u, pairs = t.unfolded, t.pairs
        return self._call("ttv", np.zeros(u.shape[0]), u.shape[0], u.indptr, u.indices, u.data, x, read=lambda y: (pairs, y))

    def ttm(self, t: Coordinates, c: Any) -> Ways:
        u, pairs, rank = t.unfolded, t.pairs, int(c.shape[1])
        result = np.zeros((u.shape[0], rank))
        return self._call("ttm", result, u.shape[0], rank, u.indptr, u.indices, u.data, c, read=lambda y: (pairs, y))

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        arrays = [array for m in (a, b, c) for array in (m.indptr, m.indices, m.data)]
        return self._sparse("add_three", a.nnz + b.nnz + c.nnz, a.shape, a.shape[0], *arrays)

    def multiply(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        arrays = [a.indptr, a.indices, a.data, b.indptr, b.indices, b.data]
        return self._sparse("multiply", min(a.nnz, b.nnz), a.shape, a.shape[0], *arrays)


class ByHand(CLoops):
    """The loops of `benches/baseline`, tuned by hand, one thread."""

    name = "C by hand"
    sources = sorted(glob.glob(os.path.join(HERE, "../../baseline/*.c")))

    def __init__(self, threads: int) -> None:
        if threads != 1:
            raise Unsupported("it has one thread")
        super().__init__(threads)

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        if a.dtype != np.float32:
            return {}
        result = np.zeros((a.shape[0], d.shape[1]), a.dtype)
        return self._call("spmm", result, a.shape[0], int(d.shape[1]), a.indptr, a.indices, a.data, d)

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        return self._sparse("sddmm", s.nnz, s.shape, s.shape[0], int(p.shape[1]), s.indptr, s.indices, s.data, p, q, full=True)

    def convolution(self, image: sp.csr_array, kernel: Any) -> Ways:
        if image.shape[0] != image.shape[1]:
            return {}
        dense, n = image.toarray(), image.shape[0]
        return self._call("conv2_unrolled", np.zeros((n - 2, n - 2)), n, 3, dense, kernel)
