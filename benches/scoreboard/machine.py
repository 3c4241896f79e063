"""The machine: what it is, and how fast its memory is."""

from __future__ import annotations

import ctypes
import glob
import os
import platform
import subprocess
import time
from typing import Any

import numpy as np

from .peers.base import build, build_folder

SOURCE = os.path.join(os.path.dirname(__file__), "native/stream.c")


def first_line(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0].strip()
    except (OSError, subprocess.CalledProcessError, IndexError):
        return "not there"


def read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def caches() -> dict[str, int]:
    """The bytes of each cache that holds data, of the first core."""
    found = {}
    for folder in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        if read(f"{folder}/type").strip() != "Instruction":
            size = read(f"{folder}/size").strip()
            if size.endswith("K"):
                found[f"L{read(f'{folder}/level').strip()}"] = int(size[:-1]) * 1024
    return found


def describe() -> dict[str, Any]:
    """A description of the machine for the report, without its name."""
    processor = next((line.split(":", 1)[1].strip() for line in read("/proc/cpuinfo").splitlines() if line.startswith("model name")), platform.machine())
    flags = next((line for line in read("/proc/cpuinfo").splitlines() if line.startswith("flags")), "")
    vectors = "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "no AVX2"
    memory = next((int(line.split()[1]) for line in read("/proc/meminfo").splitlines() if line.startswith("MemTotal")), 0)
    return {
        "processor": f"{processor}, {vectors}",
        "cores": os.cpu_count(),
        "caches": caches(),
        "memory": memory * 1024,
        "system": f"Linux {platform.release().split('-')[0]}" if platform.system() == "Linux" else platform.system(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "gcc": first_line(["gcc", "--version"]),
    }


def bandwidth(quick: bool) -> dict[str, float]:
    """Gigabytes in a second, with as many threads as OpenMP has here: the best of several runs."""
    target = os.path.join(build_folder(), "stream.so")
    build(["gcc", "-O3", "-march=native", "-ffast-math", "-fopenmp", "-shared", "-fPIC", "-o", target, SOURCE], target, [SOURCE])
    library = ctypes.CDLL(target)
    library.total.restype = ctypes.c_double
    n = 4_000_000 if quick else max(16_000_000, 2 * max(caches().values(), default=0) // 8)
    # Written once, so that no page is new when it counts.
    a, b, c = (np.full(n, 1.0 + k) for k in range(3))
    pointers = [ctypes.c_void_p(array.ctypes.data) for array in (a, b, c)]
    size = ctypes.c_int64(n)
    triad = best(lambda: library.triad(size, *pointers), 3 if quick else 15)
    total = best(lambda: library.total(size, pointers[0]), 3 if quick else 15)
    return {"triad": 24 * n / triad / 1e9, "reading": 8 * n / total / 1e9}


def best(work: Any, rounds: int) -> float:
    seconds = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        seconds.append(time.perf_counter() - start)
    return min(seconds)
