"""Benchmark of sparse convolutions against dense ones: python convolution.py BENCH [STUDY ...] [--rounds N] [--cpu] [--quick] [--out FOLDER]

BENCH is the program `convolution`; a STUDY is one of 1, 2, 3 (cubes of this rank, against C), inputs and filters (layers of ResNet-50 whose input or filter is
sparse, against PyTorch); all of them by default. Results are compared with dense ones before anything is timed; then all variants run alternately, each on one thread,
starting with another one every round. Times are medians in milliseconds, with minima in brackets; `--cpu` measures CPU time, for a shared machine.

After all studies, the report is written to docs/benchmarks (or FOLDER): tables as Markdown, and a plot of time against nnz. PyTorch is measured if it can be
imported here or by the Python interpreter TAMIS_TORCH_PYTHON. Files are searched for in `../shared/data`, or in TAMIS_DATA.
"""

import csv
import datetime
import gzip
import os
import platform
import statistics
import subprocess
import sys
import tempfile

import numpy as np

from pipe import Process

DATA = os.environ.get("TAMIS_DATA", "../shared/data")
HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS = ["layer1.1.conv2", "layer2.1.conv2", "layer3.1.conv2", "layer4.1.conv2"]
SPARSITIES = [80.0, 90.0, 95.0, 99.0, 99.9]
BASELINES = ["plain C", "unrolled C"]


def pytorch(options):
    """PyTorch, in this Python or another one, if it is installed."""
    for python in [os.environ.get("TAMIS_TORCH_PYTHON"), sys.executable]:
        if python and subprocess.run([python, "-c", "import torch, numpy"], capture_output=True, check=False).returncode == 0:
            return Process(python, os.path.join(HERE, "torch_convolution.py"), *options)
    return None


def shown(times):
    return f"{statistics.median(times):.3f} ({min(times):.3f})"


class Report:
    """Tables that are printed as they come, and kept."""

    def __init__(self):
        self.parts, self.points = [], {}

    def say(self, text=""):
        print(text, flush=True)
        self.parts.append(text)

    def table(self, *columns):
        self.say("| " + " | ".join(columns) + " |")
        self.say("|" + "---|" * len(columns))

    def row(self, *cells):
        self.say("| " + " | ".join(map(str, cells)) + " |")

    def point(self, line, entries, milliseconds):
        self.points.setdefault(line, []).append((entries, milliseconds))


def cubes(program, ranks, rounds, options, report):
    """One to three dimensions beside C."""
    report.say("\n## Cubes with filters of three to a side\n")
    report.say("`plain C` takes filters of any size; `unrolled C` is written for three to a side. Ours take filters of any size, but for `entries first, filters of three`, which is to be compared with unrolled C. Both are compiled with `gcc -O3 -march=native` (and more: see `FLAGS` in")
    report.say("`benches/src/baseline.rs`). *Automatic* is what Tamis makes of index notation; *best* is the fastest of that and of the programs in `benches/src/convolution/variants.rs`. All are")
    report.say("compared with plain C before they are timed. Milliseconds, medians (least); ratios are of medians: above 1, ours is faster.\n")
    report.table("size", "sparsity", "non-zeros", "plain C", "unrolled C", "automatic", "best", "by", "best, times plain C", "automatic, times plain C", "best, times unrolled C", "compiled in")
    command = [program, "cubes", "--rounds", str(rounds), *options, *ranks]
    found = {}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            words = line.rstrip("\n").split("\t")
            if words[0] == "error":
                sys.exit(words[1])
            size, sparsity, entries, who, compiled, *times = words
            found.setdefault((size, sparsity, entries), {})[who] = (float(compiled), list(map(float, times)))
    if process.returncode:
        sys.exit("the cubes could not be measured")
    for (size, sparsity, entries), sides in found.items():
        median = {who: statistics.median(times) for who, (_, times) in sides.items()}
        best = min((who for who in sides if who not in BASELINES), key=median.get)
        times = {who: shown(sides[who][1]) for who in [*BASELINES, "automatic", best]}
        ratios = [median["plain C"] / median[best], median["plain C"] / median["automatic"], median["unrolled C"] / median[best]]
        ratios = [f"{ratio:.2f}" for ratio in ratios]
        report.row(size.replace("x", " x "), f"{sparsity} %", f"{int(entries):,}", times["plain C"], times["unrolled C"], times["automatic"], times[best], best, *ratios, f"{sides[best][0]:.1f}")
        report.point(size.replace("x", " x "), int(entries), min(sides[best][1]))
    plain = {}
    for (size, _, _), sides in found.items():
        name = size.replace("x", " x ")
        plain[name] = min([plain.get(name, float("inf")), *sides["plain C"][1]])
    return plain


