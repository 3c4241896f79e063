"""The Intel MKL side: the inspector-executor interface, called directly without a wrapper's copies."""

from __future__ import annotations

import ctypes
import glob
import os
import sys
import time
from typing import Any, Callable

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from .base import Peer, Unsupported, Ways

PLAIN, TRANSPOSED = 10, 11
ROWS_FIRST = 101
FULL_PRODUCT = 90
#: The expected number of calls, for the inspector.
CALLS = 1000


class Description(ctypes.Structure):
    """`matrix_descr`: the kind of a matrix."""

    _fields_ = [("type", ctypes.c_int), ("mode", ctypes.c_int), ("diag", ctypes.c_int)]


GENERAL = Description(20, 0, 0)
SYMMETRIC_UPPER = Description(21, 41, 50)


def pointer(array: Any) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


class Handle:
    """An MKL matrix, with the arrays that it points into."""

    def __init__(self, mkl: Mkl, create: str, *arguments: Any, keeps: tuple[Any, ...]) -> None:
        self.mkl, self.keeps = mkl, keeps
        self.value = ctypes.c_void_p()
        mkl.call(create, ctypes.byref(self.value), *arguments)

    def __del__(self) -> None:
        if self.value:
            self.mkl.library.mkl_sparse_destroy(self.value)


