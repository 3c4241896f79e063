"""Benchmark of file reading and format conversion against SciPy, interleaved: python ground_floor.py TAMIS BENCH [ROUNDS]

TAMIS is the command, BENCH the program `ground_floor`. Prints a table of medians and ratios (SciPy's time over Tamis'; above 1, Tamis is faster).
"""

import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy
import scipy.io
import scipy.sparse as sp


class Ours:
    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        if not answer or answer.startswith("error"):
            sys.exit(f"{command}: {answer or 'the program ended'}")
        return float(answer)


def timed(work):
    start = time.perf_counter()
    result = work()
    seconds = time.perf_counter() - start
    del result
    return seconds


def shuffled(matrix):
    coo = matrix.tocoo()
    n = coo.nnz
    step = 7_368_787 % n
    assert math.gcd(step, n) == 1, "not a permutation"
    order = (np.arange(n, dtype=np.int64) * step) % n
    return sp.coo_array((coo.data[order], (coo.row[order].astype(np.int32), coo.col[order].astype(np.int32))), shape=coo.shape)


def main():
    tamis, bench = sys.argv[1:3]
    rounds = int(sys.argv[3]) if len(sys.argv) > 3 else 9
    ours = Ours(bench)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for generator in ["laplacian(1000)", "rand(200000,200000; 0.00005)"]:
            path = os.path.join(folder, "matrix.mtx")
            subprocess.run([tamis, "convert", generator, path], check=True)
            matrix = sp.csr_array(scipy.io.mmread(path))
            stored = ours(f"load {path}")
            if stored != matrix.nnz:
                sys.exit(f"{generator}: {stored} entries, but SciPy has {matrix.nnz}")
            coo, mixed = matrix.tocoo(), shuffled(matrix)
            size = 2000
            dense = np.zeros((size, size))
            dense.ravel()[::100] = 1.0
            pairs = [
                ("read .mtx", f"read {path}", lambda: scipy.io.mmread(path)),
                ("CSR to CSC", "csr_to_csc", lambda: matrix.tocsc()),
                ("COO to CSR", "coo_to_csr", lambda: coo.tocsr()),
                ("COO to CSR, shuffled", "shuffled_to_csr", lambda: mixed.tocsr()),
                ("COO to CSR, shuffled, sorted", "shuffled_to_csr", lambda: sorted_csr(mixed)),
                ("dense 2000x2000 to CSR", "dense_to_csr", lambda: sp.csr_array(dense)),
            ]
            for name, command, peer in pairs:
                ours(command), timed(peer)
                times = [(ours(command), timed(peer)) for _ in range(rounds)]
                mine, theirs = (statistics.median(t) for t in zip(*times))
                best = min(t[1] for t in times) / min(t[0] for t in times)
                rows.append((generator, name, mine, theirs, theirs / mine, best))
            os.remove(path)
    print(f"{os.cpu_count()} cores, numpy {np.__version__}, scipy {scipy.__version__}; medians of {rounds} interleaved rounds\n")
    print(f"{'matrix':30} {'task':30} {'tamis ms':>10} {'scipy ms':>10} {'ratio':>7} {'of best':>8}")
    for generator, name, mine, theirs, ratio, best in rows:
        print(f"{generator:30} {name:30} {mine * 1e3:10.2f} {theirs * 1e3:10.2f} {ratio:7.2f} {best:8.2f}")


def sorted_csr(matrix):
    csr = matrix.tocsr()
    csr.sort_indices()
    return csr


main()
