"""Generators of test matrices and tensors.

>>> import tamis as tm
>>> tm.gallery.laplacian(10).shape
(100, 100)
>>> [name for name, signature, about in tm.gallery.generators()][:3]
['rand', 'ones', 'laplacian']
"""

from __future__ import annotations

from typing import Sequence

from . import _tamis
from ._tensor import Tensor

__all__ = [
    "banded",
    "blocked",
    "diagonal",
    "generate",
    "generators",
    "identity",
    "laplacian",
    "laplacian3",
    "ones",
    "permutation",
    "random",
    "rmat",
    "triangular",
]


def generators() -> list[tuple[str, str, str]]:
    """Every generator: its name, how it is written as text, and what it makes."""
    return _tamis.generators()


def generate(text: str, format: str | None = None) -> Tensor:
    """Evaluates a generator call given as text, as on the command line.

    >>> import tamis as tm
    >>> tm.gallery.generate("banded(5, 1)").nnz
    13
    """
    return _tamis.generate(text, format)


def _call(name: str, *arguments: object, format: str | None) -> Tensor:
    return _tamis.generate(f"{name}({', '.join(str(a) for a in arguments if a is not None)})", format)


def _sizes(shape: int | Sequence[int]) -> str:
    return str(shape) if isinstance(shape, int) else ", ".join(str(n) for n in shape)


def random(shape: int | Sequence[int], density: float = 1.0, seed: int = 0, *, format: str | None = None) -> Tensor:
    """Random entries, uniform in (0, 1), at random coordinates; ``density`` is the share of stored elements.

    >>> import tamis as tm
    >>> tm.gallery.random((10, 20), 0.1, seed=1).nnz
    20
    """
    return _tamis.generate(f"rand({_sizes(shape)}; {density!r}; {seed})", format)


def ones(shape: int | Sequence[int], *, format: str | None = None) -> Tensor:
    """1 everywhere."""
    return _tamis.generate(f"ones({_sizes(shape)})", format)


def laplacian(n: int, m: int | None = None, *, format: str | None = None) -> Tensor:
    """The 5-point Laplacian of an n x n (or n x m) grid."""
    return _call("laplacian", n, m, format=format)


def laplacian3(n: int, m: int | None = None, k: int | None = None, *, format: str | None = None) -> Tensor:
    """The 7-point Laplacian of an n x n x n (or n x m x k) grid."""
    return _call("laplacian3", n, m, k, format=format)


def banded(n: int, lower: int, upper: int | None = None, *, seed: int = 0, format: str | None = None) -> Tensor:
    """A banded matrix with dense diagonals: ``lower`` below the main one, and as many (or ``upper``) above it."""
    return _call("banded", n, lower, lower if upper is None else upper, f"seed={seed}", format=format)


def blocked(n: int, block: int, density: float = 0.1, seed: int = 0, *, format: str | None = None) -> Tensor:
    """Dense aligned blocks."""
    return _call("blocked", n, block, density, seed, format=format)


def triangular(n: int, part: str = "lower", seed: int = 0, *, format: str | None = None) -> Tensor:
    """A full triangle with its diagonal."""
    return _call("triangular", n, f'"{part}"', seed, format=format)


def diagonal(n: int, seed: int = 0, *, format: str | None = None) -> Tensor:
    """Values uniform in (0, 1) on the diagonal."""
    return _call("diagonal", n, seed, format=format)


def identity(n: int, *, format: str | None = None) -> Tensor:
    """1 on the diagonal."""
    return _call("identity", n, format=format)


def permutation(n: int, seed: int = 0, *, format: str | None = None) -> Tensor:
    """A random permutation matrix."""
    return _call("permutation", n, seed, format=format)


def rmat(scale: int, edges_per_node: int, seed: int = 0, *, format: str | None = None) -> Tensor:
    """An R-MAT graph of ``2**scale`` nodes with Graph500's probabilities."""
    return _call("rmat", scale, edges_per_node, seed, format=format)
