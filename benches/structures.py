"""Benchmark of the case studies against their peers: python structures.py BENCH [STUDY ...] [--rounds N] [--cpu] [--quick] [--only WORD]

BENCH is the program `structures`; a STUDY is one of spmv, spgemm, graphs, erosion, histogram (all of them by default). Results are compared before anything is
timed; then all sides run alternately, each on one thread, starting with another one every round. Times are medians in milliseconds; ratios are the best peer's time over
Tamis', of medians and of minima (above 1, Tamis is faster). `--cpu` measures CPU time, for a shared machine. `--only` selects the graphs and images
with this word in their name, `--quick` the first few.
"""

import gzip
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

for variable in ["OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"]:
    os.environ[variable] = "1"

import numpy as np

from pipe import Process

DATA = os.environ.get("TAMIS_DATA", "../shared/data")
GRAPHS = ["rmat(17,16)", "soc-Slashdot0902.mtx.gz", "email-Enron.mtx.gz", "cit-HepPh.mtx.gz", "internet.mtx.gz", "mdual.mtx.gz", "luxembourg_osm.mtx.gz"]
SCANS = ["scan-feyn", "scan-patent", "scan-arabic", "scan-pageseg1", "scan-rabi", "scan-witten", "scan-keystone", "scan-words.44", "scan-toc.99"]
MASKS = ["mask-airplanes.pbm.gz", "mask-chronometer.pbm.gz", "mask-triangle.pbm.gz", "mask-noisy-rectangle.pbm.gz", "horse.pbm"]
STACKS = ["mnist-t10k-images.idx3-ubyte.gz", "omniglot-small1.idx3-ubyte.gz"]
MOST_PIXELS = 600_000_000


class Ours(Process):
    """Our programs."""

    def __init__(self, program, options):
        super().__init__(program, "serve", *options)

    def pixels(self, folder):
        """The last result as a binary image, one bit for each pixel on the way."""
        path = os.path.join(folder, "result.pbm")
        self("result", path)
        return read_image(path) != 0

    def result(self, folder):
        path = os.path.join(folder, "result.npy")
        self("result", path)
        return np.load(path)


class Table:
    """Interleaved sides: each is a function that gives its seconds."""

    def __init__(self, rounds, clock):
        self.rounds, self.clock = rounds, clock

    def timed(self, work):
        """A peer's side."""

        def side():
            start = self.clock()
            result = work()
            seconds = self.clock() - start
            del result
            return seconds

        return side

    def run(self, sides, seconds=20.0):
        """The median and the least time of each side, in milliseconds."""
        names, times = list(sides), {name: [] for name in sides}
        start = time.perf_counter()
        for round in range(self.rounds):
            for k in range(len(names)):
                name = names[(round + k) % len(names)]
                times[name].append(sides[name]() * 1e3)
            if round >= 4 and time.perf_counter() - start > seconds:
                break
        return {name: (statistics.median(t), min(t)) for name, t in times.items()}


def path_of(folder, name):
    return name if "(" in name or os.path.exists(name) else os.path.join(DATA, folder, name)


def against(times, ours, peers):
    """The best of ours over the best peer: medians and least times."""
    ours, peers = [times[o] for o in ours if o in times], [times[p] for p in peers if p in times]
    return tuple(min(p[k] for p in peers) / min(o[k] for o in ours) for k in (0, 1)) if ours and peers else (float("nan"),) * 2


# Graphs