def layer_shapes():
    """The four shapes of three by three, by name: rows, columns, channels, results."""
    with open(os.path.join(DATA, "dnn/resnet50-layers.csv"), encoding="utf-8") as file:
        rows = {row["layer"]: row for row in csv.DictReader(file)}
    shapes = {}
    for name in LAYERS:
        row = rows[name]
        if [row["kernel"], row["stride"], row["pad"]] != ["3", "1", "1"]:
            sys.exit(f"{name} is not a layer of three by three with a border of one")
        shapes[name] = [int(row[key]) for key in ["in_h", "in_w", "in_channels", "out_channels"]]
    return shapes


def pruned(group, sparsity):
    """The nonzero pattern of a pruned filter of the collection: results by channels times rows times columns."""
    folder, name = os.path.join(DATA, f"dlmc/rn50-{sparsity}"), f"bottleneck_2_block_group{group}_1_1.smtx"
    path = os.path.join(folder, name)
    with gzip.open(path + ".gz", "rt") if os.path.exists(path + ".gz") else open(path, encoding="utf-8") as file:
        rows, columns, _ = map(int, file.readline().replace(",", " ").split())
        offsets, places = (np.array(file.readline().split(), dtype=np.int64) for _ in range(2))
    mask = np.zeros((rows, columns), dtype=bool)
    mask[np.repeat(np.arange(rows), np.diff(offsets)), places] = True
    return mask


def dense_convolution(image, weights):
    """A dense convolution with a border of one, in double precision."""
    h, w, channels = image.shape
    padded = np.zeros((h + 2, w + 2, channels))
    padded[1:-1, 1:-1] = image
    return sum(padded[r : r + h, q : q + w] @ weights[r, q].astype(float) for r in range(3) for q in range(3))


def measure_layer(ours, torch, folder, kind, image, weights, rounds):
    """The times of all sides; their results are compared first."""
    paths = [os.path.join(folder, name) for name in ["input.npy", "filter.npy", "result.npy"]]
    np.save(paths[0], image)
    np.save(paths[1], weights)
    wanted = dense_convolution(image, weights)

    def check(name):
        if not np.allclose(np.load(paths[2]), wanted, rtol=1e-3, atol=1e-3):
            sys.exit(f"WRONG: {name} gives another result than a dense convolution")

    sides = {}
    for name in ours(kind, *paths[:2]).split("\t"):
        ours("run", name)
        ours("result", name, paths[2])
        check(name)
        sides[name] = lambda name=name: float(ours("run", name))
    if torch:
        torch("load", *paths[:2])
        for layout in ["channels_last", "channels_first"]:
            torch("run", layout)
            torch("result", paths[2])
            check(f"PyTorch, {layout}")
            sides[f"PyTorch, {layout}"] = lambda layout=layout: float(torch("run", layout))
    names, times = list(sides), {name: [] for name in sides}
    for sample in range(rounds):
        for k in range(len(names)):
            name = names[(sample + k) % len(names)]
            times[name].append(sides[name]() * 1e3)
    return times


