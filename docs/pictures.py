"""The pictures of the book, drawn from tensors of the package: ``python docs/pictures.py`` writes them to ``docs/pictures``.

A picture is a function that gives SVG text; ``PICTURES`` lists them by file name, and a test compares them with what is there.
"""

from __future__ import annotations

import json
import math
import pathlib
from dataclasses import dataclass, field
from html import escape
from typing import Any, Callable, Iterable, Sequence

import numpy as np

import tamis as tm

DOCS = pathlib.Path(__file__).resolve().parent

INK, GREY, LIGHT, PALE = "#1f2933", "#7b8794", "#cbd2d9", "#f5f7fa"
BLUE, ORANGE, GREEN, RED, PURPLE = "#2b6cb0", "#c05621", "#2f855a", "#c53030", "#6b46c1"
TINT = {BLUE: "#dbeafe", ORANGE: "#feebc8", GREEN: "#c6f6d5", RED: "#fed7d7", PURPLE: "#e9d8fd", GREY: PALE}


@dataclass
class Drawing:
    """SVG elements, and how far they reach."""

    parts: list[str] = field(default_factory=list)
    width: float = 0
    height: float = 0

    def reach(self, x: float, y: float) -> None:
        self.width, self.height = max(self.width, x), max(self.height, y)

    def text(
        self, x: float, y: float, text: Any, size: float = 13, anchor: str = "start", fill: str = INK, mono: bool = False, bold: bool = False
    ) -> None:
        family = "ui-monospace, 'DejaVu Sans Mono', monospace" if mono else "system-ui, 'DejaVu Sans', sans-serif"
        weight = ' font-weight="600"' if bold else ""
        self.parts.append(
            f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}" fill="{fill}" font-family="{family}"{weight}'
            f' xml:space="preserve">{escape(str(text))}</text>'
        )
        length = len(str(text)) * size * (0.62 if mono else 0.58)
        self.reach(x + {"start": 1, "middle": 0.5, "end": 0}[anchor] * length, y + size / 3)

    def box(
        self, x: float, y: float, w: float, h: float, fill: str = "white", stroke: str = LIGHT, round: float = 0, width: float = 1
    ) -> None:
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{round:g}" fill="{fill}" stroke="{stroke}" stroke-width="{width:g}"/>'
        )
        self.reach(x + w, y + h)

    def line(self, x1: float, y1: float, x2: float, y2: float, stroke: str = GREY, width: float = 1.2, arrow: bool = False, dash: str = "") -> None:
        end = ' marker-end="url(#arrow)"' if arrow else ""
        dashes = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}" stroke-width="{width:g}"{dashes}{end}/>'
        )
        self.reach(max(x1, x2), max(y1, y2))

    def node(self, x: float, y: float, text: Any, fill: str, stroke: str, r: float = 12) -> None:
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="{r:g}" fill="{fill}" stroke="{stroke}" stroke-width="1.3"/>')
        self.text(x, y + 4.5, text, 12, "middle", mono=True)
        self.reach(x + r, y + r)

    def cell(self, x: float, y: float, s: float, text: Any = "", fill: str = "white", stroke: str = LIGHT, ink: str = INK) -> None:
        self.box(x, y, s, s, fill, stroke)
        if text != "":
            self.text(x + s / 2, y + s / 2 + 4.5, text, 12, "middle", ink, mono=True)

    def svg(self, title: str) -> str:
        width, height = math.ceil(self.width + 14), math.ceil(self.height + 12)
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
            f"<title>{escape(title)}</title>\n"
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
            f'<path d="M0 0 L8 4 L0 8 z" fill="{GREY}"/></marker></defs>\n'
            f'<rect width="{width}" height="{height}" fill="white"/>\n'
        )
        return head + "\n".join(self.parts) + "\n</svg>\n"


# ---------------------------------------------------------------------------------------------------------------------
# Formats: a matrix, its fiber tree, and the arrays of its levels.

MATRIX = np.array([[1, 2, 0, 0], [0, 3, 0, 0], [0, 0, 0, 0], [4, 0, 5, 6]])
#: The colour of each storage level, outermost first.
LEVELS = [BLUE, GREEN, ORANGE, PURPLE]