class GraphBlas:
    """Breadth-first search as LAGraph has it, and Bellman and Ford's distances."""

    def __init__(self, graph):
        import graphblas
        from graphblas import Vector, binary, dtypes, semiring

        graphblas.ss.config["nthreads"] = 1
        self.binary, self.dtypes, self.semiring, self.Vector = binary, dtypes, semiring, Vector
        self.weights = graphblas.io.from_scipy_sparse(graph)
        self.edges = self.weights.apply(graphblas.unary.one).new(dtype=dtypes.BOOL)
        self.back = self.edges.T.new()
        self.weights.ss.config["format"] = self.edges.ss.config["format"] = self.back.ss.config["format"] = "by_row"
        for matrix in [self.weights, self.edges, self.back]:
            matrix.wait()
        self.degrees = np.diff(graph.indptr)
        self.n = graph.shape[0]

    def search(self, source, pull):
        """Parents; with `pull`, the direction changes as LAGraph changes it."""
        parents = self.Vector(self.dtypes.INT64, self.n)
        frontier = self.Vector(self.dtypes.INT64, self.n)
        parents[source] = source
        frontier[source] = source
        parents.ss.config["sparsity_control"] = "bitmap"
        any_second = self.semiring.ss.any_secondi
        unexplored, pushing, last = int(self.degrees.sum()), True, 0
        while frontier.nvals:
            count = frontier.nvals
            if pull:
                growing = count > last
                if pushing and growing:
                    edges = int(self.degrees[frontier.to_coo(values=False)[0]].sum())
                    unexplored -= edges
                    pushing = edges <= unexplored / 8 or count <= self.n / 512
                elif not pushing and not growing:
                    pushing = count <= self.n / 512
            last = count
            if pushing:
                frontier(~parents.S, replace=True) << frontier.vxm(self.edges, any_second)
            else:
                frontier(~parents.S, replace=True) << self.back.mxv(frontier, any_second)
            parents(frontier.S) << frontier
        return parents

    def paths(self, source, few):
        """Distances, without parents; with `few`, only nodes that became nearer are looked at again."""
        distance = self.Vector(self.dtypes.FP64, self.n)
        distance[source] = 0.0
        near = distance.dup()
        while near.nvals:
            if few:
                reached = near.vxm(self.weights, self.semiring.min_plus).new()
                nearer = reached.ewise_mult(distance, self.binary.lt).new()
                near = self.Vector(self.dtypes.FP64, self.n)
                near(nearer.V) << reached
                near(~distance.S) << reached
                distance(self.binary.min) << near
            else:
                before = distance.dup()
                distance(self.binary.min) << distance.vxm(self.weights, self.semiring.min_plus)
                if distance.isequal(before):
                    break
        return distance


def depths(parents, source, edges, name):
    """The distance of each node from the source, along parents and existing edges."""
    n = len(parents)
    found = np.flatnonzero(parents >= 0)
    others = found[found != source]
    if parents[source] != source or not np.all(np.asarray(edges[parents[others], others]).ravel() != 0):
        sys.exit(f"WRONG: {name}: a parent that leads nowhere")
    depth = np.full(n, -1)
    depth[source] = 0
    left = others
    while len(left):
        up = depth[parents[left]]
        known = up >= 0
        if not known.any():
            sys.exit(f"WRONG: {name}: parents in a circle")
        depth[left[known]] = up[known] + 1
        left = left[~known]
    return depth


def graphs(ours, table, folder, quick):
    import scipy.sparse as sp
    import scipy.sparse.csgraph as csgraph

    print("\nGraphs: ms. `queue` and `both ways` are one program; `steps` chooses one of two kernels for each step. Targets: search within 1.2 of GraphBLAS (ratio 0.83), shortest paths faster (1.0)")
    print(f"{'graph':24} {'nodes':>8} {'edges':>9} {'steps':>6} {'task':7} {'ours':>34}  {'peers':64} {'ratio':>6} {'least':>6} {'target':>6}")
    for name in GRAPHS[: 3 if quick else None]:
        n, edges = map(int, ours("graph", path_of("matrices", name)).split())
        path = os.path.join(folder, "graph.npz")
        ours("edges", path)
        graph = sp.csr_array(sp.load_npz(path))
        graph.indices, graph.indptr = graph.indices.astype(np.int32), graph.indptr.astype(np.int32)
        source = int(np.argmax(np.diff(graph.indptr)))
        blas = GraphBlas(graph)
        wanted = None
        for way in ["scipy", "queue", "both_ways", "steps", "push", "push and pull"]:
            if way == "scipy":
                order, parents = csgraph.breadth_first_order(graph, source, return_predecessors=True)
                parents[source] = source
            elif way.startswith("push"):
                found = blas.search(source, way != "push").to_coo()
                parents = np.full(n, -1)
                parents[found[0]] = found[1]
            else:
                ours("search", way, source)
                parents = ours.result(folder)
            depth = depths(np.where(parents < 0, -1, parents), source, graph, f"{name}, {way}")
            wanted = depth if wanted is None else wanted
            if not np.array_equal(depth, wanted):
                sys.exit(f"WRONG: {name}: {way} finds other depths")
        sides = {way: (lambda way=way: float(ours("search", way, source))) for way in ["queue", "both_ways", "steps"]}
        sides["push"] = table.timed(lambda: blas.search(source, False))
        sides["push+pull"] = table.timed(lambda: blas.search(source, True))
        sides["scipy"] = table.timed(lambda: csgraph.breadth_first_order(graph, source, return_predecessors=True))
        times = table.run(sides)
        mine, peers = ["queue", "both_ways", "steps"], ["push", "push+pull"]
        row(name, n, edges, wanted.max(), "search", times, mine, ["push", "push+pull", "scipy"], against(times, mine, peers), 0.83)
        ours("paths", source)
        distance = ours.result(folder)
        reference = csgraph.dijkstra(graph, indices=source)
        for way, found in [("tamis", distance), ("plain", dense(blas.paths(source, False), n)), ("frontier", dense(blas.paths(source, True), n))]:
            if not np.allclose(found, reference, rtol=1e-12):
                sys.exit(f"WRONG: {name}: distances of {way}")
        sides = {"paths": lambda: float(ours("paths", source))}
        sides["plain"] = table.timed(lambda: blas.paths(source, False))
        sides["frontier"] = table.timed(lambda: blas.paths(source, True))
        sides["dijkstra"] = table.timed(lambda: csgraph.dijkstra(graph, indices=source, return_predecessors=True))
        times = table.run(sides)
        row(name, n, edges, wanted.max(), "paths", times, ["paths"], ["plain", "frontier", "dijkstra"], against(times, ["paths"], ["plain", "frontier"]), 1.0)