def layers(program, torch, kind, rounds, options, report, quick):
    """Layers of ResNet-50 of which one operand is sparse."""
    ours = Process(program, "serve", *options)
    if kind == "inputs":
        report.say("\n## Layers of ResNet-50, sparse inputs\n")
        report.say("The four shapes of three by three (`" + "`, `".join(LAYERS) + "`), batch 1, single precision, rows by columns by channels, the channels of each pixel as a list; a dense filter.")
        report.say("Which entries are not zero is drawn.")
    else:
        report.say("\n## Layers of ResNet-50, pruned filters\n")
        report.say("The same shapes with dense inputs and the filters of the Deep Learning Matrix Collection (magnitude pruning); columns of its matrices are taken as channel, row, column, and values are drawn.")
        report.say("Inputs and results are stored channel by channel, the filter as lists below each result.")
    report.say("Dense convolutions beside it: PyTorch's `conv2d` on one thread, the faster of both layouts. Every result was compared with a dense convolution first.\n")
    report.table("layer", "input", "filter", "sparsity", "non-zeros", "PyTorch", "automatic", "best", "by", "best, times PyTorch", "automatic, times PyTorch")
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        for group, (name, (h, w, channels, results)) in enumerate(layer_shapes().items(), 1):
            if quick and group > 1:
                break
            for sparsity in SPARSITIES if kind == "inputs" else [0.8, 0.96]:
                image = rng.standard_normal((h, w, channels)).astype(np.float32)
                weights = rng.standard_normal((3, 3, channels, results)).astype(np.float32)
                if kind == "inputs":
                    places = rng.permutation(image.size)[: round(image.size * sparsity / 100)]
                    image.reshape(-1)[places] = 0
                else:
                    mask = pruned(group, sparsity).reshape(results, channels, 3, 3).transpose(2, 3, 1, 0)
                    weights[~mask] = 0
                sparse = image if kind == "inputs" else weights
                entries = int(np.count_nonzero(sparse))
                times = measure_layer(ours, torch, folder, kind, image, weights, rounds)
                median = {who: statistics.median(t) for who, t in times.items()}
                peers = [who for who in times if who.startswith("PyTorch")]
                best = min((who for who in times if who not in peers), key=median.get)
                peer = min(peers, key=median.get) if peers else None
                ratios = [f"{median[peer] / median[who]:.2f}" if peer else "not installed" for who in [best, "automatic"]]
                shape = [f"{h} x {w} x {channels}", f"3 x 3 x {channels} x {results}"]
                report.row(name, *shape, f"{100 * (1 - entries / sparse.size):.1f} %", f"{entries:,}", shown(times[peer]) if peer else "not installed", shown(times["automatic"]), shown(times[best]), best, *ratios)
                report.point(f"{name}, sparse {kind[:-1]}", entries, min(times[best]))


def machine():
    """The processor, without a name of its owner."""
    model = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            fields = dict(map(str.strip, line.split(":", 1)) for line in file if ":" in line)
        model = fields.get("model name", model)
        vectors = "AVX-512" if "avx512f" in fields.get("flags", "") else "AVX2" if "avx2" in fields.get("flags", "") else "no AVX2"
    except OSError:
        vectors = "vectors unknown"
    caches = []
    for index in range(4):
        try:
            read = lambda name: open(f"/sys/devices/system/cpu/cpu0/cache/index{index}/{name}", encoding="utf-8").read().strip()
            if read("type") != "Instruction":
                caches.append(f"L{read('level')} {read('size')}")
        except OSError:
            break
    gcc = subprocess.run(["gcc", "--version"], capture_output=True, text=True, check=False).stdout.partition("\n")[0]
    return f"{model}, {vectors}, {os.cpu_count()} processors, {', '.join(caches) or 'caches unknown'}; {platform.system()}; {gcc}"