@dataclass
class Fiber:
    """A node of the fiber tree: the coordinate that leads to it, and what lies below."""

    coordinate: int | None
    children: list["Fiber"]
    value: Any = None
    x: float = 0


def fibers(tensor: tm.Tensor, extents: Sequence[int], level: int, coordinate: int | None, at: int) -> Fiber:
    """The tree below a position of the level above."""
    if level == len(tensor.levels):
        return Fiber(coordinate, [], int(tensor.values[at]))
    kind, arrays = str(tensor.levels[level]).split("(")[0].split("[")[0], tensor.level_arrays(level)
    if kind == "dense":
        found = [(i, at * extents[level] + i) for i in range(extents[level])]
    elif kind == "sparse":
        found = [(int(arrays["crd"][q]), q) for q in range(int(arrays["pos"][at]), int(arrays["pos"][at + 1]))]
    elif kind == "singleton":
        found = [(int(arrays["crd"][at]), at)]
    else:
        raise ValueError(f"pictures of `{kind}` are not drawn")
    return Fiber(coordinate, [fibers(tensor, extents, level + 1, i, p) for i, p in found])


def place(node: Fiber, x: float, gap: float) -> float:
    """Gives every leaf a column, and centres what lies above; the next free column."""
    if not node.children:
        node.x = x
        return x + gap
    for child in node.children:
        x = place(child, x, gap)
    node.x = (node.children[0].x + node.children[-1].x) / 2
    return x


def draw_tree(d: Drawing, node: Fiber, y: float, level: int, depth: int, step: float) -> None:
    for child in node.children:
        below = y + step
        d.line(node.x, y + (4 if level == 0 else 12), child.x, below - 12, LIGHT)
        colour = LEVELS[level]
        d.node(child.x, below, child.coordinate, TINT[colour], colour)
        draw_tree(d, child, below, level + 1, depth, step)
    if level == depth and node.value is not None:
        d.line(node.x, y + 12, node.x, y + 30, LIGHT)
        d.cell(node.x - 12, y + 30, 24, node.value, PALE if node.value == 0 else "#fff", GREY, GREY if node.value == 0 else INK)


def array_rows(d: Drawing, x: float, y: float, rows: Iterable[tuple[str, Sequence[Any], str]], cell: float = 24) -> None:
    for label, values, colour in rows:
        d.text(x, y + 16, label, 12, "end", colour, mono=True)
        for k, value in enumerate(values):
            d.cell(x + 10 + k * cell, y, cell, value, TINT.get(colour, "white"), colour)
        y += cell + 8


def format_picture(format: str, title: str, names: Sequence[str], extents: Sequence[int], block: int = 0) -> Callable[[], str]:
    """A matrix in a format: the grid, the tree and the arrays."""

    def draw() -> str:
        tensor = tm.tensor(MATRIX, format=format)
        root = fibers(tensor, extents, 0, None, 0)
        depth = len(tensor.levels)
        d = Drawing()
        d.text(14, 26, title, 15, bold=True)
        size = 28
        for i in range(4):
            for j in range(4):
                value = int(MATRIX[i, j])
                d.cell(14 + j * size, 44 + i * size, size, value, "white" if value else PALE, LIGHT, INK if value else LIGHT)
        if block:
            for k in range(0, 5, block):
                d.line(14 + k * size, 44, 14 + k * size, 44 + 4 * size, INK, 1.6)
                d.line(14, 44 + k * size, 14 + 4 * size, 44 + k * size, INK, 1.6)
        left, step = 300.0, 44.0
        place(root, left + 24, 30)
        top = 44.0
        d.node(root.x, top, "", "white", GREY, 4)
        draw_tree(d, root, top, 0, depth, step)
        for level in range(depth):
            label = f"{names[level]}: {tensor.levels[level]}"
            d.text(left - 8, top + (level + 1) * step + 4, label, 12, "end", LEVELS[level], mono=True)
        values_at = top + depth * step + 30
        d.text(left - 8, values_at + 16, "values", 12, "end", GREY, mono=True)
        rows: list[tuple[str, Sequence[Any], str]] = []
        for level in range(depth):
            for name, array in tensor.level_arrays(level).items():
                rows.append((f"{names[level]} {name}", [int(v) for v in array], LEVELS[level]))
        rows.append(("values", [int(v) for v in tensor.values], GREY))
        array_rows(d, left - 12, max(values_at + 50, 180), rows)
        return d.svg(f"A 4 x 4 matrix stored as {format}: its fiber tree and the arrays of its levels")

    return draw


