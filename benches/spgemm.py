"""Benchmark of SpGEMM: squares a sparse matrix with sorted rows on one thread, against SciPy, Intel MKL and SuiteSparse:GraphBLAS: python spgemm.py BENCH [--rounds N] [--cpu] [MATRIX ...]

BENCH is the program `spgemm`; a MATRIX is a gallery call, or a file. All results are compared with Tamis' before anything is timed. Then all run alternately in
one process each, starting with another one every round. Times are in milliseconds; ratios are a peer's time over Tamis' (above 1, Tamis is faster).

`--cpu` measures CPU time, for a shared machine.

Peers are timed from their own matrices to their own result with sorted rows: no copy into or out of Python is counted.
"""

import ctypes
import glob
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"]:
    os.environ[variable] = "1"

import numpy as np
import scipy
import scipy.sparse as sp

DATA = os.environ.get("TAMIS_DATA", "../shared/data/matrices")
MATRICES = ["cage10.mtx.gz", "email-Enron.mtx.gz", "ca-CondMat.mtx.gz", "laplacian(300)", "rmat(14,16)"]
ROUNDS = 15
SECONDS = 40  # for one matrix, unless three rounds take longer


class Ours:
    """The benchmark program at the other end of a pipe."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            raise RuntimeError(f"{command}: {answer or 'the program ended'}")
        return answer


class SciPy:
    name = "scipy"

    def __init__(self):
        self.version = scipy.__version__

    def load(self, matrix):
        self.matrix = matrix

    def run(self):
        product = self.matrix @ self.matrix
        product.sort_indices()
        return product

    def result(self, product):
        return product

    def free(self, product):
        pass


class Mkl:
    """The library itself, without a wrapper's copies."""

    name = "mkl"

    def __init__(self):
        found = glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))
        if not found:
            raise OSError("the package holds no libmkl_rt")
        self.library = ctypes.CDLL(found[0])
        self.library.MKL_Set_Num_Threads(1)
        text = ctypes.create_string_buffer(200)
        self.library.MKL_Get_Version_String(text, 200)
        words = text.value.decode().split()
        self.version = next((word for word in words if word[:1].isdigit()), "unknown")
        self.handle = None

    def call(self, function, *arguments):
        status = getattr(self.library, function)(*arguments)
        if status != 0:
            raise RuntimeError(f"{function} gave status {status}")

    def load(self, matrix):
        if self.handle is not None:
            self.free(self.handle)
        self.pos, self.crd = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
        self.val = matrix.data.astype(np.float64)
        self.rows = matrix.shape[0]
        ints, numbers = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
        pos, crd = self.pos.ctypes.data_as(ints), self.crd.ctypes.data_as(ints)
        ends = ctypes.cast(ctypes.addressof(pos.contents) + 4, ints)
        self.handle = ctypes.c_void_p()
        n = ctypes.c_int(self.rows)
        self.call("mkl_sparse_d_create_csr", ctypes.byref(self.handle), 0, n, n, pos, ends, crd, self.val.ctypes.data_as(numbers))

    def run(self):
        product = ctypes.c_void_p()
        self.call("mkl_sparse_spmm", 10, self.handle, self.handle, ctypes.byref(product))
        self.call("mkl_sparse_order", product)
        return product

    def result(self, product):
        base, rows, columns = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
        ints = ctypes.POINTER(ctypes.c_int)
        pos, end, crd, val = ints(), ints(), ints(), ctypes.POINTER(ctypes.c_double)()
        self.call("mkl_sparse_d_export_csr", product, *map(ctypes.byref, (base, rows, columns, pos, end, crd, val)))
        n = rows.value
        ends = np.ctypeslib.as_array(end, (n,))
        indptr = np.concatenate([[0], ends]).astype(np.int32)
        stored = int(ends[-1]) if n else 0
        indices = np.ctypeslib.as_array(crd, (stored,)).copy()
        return sp.csr_array((np.ctypeslib.as_array(val, (stored,)).copy(), indices, indptr), shape=(n, columns.value))

    def free(self, product):
        self.call("mkl_sparse_destroy", product)


class GraphBlas:
    name = "graphblas"

    def __init__(self):
        import graphblas
        import suitesparse_graphblas

        self.graphblas = graphblas
        graphblas.ss.config["nthreads"] = 1
        self.version = suitesparse_graphblas.__version__
        self.times = graphblas.semiring.plus_times

    def load(self, matrix):
        self.matrix = self.graphblas.io.from_scipy_sparse(matrix)
        self.matrix.ss.config["format"] = "by_row"
        self.matrix.wait()

    def run(self):
        product = self.matrix.mxm(self.matrix, self.times).new(sort=True, nthreads=1)
        product.wait()
        return product

    def result(self, product):
        parts = product.ss.export("csr", sort=True)
        return sp.csr_array((parts["values"], parts["col_indices"], parts["indptr"]), shape=product.shape)

    def free(self, product):
        pass


