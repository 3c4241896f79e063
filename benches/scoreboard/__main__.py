"""The scoreboard benchmark, every kernel against every peer: python -m scoreboard [--quick] [--only KERNEL,...] [--threads 1,2] [--peers NAME,...] [--torch-python PYTHON] [--out FOLDER]

KERNEL is one of the keys of `kernels.py`: spmv, spmm, spgemm, sddmm, add, add3, multiply, mttkrp, ttm, ttv, convert, read, convolution, bfs, paths, pagerank, triangles, erosion, histogram;
`--peers` selects sides from the list in `peers/__init__.py` (Tamis and SciPy are always included). There is a process for each number of threads, another one for compile times and growth, and one for each side whose memory is
measured. `--quick` is a smoke test with small inputs and few rounds. `--again` regenerates the report from the numbers of the last run.

The report is written to docs/benchmarks (or FOLDER) as scoreboard.md with its plots, and every number as scoreboard.json. A part of it (`--only`, `--peers`, `--quick`) is written to FOLDER,
or to target/scoreboard by default, so that it never replaces the full report. Files are searched for in `../shared/data`, or in TAMIS_DATA.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.abspath(os.path.join(HERE, "../.."))


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev bench scoreboard", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--quick", action="store_true", help="small inputs, few rounds")
    parser.add_argument("--only", type=lambda text: text.split(","), help="kernels, by their keys")
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[1, 2])
    parser.add_argument("--peers", type=lambda text: text.split(","), help="sides; ours and SciPy always take part")
    parser.add_argument("--torch-python", help="a Python that has PyTorch")
    parser.add_argument("--torch", action="store_true", help="install PyTorch into the environment of the peers (done by benches/run)")
    parser.add_argument("--out", help="the folder of the report")
    parser.add_argument("--again", action="store_true", help="draw the report from the last numbers")
    chosen = parser.parse_args()
    from .kernels import KERNELS
    from .peers import SIDES

    for given, known, what in ((chosen.only, sorted({k.key for k in KERNELS}), "kernel"), (chosen.peers, list(SIDES), "side")):
        for word in given or []:
            if word not in known:
                parser.error(f"there is no {what} `{word}`: {', '.join(known)}")
    if any(n < 1 for n in chosen.threads):
        parser.error("`--threads` takes numbers of threads, as in 1,2")
    return chosen


def environment(threads: int, torch_python: str | None) -> dict[str, str]:
    """The variables of a process with so many threads."""
    count = str(threads)
    # A thread that has nothing to do spins no longer than it takes to be called again by the same side: others want the core.
    changed = {"KMP_BLOCKTIME": "1", "GOMP_SPINCOUNT": "100000", "PYTHONPATH": os.pathsep.join([os.path.join(ROOT, "python"), os.path.join(ROOT, "benches")])}
    changed |= {name: count for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "TAMIS_NUM_THREADS")}
    if torch_python:
        find = "import os, torch; print(os.path.dirname(os.path.dirname(torch.__file__)))"
        found = subprocess.run([torch_python, "-c", find], capture_output=True, text=True, check=False)
        if found.returncode == 0:
            changed["TAMIS_TORCH_PATH"] = found.stdout.strip()
        else:
            print(f"{torch_python} has no PyTorch", flush=True)
    return os.environ | changed


def child(work: str, chosen: argparse.Namespace, threads: int, **variables: str) -> Any:
    """The answer of a child process; nothing if it fails."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answer:
        words = [work, "--threads", str(threads), "--json", answer.name]
        words += ["--quick"] if chosen.quick else []
        words += ["--only", ",".join(chosen.only)] if chosen.only else []
        words += ["--peers", ",".join(chosen.peers)] if chosen.peers else []
        command = [sys.executable, "-W", "ignore", "-m", "scoreboard.child", *words]
        variables = environment(threads, chosen.torch_python) | variables
        done = subprocess.run(command, env=variables, check=False)
        text = answer.read()
    if done.returncode or not text:
        print(f"{work} with {threads} threads ended with {done.returncode}", flush=True)
        return json.loads(text) if text else None
    return json.loads(text)


def measure(chosen: argparse.Namespace) -> dict[str, Any]:
    """All numbers."""
    from .machine import describe

    before = os.getloadavg()[0]
    runs = []
    for threads in chosen.threads:
        print(f"\nwith {threads} thread{'s' if threads > 1 else ''}: least times in ms, in brackets a peer's over ours", flush=True)
        runs.append(child("kernels", chosen, threads))
    measured: dict[str, Any] = {"date": datetime.date.today().isoformat(), "quick": chosen.quick, "machine": describe(), "runs": [run for run in runs if run]}
    if chosen.only is None:
        measured |= child("compiling", chosen, 1, TAMIS_CACHE="off") or {}
        measured |= child("growth", chosen, 1) or {}
    measured |= child("memory", chosen, 1) or {}
    return measured | {"load": [round(before, 2), round(os.getloadavg()[0], 2)]}


def main() -> None:
    chosen = arguments()
    part = chosen.quick or chosen.only or chosen.peers
    folder = chosen.out or os.path.join(ROOT, "target/scoreboard" if part else "docs/benchmarks")
    os.makedirs(folder, exist_ok=True)
    numbers = os.path.join(folder, "scoreboard.json")
    if chosen.again:
        with open(numbers, encoding="utf-8") as file:
            measured = json.load(file)
    else:
        measured = measure(chosen)
        if not measured["runs"]:
            sys.exit("nothing could be measured")
    from .plots import draw
    from .report import Report

    try:
        measured["plots"] = draw(measured, folder)
    except ImportError as problem:
        print(f"there are no plots: {problem}")
    with open(numbers, "w", encoding="utf-8") as file:
        json.dump(measured, file, separators=(",", ":"))
        file.write("\n")
    with open(os.path.join(folder, "scoreboard.md"), "w", encoding="utf-8") as file:
        file.write(Report(measured).text())
    print(f"\nthe report is {os.path.relpath(os.path.join(folder, 'scoreboard.md'))}")


if __name__ == "__main__":
    main()
