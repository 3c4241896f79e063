"""The most memory that a call takes beyond its operands: each side alone in a process of its own."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from typing import Any

#: Kernels whose results or workspaces are large, with the input that is taken.
WANTED = {
    "SpMM, f64": "spmm20k, N=128", "SpGEMM, A A": "spgemm20k", "SDDMM, K=64": "spmm20k", "A + B": "spmm20k",
    "A + B + C": "spmm20k", "MTTKRP, R=32": "tens3", "TTM, R=32": "tens3", "CSR to CSC": "rand200k", "triangle counting": "rmat14",
}
SIDES = ["tamis", "scipy", "mkl", "eigen", "graphblas", "mlir"]


def kilobytes(field: str) -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(field + ":"))


def one(title: str, side: str, quick: bool) -> dict[str, float] | None:
    """Megabytes that the first call of each way needs at its peak beyond what was there before; none if the side cannot do it."""
    from .inputs import Inputs
    from .kernels import KERNELS
    from .peers import load

    kernel = next(k for k in KERNELS if k.title == title)
    case = next(c for c in kernel.cases if c.name == WANTED[title])
    peers, _ = load(1, [side])
    if not peers:
        return None
    ways = peers[0].prepare(kernel.operation, *case.operands(Inputs(quick)))
    if side not in ways:
        return None
    prepared = ways[side]
    # The first call counts, since memory that it gives back may be kept for the next one; only what a compiler loads at its first use is left out.
    if side == "tamis":
        import tamis as tm

        tm.einsum("s = x[i] * x[i]", x=[1.0, 2.0])
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
    before = kilobytes("VmRSS")
    result = prepared.run()
    peak, after = kilobytes("VmHWM"), kilobytes("VmRSS")
    prepared.free(result)
    return {"peak": round((peak - before) / 1024, 1), "kept": round((after - before) / 1024, 1)}


def memory(quick: bool, only: list[str] | None) -> dict[str, dict[str, Any]]:
    """All kernels and sides, a process each."""
    from .kernels import KERNELS

    found: dict[str, dict[str, Any]] = {}
    for title in WANTED:
        key = next(k.key for k in KERNELS if k.title == title)
        if only is not None and key not in only:
            continue
        for side in SIDES:
            command = [sys.executable, "-W", "ignore", "-m", "scoreboard.memory", title, side, *(["--quick"] if quick else [])]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            answer = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 and done.stdout.strip() else None
            if answer is not None:
                found.setdefault(title, {})[side] = answer
    return found


if __name__ == "__main__":
    print(json.dumps(one(sys.argv[1], sys.argv[2], "--quick" in sys.argv)))
