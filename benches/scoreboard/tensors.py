"""Sparse tensors in the formats of the peers: COO, CSF, and unfolded matrices."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray


@dataclass(frozen=True)
class Lists:
    """CSF: positions and coordinates of each level, and the values; 32-bit indices on all sides."""

    pos: tuple[NDArray[np.int32], ...]
    crd: tuple[NDArray[np.int32], ...]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Coordinates:
    """A COO tensor with sorted, unique coordinates."""

    shape: tuple[int, ...]
    coords: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def nnz(self) -> int:
        return len(self.values)

    @cached_property
    def lists(self) -> Lists:
        """As CSF."""
        pos, crd = [], []
        fiber = np.zeros(self.nnz, dtype=np.int64)
        for column in self.coords:
            first = np.ones(self.nnz, dtype=bool)
            first[1:] = (column[1:] != column[:-1]) | (fiber[1:] != fiber[:-1])
            parents = fiber[first]
            counts = np.bincount(parents, minlength=int(fiber[-1]) + 1 if self.nnz else 1)
            pos.append(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
            crd.append(column[first].astype(np.int32))
            fiber = np.cumsum(first) - 1
        return Lists(tuple(pos), tuple(crd), self.values)

    @cached_property
    def pairs(self) -> NDArray[np.int64]:
        """The linearised coordinates of the fibers along the last dimension: sorted, unique."""
        return np.unique(self._leading)

    @cached_property
    def _leading(self) -> NDArray[np.int64]:
        place = np.zeros(self.nnz, dtype=np.int64)
        for size, column in zip(self.shape[:-1], self.coords[:-1]):
            place = place * size + column
        return place

    @cached_property
    def unfolded(self) -> sp.csr_array:
        """The unfolded matrix: a row per nonempty fiber along the last dimension."""
        rows = np.searchsorted(self.pairs, self._leading)
        shape = (len(self.pairs), self.shape[-1])
        return small(sp.csr_array((self.values, (rows, self.coords[-1])), shape=shape))


def small(matrix: sp.csr_array) -> sp.csr_array:
    """The same matrix with sorted rows and 32-bit coordinates."""
    matrix = sp.csr_array(matrix)
    matrix.sum_duplicates()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
    return matrix
