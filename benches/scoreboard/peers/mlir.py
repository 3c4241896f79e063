"""The MLIR side: kernels through `mlir-opt --sparsifier`, `mlir-translate`, `opt`, `llc` and the linker, called by ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..measure import Prepared
from ..tensors import Coordinates
from . import mlir_texts as texts
from .base import Peer, Unsupported, Ways, build_folder

#: The programs, with Debian's version suffix.
TOOLS = {name: f"{name}-19" for name in ("mlir-opt", "mlir-translate", "opt", "llc")}


def descriptor(rank: int) -> type[ctypes.Structure]:
    """An MLIR memref."""
    fields = [("allocated", ctypes.c_void_p), ("aligned", ctypes.c_void_p), ("offset", ctypes.c_int64), ("sizes", ctypes.c_int64 * rank), ("strides", ctypes.c_int64 * rank)]
    return type(f"Memref{rank}", (ctypes.Structure,), {"_fields_": fields})


#: The passes of `--sparsifier` after `sparsification`, with its parallelisation strategy and OpenMP.
MORE_PASSES = (
    "lower-sparse-ops-to-foreach{{enable-runtime-library=false enable-convert=true}},sparse-reinterpret-map{{scope=except-generic}},func.func(lower-sparse-foreach-to-scf),"
    "sparse-tensor-codegen{{create-sparse-deallocs=true}},sparse-buffer-rewrite,one-shot-bufferize{{bufferize-function-boundaries=true function-boundary-type-conversion=identity-layout-map}},"
    "sparse-storage-specifier-to-llvm,func.func(canonicalize),func.func(loop-invariant-code-motion),{vectorize}func.func(finalizing-bufferize),"
    "func.func(convert-linalg-to-loops),func.func(convert-vector-to-scf),func.func(expand-realloc),convert-scf-to-openmp,func.func(canonicalize),func.func(convert-scf-to-cf),expand-strided-metadata,"
    "lower-affine,convert-vector-to-llvm{{reassociate-fp-reductions=true force-32bit-vector-indices=true}},finalize-memref-to-llvm,func.func(arith-expand),func.func(convert-math-to-llvm),"
    "convert-vector-to-llvm{{reassociate-fp-reductions=true force-32bit-vector-indices=true}},convert-openmp-to-llvm,convert-func-to-llvm,reconcile-unrealized-casts"
)

RANKS = {rank: descriptor(rank) for rank in (1, 2)}


class Results(ctypes.Structure):
    """Positions, coordinates and values of a sparse result."""

    _fields_ = [("pos", RANKS[1]), ("crd", RANKS[1]), ("val", RANKS[1])]


def memref(array: Any) -> ctypes.Structure:
    strides = [stride // array.itemsize for stride in array.strides]
    kind = RANKS[array.ndim]
    return kind(array.ctypes.data, array.ctypes.data, 0, (ctypes.c_int64 * array.ndim)(*array.shape), (ctypes.c_int64 * array.ndim)(*strides))


class Mlir(Peer):
    name = "mlir"

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        for tool in TOOLS.values():
            if shutil.which(tool) is None:
                raise Unsupported(f"there is no {tool} (Debian: mlir-19-tools, llvm-19)")
        words = subprocess.run([TOOLS["mlir-opt"], "--version"], capture_output=True, text=True, check=True).stdout.split()
        self.version = words[words.index("version") + 1]
        self.release = ctypes.CDLL(None).free

    def compiled(self, text: str, vector: int, parallel: str = "none") -> Any:
        """The compiled function of a text, cached."""
        parallel = parallel if self.threads > 1 else "none"
        key = hashlib.sha256(f"{text}{vector}{parallel}".encode()).hexdigest()[:20]
        folder = os.path.join(build_folder(), "mlir")
        library = os.path.join(folder, f"{key}.so")
        if not os.path.exists(library):
            os.makedirs(folder, exist_ok=True)
            self.pipeline(text, vector, os.path.join(folder, key), parallel)
        return getattr(ctypes.CDLL(library), "_mlir_ciface_kernel")

    def pipeline(self, text: str, vector: int, stem: str, parallel: str) -> float:
        """From the text to a shared library; its seconds."""
        with open(f"{stem}.mlir", "w", encoding="utf-8") as file:
            file.write(text)
        start = time.perf_counter()
        openmp = []
        if parallel == "none":
            options = f"enable-runtime-library=false vl={vector} reassociate-fp-reductions=true enable-index-optimizations=true"
            tool("mlir-opt", stem, f"{stem}.mlir", f"--sparsifier={options}", "-o", f"{stem}.llvm.mlir")
        else:
            self.parallel(stem, vector, parallel)
            library = os.path.join(sys.prefix, "lib")
            openmp = [f"-L{library}", "-l:libiomp5.so", f"-Wl,-rpath,{library}"]
        tool("mlir-translate", stem, "--mlir-to-llvmir", f"{stem}.llvm.mlir", "-o", f"{stem}.ll")
        tool("opt", stem, "-O3", "-mcpu=native", f"{stem}.ll", "-o", f"{stem}.bc")
        tool("llc", stem, "-O3", "-mcpu=native", "-filetype=obj", "-relocation-model=pic", f"{stem}.bc", "-o", f"{stem}.o")
        tool("gcc", stem, "-shared", "-o", f"{stem}.so", f"{stem}.o", "-lm", *openmp)
        seconds = time.perf_counter() - start
        for ending in ("llvm.mlir", "ll", "bc", "o"):
            os.unlink(f"{stem}.{ending}")
        return seconds

    def parallel(self, stem: str, vector: int, strategy: str) -> None:
        """The sparsifier's passes one by one: as a whole it turns parallel loops into plain ones."""
        loops = f"builtin.module(func.func(linalg-generalize-named-ops),pre-sparsification-rewrite,sparse-reinterpret-map{{scope=only-generic}},sparsification{{parallelization-strategy={strategy}}},func.func(canonicalize),cse)"
        tool("mlir-opt", stem, f"{stem}.mlir", f"--pass-pipeline={loops}", "-o", f"{stem}.loops.mlir")
        with open(f"{stem}.loops.mlir", encoding="utf-8") as file:
            text = file.read()
        # The loops write where they read, at the same place: no copy is needed, which the analysis cannot know.
        text = re.sub(r"bufferization\.to_tensor (%\w+) :", r"bufferization.to_tensor \1 restrict writable :", text)
        text = re.sub(r"bufferization\.to_memref (%\w+) :", r"bufferization.to_memref \1 {read_only} :", text)
        with open(f"{stem}.loops.mlir", "w", encoding="utf-8") as file:
            file.write(text)
        vectorize = f"sparse-vectorization{{vl={vector} enable-simd-index32=true}}," if vector else ""
        tool("mlir-opt", stem, f"{stem}.loops.mlir", f"--pass-pipeline=builtin.module({MORE_PASSES.format(vectorize=vectorize)})", "-o", f"{stem}.llvm.mlir")
        os.unlink(f"{stem}.loops.mlir")

    def _dense(self, text: str, result: Any, *arrays: Any, vector: int = 8, parallel: str = "dense-outer-loop") -> Prepared:
        work = self.compiled(text, vector, parallel)
        operands = [memref(array) for array in (*arrays, result)]
        given = RANKS[result.ndim]()
        pointers = [ctypes.byref(given), *map(ctypes.byref, operands)]

        def run() -> Any:
            ctypes.memset(result.ctypes.data, 0, result.nbytes)
            work(*pointers)
            if given.aligned != operands[-1].aligned:
                raise Unsupported("the result is not where it was asked to be")
            return arrays, operands, result

        return Prepared(run, lambda found: found[2])

    def _sparse(self, text: str, shape: tuple[int, int], *arrays: Any) -> Prepared:
        work = self.compiled(text, 8)
        operands = [memref(array) for array in arrays]
        pointers = [ctypes.byref(operand) for operand in operands]

        def run() -> Any:
            given = Results()
            work(ctypes.byref(given), *pointers)
            return given, arrays, operands

        def read(found: Any) -> sp.csr_array:
            def array(part: Any, count: int, kind: Any) -> Any:
                place = ctypes.cast(part.aligned + part.offset * ctypes.sizeof(kind), ctypes.POINTER(kind))
                return np.ctypeslib.as_array(place, (count,)).copy() if count else np.zeros(0, kind)

            pos = array(found[0].pos, shape[0] + 1, ctypes.c_int32)
            entries = int(pos[-1])
            parts = array(found[0].val, entries, ctypes.c_double), array(found[0].crd, entries, ctypes.c_int32)
            return sp.csr_array((*parts, pos), shape=shape)

        def free(found: Any) -> None:
            for part in (found[0].pos, found[0].crd, found[0].val):
                self.release(ctypes.c_void_p(part.allocated))

        return Prepared(run, read, free)

    def spmv_csr(self, a: sp.csr_array, x: Any) -> Ways:
        def side(vector: int) -> Prepared:
            return self._dense(texts.spmv(*a.shape), np.zeros(a.shape[0]), a.indptr, a.indices, a.data, x, vector=vector)

        return {"": side(8), "scalar": side(0)}

    spmv_band = spmv_csr

    def spmm(self, a: sp.csr_array, d: Any) -> Ways:
        single = a.dtype == np.float32
        text = texts.spmm(a.shape, d.shape[1], "f32" if single else "f64")
        result = np.zeros((a.shape[0], d.shape[1]), a.dtype)
        return self._dense(text, result, a.indptr, a.indices, a.data, d, vector=16 if single and d.shape[1] >= 16 else 8)

    def sddmm(self, s: sp.csr_array, p: Any, q: Any) -> Ways:
        return self._sparse(texts.sddmm(s.shape, p.shape[1]), s.shape, s.indptr, s.indices, s.data, p, q)

    def spgemm(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        text = texts.spgemm(a.shape[0], a.shape[1], b.shape[1])
        return self._sparse(text, (a.shape[0], b.shape[1]), *parts(a), *parts(b))

    def add(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return self._sparse(texts.element_by_element(a.shape, 2, False), a.shape, *parts(a), *parts(b))

    def add_three(self, a: sp.csr_array, b: sp.csr_array, c: sp.csr_array) -> Ways:
        return self._sparse(texts.element_by_element(a.shape, 3, False), a.shape, *parts(a), *parts(b), *parts(c))

    def multiply(self, a: sp.csr_array, b: sp.csr_array) -> Ways:
        return self._sparse(texts.element_by_element(a.shape, 2, True), a.shape, *parts(a), *parts(b))

    def mttkrp(self, t: Coordinates, c: Any, d: Any) -> Ways:
        lists, rank = t.lists, int(c.shape[1])
        arrays = [array for level in zip(lists.pos, lists.crd) for array in level]
        return self._dense(texts.mttkrp(t.shape, rank), np.zeros((t.shape[0], rank)), *arrays, lists.values, c, d, parallel="any-storage-outer-loop")


def compile_times(rounds: int) -> dict[str, float]:
    """Milliseconds of the whole pipeline, by our names of kernels, on matrices of 40 by 40: medians."""
    mlir, square = Mlir(1), (40, 40)
    kernels = {
        "SpMV": texts.spmv(40, 40), "SpMM": texts.spmm(square, 40, "f64"), "SpGEMM": texts.spgemm(40, 40, 40), "SDDMM": texts.sddmm(square, 40),
        "A + B": texts.element_by_element(square, 2, False), "A + B + C": texts.element_by_element(square, 3, False), "MTTKRP": texts.mttkrp((40, 40, 40), 40),
    }
    with tempfile.TemporaryDirectory() as folder:
        stem = os.path.join(folder, "kernel")
        return {name: round(1e3 * statistics.median(mlir.pipeline(text, 8, stem, "none") for _ in range(rounds)), 1) for name, text in kernels.items()}


def tool(name: str, stem: str, *words: str) -> None:
    """Runs one of the programs."""
    done = subprocess.run([TOOLS.get(name, name), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        problem = (done.stderr.strip().splitlines() or ["without a word"])[0].replace(stem, "")
        raise Unsupported(f"{name} failed: {problem[:200]}")


def parts(a: sp.csr_array) -> tuple[Any, Any, Any]:
    return a.indptr, a.indices, a.data