# ---------------------------------------------------------------------------------------------------------------------
# Looplets: what a fiber holds along a loop.


def looplets() -> str:
    """Fibers of five levels as strips of cells, with the looplets that describe them."""
    d = Drawing()
    size, left = 30, 230
    strips: list[tuple[str, str, list[int], list[tuple[int, int, str, str]]]] = [
        ("sparse", "a stepper: runs of the fill, each ended by a spike", [0, 0, 4, 0, 0, 0, 7, 0, 0, 0],
         [(0, 3, "spike", ORANGE), (3, 7, "spike", ORANGE), (7, 10, "run of fill", GREY)]),
        ("dense", "a lookup: any coordinate, at a computed position", [3, 1, 4, 1, 5, 9, 2, 6, 5, 3], [(0, 10, "lookup", BLUE)]),
        ("band", "a sequence: the fill, one block, the fill", [0, 0, 0, 2, 7, 1, 8, 0, 0, 0],
         [(0, 3, "run of fill", GREY), (3, 7, "block", GREEN), (7, 10, "run of fill", GREY)]),
        ("sparse_runs", "segments: runs of one value, the fill between them", [0, 5, 5, 5, 0, 0, 9, 9, 9, 9],
         [(0, 1, "", GREY), (1, 4, "run", PURPLE), (4, 6, "fill", GREY), (6, 10, "run", PURPLE)]),
        ("interval", "a sequence: the fill, one run, the fill", [0, 0, 6, 6, 6, 6, 6, 0, 0, 0],
         [(0, 2, "fill", GREY), (2, 7, "run", PURPLE), (7, 10, "run of fill", GREY)]),
        ("mask j <= i", "a sequence of two runs, for i = 4", [1, 1, 1, 1, 1, 0, 0, 0, 0, 0],
         [(0, 5, "run of true", PURPLE), (5, 10, "run of false", GREY)]),
    ]
    y = 20.0
    for k in range(10):
        d.text(left + k * size + size / 2, y, k, 11, "middle", GREY, mono=True)
    d.text(left - 12, y, "coordinate", 11, "end", GREY)
    y += 10
    for level, about, values, parts in strips:
        d.text(left - 12, y + 20, level, 13, "end", INK, mono=True, bold=True)
        for start, stop, _, colour in parts:
            for k in range(start, stop):
                stored = values[k] != 0 and colour != GREY
                if colour == ORANGE:
                    stored = k == stop - 1
                d.cell(left + k * size, y, size, values[k], TINT[colour] if stored else PALE, LIGHT, INK if stored else LIGHT)
        for start, stop, label, colour in parts:
            x1, x2, base = left + start * size + 3, left + stop * size - 3, y + size + 5
            d.line(x1, base, x2, base, colour, 2.5)
            d.text((x1 + x2) / 2, base + 13, label, 10.5, "middle", colour)
        d.text(left + 10 * size + 16, y + 20, about, 12, fill=INK)
        y += size + 38
    return d.svg("Fibers of several levels along one loop, and the looplets that describe them")


def merge() -> str:
    """Two sparse lists under `*` and under `+`: which coordinates each loop visits."""
    d = Drawing()
    size, left = 30, 110
    a, b = {1: 2, 4: 3, 5: 1, 8: 4}, {0: 5, 4: 6, 8: 7, 9: 2}
    y = 28.0
    for k in range(10):
        d.text(left + k * size + size / 2, y - 8, k, 11, "middle", GREY, mono=True)

    def strip(label: str, stored: dict[int, Any], colour: str, note: str = "") -> None:
        nonlocal y
        d.text(left - 12, y + 20, label, 13, "end", INK, mono=True)
        for k in range(10):
            d.cell(left + k * size, y, size, stored.get(k, ""), TINT[colour] if k in stored else PALE)
        d.text(left + 10 * size + 14, y + 20, note, 12)
        y += size + 8

    strip("a", a, BLUE, "stored: 1 4 5 8")
    strip("b", b, GREEN, "stored: 0 4 8 9")
    y += 8
    both = {k: a[k] * b[k] for k in a if k in b}
    strip("a * b", both, PURPLE, "intersection: two-finger loop, the one behind advances")
    either = {k: a.get(k, 0) + b.get(k, 0) for k in {*a, *b}}
    strip("a + b", either, ORANGE, "union: merge loop over the smaller coordinate, then two tails")
    return d.svg("Co-iteration of two sparse lists: an intersection for products, a union for sums")


