"""Benchmark inputs: synthetic matrices, tensors and images, and files of the shared data."""

from __future__ import annotations

import gzip
import os
import re
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from .tensors import Coordinates, small

#: The data folder: next to the project, or TAMIS_DATA.
DATA = os.environ.get("TAMIS_DATA", os.path.join(os.path.dirname(__file__), "../../../shared/data"))

#: Generators of synthetic matrices, in full size and for `--quick`.
SYNTHETIC = {
    "rand200k": (("random", 200_000, 10), ("random", 20_000, 10)),
    "lap1000": (("laplacian", 1000), ("laplacian", 200)),
    "band10k": (("banded", 10_000, 50), ("banded", 2_000, 50)),
    "tri1m": (("banded", 1_000_000, 1), ("banded", 50_000, 1)),
    "rmat17": (("rmat", 17, 16), ("rmat", 13, 8)),
    "spmm20k": (("random", 20_000, 20), ("random", 4_000, 20)),
    "spgemm20k": (("random", 20_000, 10), ("random", 4_000, 10)),
    "rmat14": (("rmat", 14, 16), ("rmat", 10, 8)),
    "lap300": (("laplacian", 300), ("laplacian", 60)),
    "blocks4": (("blocked", 80_000, 4, 5), ("blocked", 8_000, 4, 5)),
}


class Absent(Exception):
    """A missing input, with the reason."""


def path_of(folder: str, name: str) -> str:
    """A file of the shared data."""
    path = os.path.join(DATA, folder, name)
    if not os.path.exists(path):
        raise Absent(f"there is no {folder}/{name} in the shared data (TAMIS_DATA names another folder)")
    return path


class Inputs:
    """Generates or reads inputs, and caches them."""

    def __init__(self, quick: bool) -> None:
        self.quick = quick
        self._kept: dict[Any, Any] = {}

    def kept(self, key: Any, make: Any) -> Any:
        if key not in self._kept:
            # The cache is small: the largest inputs have a hundred megabytes.
            if len(self._kept) > 12:
                self._kept.pop(next(iter(self._kept)))
            self._kept[key] = make()
        return self._kept[key]

    def matrix(self, name: str) -> sp.csr_array:
        """A synthetic matrix, or a file of `matrices` or another folder; f64, sorted rows."""
        return self.kept(name, lambda: self._matrix(name))

    def _matrix(self, name: str) -> sp.csr_array:
        if name not in SYNTHETIC:
            return file_matrix(name)
        kind, *given = SYNTHETIC[name][self.quick]
        numbers = [int(number) for number in given]
        if kind == "random":
            return random_rows(*numbers)
        if kind == "blocked":
            return blocked(*numbers)
        import tamis as tm

        return small(sp.csr_array(tm.gallery.generate(f"{kind}({','.join(map(str, numbers))})").to_scipy()).astype(np.float64))

    def graph(self, name: str) -> sp.csr_array:
        """Edges with weights between 1/2 and 3/2, without self-loops."""

        def make() -> sp.csr_array:
            edges = sp.coo_array(self.matrix(name))
            apart = edges.row != edges.col
            row, col = edges.row[apart].astype(np.int64), edges.col[apart].astype(np.int64)
            return small(sp.csr_array((weights(row, col), (row, col)), shape=edges.shape))

        return self.kept(("graph", name), make)

    def undirected(self, name: str) -> sp.csr_array:
        """The same graph with every edge in both directions, weight 1."""

        def make() -> sp.csr_array:
            graph = self.graph(name)
            both = small(sp.csr_array(graph + graph.T))
            both.data[:] = 1.0
            return both

        return self.kept(("undirected", name), make)

    def tensor(self, name: str) -> Coordinates:
        return self.kept(name, lambda: self._tensor(name))

    def _tensor(self, name: str) -> Coordinates:
        if name != "tens3":
            return file_tensor(path_of("tensors", name))
        shape, count = ((100, 200, 300), 20_000) if self.quick else ((1000, 2000, 3000), 2_000_000)
        drawn = np.unique(np.random.default_rng(3).integers(0, np.prod(shape), count))
        coords = np.stack(np.unravel_index(drawn, shape))
        return Coordinates(shape, coords, np.random.default_rng(4).random(len(drawn)))

    def dense(self, rows: int, columns: int, dtype: Any = np.float64, seed: int = 0) -> NDArray[Any]:
        """A random dense matrix; a vector if `columns` is 0."""
        shape = (rows, columns) if columns else (rows,)
        return self.kept((shape, np.dtype(dtype).name, seed), lambda: np.random.default_rng(seed).random(shape).astype(dtype))

    def image(self, name: str) -> NDArray[np.uint8]:
        """Bytes in row-major order; binary images have 0 and 255. `NAME*4` is magnified four times."""

        def make() -> NDArray[np.uint8]:
            file, _, scale = name.partition("*")
            image = read_image(path_of("images", file))
            return np.ascontiguousarray(image.repeat(int(scale), 0).repeat(int(scale), 1)) if scale else image

        return self.kept(("image", name), make)

    def sparse_image(self, name: str) -> sp.csr_array:
        """Random values at the nonzeros of an image; `img999` is synthetic."""
        if name != "img999":
            return small(sp.csr_array(self.image(name).astype(np.float64) / 255))
        n = 199 if self.quick else 999
        rng = np.random.default_rng(9)
        return self.kept(name, lambda: small(sp.random_array((n, n), density=0.01, format="csr", rng=rng)))


