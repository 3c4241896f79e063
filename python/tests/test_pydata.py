"""Archives of pydata/sparse: read, and written so that it can read them."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import tamis as tm


def _gcxs(dense: np.ndarray, axes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """The members that pydata/sparse writes for its format of compressed dimensions."""
    others = tuple(axis for axis in range(dense.ndim) if axis not in axes)
    rows = int(np.prod([dense.shape[axis] for axis in axes]))
    columns = int(np.prod([dense.shape[axis] for axis in others]))
    matrix = sp.csr_array(dense.transpose(axes + others).reshape(rows, columns))
    members = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr if axes else np.array([], dtype=np.int64)}
    members |= {"compressed_axes": np.array(axes, dtype=np.intp), "shape": np.array(dense.shape)}
    return members | {"format": np.array("gcxs"), "fill_value": np.array(0.0)}


@pytest.mark.parametrize("shape", [(5,), (4, 6), (3, 4, 5), (2, 3, 2, 4), (3, 0, 2)])
def test_what_pydata_sparse_writes(tmp_path: Path, shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    dense = rng.random(shape) * (rng.random(shape) < 0.4)
    path = tmp_path / "t.npz"
    for count in range(0 if len(shape) == 1 else 1, len(shape)):
        for axes in itertools.permutations(range(len(shape)), count):
            np.savez(path, **_gcxs(dense, axes))
            np.testing.assert_array_equal(tm.read(path).to_numpy(), dense)
    coords = np.argwhere(dense).T
    members = {"format": np.array("coo"), "shape": np.array(shape), "data": dense[tuple(coords)], "coords": coords}
    np.savez(path, **members, fill_value=np.array(7.0))
    found = tm.read(path)
    np.testing.assert_array_equal(found.to_numpy(), np.where(dense == 0, 7.0, dense))
    assert found.fill_value == 7.0
    np.savez(path, **members, fill_value=np.array([1.0, 2.0]))
    with pytest.raises(tm.Error, match="fill_value"):
        tm.read(path)


def test_hostile_compressed_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    members = _gcxs(np.eye(4).reshape(2, 2, 4), (0, 1))
    wrong: list[dict[str, np.ndarray]] = [
        {"compressed_axes": np.array([0, 0])},
        {"compressed_axes": np.array([3])},
        {"compressed_axes": np.array([-1])},
        {"indices": np.array([0, 1, 2, 99])},
        {"indptr": np.array([0, 4])},
        {"shape": np.array([2**62, 2**62, 4])},
    ]
    for change in wrong:
        np.savez(path, **(members | change))
        with pytest.raises(tm.Error):
            tm.read(path)


def test_what_pydata_sparse_reads(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    for t in [tm.gallery.random((6, 7), 0.3, 1).convert("coo"), tm.gallery.random((3, 4, 5), 0.3, 1), tm.tensor([0.0, 2.0, 0.0], format="sparse")]:
        tm.write(path, t)
        with np.load(path) as members:
            assert members["format"].item() == "coo" and members["fill_value"][()] == 0
            coords, back = members["coords"], np.zeros(members["shape"])
            back[tuple(coords)] = members["data"]
        np.testing.assert_array_equal(back, t.to_numpy())
        np.testing.assert_array_equal(tm.read(path).to_numpy(), t.to_numpy())
    # What is not stored may be another number, which SciPy, reading the same file, would take for 0.
    filled = tm.tensor([[7.0, 1.0], [7.0, 7.0]], format="coo", fill=7.0)
    with pytest.raises(tm.Error, match="bsp"):
        tm.write(path, filled)
    tm.write(tmp_path / "t.bsp.npz", filled)
    assert tm.read(tmp_path / "t.bsp.npz").fill_value == 7.0