# ---------------------------------------------------------------------------------------------------------------------
# Loop nests.


def loop_orders() -> str:
    """C[i,k] = A[i,j] * B[j,k] in three orders: what one iteration of the outer loops touches."""
    d = Drawing()
    size = 15
    orders = [
        ("i, k, j", "inner products", "every pair of a row and a column meets",
         [("A", {(1, j) for j in range(5)}), ("B", {(j, 3) for j in range(5)}), ("C", {(1, 3)})]),
        ("i, j, k", "rows (Gustavson)", "rows of B are added up in a workspace for row i",
         [("A", {(1, 2)}), ("B", {(2, k) for k in range(5)}), ("C", {(1, k) for k in range(5)})]),
        ("j, i, k", "outer products", "all of C is updated for each j",
         [("A", {(i, 2) for i in range(5)}), ("B", {(2, k) for k in range(5)}), ("C", {(i, k) for i in range(5) for k in range(5)})]),
    ]
    y = 14.0
    for order, name, note, matrices in orders:
        # Above the matrices, so that the picture is as narrow as a phone.
        d.text(14, y + 12, f"for {order}", 14, mono=True, bold=True)
        d.text(120, y + 12, name, 13)
        d.text(14, y + 30, note, 11.5, fill=GREY)
        x, y = 34.0, y + 42
        for k, (label, lit) in enumerate(matrices):
            d.text(x + 2.5 * size, y + 6, label, 12, "middle", INK, mono=True)
            colour = (BLUE, GREEN, ORANGE)[k]
            for r in range(5):
                for c in range(5):
                    d.cell(x + c * size, y + 12 + r * size, size, fill=TINT[colour] if (r, c) in lit else "white", stroke=colour if (r, c) in lit else LIGHT)
            x += 5 * size + 30
            if k < 2:
                d.text(x - 15, y + 54, "*" if k == 0 else "=", 16, "middle", GREY, mono=True)
        y += 116
    return d.svg("Three loop orders of a sparse matrix product, and what each touches in one step")


# ---------------------------------------------------------------------------------------------------------------------
# Spy plots.


def spy() -> str:
    """Spy plots of four matrices of the gallery."""
    d = Drawing()
    side = 150
    matrices = [
        ("laplacian(6)", tm.gallery.laplacian(6), "csr"),
        ("banded(36, 3)", tm.gallery.banded(36, 3), "dense, band"),
        ("blocked(36, 4)", tm.gallery.generate("blocked(36, 4, 0.25)"), "bsr(4,4)"),
        ("rmat(5, 4)", tm.gallery.rmat(5, 4, seed=1), "csr; pattern"),
    ]
    x = 14.0
    for name, matrix, fits in matrices:
        rows, columns = matrix.shape
        coords, _ = matrix.to_coo()
        d.box(x, 34, side, side, "white", GREY)
        s = side / max(rows, columns)
        for i, j in zip(*(np.asarray(c) for c in coords)):
            d.parts.append(f'<rect x="{x + int(j) * s:.2f}" y="{34 + int(i) * s:.2f}" width="{s:.2f}" height="{s:.2f}" fill="{BLUE}"/>')
        d.text(x + side / 2, 24, name, 12, "middle", INK, mono=True)
        d.text(x + side / 2, 34 + side + 18, f"{matrix.nnz} of {rows * columns} stored", 11, "middle", GREY)
        d.text(x + side / 2, 34 + side + 36, fits, 12, "middle", ORANGE, mono=True)
        x += side + 22
    return d.svg("Spy plots of four matrices, and a format that fits each")


# ---------------------------------------------------------------------------------------------------------------------
# How fast it is: the scoreboard in one picture.