def random_rows(rows: int, entries: int, seed: int = 1) -> sp.csr_array:
    """A random matrix with a number of entries per row (fewer where columns coincide), uniform in (0, 1)."""
    rng = np.random.default_rng(seed)
    columns = rng.integers(0, rows, rows * entries)
    matrix = sp.csr_array((rng.random(rows * entries), columns, np.arange(0, rows * entries + 1, entries)), shape=(rows, rows))
    return small(matrix)


def blocked(rows: int, block: int, entries: int) -> sp.csr_array:
    """A matrix of dense blocks, with a number of blocks per block row."""
    places = random_rows(rows // block, entries, 5)
    values = np.random.default_rng(6).random((places.nnz, block, block))
    return small(sp.csr_array(sp.bsr_array((values, places.indices, places.indptr), shape=(rows, rows)).tocsr()))


@lru_cache(maxsize=16)
def file_matrix(name: str) -> sp.csr_array:
    """A file of the shared data; patterns get pseudo-random values."""
    from scipy.io import mmread

    folder, _, file = name.rpartition("/")
    path = path_of(folder or "matrices", file if file.endswith(".smtx.gz") else f"{file}.mtx.gz")
    if path.endswith(".smtx.gz"):
        return read_smtx(path)
    with gzip.open(path) as content:
        pattern = b"pattern" in content.readline()
    matrix = small(sp.csr_array(mmread(path)).astype(np.float64))
    if pattern:
        entries = matrix.tocoo()
        matrix.data = weights(entries.row.astype(np.int64), entries.col.astype(np.int64))
    return matrix


def weights(row: NDArray[np.int64], col: NDArray[np.int64]) -> NDArray[np.float64]:
    """Pseudo-random values between 1/2 and 3/2, symmetric."""
    mixed = (np.minimum(row, col) * 2_654_435_761 ^ np.maximum(row, col) * 40_503) % 1_000_003
    return 0.5 + mixed / 1_000_003


def read_smtx(path: str) -> sp.csr_array:
    """A weight matrix of the Deep Learning Matrix Collection: its pattern."""
    with gzip.open(path, "rt") as file:
        rows, columns, _ = map(int, file.readline().replace(",", " ").split())
        offsets, places = (np.array(file.readline().split(), dtype=np.int32) for _ in range(2))
    values = np.random.default_rng(7).standard_normal(len(places))
    return small(sp.csr_array((values, places, offsets), shape=(rows, columns)))


def file_tensor(path: str) -> Coordinates:
    """A FROSTT file."""
    with gzip.open(path, "rt") if path.endswith(".gz") else open(path, encoding="ascii") as file:
        table = np.loadtxt(file, comments="#", ndmin=2)
    coords = table[:, :-1].astype(np.int64).T - 1
    order = np.lexsort(coords[::-1])
    shape = tuple(int(n) + 1 for n in coords.max(axis=1))
    return Coordinates(shape, np.ascontiguousarray(coords[:, order]), np.ascontiguousarray(table[order, -1]))


def read_image(path: str) -> NDArray[np.uint8]:
    """A binary or a grey image in one of Netpbm's formats."""
    with (gzip.open if path.endswith(".gz") else open)(path, "rb") as file:
        content = file.read()
    header = re.match(rb"P([45])\s+(?:#.*\n\s*)*(\d+)\s+(?:#.*\n\s*)*(\d+)\s(?:(\d+)\s)?", content)
    if header is None:
        raise Absent(f"{os.path.basename(path)} is no image in one of the formats P4 and P5")
    columns, rows = int(header[2]), int(header[3])
    if header[1] == b"4":
        start = header.end(3) + 1
        bits = np.frombuffer(content, np.uint8, offset=start).reshape(rows, -1)
        return np.unpackbits(bits, axis=1, count=columns) * np.uint8(255)
    return np.frombuffer(content, np.uint8, offset=header.end()).reshape(rows, columns)