def dense(vector, n):
    places, values = vector.to_coo()
    full = np.full(n, np.inf)
    full[places] = values
    return full


def row(name, n, edges, steps, task, times, mine, peers, ratio, target):
    def show(names):
        return "  ".join(f"{p} {times[p][0]:.2f}" for p in names)

    print(f"{os.path.basename(name):24} {n:8} {edges:9} {steps:6} {task:7} {show(mine):>34}  {show(peers):64} {ratio[0]:6.2f} {ratio[1]:6.2f} {target:6.2f}", flush=True)


# Images


def read_image(path):
    """Pixels by rows, those of a stack one below the other."""
    import cv2

    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        content = file.read()
    if "idx3" in path:
        count, rows, columns = np.frombuffer(content[4:16], ">i4")
        return np.frombuffer(content[16:], np.uint8).reshape(count * rows, columns)
    if content[:2] != b"P4":
        return cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_GRAYSCALE)
    # A .pbm has a bit for each pixel, 1 where there is ink. OpenCV reads no more than 2^20 rows.
    header = re.match(rb"P4\s+(?:#.*\n\s*)*(\d+)\s+(?:#.*\n\s*)*(\d+)\s", content)
    columns, rows = map(int, header.groups())
    bits = np.frombuffer(content, np.uint8, offset=header.end()).reshape(rows, -1)
    return np.unpackbits(bits, axis=1, count=columns) * np.uint8(255)


def magnify(image, scale):
    return np.ascontiguousarray(image.repeat(scale, 0).repeat(scale, 1))


def opencv():
    import cv2

    cv2.setNumThreads(1)
    cv2.ocl.setUseOpenCL(False)
    return cv2


def erosion(ours, table, folder, quick):
    cv2 = opencv()
    print(f"\nErosion by a 3x3 square, beside OpenCV {cv2.__version__} on bytes: ms. Target: runs at least 10 times faster on magnified scans")
    ways = ["bytes", "words", "runs", "rows"]
    print(f"{'image':36} {'scale':>5} {'megapixels':>10} {'opencv':>9} " + " ".join(f"{w:>9}" for w in ways) + f" {'words':>7} {'runs':>7} {'rows':>7} {'target':>6}   (ratios of medians)")
    square = np.ones((3, 3), np.uint8)
    names = [f"{name}.pbm.gz" for name in SCANS] + MASKS + STACKS
    best = {}
    for name in names[:2] if quick else names:
        path = path_of("images", name)
        image = np.where(read_image(path) >= 128, 255, 0).astype(np.uint8)
        for scale in [1, 4, 8]:
            if image.size * scale * scale > MOST_PIXELS:
                continue
            large = magnify(image, scale)
            result = np.empty_like(large)
            cv2.erode(large, square, dst=result)
            ours("image", path, scale)
            for way in ways:
                ours("run", way)
                if not np.array_equal(ours.pixels(folder), result != 0):
                    sys.exit(f"WRONG: {name} magnified {scale} times: {way} gives another image")
            sides = {way: (lambda way=way: float(ours("run", way))) for way in ways}
            sides["opencv"] = table.timed(lambda: cv2.erode(large, square, dst=result))
            times = table.run(sides, 8.0)
            ratio = {way: times["opencv"][0] / times[way][0] for way in ways}
            target = "10" if scale > 1 and name.startswith("scan") else ""
            if target:
                best.setdefault(scale, []).append((ratio["runs"], ratio["rows"], ratio["words"]))
            shown = " ".join(f"{times[way][0]:9.3f}" for way in ways)
            print(f"{name:36} {scale:5} {large.size / 1e6:10.2f} {times['opencv'][0]:9.3f} {shown} {ratio['words']:7.2f} {ratio['runs']:7.2f} {ratio['rows']:7.2f} {target:>6}", flush=True)
    for scale, ratios in best.items():
        means = [np.exp(np.mean(np.log(r))) for r in zip(*ratios)]
        print(f"scans magnified {scale} times, geometric means: runs {means[0]:.1f}, runs of equal rows {means[1]:.1f}, words {means[2]:.1f}")