SHOWN = [
    ("SpMV, CSR", "sparse matrix x vector"),
    ("SpMM, f64", "sparse x dense matrix"),
    ("SpGEMM, A A", "sparse x sparse matrix"),
    ("A + B", "A + B, sparse"),
    ("SDDMM, K=64", "sampled product (SDDMM)"),
    ("MTTKRP, R=32", "MTTKRP"),
    ("convolution 3x3", "3 x 3 convolution, sparse"),
    ("BFS", "breadth-first search"),
]
#: The name and the colour of each peer.
PEERS = {
    "scipy": ("SciPy", BLUE),
    "mkl": ("MKL", ORANGE),
    "eigen": ("Eigen", GREEN),
    "mlir": ("MLIR", RED),
    "graphblas": ("GraphBLAS", PURPLE),
    "torch": ("PyTorch", "#b7791f"),
    "opencv": ("OpenCV", "#0d9488"),
    "C loops": ("loops in C", GREY),
}


def ratios() -> dict[tuple[str, str], float]:
    """Geometric means, over the inputs, of a peer's least time over ours, on one thread."""
    board = json.loads((DOCS / "benchmarks" / "scoreboard.json").read_text())
    logs: dict[tuple[str, str], list[float]] = {}
    for case in next(run for run in board["runs"] if run["threads"] == 1)["cases"]:
        times = case["times"]
        for peer in PEERS:
            if peer in times and "tamis" in times:
                logs.setdefault((case["kernel"], peer), []).append(math.log(times[peer][0] / times["tamis"][0]))
    return {key: math.exp(sum(found) / len(found)) for key, found in logs.items()}


def speed() -> str:
    """A dot for each kernel and peer, on a logarithmic axis."""
    means = ratios()
    d = Drawing()
    left, width, row, top = 210.0, 440.0, 34.0, 58.0
    ticks = [0.5, 1, 2, 5, 10, 20, 50]
    low, high = math.log(0.6), math.log(60)

    def at(ratio: float) -> float:
        return left + (math.log(ratio) - low) / (high - low) * width

    d.text(left, 20, "A peer's time over the time of Tamis, one thread: to the right of 1, Tamis is faster", 12.5, bold=True)
    bottom = top + row * len(SHOWN)
    for tick in ticks[1:]:
        d.line(at(tick), top - 14, at(tick), bottom, INK if tick == 1 else LIGHT, 1.4 if tick == 1 else 0.8)
        d.text(at(tick), bottom + 16, f"{tick:g}", 11, "middle", GREY)
    for k, (kernel, label) in enumerate(SHOWN):
        y = top + row * k + 6
        d.text(left - 14, y + 4, label, 12.5, "end")
        shown = sorted((means[kernel, peer], peer) for peer in PEERS if (kernel, peer) in means)
        if shown:
            d.line(at(shown[0][0]), y, at(shown[-1][0]), y, LIGHT, 2)
        for ratio, peer in shown:
            d.parts.append(f'<circle cx="{at(ratio):.1f}" cy="{y:g}" r="6" fill="{PEERS[peer][1]}" fill-opacity="0.85" stroke="white"/>')
    x = left - 100
    for label, colour in PEERS.values():
        d.parts.append(f'<circle cx="{x + 6:g}" cy="{bottom + 36:g}" r="6" fill="{colour}" fill-opacity="0.85"/>')
        d.text(x + 16, bottom + 40, label, 12)
        x += 30 + len(label) * 8.2
    d.reach(left + width + 10, bottom + 48)
    return d.svg("Speed of Tamis beside its peers, from the scoreboard")


# ---------------------------------------------------------------------------------------------------------------------
# The compiler.


