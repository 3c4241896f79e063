"""Eigen, compiled here from `native/eigen.cpp` with what Debian's libeigen3-dev holds."""

from __future__ import annotations

import ctypes
import os
from typing import Any, Callable

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from .base import Peer, Unsupported, Ways, build, build_folder

SOURCE = os.path.join(os.path.dirname(__file__), "../native/eigen.cpp")
HEADERS = "/usr/include/eigen3"


class Matrix(ctypes.Structure):
    """A matrix as the C++ file has it."""

    _fields_ = [
        ("rows", ctypes.c_int64), ("columns", ctypes.c_int64), ("entries", ctypes.c_int64),
        ("pos", ctypes.c_void_p), ("crd", ctypes.c_void_p), ("val", ctypes.c_void_p),
    ]


def address(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Eigen(Peer):
    name = "eigen"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        if not os.path.isdir(HEADERS):
            raise Unsupported(f"there is no {HEADERS} (Debian: libeigen3-dev)")
        target = os.path.join(build_folder(), "eigen.so")
        flags = ["-O3", "-march=native", "-fopenmp", "-DNDEBUG", "-shared", "-fPIC", f"-I{HEADERS}"]
        build(["g++", *flags, "-o", target, SOURCE], target, [SOURCE])
        self.library = ctypes.CDLL(target)
        self.library.version.restype = ctypes.c_char_p
        for name in ["spgemm", "spgemm_transposed", "add", "add_three", "multiply", "transpose"]:
            getattr(self.library, name).restype = ctypes.c_void_p
        self.version = self.library.version().decode()
        self.library.set_threads(threads)

    def matrix(self, a: Any) -> tuple[Matrix, Any]:
        """The matrix, and the arrays that it points into."""
        pos, crd, val = a.indptr.astype(np.int32), a.indices.astype(np.int32), a.data
        return Matrix(*a.shape, a.nnz, pos.ctypes.data, crd.ctypes.data, val.ctypes.data), (pos, crd, val)

    def _dense(self, function: str, a: Any, result: Any, *operands: Any) -> Prepared:
        matrix, arrays = self.matrix(a)
        work = getattr(self.library, function)
        pointers = [ctypes.c_int64(o) if isinstance(o, int) else address(o) for o in (*operands, result)]

        def run() -> Any:
            work(ctypes.byref(matrix), *pointers)
            return arrays, operands, result

        return Prepared(run, lambda found: found[2])

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Prepared:
        return self._dense("spmv", a, np.zeros(a.shape[0]), x)

    spmv_band = spmv_csr

    def spmv_csc(self, a: sp.csr_array, x: Any) -> Ways:
        return self._dense("spmv_csc", a.tocsc(), np.zeros(a.shape[0]), x)

    def spmv_symmetric(self, a: sp.csr_array, x: Any) -> Ways:
        upper = sp.csr_array(sp.triu(a, format="csr"))
        return {"": self._dense("spmv_symmetric", upper, np.zeros(a.shape[0]), x), "all of it": self.spmv_csr(a, x)}

    def spmv_blocks(self, a: sp.csr_array, block: int, x: Any) -> Ways:
        return self.spmv_csr(a, x)

    def spmv_pattern(self, a: sp.csr_array, x: Any) -> Ways:
        return self.spmv_csr(sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape), x)

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        function = "spmm_f32" if a.dtype == np.float32 else "spmm_f64"
        return self._dense(function, a, np.zeros((a.shape[0], d.shape[1]), a.dtype), int(d.shape[1]), d)

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        prepared = self._dense("sddmm", s, np.zeros(s.nnz), int(p.shape[1]), p, q)
        prepared.read = lambda found: sp.csr_array((found[2], s.indices, s.indptr), shape=s.shape)
        return prepared

    def _sparse(self, function: str, *matrices: Any) -> Prepared:
        made = [self.matrix(m) for m in matrices]
        work: Callable[..., Any] = getattr(self.library, function)
        pointers = [ctypes.byref(matrix) for matrix, _ in made]
        return Prepared(lambda: (work(*pointers), made), lambda r: self.exported(r[0]), lambda r: self.library.release(ctypes.c_void_p(r[0])))

    def exported(self, handle: int) -> sp.csr_array:
        found = Matrix()
        self.library.describe(ctypes.c_void_p(handle), ctypes.byref(found))

        def array(place: int, count: int, kind: Any) -> Any:
            if count == 0:
                return np.zeros(0, kind)
            return np.ctypeslib.as_array(ctypes.cast(place, ctypes.POINTER(kind)), (count,)).copy()

        pos = array(found.pos, found.rows + 1, ctypes.c_int32)
        crd, val = array(found.crd, found.entries, ctypes.c_int32), array(found.val, found.entries, ctypes.c_double)
        return sp.csr_array((val, crd, pos), shape=(found.rows, found.columns))

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return self._sparse("spgemm", a, b)

    def spgemm_transposed(self, a: sp.csr_array) -> Ways:
        return self._sparse("spgemm_transposed", a)

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return self._sparse("add", a, b)

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        return self._sparse("add_three", a, b, c)

    def multiply(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return self._sparse("multiply", a, b)

    def transpose(self, a: sp.csr_array) -> Ways:
        return self._sparse("transpose", a)

    def csr_to_csc(self, a: sp.csr_array) -> Ways:
        prepared = self._sparse("transpose", a)
        read = prepared.read
        prepared.read = lambda result: read(result).T
        return prepared
