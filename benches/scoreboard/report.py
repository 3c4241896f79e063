"""The scoreboard report: Markdown with the machine, the summary, every number, and unexplained results."""

from __future__ import annotations

from typing import Any

from .growth import slope
from .results import OURS, Results, Row, geometric_mean
from .targets import LEAST, SCALING, STREAM, TARGETS, Target


def milliseconds(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def size(number: float) -> str:
    for unit, scale in (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10)):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return f"{number:.0f} B"


class Report:
    """A text builder."""

    def __init__(self, measured: dict[str, Any]) -> None:
        self.measured, self.results = measured, Results(measured)
        self.lines: list[str] = []

    def say(self, *lines: str) -> None:
        self.lines.extend(lines)

    def table(self, columns: list[str], rows: list[list[str]]) -> None:
        if rows:
            self.say("| " + " | ".join(columns) + " |", "|" + "---|" * len(columns))
            self.say(*("| " + " | ".join(row) + " |" for row in rows), "")

    def text(self) -> str:
        self.head()
        self.targets()
        self.headline()
        self.slow()
        self.plots()
        self.scaling()
        self.roofline()
        self.compiling()
        self.memory()
        self.growth()
        self.everything()
        return "\n".join(self.lines) + "\n"

    def head(self) -> None:
        machine, run = self.measured["machine"], self.results.runs[0]
        self.say("# The scoreboard", "")
        quick = " **A quick look at small inputs: these numbers say nothing about speed.**" if self.measured["quick"] else ""
        self.say("How fast Tamis is beside SciPy, MKL, Eigen, GraphBLAS, MLIR, PyTorch, OpenCV and loops in C, and where it is slower.", "")
        self.say(f"Written by `./dev bench scoreboard`, {self.measured['date']}.{quick}", "")
        caches = ", ".join(f"{level} {size(n)}" for level, n in machine["caches"].items())
        self.say(f"- Machine: {machine['processor']}, {machine['cores']} cores, {caches}, {size(machine['memory'])} of memory; {machine['system']}; Python {machine['python']}, NumPy {machine['numpy']}; {machine['gcc']}.")
        self.say("- Sides: " + ", ".join(f"{name} {version}" for name, version in run["versions"].items()) + ".")
        absent = {name: why for r in self.results.runs for name, why in r["absent"].items() if name not in run["versions"]}
        for name, why in absent.items():
            self.say(f"- **Not measured**: {name}: {why}.")
        missing = sorted({row.data["absent"] for row in self.results.rows if "absent" in row.data})
        self.say(*(f"- **Not measured**: {why}." for why in missing))
        before, after = self.measured["load"]
        self.say(f"- The load of the machine was {before:.1f} before and {after:.1f} after: this benchmark is 1 with one thread, 2 with two.", "")
        self.say("Every result was compared with SciPy's before anything was timed; what differs is named and not timed. Then all sides ran interleaved in one process, a process for each")
        self.say("number of threads, each from operands that it holds to a result that it holds. *C loops* are what a compiler of sparse tensor algebra emits (TACO's way), *C by hand* are ours from `benches/baseline`;")
        self.say("these, Eigen, MKL's dense results and OpenCV write into memory of an earlier call, the others make a new result. `mkl` has its inspector run before, with a hint of 1000 calls; what that takes is in the last table of a kernel.")
        self.say("**Ratios are a peer's least time over ours: above 1, we are faster.** Times are in milliseconds.", "")

    def targets(self) -> None:
        self.say("## Targets", "", "Geometric means over all inputs of the kernels (of each kernel alone, where all are meant), and the least of them.", "")
        rows = []
        for target in TARGETS:
            cells = [target.text, f"{target.aim:.2f}"]
            for threads in self.results.threads:
                found = self.results.target(target, threads)
                if not found:
                    cells += ["not measured", ""]
                    continue
                least, row, peer = min(found, key=lambda f: f[0])
                cells += [self.judged(found, target), f"{least:.2f} ({row.kernel}, {row.input}{', ' + peer if len(target.peers) > 1 else ''})"]
            rows.append(cells)
        rows.append(self.stream_target())
        rows.append(self.scaling_target())
        columns = ["what", "aim"] + [c for n in self.results.threads for c in (f"{threads_text(n)}", "least")]
        self.table(columns, rows)
        missed = [(row[0], limit) for row in rows if any("not met" in cell for cell in row) for limit in self.results.limits(row[0])]
        if missed:
            self.say("Where an aim was not met, the limit that was hit, and how that is known:", "")
            self.say(*(f"- *{what}.* {limit}" for what, limit in missed), "")

    @staticmethod
    def judged(found: list[tuple[float, Row, str]], target: Target) -> str:
        """The mean, and whether it reaches the target. A target for all kernels applies to each of them: a fast kernel does not compensate a slow one."""
        if target.kernels is not None:
            mean = geometric_mean(r for r, _, _ in found)
            return f"{mean:.2f}, {'met' if mean >= target.aim else '**not met**'}"
        means = {k: geometric_mean(r for r, row, _ in found if row.kernel == k) for k in dict.fromkeys(row.kernel for _, row, _ in found)}
        short = {k: mean for k, mean in means.items() if mean < target.aim}
        if not short:
            return f"each of {len(means)} kernels, met"
        return f"**not met** by {len(short)} of {len(means)} kernels: " + ", ".join(f"{k} {mean:.2f}" for k, mean in short.items())

    def stream_target(self) -> list[str]:
        cells = ["SpMV past the caches, of the triad's bandwidth", f"{STREAM:.2f}"]
        for threads in self.results.threads:
            shares = [(self.share(row), row) for row in self.past_caches() if row.threads == threads and row.kernel.startswith("SpMV")]
            if not shares:
                cells += ["not measured", ""]
                continue
            mean, (least, row) = geometric_mean(s for s, _ in shares), min(shares, key=lambda s: s[0])
            cells += [f"{mean:.2f}, {'met' if mean >= STREAM else '**not met**'}", f"{least:.2f} ({row.kernel}, {row.input})"]
        return cells

    def scaling_target(self) -> list[str]:
        pairs = [(ratio, row) for ratio, row in self.scaled() if row in self.past_caches()]
        cells = ["two threads over one, past the caches", f"{SCALING:.2f}"]
        if not pairs:
            return cells + ["not measured", ""] * len(self.results.threads)
        mean, (least, row) = geometric_mean(r for r, _ in pairs), min(pairs, key=lambda p: p[0])
        shown = [f"{mean:.2f}, {'met' if mean >= SCALING else '**not met**'}", f"{least:.2f} ({row.kernel}, {row.input})"]
        return cells + ["", ""] * (len(self.results.threads) - 1) + shown

    def headline(self) -> None:
        peers = [s for s in self.results.sides(self.results.rows) if ":" not in s and s != OURS]
        for threads in self.results.threads:
            self.say(f"## Every kernel beside every peer, {threads_text(threads)}", "", "The geometric mean of the ratios over the inputs, bold where it is below 1, and the least; after the stroke, the mean of the ratios of medians.", "")
            rows = []
            for kernel in self.results.kernels():
                cells = []
                for peer in peers:
                    ratios = self.results.ratios(kernel, peer, threads)
                    medians = geometric_mean(self.results.ratios_of_medians(kernel, peer, threads))
                    cells.append(f"{bold(geometric_mean(ratios))} ({min(ratios):.2f}) / {medians:.2f}" if ratios else "")
                if any(cells):
                    rows.append([kernel, *cells])
            self.table(["kernel", *peers], rows)

    def slow(self) -> None:
        found = self.results.slow()
        self.say("## Where we are slower", "", f"Every input on which a peer needs less than {LEAST} times our time, and why.", "")
        if not found:
            self.say("None.", "")
        by_text: dict[tuple[str, str, str, str], list[str]] = {}
        for row, side, ratio in found:
            key = (row.kernel, row.input, side, self.results.explanation(row, side))
            by_text.setdefault(key, []).append(f"{ratio:.2f} ({threads_text(row.threads)})")
        self.table(["kernel", "input", "peer", "ratio", "why"], [[k, i, s, ", ".join(r), why] for (k, i, s, why), r in by_text.items()])
        wrong = {(row.kernel, row.input, side, kind, text) for row in self.results.rows for kind in ("wrong", "failed") for side, text in row.data[kind].items()}
        if wrong:
            self.say("### What could not be timed", "")
            names = {"wrong": "a wrong result", "failed": "not timed"}
            self.table(["kernel", "input", "side", "outcome", "what it says"], [[k, i, s, names[n], t.replace("|", "/")] for k, i, s, n, t in sorted(wrong)])

    def plots(self) -> None:
        for name, title in self.measured.get("plots", {}).items():
            self.say(f"![{title}]({name}.svg)", "", f"{title}. Also as [PNG]({name}.png).", "")

    # Threads, bandwidth

    def scaled(self) -> list[tuple[float, Row]]:
        """The speed-up of two threads over one, with the row of two threads."""
        times = {(r.kernel, r.input): r.least(OURS) for r in self.results.rows if r.threads == 1}
        found = []
        for row in self.results.rows:
            single, own = times.get((row.kernel, row.input)), row.least(OURS)
            if row.threads == 2 and single and own:
                found.append((single / own, row))
        return found

    def past_caches(self) -> list[Row]:
        """Rows whose data exceed the caches."""
        largest = max(self.measured["machine"]["caches"].values(), default=0)
        return [r for r in self.results.rows if r.data.get("bytes", 0) > largest and r.least(OURS)]

    def share(self, row: Row, side: str = OURS) -> float:
        """The fraction of the triad's bandwidth."""
        triad = next(run["bandwidth"]["triad"] for run in self.results.runs if run["threads"] == row.threads)
        return row.data["bytes"] / (row.least(side) or 1.0) / 1e6 / triad

    def scaling(self) -> None:
        pairs = self.scaled()
        if not pairs:
            return
        self.say("## Two threads beside one", "", "Ours with one thread over ours with two, and the same for the peer that gains most; `past caches` are those whose operands no cache holds.", "")
        single = {(r.kernel, r.input): r for r in self.results.rows if r.threads == 1}
        far, rows = {id(r) for r in self.past_caches()}, []
        for ratio, row in pairs:
            other = single[(row.kernel, row.input)]
            gains = [((other.least(s) or 0) / (row.least(s) or 1), s) for s in row.data["times"] if not s.startswith(OURS) and other.least(s)]
            best = max(gains, default=(0.0, ""))
            rows.append([row.kernel, row.input, f"{ratio:.2f}", f"{best[0]:.2f} ({best[1]})" if best[1] else "", "past caches" if id(row) in far else ""])
        self.table(["kernel", "input", "ours", "best peer", ""], rows)

    def roofline(self) -> None:
        self.say("## The roofline of memory-bound kernels", "")
        for run in self.results.runs:
            b = run["bandwidth"]
            self.say(f"- {threads_text(run['threads'])}: {b['triad']:.1f} GB/s by a triad over arrays that no cache holds (its reads and its writes counted once each), {b['reading']:.1f} GB/s by adding one up.")
        self.say("", "Bytes are those of our format: values, coordinates and positions once, vectors once. Where all of that fits the last cache, more than the triad's bandwidth is possible.", "")
        rows, far = [], {id(r) for r in self.past_caches()}
        for row in self.results.rows:
            if "bytes" in row.data and row.least(OURS):
                where = "memory" if id(row) in far else "caches"
                rate = row.data["bytes"] / (row.least(OURS) or 1.0) / 1e6
                rows.append([row.kernel, row.input, str(row.threads), size(row.data["bytes"]), where, f"{rate:.1f}", f"{100 * self.share(row):.0f} %"])
        self.table(["kernel", "input", "threads", "bytes", "in", "GB/s", "of the triad"], rows)

    # Compiling, memory, growth

    def compiling(self) -> None:
        times = self.measured.get("compiling", {})
        if not times:
            return
        self.say("## Compiling", "", "From a text that was never seen to the first result, less a call, in a process that has compiled before, nothing cached; MLIR's is `mlir-opt`, `mlir-translate`, `opt`, `llc` and the linker. Milliseconds.", "")
        mlir: dict[str, float] = self.measured.get("compiling_mlir", {})
        self.table(["kernel", "tamis", "mlir", "ratio"], [[k, f"{ms:.1f}", f"{mlir[k]:.0f}" if k in mlir else "", f"{mlir[k] / ms:.0f}" if k in mlir else ""] for k, ms in times.items()])

    def memory(self) -> None:
        found = self.measured.get("memory", {})
        if not found:
            return
        self.say("## Memory", "", "Megabytes that the first call needs at its peak beyond what was there before it, in a process that holds nothing else (resident memory; with the result, and what compiling takes). In brackets, what is still held with the result.", "")
        sides = list(dict.fromkeys(side for row in found.values() for side in row))
        cell = lambda row, side: f"{row[side]['peak']:.0f} ({row[side]['kept']:.0f})" if side in row else ""  # noqa: E731
        self.table(["kernel", *sides], [[kernel, *(cell(row, side) for side in sides)] for kernel, row in found.items()])

    def growth(self) -> None:
        found = self.measured.get("growth", {})
        if not found:
            return
        self.say("## Growth", "", "Slopes of lines through the larger half of the points, both axes logarithmic: 1 is in proportion. Times of ours in milliseconds.", "")
        for against, lines in found.items():
            self.say(f"Against {against}:", "")
            self.table(["kernel", "slope", *(f"{x:,}" for x, _ in next(iter(lines.values())))], [[name, f"{slope(points):.2f}", *(milliseconds(y) for _, y in points)] for name, points in lines.items()])

    # Every number

    def everything(self) -> None:
        self.say("## Every number", "", "The least time (the median), and in bold the peer's least time over ours.", "")
        for kernel in self.results.kernels():
            rows = self.results.of(kernel)
            if not rows:
                continue
            sides = self.results.sides(rows)
            self.say(f"### {kernel}", "")
            counted = any(row.data["entries"] for row in rows)
            entries = lambda row: [f"{row.data['entries']:,}" if row.data["entries"] else ""] if counted else []  # noqa: E731
            columns = ["input", *(["entries"] if counted else []), "threads", *sides]
            self.table(columns, [[row.input, *entries(row), str(row.threads), *(self.cell(row, s) for s in sides)] for row in rows])
            inspected = [[row.input, str(row.threads), *(f"{side}: {ms:.3g} ms, {ms / (row.least(side) or 1):.0f} calls" for side, ms in row.data["inspections"].items() if side == "mkl")] for row in rows if row.data["inspections"]]
            if inspected:
                self.table(["input", "threads", "its inspector takes, and calls that take as long"], inspected)

    @staticmethod
    def cell(row: Row, side: str) -> str:
        if side in row.data["wrong"]:
            return "wrong"
        least, median, ratio = row.least(side), row.median(side), row.ratio(side)
        if least is None or median is None:
            return ""
        shown = f"{milliseconds(least)} ({milliseconds(median)})"
        return shown if side == OURS or ratio is None else f"{shown} **{ratio:.2f}**"


def bold(number: float) -> str:
    """The number, bold where it is below 1 as it is shown."""
    shown = f"{number:.2f}"
    return f"**{shown}**" if float(shown) < 1 else shown


def threads_text(threads: int) -> str:
    return {1: "one thread", 2: "two threads"}.get(threads, f"{threads} threads")