def histogram(ours, table, folder, quick):
    cv2 = opencv()
    print(f"\nHistogram of 16 bins under a mask, beside OpenCV {cv2.__version__}: ms")
    ways = ["bytes", "mask", "runs"]
    print(f"{'image':36} {'mask':26} {'set':>4} {'scale':>5} {'megapixels':>10} {'opencv':>9} {'bincount':>9} " + " ".join(f"{w:>9}" for w in ways) + f" {'ratio':>7} {'least':>7}")
    pairs = [("skimage-camera.pgm.gz", "mask-triangle.pbm.gz"), ("skimage-phantom.pgm.gz", "horse.pbm"), ("skimage-coins.pgm.gz", "mask-noisy-rectangle.pbm.gz")]
    pairs += [(stack, "mask-triangle.pbm.gz") for stack in STACKS] + [("scan-feyn.pbm.gz", "mask-noisy-rectangle.pbm.gz")]
    for name, mask_name in pairs[:2] if quick else pairs:
        path, mask_path = path_of("images", name), path_of("images", mask_name)
        image, mask = read_image(path), np.where(read_image(mask_path) >= 128, 255, 0).astype(np.uint8)
        rows, columns = image.shape
        # The mask is stretched over the image, or over each image of a stack.
        tile = {"mnist": 28, "omnig": 105}.get(name[:5], rows)
        mask = mask[(np.arange(rows) % tile) * mask.shape[0] // tile][:, np.arange(columns) * mask.shape[1] // columns]
        for scale in [1, 4, 8]:
            if image.size * scale * scale > MOST_PIXELS / 3:
                continue
            large, large_mask = magnify(image, scale), magnify(mask, scale)
            wanted = cv2.calcHist([large], [0], large_mask, [16], [0, 256]).ravel()
            ours("count", path, mask_path, tile, scale)
            for way in ways:
                ours("run", way)
                # OpenCV counts in single precision.
                if not np.allclose(ours.result(folder), wanted, rtol=1e-6):
                    sys.exit(f"WRONG: {name} magnified {scale} times: {way} counts otherwise")
            sides = {way: (lambda way=way: float(ours("run", way))) for way in ways}
            sides["opencv"] = table.timed(lambda: cv2.calcHist([large], [0], large_mask, [16], [0, 256]))
            sides["bincount"] = table.timed(lambda: np.bincount(large[large_mask != 0] >> 4, minlength=16))
            times = table.run(sides, 8.0)
            ratio = against(times, ways, ["opencv", "bincount"])
            shown = " ".join(f"{times[side][0]:9.3f}" for side in ["opencv", "bincount", *ways])
            print(f"{name:36} {mask_name:26} {np.mean(mask >= 128):4.0%} {scale:5} {large.size / 1e6:10.2f} {shown} {ratio[0]:7.2f} {ratio[1]:7.2f}", flush=True)


STUDIES = {"graphs": graphs, "erosion": erosion, "histogram": histogram}


def main():
    program, *words = sys.argv[1:]
    rounds, options = 15, []
    if "--rounds" in words:
        at = words.index("--rounds")
        rounds = max(1, int(words[at + 1]))
        del words[at : at + 2]
    if "--only" in words:
        at = words.index("--only")
        only = words[at + 1]
        del words[at : at + 2]
        for names in [GRAPHS, SCANS, MASKS, STACKS]:
            names[:] = [name for name in names if only in name]
    cpu, quick = "--cpu" in words, "--quick" in words
    words = [word for word in words if word not in ["--cpu", "--quick"]]
    options = ["--rounds", str(rounds)] + (["--cpu"] if cpu else [])
    for word in words:
        if word not in [*STUDIES, "spmv", "spgemm"]:
            sys.exit(f"there is no study `{word}`: spmv, spgemm, {', '.join(STUDIES)}")
    print("times that the processor worked" if cpu else "times that passed", "one thread", f"up to {rounds} interleaved rounds", sep=", ", flush=True)
    for study in ["spmv", "spgemm"]:
        if not words or study in words:
            print(flush=True)
            subprocess.run([program, study, *options, *(["--largest", "100000"] if quick else [])], check=False)
    ours, table = Ours(program, options), Table(rounds, time.process_time if cpu else time.perf_counter)
    with tempfile.TemporaryDirectory() as folder:
        for name, study in STUDIES.items():
            if not words or name in words:
                try:
                    study(ours, table, folder, quick)
                except ImportError as problem:
                    print(f"{name} is NOT measured: {problem}")


main()
