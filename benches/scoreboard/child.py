"""Child process of the scoreboard: one kind of work, one number of threads, the answer as JSON."""

from __future__ import annotations

import argparse
import json
import os
import resource
from typing import Any, Callable

from .peers.base import Unsupported
from .run import measure_all


def kernels(chosen: argparse.Namespace, kept: Callable[[Any], None]) -> Any:
    from .machine import bandwidth

    speed = bandwidth(chosen.quick)
    return measure_all(chosen.threads, chosen.quick, chosen.only, chosen.peers, lambda run: kept(run | {"bandwidth": speed})) | {"bandwidth": speed}


def compiling(chosen: argparse.Namespace, kept: Callable[[Any], None]) -> Any:
    from .compiling import compile_times, growing
    from .peers import mlir

    try:
        theirs = mlir.compile_times(1 if chosen.quick else 5)
    except Unsupported:
        theirs = {}
    return {"compiling": compile_times(chosen.quick), "compiling_mlir": theirs, "compile_growth": growing(chosen.quick)}


def growth(chosen: argparse.Namespace, kept: Callable[[Any], None]) -> Any:
    from .growth import growth

    return {"growth": growth(chosen.quick)}


def memory(chosen: argparse.Namespace, kept: Callable[[Any], None]) -> Any:
    from .memory import memory

    return {"memory": memory(chosen.quick, chosen.only)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("work", choices=["kernels", "compiling", "growth", "memory"])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", type=lambda text: text.split(","))
    parser.add_argument("--peers", type=lambda text: text.split(","))
    chosen = parser.parse_args()
    # A peer that wants more memory than there is gets an error, instead of taking the machine down.
    most = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 6 // 10
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))

    def keep(found: Any) -> None:
        with open(chosen.json, "w", encoding="utf-8") as file:
            json.dump(found, file)

    keep(globals()[chosen.work](chosen, keep))


if __name__ == "__main__":
    main()
