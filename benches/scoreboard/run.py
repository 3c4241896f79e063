"""Measures every kernel on every input with one number of threads: results first, then times."""

from __future__ import annotations

import ctypes
import gc
import sys
import time
from typing import Any, Callable, Iterable

from .inputs import Absent, Inputs
from .kernels import KERNELS, Case, Kernel
from .measure import Budget, Prepared, take_turns
from .peers import load
from .peers.base import Peer, Unsupported

QUICK = Budget(seconds=0.02, least_rounds=2, most_rounds=5, sample=0.0005)
FULL = Budget(seconds=0.15, least_rounds=3, most_rounds=40)


def measure_all(
    threads: int, quick: bool, only: Iterable[str] | None, wanted: Iterable[str] | None, keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """All measurements for this number of threads; `keep` receives the results after each kernel, in case a peer aborts the process."""
    peers, absent = load(threads, None if wanted is None else {"tamis", "scipy", *wanted})
    for name, reason in absent.items():
        print(f"{name} is NOT measured: {reason}", flush=True)
    inputs = Inputs(quick)
    budget = QUICK if quick else FULL
    if threads > 1:
        budget = Budget(budget.seconds, budget.least_rounds, budget.most_rounds, budget.sample, pause=0.002)
    cases: list[dict[str, Any]] = []
    found_all = {"threads": threads, "versions": {p.name: p.version for p in peers}, "absent": absent, "cases": cases}
    for kernel in KERNELS:
        if only is None or kernel.key in only:
            for case in kernel.cases[: 3 if quick else None]:
                start = time.perf_counter()
                found = measure_case(kernel, case, inputs, peers, budget)
                found["seconds"] = round(time.perf_counter() - start, 2)
                cases.append(found)
                say(found)
            keep(found_all)
    return found_all


def measure_case(kernel: Kernel, case: Case, inputs: Inputs, peers: list[Peer], budget: Budget) -> dict[str, Any]:
    """One row: times in milliseconds, and what could not be timed."""
    row: dict[str, Any] = {"kernel": kernel.title, "input": case.name, "real": case.real, "wrong": {}, "failed": {}, "times": {}}
    # What the sides before held is given back: some of it is in circles, and some of it the allocator keeps.
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    try:
        operands = case.operands(inputs)
    except Absent as problem:
        return row | {"absent": str(problem)}
    sides, expected = {}, None
    # What SciPy computes is what the others are compared with.
    for peer in sorted(peers, key=lambda p: p.name != "scipy"):
        try:
            ways = peer.prepare(kernel.operation, *operands)
        except Exception as problem:
            row["failed"][peer.name] = described(problem)
            continue
        for name, side in ways.items():
            trouble, result = checked(kernel, operands, side, expected)
            expected = result if expected is None else expected
            if trouble is None:
                sides[name] = side
            else:
                row["wrong" if trouble[0] else "failed"][name] = trouble[1]
    if kernel.moved is not None:
        row["bytes"] = kernel.moved(*operands)
    row["entries"] = next((int(o.nnz) for o in operands if hasattr(o, "nnz")), None)
    inspections = {name: side.inspection * 1e3 for name, side in sides.items() if side.inspection}
    row["inspections"] = {name: round(ms, 4) for name, ms in inspections.items()}
    if sides:
        row["times"] = {name: [round(t.least * 1e3, 6), round(t.median * 1e3, 6), len(t.seconds)] for name, t in take_turns(sides, budget, row["failed"]).items()}
    return row


def checked(kernel: Kernel, operands: tuple[Any, ...], side: Prepared, expected: Any) -> tuple[tuple[bool, str] | None, Any]:
    """A problem (whether it is a wrong result, and a text), and the result."""
    try:
        raw = side.run()
        result = side.read(raw)
        side.free(raw)
    except Exception as problem:
        return (False, described(problem)), None
    wrong = None if expected is None else kernel.compare(operands, expected, result)
    return (None if wrong is None else (True, wrong)), result


def described(problem: Exception) -> str:
    text = str(problem).strip()
    lines = text.splitlines() or [""]
    return lines[0] if isinstance(problem, Unsupported) else f"{type(problem).__name__}: {lines[0]}"


def say(row: dict[str, Any]) -> None:
    """A line for those who watch."""
    name = f"{row['kernel']:22} {row['input']:34}"
    if "absent" in row:
        print(f"{name} NOT measured: {row['absent']}", flush=True)
        return
    ours = row["times"].get("tamis")
    shown = []
    for side, (least, _, _) in row["times"].items():
        ratio = f" ({least / ours[0]:.2f}x)" if ours and side != "tamis" else ""
        shown.append(f"{side} {least:.3g}{ratio}")
    print(f"{name} {'  '.join(shown)}", flush=True)
    for kind in ("wrong", "failed"):
        for side, text in row[kind].items():
            print(f"{'':22} {kind.upper()}: {side}: {text}", file=sys.stdout, flush=True)
