"""Plots: ratios by kernel, bandwidth, and growth; each as SVG and PNG."""

from __future__ import annotations

import os
from typing import Any

from .growth import slope
from .report import Report, threads_text
from .results import OURS, geometric_mean

#: The colours of peers, the same in every plot.
COLOURS = {
    "scipy": "#4c72b0", "mkl": "#dd8452", "eigen": "#55a868", "C loops": "#937860", "C by hand": "#8c8c8c",
    "mlir": "#c44e52", "graphblas": "#8172b3", "opencv": "#da8bc3", "torch": "#ccb974", "pydata/sparse": "#64b5cd",
}


def draw(measured: dict[str, Any], folder: str) -> dict[str, str]:
    """Draws the plots; returns the file names without extensions, with their titles."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tamis"
    matplotlib.rcParams["font.size"] = 9
    from matplotlib import pyplot

    def save(figure: Any, name: str) -> None:
        figure.savefig(os.path.join(folder, f"{name}.svg"), metadata={"Date": None})
        figure.savefig(os.path.join(folder, f"{name}.png"), dpi=110)
        pyplot.close(figure)

    report, made = Report(measured), {}
    if report.results.kernels():
        save(ratios(report, pyplot), "scoreboard-ratios")
        made["scoreboard-ratios"] = "A peer's time over ours, geometric means over the inputs of each kernel (dots), and each input (lines); logarithmic"
    if any("bytes" in row.data and row.least(OURS) for row in report.results.rows):
        save(roofline(report, pyplot), "scoreboard-roofline")
        made["scoreboard-roofline"] = "Bandwidth that memory-bound kernels reach against the bytes that they move; dashed, the triad's"
    if measured.get("growth"):
        save(growth(measured, pyplot), "scoreboard-growth")
        made["scoreboard-growth"] = "Time against entries, rows, operands and rank, both axes logarithmic, with fitted slopes"
    if measured.get("compile_growth"):
        save(compiling(measured, pyplot), "scoreboard-compiling")
        made["scoreboard-compiling"] = "Compile time against the number of operands and the rank"
    return made


def ratios(report: Report, pyplot: Any) -> Any:
    results = report.results
    kernels = [k for k in results.kernels() if results.of(k)]
    peers = [s for s in results.sides(results.rows) if s in COLOURS]
    figure, axes = pyplot.subplots(1, len(results.threads), figsize=(6.5 * len(results.threads), 0.32 * len(kernels) + 1.4), sharey=True, squeeze=False, layout="constrained")
    for axis, threads in zip(axes[0], results.threads):
        for k, kernel in enumerate(kernels):
            for p, peer in enumerate(peers):
                found = results.ratios(kernel, peer, threads)
                if found:
                    place = k + (p - len(peers) / 2) * 0.07
                    axis.plot([min(found), max(found)], [place, place], color=COLOURS[peer], linewidth=1.2, alpha=0.5)
                    axis.plot([geometric_mean(found)], [place], "o", color=COLOURS[peer], markersize=4, label=peer)
        axis.axvline(1.0, color="0.3", linewidth=1)
        axis.set(xscale="log", title=threads_text(threads), xlabel="peer's time over ours: to the right of 1, we are faster")
        axis.set_yticks(range(len(kernels)), kernels)
        axis.invert_yaxis() if axis is axes[0][0] else None
        axis.grid(True, axis="both", alpha=0.25)
    handles = {label: handle for axis in axes[0] for handle, label in zip(*axis.get_legend_handles_labels())}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=6, fontsize=8)
    return figure


def roofline(report: Report, pyplot: Any) -> Any:
    runs = report.results.runs
    # One above the other: pages are narrower than two panels.
    figure, axes = pyplot.subplots(len(runs), 1, figsize=(8, 4.6 * len(runs)), sharex=True, squeeze=False, layout="constrained")
    kernels = list(dict.fromkeys(row.kernel for row in report.results.rows if "bytes" in row.data))
    for axis, run in zip(axes[:, 0], runs):
        for k, kernel in enumerate(kernels):
            rows = [r for r in report.results.of(kernel, run["threads"]) if "bytes" in r.data and r.least(OURS)]
            if rows:
                points = [(r.data["bytes"], r.data["bytes"] / (r.least(OURS) or 1) / 1e6) for r in rows]
                axis.loglog(*zip(*points), "os^vD<>ph*"[k % 10], label=kernel, markersize=5)
        axis.axhline(run["bandwidth"]["triad"], color="0.3", linestyle="--", linewidth=1)
        for level, held in report.measured["machine"]["caches"].items():
            axis.axvline(held, color="0.7", linewidth=0.8)
            axis.annotate(level, (held, 1.0), xycoords=("data", "axes fraction"), xytext=(2, -10), textcoords="offset points", fontsize=10, color="0.4")
        axis.set_title(threads_text(run["threads"]), fontsize=12)
        axis.set_ylabel("GB/s", fontsize=11)
        axis.tick_params(labelsize=10)
        axis.grid(True, which="major", alpha=0.25)
    axes[-1, 0].set_xlabel("bytes", fontsize=11)
    axes[0, 0].legend(fontsize=10, loc="upper left", bbox_to_anchor=(1, 1))
    return figure


def growth(measured: dict[str, Any], pyplot: Any) -> Any:
    found = measured["growth"]
    figure, axes = pyplot.subplots(2, 2, figsize=(12, 9), layout="constrained")
    for axis, (against, lines) in zip(axes.flat, found.items()):
        for name, points in lines.items():
            axis.loglog(*zip(*points), "o-", markersize=4, linewidth=1.2, label=f"{name}: {slope(points):.2f}")
        everything = [point for points in lines.values() for point in points]
        low, high = min(x for x, _ in everything), max(x for x, _ in everything)
        base = min(y for _, y in everything)
        axis.loglog([low, high], [base, base * high / low], color="0.6", linewidth=1, linestyle="--", label="in proportion: 1")
        axis.set(xlabel=against, ylabel="milliseconds", title=f"against {against}: slopes")
        if against in ("operands", "rank"):
            axis.set_xticks(range(1, 7), [str(n) for n in range(1, 7)])
            axis.minorticks_off()
        axis.grid(True, which="major", alpha=0.25)
        axis.legend(fontsize=8)
    return figure


def compiling(measured: dict[str, Any], pyplot: Any) -> Any:
    figure, axis = pyplot.subplots(figsize=(6.5, 4.2), layout="constrained")
    titles = {"sums": "sum of n sparse matrices", "products": "product of n, element by element", "rank": "lists of rank n times a vector"}
    for name, points in measured["compile_growth"].items():
        # A copy is not compiled: its time of 0 has no logarithm.
        shown = [point for point in points if point[1] > 0.1]
        axis.loglog(*zip(*shown), "o-", markersize=4, label=f"{titles[name]}: {slope(shown):.2f}")
    axis.set(xlabel="n", ylabel="milliseconds", title="compile time: slopes")
    axis.set_xticks(range(1, 7), [str(n) for n in range(1, 7)])
    axis.minorticks_off()
    axis.grid(True, which="major", alpha=0.25)
    axis.legend(fontsize=8)
    return figure
