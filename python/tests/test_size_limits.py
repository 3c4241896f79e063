"""Sizes at the limits of 64 bits in the Python layer and in files: a right answer, or a diagnostic that says what would work."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import tamis as tm

MOST = 2**63 - 1
SHAPES: list[tuple[int, ...]] = [(MOST,), (2**40, 2**40), (2**62, 4), (3, 2**48, 2**48), (MOST, MOST)]


def entries(shape: tuple[int, ...], format: str | None = None) -> tm.Tensor:
    """2 in the first element, 3 in the last one."""
    coords = [np.array([0, n - 1]) for n in shape]
    return tm.tensor((coords, np.array([2.0, 3.0]), shape), format or ("sparse" if len(shape) == 1 else "coo"))


def last(t: tm.Tensor) -> float:
    return float(t[tuple(n - 1 for n in t.shape)])


def attempt(compute: Callable[[], Any]) -> Any:
    """The result, or ``None`` where a diagnostic says that there is none; soon either way."""
    start = time.monotonic()
    try:
        return compute()
    except tm.Error as error:
        assert error.code in ("E0401", "E0402", "E0403", "E0404", "E0405", "E0706", "E0707", "E0904", "E1001"), error
        assert "Help" in str(error)
        return None
    finally:
        assert time.monotonic() - start < 60


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_what_a_tensor_says_of_itself(shape: tuple[int, ...]) -> None:
    x = entries(shape)
    size = 1
    for n in shape:
        size *= n
    assert (x.size, len(x), x.nnz, x.shape) == (size, shape[0], 2, shape)
    assert x.nbytes < 1000 and "2 stored" in repr(x) and "2 stored" in x._repr_html_()
    for hostile in (x.to_numpy, lambda: np.asarray(x), lambda: x.convert("dense"), lambda: tm.zeros(shape, format="dense"), lambda: tm.ones(shape)):
        with pytest.raises(tm.TooLarge):
            hostile()  # type: ignore[operator]
    assert tm.zeros(shape, format=x.format).nnz == 0 and tm.zeros(shape).nnz == 0
    for beyond in (2**63, 2**64, 10**30):
        with pytest.raises(tm.Error) as error:
            tm.zeros((beyond,), format="sparse")
        assert error.value.code == "E0404"
        with pytest.raises(tm.InvalidIndex):
            x[(beyond,) * len(shape)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_reductions(shape: tuple[int, ...]) -> None:
    x = entries(shape)
    size = x.size
    assert float(tm.sum(x)) == 5 and float(tm.max(x)) == 3 and float(tm.min(x)) == 0 and float(tm.prod(x)) == 0
    assert float(tm.mean(x)) == pytest.approx(5 / size) and int(tm.count_nonzero(x)) == 2
    assert float(tm.sum(x + 1)) == pytest.approx(float(size)) and float(tm.mean(x + 1)) == pytest.approx(1)
    assert float(tm.prod(x + 1)) == 12 and float(tm.max(x - 9)) == -6 and float(tm.min(x - 9)) == -9
    for axis in range(len(shape)):
        for reduce in (tm.sum, tm.max, tm.mean, tm.var, tm.any, tm.argmax):
            made = attempt(lambda: reduce(x, axis=axis))
            assert made is None or made.shape == shape[:axis] + shape[axis + 1 :]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_shapes(shape: tuple[int, ...]) -> None:
    x = entries(shape)
    for axis, n in enumerate(shape):
        flipped = tm.flip(x, axis=axis)
        assert flipped.nnz == 2 and float(flipped[tuple(n - 1 if d == axis else 0 for d in range(len(shape)))]) == 2
        rolled = tm.roll(x, 1, axis=axis)
        assert float(rolled[tuple(0 if d == axis else n - 1 for d, n in enumerate(shape))]) == 3
        for shift in (2**70 + 1, -(2**70) + 1, n - 1, -n):
            moved = tm.roll(x, shift, axis=axis)
            assert float(moved[tuple(shift % n if d == axis else 0 for d in range(len(shape)))]) == 2
        for count in (0, 2, 2**40):
            made = attempt(lambda: tm.repeat(x, count, axis=axis))
            if n * count > MOST or count == 2**40:
                assert made is None
            else:
                assert made.shape[axis] == n * count and made.nnz == 2 * count
            made = attempt(lambda: tm.tile(x, tuple(count if d == axis else 1 for d in range(len(shape)))))
            assert (made is None) == (n * count > MOST or count == 2**40)
            assert made is None or made.nnz == 2 * count and (count == 0 or last(made) == 3)
        joined = attempt(lambda: tm.concat([x, x], axis=axis))
        assert (joined is None) == (2 * n > MOST)
        assert joined is None or joined.nnz == 4 and last(joined) == 3
        assert n < 10 or attempt(lambda: tm.unstack(x, axis=axis)) is None
        stacked = attempt(lambda: tm.stack([x, x], axis=axis))
        assert stacked is not None and stacked.nnz == 4 and last(stacked) == 3
        taken = tm.take(x, np.array([n - 1, 0, -1]), axis=axis)
        assert taken.nnz == 3
        sliced = x[(slice(None),) * axis + (slice(None, None, 2**70),)]
        assert sliced.shape[axis] == 1 and sliced.nnz == 1
        assert x[(slice(None),) * axis + (slice(None, None, -1),)].nnz == 2
        assert x[(slice(None),) * axis + (slice(2**65, None),)].shape[axis] == 0
    assert tm.squeeze(tm.expand_dims(x, axis=0)).nnz == 2
    assert last(tm.permute_dims(x, tuple(range(len(shape)))[::-1])) == 3
    for new in ((-1,), shape[::-1], (2, -1), (2**64, -1)):
        made = attempt(lambda: tm.reshape(x, new))
        assert made is None or made.nnz == 2 and last(made) == 3


def test_moved_elements_are_those_of_numpy() -> None:
    """The coordinate arithmetic above, on sizes that NumPy can hold."""
    rng = np.random.default_rng(0)
    for shape in ((7,), (1, 5), (4, 6), (2, 3, 4), (0, 3)):
        array = rng.integers(0, 3, shape).astype(float)
        for format in ("dense", {1: "sparse", 2: "csr", 3: "csf"}[len(shape)], ", ".join(["sparse"] * len(shape))):
            t = tm.tensor(array, format=format)
            for axis in range(len(shape)):
                for count in (0, 1, 3):
                    np.testing.assert_array_equal(tm.repeat(t, count, axis=axis).to_numpy(), np.repeat(array, count, axis))
                for shift in (-9, -1, 0, 2, 11):
                    np.testing.assert_array_equal(tm.roll(t, shift, axis=axis).to_numpy(), np.roll(array, shift, axis))
                for step in (1, 3, -2, 100, -100):
                    key = (slice(None),) * axis + (slice(None, None, step),)
                    np.testing.assert_array_equal(np.asarray(t[key].to_numpy()), array[key])
            for times in (2, (2, 1), (1, 3), (0,), (2, 1, 1, 3)):
                np.testing.assert_array_equal(tm.tile(t, times).to_numpy(), np.tile(array, times))
    for wrong in (1.5, [1, 2], None):
        with pytest.raises(tm.Error):
            tm.repeat([1, 2], wrong, axis=0)
    with pytest.raises(tm.Error):
        tm.repeat([1, 2], -1)
    with pytest.raises(tm.Error):
        tm.roll([1, 2], 0.5)


def test_products_and_notation() -> None:
    n = 2**40
    v = entries((n,))
    assert tm.outer(v, v).nnz == 4 and last(tm.outer(v, v)) == 9
    assert float(tm.tensordot(v, v, axes=1)) == 13
    for form in ("sparse_runs", "blocks", "sparse", "hash"):
        a, b = v.convert(form), tm.tensor(([[5, n - 1]], [1.0, 7.0], (n,)), "sparse")
        for text, wanted in (
            ("C[i] = A[i] + B[i]", [2, 1, 10]),
            ("C[i] = min(A[i], B[i])", [0, 0, 3]),
            ("C[i] = max(A[i], B[i])", [2, 1, 7]),
            ("C[i] = A[i] - B[i]", [2, -1, -4]),
            ("C[i] = A[i] * B[i]", [0, 0, 21]),
        ):
            made = tm.einsum(text, A=a, B=b)
            assert [float(made[k]) for k in (0, 5, n - 1)] == wanted, (form, text)
    for size in (2**62, MOST, 2**63, 2**64, -1):
        attempt_in_notation = attempt(lambda: tm.einsum("y[i] = 2.0 * i for i in range(n)", n=size)) if size < 2**63 else None
        assert attempt_in_notation is None or attempt_in_notation.shape == (0,)
        with pytest.raises(tm.Error):
            tm.einsum("y[i] = x[i + n] for i in range(3)", x=np.ones(4), n=size)


GALLERY: list[Callable[[int], Any]] = [
    lambda n: tm.gallery.random((n, n), 1e-60),
    lambda n: tm.gallery.random((n, n), 0.5),
    lambda n: tm.gallery.ones((n, n)),
    lambda n: tm.gallery.identity(n),
    lambda n: tm.gallery.banded(n, 2),
    lambda n: tm.gallery.permutation(n),
    lambda n: tm.gallery.laplacian(n),
    lambda n: tm.eye(n),
    lambda n: tm.arange(n),
    lambda n: tm.linspace(0, 1, n),
]


@pytest.mark.parametrize("n", [2**48, 2**62, MOST])
def test_generators(n: int) -> None:
    for generate in GALLERY:
        assert attempt(lambda: generate(n)) is None


NUMBERS = [2**48, 2**62, MOST, 2**63, 2**64 - 1, 2**64, 10**30, -1]


@pytest.mark.parametrize("n", NUMBERS)
def test_headers_of_files(tmp_path: Path, n: int) -> None:
    files = {
        "a.mtx": f"%%MatrixMarket matrix coordinate real general\n{n} 3 1\n1 1 5.0\n",
        "b.mtx": f"%%MatrixMarket matrix coordinate real symmetric\n{n} {n} 1\n{n} 1 5.0\n",
        "c.mtx": f"%%MatrixMarket matrix coordinate real general\n3 3 {n}\n1 1 5.0\n",
        "d.mtx": f"%%MatrixMarket matrix array real general\n{n} {n}\n1\n",
        "a.tns": f"{n} {n} 5.0\n1 1 2.0\n",
        "b.tns": f"1 1 {n} 5.0\n1 1 1 2.0\n",
        "a.smtx": f"1, {n}, {n}\n0 1\n0\n",
        "a.pgm": f"P2\n{n} {n} 255\n1 2\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
        for format in (None, "coo", "csr", "dense"):
            try:
                made = tm.read(tmp_path / name, format=format)
            except tm.Error as error:
                assert error.code != "E1101" and str(error)
            else:
                assert 0 < n <= MOST and n in made.shape and made.nnz <= 2
    if not -(2**63) <= n < 2**63:
        return
    members = {"format": np.array("coo"), "shape": np.array([n, 3]), "data": np.ones(1), "row": np.array([0]), "col": np.array([0])}
    np.savez(tmp_path / "a.npz", **members)
    members = {"format": np.array("csr"), "shape": np.array([n, 3]), "data": np.ones(1), "indices": np.array([0]), "indptr": np.array([0, 1])}
    np.savez(tmp_path / "b.npz", **members)
    assert n < 0 or tm.read(tmp_path / "a.npz", format="coo").shape == (n, 3)
    for path in ("a.npz", "b.npz"):
        if path == "b.npz" or n < 0:
            with pytest.raises(tm.Error):
                tm.read(tmp_path / path)
        with pytest.raises(tm.Error):
            tm.read(tmp_path / path, format="dense")


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("ending", ["tns", "npz", "bsp.npz", "mtx", "npy"])
def test_round_trips(tmp_path: Path, shape: tuple[int, ...], ending: str) -> None:
    x = entries(shape)
    path = tmp_path / f"t.{ending}"
    if ending == "npy" or ending == "mtx" and len(shape) > 2:
        with pytest.raises(tm.Error):
            tm.write(path, x)
        return
    tm.write(path, x)
    back = tm.read(path, format="coo" if ending == "mtx" or len(shape) > 1 else "sparse")
    assert back.nnz == 2 and last(back) == 3 and np.prod([float(n) for n in back.shape]) == np.prod([float(n) for n in shape])