def pipeline(paths: bool = False) -> str:
    """From notation to machine code: the languages, what leads from one to the next, and with ``paths`` where each is."""
    d = Drawing()
    stages = [
        ("index notation", "C[i,k] = A[i,j] * B[j,k]", "what: no loops, no order", "tamis-ir/notation", BLUE),
        ("loop program", "for i, j, k in _: w[k] += A[i,j] * B[j,k]", "how: loops over tensors that look dense", "tamis-ir/program", BLUE),
        ("looplets", "stepper, spike, run, sequence, lookup", "the structure of each access, as data", "tamis-ir/looplet", GREEN),
        ("kernel", "for q in A1_pos[i]..A1_pos[i+1]", "typed scalars, buffers, for/while/if", "tamis-ir/kernel", GREEN),
        ("machine code, or C", "vmovupd, vfmadd231pd", "cached, run on the tensors' own arrays", "tamis-backend", ORANGE),
    ]
    passes = [
        ("auto-scheduling", "loop order, formats, conversions, workspaces, tiles, by a cost model", "tamis-compiler/auto, schedule"),
        ("lowering", "one loop at a time, outermost first: co-iteration, masks, windows", "tamis-compiler/lower"),
        ("", "", ""),
        ("optimisation, code generation", "CSE, LICM, scalar promotion, register tiles; vectors, prefetches", "tamis-compiler/opt, tamis-backend/llvm"),
    ]
    x, y, w, h, gap = 14.0, 14.0, 380.0, 62.0, 46.0
    for k, (name, example, about, where, colour) in enumerate(stages):
        d.box(x, y, w, h, TINT[colour], colour, 8, 1.4)
        d.text(x + 14, y + 22, name, 14, bold=True)
        if paths:
            d.text(x + w - 12, y + 22, where, 11, "end", GREY, mono=True)
        d.text(x + 14, y + 40, example, 11.5, mono=True, fill=INK)
        d.text(x + 14, y + 55, about, 11, fill=GREY)
        if k < len(passes):
            between = gap if passes[k][0] else 14.0
            d.line(x + 40, y + h, x + 40, y + h + between - 2, GREY, 1.6, arrow=True)
            name, about, where = passes[k]
            if name:
                d.text(x + 56, y + h + 19, name, 12.5, bold=True, fill=INK)
                if paths:
                    d.text(x + 56 + len(name) * 7.6 + 10, y + h + 19, where, 11, fill=GREY, mono=True)
                d.text(x + 56, y + h + 35, about, 11, fill=GREY)
            y += h + between
    right = x + w + 30
    d.box(right, 14 + h + gap, 210, h, "white", GREY, 8)
    d.text(right + 14, 14 + h + gap + 22, "reference interpreter", 13, bold=True)
    d.text(right + 14, 14 + h + gap + 40, "dense, slow: defines the meaning", 11, fill=GREY)
    if paths:
        d.text(right + 14, 14 + h + gap + 55, "tamis-ir/interp", 11, fill=GREY, mono=True)
    d.line(x + w, 14 + h + gap + h / 2, right - 2, 14 + h + gap + h / 2, GREY, 1.6, arrow=True)
    d.line(right + 190, 14 + 2 * h + gap, right + 190, y + h / 2, LIGHT, 1.4, dash="4 3")
    d.line(right + 190, y + h / 2, x + w + 4, y + h / 2, LIGHT, 1.4, arrow=True, dash="4 3")
    d.text(right + 183, y + h / 2 - 8, "--check compares", 11, "end", GREY)
    return d.svg("The pipeline of the compiler: notation, program, looplets, kernel, machine code")


PICTURES: dict[str, Callable[[], str]] = {
    "format-csr.svg": format_picture("csr", "csr = dense, sparse", ["i", "j"], [4, 4]),
    "format-csc.svg": format_picture("csc", "csc = (i,j) -> (j,i): dense, sparse", ["j", "i"], [4, 4]),
    "format-dcsr.svg": format_picture("dcsr", "dcsr = sparse, sparse", ["i", "j"], [4, 4]),
    "format-coo.svg": format_picture("coo", "coo = sparse(nonunique), singleton", ["i", "j"], [4, 4]),
    "format-bsr.svg": format_picture(
        "bsr(2,2)", "bsr(2,2) = (i,j) -> (i/2, j/2, i%2, j%2): dense, sparse, dense, dense", ["i/2", "j/2", "i%2", "j%2"], [2, 2, 2, 2], 2
    ),
    "looplets.svg": looplets,
    "merge.svg": merge,
    "loop-orders.svg": loop_orders,
    "spy.svg": spy,
    "speed.svg": speed,
    "pipeline.svg": pipeline,
    "pipeline-crates.svg": lambda: pipeline(paths=True),
}

if __name__ == "__main__":
    (DOCS / "pictures").mkdir(exist_ok=True)
    for file, picture in PICTURES.items():
        (DOCS / "pictures" / file).write_text(picture())
