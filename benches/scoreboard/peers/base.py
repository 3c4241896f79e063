"""The interface of a side: a name, a version, and a method for each supported operation."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from typing import Any, Union

from ..measure import Prepared

#: One implementation, or several by name; the one named "" is reported.
Ways = Union[Prepared, dict[str, Prepared]]


class Unsupported(Exception):
    """An unsupported operation, with the reason."""


class Peer:
    """A library or a compiler. An operation is a method that takes SciPy and NumPy operands and returns a callable.

    The operations are `spmv_csr`, `spmv_csc`, `spmv_symmetric`, `spmv_band`, `spmv_blocks`, `spmv_pattern`, `spmm`, `spgemm`, `spgemm_transposed`,
    `sddmm`, `add`, `add_three`, `multiply`, `mttkrp`, `ttm`, `ttv`, `csr_to_csc`, `coo_to_csr`, `csr_to_coo`, `csr_to_bsr`, `transpose`,
    `read_mtx`, `read_tns`, `read_npz`, `convolution`, `bfs`, `shortest_paths`, `pagerank`, `triangles`, `erosion` and `histogram`. A missing method
    is an operation that the peer lacks.
    """

    name = ""
    version = ""

    def __init__(self, threads: int) -> None:
        self.threads = threads

    def prepare(self, operation: str, *operands: Any) -> dict[str, Prepared]:
        """All implementations of a side, by their names in tables."""
        method = getattr(self, operation, None)
        if method is None:
            return {}
        ways = method(*operands)
        if isinstance(ways, Prepared):
            return {self.name: ways}
        return {f"{self.name}: {way}" if way else self.name: prepared for way, prepared in ways.items()}


def build(command: list[str], target: str, sources: list[str]) -> None:
    """Runs a compiler unless its output is newer than its inputs."""
    if os.path.exists(target) and all(os.path.getmtime(source) <= os.path.getmtime(target) for source in sources):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Unsupported(f"{command[0]} failed: {done.stderr.strip()[:500]}")


def build_folder() -> str:
    """The build folder of compiled peers: in the environment of the peers, per CPU, since they are compiled for the host."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            processor = sorted({line for line in file if line.startswith(("model name", "flags"))})
    except OSError:
        processor = [platform.processor()]
    return os.path.join(sys.prefix, "scoreboard", hashlib.sha256("".join(processor).encode()).hexdigest()[:12])