def plot(report, dense, folder):
    """Time against non-zeros, both logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "tamis"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(13, 5.2), layout="constrained")
    colours = pyplot.rcParams["axes.prop_cycle"].by_key()["color"]
    for side, kind in enumerate(["cubes", "layers"]):
        for k, (line, points) in enumerate((l, p) for l, p in report.points.items() if (", sparse" in l) == (kind == "layers")):
            entries, times = zip(*sorted(points))
            style = "s--" if "filter" in line else "o-"
            axes[side].loglog(entries, times, style, label=line, color=colours[k % len(colours)])
            if line in dense:
                axes[side].axhline(dense[line], color=colours[k % len(colours)], linestyle=":", linewidth=1, label=f"{line}, plain C")
        everything = [point for l, p in report.points.items() if (", sparse" in l) == (kind == "layers") for point in p]
        if everything:
            low, high = min(e for e, _ in everything), max(e for e, _ in everything)
            base = min(t for _, t in everything)
            axes[side].loglog([low, high], [base, base * high / low], color="0.6", linewidth=1, label="in proportion")
        axes[side].set(xlabel="non-zeros", ylabel="milliseconds", title="filters of three to a side" if side == 0 else "layers of ResNet-50")
        if everything:
            axes[side].legend(fontsize=8)
        axes[side].grid(True, which="major", alpha=0.3)
    figure.savefig(os.path.join(folder, "convolution.svg"), metadata={"Date": None})
    figure.savefig(os.path.join(folder, "convolution.png"), dpi=110)


def main():
    program, *words = sys.argv[1:]
    rounds, folder = 15, None
    for option in ["--rounds", "--out"]:
        if option in words:
            at = words.index(option)
            if at + 1 == len(words):
                sys.exit(f"`{option}` takes a value")
            value = words[at + 1]
            del words[at : at + 2]
            if option == "--out":
                folder = value
            elif not value.isdigit() or int(value) == 0:
                sys.exit("`--rounds` takes a number")
            else:
                rounds = int(value)
    quick, options = "--quick" in words, ["--cpu"] if "--cpu" in words else []
    words = [word for word in words if word not in ["--quick", "--cpu"]]
    studies = ["1", "2", "3", "inputs", "filters"]
    for word in words:
        if word not in studies:
            sys.exit(f"there is no study `{word}`: {', '.join(studies)}")
    everything = not words
    words = words or studies
    report, torch, dense = Report(), None, {}
    report.say("# Sparse convolutions beside dense ones\n")
    report.say(f"Written by `./dev bench convolution`, {datetime.date.today().isoformat()}. One thread, {rounds} interleaved rounds; {'the time that the processor worked' if options else 'the time that passed'}.\n")
    report.say(f"- Machine: {machine()}.")
    before = os.getloadavg()[0]
    if {"inputs", "filters"} & set(words):
        torch = pytorch(options)
        report.say(f"- PyTorch {torch('version')}." if torch else "- PyTorch is not installed: its columns are empty (`TAMIS_TORCH_PYTHON` names a Python that has it).")
    load_at = len(report.parts)
    if ranks := [word for word in words if word.isdigit()]:
        dense = cubes(program, ranks, rounds, options, report)
    for kind in ["inputs", "filters"]:
        if kind not in words:
            continue
        if os.path.exists(os.path.join(DATA, "dnn/resnet50-layers.csv")):
            layers(program, torch, kind, rounds, options, report, quick)
        else:
            report.say(f"\nLayers are NOT measured: there is no dnn/resnet50-layers.csv in {DATA} (TAMIS_DATA names another folder).")
    load = f"- Others used the machine, too: its load was {before:.1f} before and {os.getloadavg()[0]:.1f} after (1.0 is this benchmark)."
    report.parts.insert(load_at, load)
    print(load)
    if everything or folder:
        folder = folder or os.path.join(HERE, "../docs/benchmarks")
        os.makedirs(folder, exist_ok=True)
        try:
            plot(report, dense, folder)
            report.say("\n## Time against non-zeros\n\n![Time against non-zeros, both logarithmic](convolution.svg)\n")
            report.say("The least time of the best of ours. Dotted lines are plain C, which takes the same time whatever is zero. Also as [PNG](convolution.png).")
        except ImportError as problem:
            report.say(f"\nThere is no plot: {problem}.")
        with open(os.path.join(folder, "convolution.md"), "w", encoding="utf-8") as file:
            file.write("\n".join(report.parts) + "\n")


main()