class Mkl(Peer):
    name = "mkl"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        found = glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))
        if not found:
            raise Unsupported("the package holds no libmkl_rt")
        self.library = ctypes.CDLL(found[0])
        self.library.MKL_Set_Num_Threads(threads)
        text = ctypes.create_string_buffer(200)
        self.library.MKL_Get_Version_String(text, 200)
        self.version = next((word for word in text.value.decode().split() if word[:1].isdigit()), "unknown")

    def call(self, function: str, *arguments: Any) -> None:
        status = getattr(self.library, function)(*arguments)
        if status != 0:
            raise Unsupported(f"{function} gave status {status}")

    def matrix(self, a: Any, columns_first: bool = False) -> Handle:
        """CSR or CSC, by pointers into SciPy's arrays."""
        letter, values = ("s", a.data) if a.dtype == np.float32 else ("d", a.data)
        pos, crd = a.indptr.astype(np.int32), a.indices.astype(np.int32)
        create = f"mkl_sparse_{letter}_create_{'csc' if columns_first else 'csr'}"
        sizes = [ctypes.c_int(n) for n in a.shape]
        ends = ctypes.c_void_p(pos.ctypes.data + 4)
        return Handle(self, create, 0, *sizes, pointer(pos), ends, pointer(crd), pointer(values), keeps=(pos, crd, values))

    def inspect(self, handle: Handle, hint: Callable[[Handle], None]) -> float:
        """The seconds that the inspector takes."""
        start = time.perf_counter()
        hint(handle)
        self.call("mkl_sparse_optimize", handle.value)
        return time.perf_counter() - start

    # Matrix times vector

    def _spmv(self, make: Callable[[], Handle], rows: int, x: Any, kind: Description = GENERAL) -> dict[str, Prepared]:
        x = np.ascontiguousarray(x)

        def side(handle: Handle, inspection: float) -> Prepared:
            y = np.zeros(rows)
            function, one, zero = self.library.mkl_sparse_d_mv, ctypes.c_double(1.0), ctypes.c_double(0.0)
            arguments = (PLAIN, one, handle.value, kind, pointer(x), zero, pointer(y))

            def run() -> Any:
                # `handle` and `x` have to live as long as this function does.
                function(*arguments)
                return handle, x, y

            return Prepared(run, lambda result: result[2], inspection=inspection)

        looked_at = make()
        seconds = self.inspect(looked_at, lambda h: self.library.mkl_sparse_set_mv_hint(h.value, PLAIN, kind, CALLS))
        return {"": side(looked_at, seconds), "not inspected": side(make(), 0.0)}

    def spmv_csr(self, a: sp.csr_array, x: Any) -> dict[str, Prepared]:
        return self._spmv(lambda: self.matrix(a), a.shape[0], x)

    spmv_band = spmv_csr

    def spmv_csc(self, a: sp.csr_array, x: Any) -> Ways:
        columns = a.tocsc()
        return self._spmv(lambda: self.matrix(columns, True), a.shape[0], x)

    def spmv_symmetric(self, a: sp.csr_array, x: Any) -> Ways:
        upper = sp.csr_array(sp.triu(a, format="csr"))
        ways = self._spmv(lambda: self.matrix(upper), a.shape[0], x, SYMMETRIC_UPPER)
        ways["all of it"] = self._spmv(lambda: self.matrix(a), a.shape[0], x)[""]
        return ways

    def spmv_pattern(self, a: sp.csr_array, x: Any) -> Ways:
        ones = sp.csr_array((np.ones(a.nnz), a.indices, a.indptr), shape=a.shape)
        return self.spmv_csr(ones, x)

    def spmv_blocks(self, a: sp.csr_array, block: int, x: Any) -> Ways:
        blocks = a.tobsr((block, block))
        pos, crd = blocks.indptr.astype(np.int32), blocks.indices.astype(np.int32)
        values = np.ascontiguousarray(blocks.data)
        sizes = [ctypes.c_int(n // block) for n in a.shape]

        def make() -> Handle:
            ends = ctypes.c_void_p(pos.ctypes.data + 4)
            arguments = (0, ROWS_FIRST, *sizes, ctypes.c_int(block), pointer(pos), ends, pointer(crd), pointer(values))
            return Handle(self, "mkl_sparse_d_create_bsr", *arguments, keeps=(pos, crd, values))

        ways = self._spmv(make, a.shape[0], x)
        ways["csr"] = self.spmv_csr(a, x)[""]
        return ways

    # Matrix times dense matrix

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        single = a.dtype == np.float32
        number = ctypes.c_float if single else ctypes.c_double
        function = self.library.mkl_sparse_s_mm if single else self.library.mkl_sparse_d_mm
        n = d.shape[1]

        def side(handle: Handle, inspection: float) -> Prepared:
            c = np.zeros((a.shape[0], n), a.dtype)
            width = ctypes.c_int(n)
            arguments = (PLAIN, number(1.0), handle.value, GENERAL, ROWS_FIRST, pointer(d), width, width, number(0.0), pointer(c), width)

            def run() -> Any:
                function(*arguments)
                return handle, d, c

            return Prepared(run, lambda result: result[2], inspection=inspection)

        def hint(handle: Handle) -> None:
            self.library.mkl_sparse_set_mm_hint(handle.value, PLAIN, GENERAL, ROWS_FIRST, ctypes.c_int(n), ctypes.c_int(CALLS))

        looked_at = self.matrix(a)
        return {"": side(looked_at, self.inspect(looked_at, hint)), "not inspected": side(self.matrix(a), 0.0)}

    # Sparse results

    def _sparse(self, operands: tuple[Handle, ...], work: Callable[[Any], None], sort: bool = True) -> Prepared:
        def run() -> Any:
            result = ctypes.c_void_p()
            work(ctypes.byref(result))
            if sort:
                self.call("mkl_sparse_order", result)
            return result, operands

        return Prepared(run, lambda result: self.exported(result[0]), lambda result: self.call("mkl_sparse_destroy", result[0]))

    def exported(self, handle: ctypes.c_void_p) -> sp.csr_array:
        base, rows, columns = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        ints = ctypes.POINTER(ctypes.c_int)
        pos, end, crd, val = ints(), ints(), ints(), ctypes.POINTER(ctypes.c_double)()
        self.call("mkl_sparse_d_export_csr", handle, *map(ctypes.byref, (base, rows, columns, pos, end, crd, val)))
        n = rows.value
        ends = np.ctypeslib.as_array(end, (n,))
        stored = int(ends[-1]) if n else 0
        arrays = [np.ctypeslib.as_array(array, (stored,)).copy() for array in (val, crd)]
        return sp.csr_array((*arrays, np.concatenate([[0], ends])), shape=(n, columns.value))

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        x, y = self.matrix(a), self.matrix(b)

        def work(result: Any) -> None:
            self.call("mkl_sparse_spmm", PLAIN, x.value, y.value, result)

        return {"": self._sparse((x, y), work), "unsorted": self._sparse((x, y), work, sort=False)}

    def spgemm_transposed(self, a: sp.csr_array) -> Ways:
        x = self.matrix(a)

        def work(result: Any) -> None:
            self.call("mkl_sparse_sp2m", PLAIN, GENERAL, x.value, TRANSPOSED, GENERAL, x.value, FULL_PRODUCT, result)

        return {"": self._sparse((x,), work), "unsorted": self._sparse((x,), work, sort=False)}

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        x, y = self.matrix(a), self.matrix(b)

        def work(result: Any) -> None:
            self.call("mkl_sparse_d_add", PLAIN, x.value, ctypes.c_double(1.0), y.value, result)

        return self._sparse((x, y), work)

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        x, y, z = self.matrix(a), self.matrix(b), self.matrix(c)

        def work(result: Any) -> None:
            first = ctypes.c_void_p()
            self.call("mkl_sparse_d_add", PLAIN, x.value, ctypes.c_double(1.0), y.value, ctypes.byref(first))
            self.call("mkl_sparse_d_add", PLAIN, first, ctypes.c_double(1.0), z.value, result)
            self.call("mkl_sparse_destroy", first)

        return self._sparse((x, y, z), work)

    # Conversions: a transposed CSR matrix has the arrays of CSC

    def transpose(self, a: sp.csr_array) -> Prepared:
        x = self.matrix(a)
        return self._sparse((x,), lambda result: self.call("mkl_sparse_convert_csr", x.value, TRANSPOSED, result))

    def csr_to_csc(self, a: sp.csr_array) -> Ways:
        prepared = self.transpose(a)
        read = prepared.read
        prepared.read = lambda result: read(result).T
        return prepared

    def csr_to_bsr(self, a: sp.csr_array, block: int) -> Ways:
        x = self.matrix(a)

        def work(result: Any) -> None:
            self.call("mkl_sparse_convert_bsr", x.value, ctypes.c_int(block), ROWS_FIRST, PLAIN, result)

        prepared = self._sparse((x,), work, sort=False)
        prepared.read = lambda result: self.exported_blocks(result[0], block, a.shape)
        return prepared

    def exported_blocks(self, handle: ctypes.c_void_p, block: int, shape: tuple[int, int]) -> sp.csr_array:
        base, layout, rows, columns, size = (ctypes.c_int() for _ in range(5))
        ints = ctypes.POINTER(ctypes.c_int)
        pos, end, crd, val = ints(), ints(), ints(), ctypes.POINTER(ctypes.c_double)()
        self.call("mkl_sparse_d_export_bsr", handle, *map(ctypes.byref, (base, layout, rows, columns, size, pos, end, crd, val)))
        ends = np.ctypeslib.as_array(end, (rows.value,))
        stored = int(ends[-1])
        data = np.ctypeslib.as_array(val, (stored, block, block)).copy()
        indices = np.ctypeslib.as_array(crd, (stored,)).copy()
        return sp.csr_array(sp.bsr_array((data, indices, np.concatenate([[0], ends])), shape=shape))