def difference(ours, theirs):
    """Describes the mismatch, if there is one."""
    if ours.shape != theirs.shape or ours.nnz != theirs.nnz:
        return f"{theirs.shape} with {theirs.nnz} entries, ours {ours.shape} with {ours.nnz}"
    if not np.array_equal(ours.indptr, theirs.indptr) or not np.array_equal(ours.indices, theirs.indices):
        return "entries at other places, or in another order"
    worst = np.max(np.abs(ours.data - theirs.data) / (1e-300 + np.abs(ours.data)), initial=0.0)
    return f"values differ by {worst:g}" if worst > 1e-10 else None


def timed(peer, clock):
    start = clock()
    product = peer.run()
    seconds = clock() - start
    peer.free(product)
    return seconds


def path_of(name):
    """A gallery matrix, a file, or a file of the shared data."""
    return name if "(" in name or os.path.exists(name) else os.path.join(DATA, name)


def measure(ours, peers, name, rounds, cpu, folder):
    """The times of each; Tamis' are pairs of the whole call and the kernel."""
    ours(f"load {path_of(name)}")
    matrix_path, result_path = os.path.join(folder, "matrix.npz"), os.path.join(folder, "result.npz")
    ours(f"matrix {matrix_path}")
    matrix = sp.csr_array(sp.load_npz(matrix_path))
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    ours("run")
    ours(f"result {result_path}")
    result = sp.csr_array(sp.load_npz(result_path))
    for peer in peers:
        peer.load(matrix)
        product = peer.run()
        wrong = difference(result, peer.result(product))
        if wrong:
            sys.exit(f"{name}: {peer.name} gives another result: {wrong}")
        if peer.name != "graphblas":  # exporting took it
            peer.free(product)
    stored, products = result.nnz, int(np.diff(matrix.indptr)[matrix.indices].sum())
    del result
    mine, theirs = [], {peer.name: [] for peer in peers}
    start = time.perf_counter()
    order = [None, *peers]
    for round in range(rounds):
        for k in range(len(order)):
            peer = order[(round + k) % len(order)]
            if peer is None:
                whole, kernel, busy = map(float, ours("run").split())
                mine.append((busy, busy - (whole - kernel)) if cpu else (whole, kernel))
            else:
                theirs[peer.name].append(timed(peer, time.process_time if cpu else time.perf_counter))
        if round >= 2 and time.perf_counter() - start > SECONDS:
            break
    return mine, theirs, stored, products


def geometric_mean(numbers):
    return math.exp(statistics.fmean(map(math.log, numbers))) if numbers else math.nan


def main():
    words = sys.argv[2:]
    rounds = ROUNDS
    if "--rounds" in words:
        at = words.index("--rounds")
        rounds = max(1, int(words[at + 1]))
        del words[at : at + 2]
    cpu = "--cpu" in words
    words = [word for word in words if word != "--cpu"]
    ours, peers = Ours(sys.argv[1]), []
    for kind in [SciPy, Mkl, GraphBlas]:
        try:
            peers.append(kind())
        except Exception as problem:  # whatever its import does
            print(f"{kind.name} is NOT measured: {problem}")
    print("processor's" if cpu else "elapsed", "ms, one thread, sorted rows, up to", rounds, "interleaved rounds;", ", ".join(f"{p.name} {p.version}" for p in peers))
    peer_columns = "".join(f"{p.name:>10} {'(least)':>9}" for p in peers)
    print(f"{'matrix':20} {'products':>10} {'entries':>10} {'tamis':>9} {'(least)':>9} {'kernel':>9}{peer_columns} {'ratio':>7} {'of least':>9}  best peer")
    medians, leasts, missing = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        for name in words or MATRICES:
            if "(" not in name and not os.path.exists(path_of(name)):
                missing.append(name)
                continue
            mine, theirs, stored, products = measure(ours, peers, name, rounds, cpu, folder)
            total, kernel = ([t[k] * 1e3 for t in mine] for k in (0, 1))
            middle, least = statistics.median(total), min(total)
            columns, best = "", {}
            for peer in peers:
                times = [t * 1e3 for t in theirs[peer.name]]
                best[peer.name] = (statistics.median(times), min(times))
                columns += f"{best[peer.name][0]:10.2f} {best[peer.name][1]:9.2f}"
            leader = min(best, key=lambda p: best[p][0])
            ratio, ratio_of_least = best[leader][0] / middle, min(b[1] for b in best.values()) / least
            medians.append(ratio)
            leasts.append(ratio_of_least)
            print(
                f"{os.path.basename(name):20} {products:10} {stored:10} {middle:9.2f} {least:9.2f} {statistics.median(kernel):9.2f}{columns} {ratio:7.2f} {ratio_of_least:9.2f}  {leader}",
                flush=True,
            )
    for name in missing:
        print(f"{name} is NOT measured: there is no such file in {DATA} (TAMIS_DATA names another folder)")
    print(f"geometric mean over the best peer of each: {geometric_mean(medians):.2f}, of least times {geometric_mean(leasts):.2f}")


main()
