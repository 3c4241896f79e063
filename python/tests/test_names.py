"""Functions with the names of NumPy and SciPy: the same results in every format, and never an array of every element."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest
import scipy.sparse as sp

import tamis as tm

FORMATS = ["dense", "csr", "csc", "coo", "dcsr", "bsr(2,2)", "dense, runs"]
RNG = np.random.default_rng(7)
X = RNG.integers(-3, 4, (6, 4)) * (RNG.random((6, 4)) < 0.4) * 1.0
Y = RNG.integers(-3, 4, (6, 4)) * (RNG.random((6, 4)) < 0.4) * 1.0
X[2, 1] = np.nan
V = np.array([0.0, 3.0, 0.0, -1.0, 3.0])

#: What is called on a matrix, by NumPy on an array.
UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "nansum": (lambda t: tm.nansum(t, axis=0), lambda x: np.nansum(x, axis=0)),
    "nansum, all": (lambda t: t.nansum(), lambda x: np.nansum(x)),
    "nanprod": (lambda t: tm.nanprod(t, axis=1), lambda x: np.nanprod(x, axis=1)),
    "nanmin": (lambda t: tm.nanmin(t, axis=1), lambda x: np.nanmin(x, axis=1)),
    "nanmax": (lambda t: tm.nanmax(t, axis=0, keepdims=True), lambda x: np.nanmax(x, axis=0, keepdims=True)),
    "nanmean": (lambda t: tm.nanmean(t, axis=0), lambda x: np.nanmean(x, axis=0)),
    "hstack": (lambda t: tm.hstack([t, t]), lambda x: np.hstack([x, x])),
    "vstack": (lambda t: tm.vstack([t, np.ones(4)]), lambda x: np.vstack([x, np.ones(4)])),
    "concat": (lambda t: tm.concat([t, t, t], axis=1), lambda x: np.concatenate([x, x, x], axis=1)),
    "flip": (lambda t: tm.flip(t), lambda x: np.flip(x)),
    "flip 0": (lambda t: tm.flip(t, 0), lambda x: np.flip(x, 0)),
    "flip 1": (lambda t: tm.flip(t, axis=1), lambda x: np.flip(x, 1)),
    "swapaxes": (lambda t: tm.swapaxes(t, 0, 1), lambda x: np.swapaxes(x, 0, 1)),
    "pad": (lambda t: tm.pad(t, ((1, 2), (0, 3))), lambda x: np.pad(x, ((1, 2), (0, 3)))),
    "pad by one number": (lambda t: tm.pad(t, 1), lambda x: np.pad(x, 1)),
    "cumsum 0": (lambda t: tm.cumsum(tm.where(t == t, t, 0), 0), lambda x: np.cumsum(np.where(x == x, x, 0), 0)),
    "cumsum 1": (lambda t: tm.cumsum(t, axis=1), lambda x: np.cumsum(x, 1)),
    "cumsum": (lambda t: tm.cumsum(t), lambda x: np.cumsum(x)),
    "sort": (lambda t: tm.sort(t, 1), lambda x: np.sort(x, 1)),
    "sort 0": (lambda t: tm.sort(t, axis=0), lambda x: np.sort(x, 0)),
    "descending": (lambda t: tm.sort(t, descending=True), lambda x: np.flip(np.sort(x), -1)),
    "isin": (lambda t: tm.isin(t, [3.0, 0.0]), lambda x: np.isin(x, [3.0, 0.0])),
    "not in": (lambda t: tm.isin(t, [3.0], invert=True), lambda x: np.isin(x, [3.0], invert=True)),
    "isclose": (lambda t: tm.isclose(t, Y), lambda x: np.isclose(x, Y)),
    "isclose, NaN": (lambda t: tm.isclose(t, t, equal_nan=True), lambda x: np.isclose(x, x, equal_nan=True)),
    "diagonal": (lambda t: tm.diag(t, 1), lambda x: np.diag(x, 1)),
    "argwhere": (lambda t: tm.argwhere(t), lambda x: np.argwhere(x)),
    "flatnonzero": (lambda t: tm.flatnonzero(t), lambda x: np.flatnonzero(x)),
    "power": (lambda t: t.power(2), lambda x: x**2),
    "multiply": (lambda t: t.multiply(Y), lambda x: x * Y),
    "maximum": (lambda t: t.maximum(1.0), lambda x: np.maximum(x, 1.0)),
    "minimum": (lambda t: t.minimum(t * 2), lambda x: np.minimum(x, 2 * x)),
    "arcsin": (lambda t: (t / 9).arcsin(), lambda x: np.arcsin(x / 9)),
    "rint": (lambda t: (t / 2).rint(), lambda x: np.rint(x / 2)),
    "deg2rad": (lambda t: t.deg2rad(), lambda x: np.deg2rad(x)),
    "round": (lambda t: (t / 3).round(1), lambda x: np.round(x / 3, 1)),
    "toarray": (lambda t: t.toarray(order="F"), lambda x: x),
    "eliminate_zeros": (lambda t: (t * 0).eliminate_zeros(), lambda x: x * 0),
    "getnnz": (lambda t: (t != 0).eliminate_zeros().astype(int).sum(axis=0), lambda x: np.count_nonzero(x, axis=0)),
    "positional axis": (lambda t: tm.sum(t, 0), lambda x: np.sum(x, 0)),
    "mask": (lambda t: t[t > 0], lambda x: x[x > 0]),
    "mask of rows": (lambda t: t[np.array([True, False, True, True, False, False])], lambda x: x[[0, 2, 3]]),
    "rows backwards": (lambda t: t[::-2], lambda x: x[::-2]),
}


def same(made: Any, expected: Any, about: Any) -> None:
    found, wanted = np.asarray(made), np.asarray(expected)
    assert found.shape == wanted.shape, (about, found.shape, wanted.shape)
    np.testing.assert_allclose(found, wanted, err_msg=str(about))


@pytest.mark.parametrize("format", FORMATS)
def test_functions_of_a_matrix(format: str) -> None:
    t = tm.tensor(X, format=format)
    for name, (ours, theirs) in UNARY.items():
        same(ours(t), theirs(X), (name, format))


@pytest.mark.parametrize("format", ["dense", "sparse"])
def test_functions_of_a_vector(format: str) -> None:
    t = tm.tensor(V, format=format)
    counts = tm.tensor(np.array([0, 2, 0, 1, 2]), format=format)
    same(tm.cumsum(t), np.cumsum(V), format)
    same(tm.diag(t), np.diag(V), format)
    same(tm.diag(t, -2), np.diag(V, -2), format)
    same(tm.hstack([t, t]), np.hstack([V, V]), format)
    same(tm.vstack([t, t]), np.vstack([V, V]), format)
    same(tm.bincount(counts), [2, 1, 2], format)
    same(tm.bincount(counts, minlength=5), [2, 1, 2, 0, 0], format)
    same(tm.bincount(counts, weights=[1.0, 2.0, 3.0, 4.0, 5.0]), np.bincount([0, 2, 0, 1, 2], [1.0, 2.0, 3.0, 4.0, 5.0]), format)
    values, number = tm.unique(t, return_counts=True)
    same(values, [-1, 0, 3], format)
    same(number, [1, 2, 2], format)
    assert tm.allclose(t, V) and not tm.allclose(t, V + 1) and tm.array_equal(t, V) and t.tolist() == V.tolist()


def test_running_sums_of_sparse_tensors_are_runs() -> None:
    t = tm.tensor((([0, 3, 10**8], [5, 0, 10**9]), [1, 2, 3], (10**9, 10**10)), format="dcsr")
    with pytest.raises(tm.TooLarge):
        tm.cumsum(t, 1)  # A run for each of 10^9 rows.
    v = tm.tensor(([[5, 10**9]], [1, 2], (10**10,)), format="sparse")
    sums = tm.cumsum(v)
    assert (sums[4], sums[5], sums[10**9 - 1], sums[10**9], sums[10**10 - 1]) == (0, 1, 1, 3, 3) and sums.nbytes < 1000
    with pytest.raises(tm.Error):
        tm.cumsum(v + 1)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", None])
def test_constructors_of_scipy(format: str | None) -> None:
    A, B = np.array([[1.0, 2.0], [0.0, 3.0]]), np.array([[4.0, 0.0, 5.0]])
    for made, expected in [
        (tm.diags([1, 2, 3], format=format), sp.diags_array([1, 2, 3])),
        (tm.diags([[1, 2], [3.0, 4, 5], [6]], [-1, 0, 2], format=format), sp.diags_array([[1, 2], [3.0, 4, 5], [6]], offsets=[-1, 0, 2])),
        (tm.diags([1, -2], [0, 1], shape=(3, 5), format=format), sp.diags_array([1, -2], offsets=[0, 1], shape=(3, 5))),
        (tm.spdiags([[1, 2, 3], [4, 5, 6]], [0, -1], 3, 3, format), sp.spdiags(np.array([[1, 2, 3], [4, 5, 6]]), [0, -1], 3, 3)),
        (tm.block_diag([A, B, 7], format=format), sp.block_diag([A, B, 7])),
        (tm.block_array([[A, None], [None, B]], format=format), sp.block_array([[sp.csr_array(A), None], [None, sp.csr_array(B)]])),
        (tm.kron(A, B, format=format), sp.kron(A, B)),
        (tm.kron(sp.csr_array(A), tm.tensor(B, "csr"), format), sp.kron(A, B)),
        (tm.kronsum(A, A, format=format), sp.kronsum(A, A)),
        (tm.identity(3, format=format), sp.eye_array(3)),
        (tm.hstack([sp.csr_array(A), tm.tensor(A, "csr")], format), sp.hstack([sp.csr_array(A), A])),
        (tm.vstack([tm.tensor(A, "csc"), A], format, "f4"), sp.vstack([sp.csr_array(A), A])),
        (tm.tril(A, -1), sp.tril(A, -1)),
        (tm.triu(A, k=1), sp.triu(A, 1)),
    ]:
        same(made, expected.toarray(), format)
        assert format is None or made.ndim != 2 or made.format in (format, "dense")
    for found, wanted in zip(tm.find(sp.csr_array(A)), sp.find(sp.csr_array(A))):
        same(np.sort(found), np.sort(wanted), "find")
    drawn = tm.random(50, 40, density=0.1, format=format or "csr", rng=1)
    assert drawn.nnz == 200 and drawn.shape == (50, 40) and tm.array_equal(drawn, tm.random(50, 40, density=0.1, rng=1))
    assert tm.random((3, 3), density=1.0).nnz == 9 and tm.random(10**9, 10**9, density=1e-16).nnz == 100
    assert tm.random_array((4, 4), density=0.5, dtype="f4").dtype == np.float32


def test_mistakes_of_constructors() -> None:
    for wrong in (
        lambda: tm.diags([[1, 2], [3]], [0]),
        lambda: tm.diags([[1, 2, 3, 4]], [0], shape=(2, 2)),
        lambda: tm.diags([1, 2], [0, 0], shape=(3, 3)),
        lambda: tm.block_array([[None, None]]),
        lambda: tm.block_array([[np.eye(2)], [np.eye(3)]]),
        lambda: tm.block_array([[1], [1, 2]]),
        lambda: tm.kronsum(np.ones((2, 3)), np.eye(2)),
        lambda: tm.kron(tm.eye(2, format="csr") + 1, np.eye(2)),
        lambda: tm.random(3, 3, density=2.0),
        lambda: tm.pad(np.eye(2), -1),
        lambda: tm.pad(tm.eye(2, format="csr"), 1, constant_values=5),
        lambda: tm.pad(np.eye(2), (1, 2, 3)),
        lambda: tm.topk(np.eye(2), -1),
        lambda: tm.bincount([-1]),
        lambda: tm.bincount([0.5]),
        lambda: tm.bincount([[1]]),
        lambda: tm.argsort(tm.eye(3, format="csr")),
        lambda: tm.eye(3).setdiag(1),
        lambda: tm.eye(3).tolil(),
        lambda: tm.eye(3).resize(2, 2),
        lambda: tm.eye(3).asformat("lil"),
    ):
        with pytest.raises(tm.Error) as caught:
            wrong()
        assert caught.value.help


@pytest.mark.parametrize("format", FORMATS)
def test_greatest_of_each_row(format: str) -> None:
    x = np.array([[0.0, 5.0, 7.0, 6.0], [-1.0, 0.0, -2.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    found = tm.topk(tm.tensor(x, format=format), 2)
    least = tm.topk(tm.tensor(x, format=format), 2, axis=0, largest=False)
    if format == "dense":
        same(found.values, -np.sort(-x, axis=1)[:, :2], format)
        same(least.values, np.sort(x, axis=0)[:2], format)
    elif format in ("csr", "csc", "coo", "dcsr"):
        same(found.values, [[7, 6], [-1, -2], [0, 0]], format)
        same(found.indices, [[2, 3], [0, 2], [-1, -1]], format)
        same(least.indices, [[1, 0, 1, 0], [-1, -1, 0, -1]], format)


UPDATES: list[tuple[Any, Any]] = [
    ((0, 1), 9.0),
    ((slice(None), 1), 5.0),
    (2, 0.0),
    ((slice(0, 4, 2), slice(None, None, -2)), 3.0),
    (([0, 0, 5], [1, 1, 2]), [1.0, 2.0, 3.0]),
    (([3, 1], slice(1, 3)), [[1.0, 2.0], [3.0, 4.0]]),
    ((slice(None), [2, 0]), 8.0),
    ((-1, -1), 4.0),
    (slice(1, 3), Y[1:3]),
    ((np.array([[0], [2]]), np.array([0, 3])), 6.0),
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("how", ["set", "add", "multiply", "min", "max"])
def test_updates(format: str, how: str) -> None:
    start = np.nan_to_num(X)
    for key, value in UPDATES:
        expected = start.copy()
        if how == "set":
            expected[key] = value
        else:
            {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}[how].at(expected, key, value)
        t = tm.tensor(start, format=format)
        same(getattr(tm.at(t)[key], how)(value), expected, (format, how, key))
        same(t, start, "the tensor itself")
        same(getattr(tm.at(t + 1)[key], how)(value), _updated(start + 1, key, value, how), (format, how, key, "fill 1"))
    mask = start > 0
    same(tm.at(t)[tm.tensor(mask, format="csr")].set(7.0), np.where(mask, 7.0, start), format)
    same(tm.at(t).diagonal(1).set([1.0, 2.0, 3.0]).diagonal(1), [1, 2, 3], format)
    same(tm.at(t)[0].get(), start[0], format)


def _updated(x: Any, key: Any, value: Any, how: str) -> Any:
    if how == "set":
        x[key] = value
    else:
        {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}[how].at(x, key, value)
    return x


def test_updates_of_sparse_values_and_types() -> None:
    t = tm.tensor((([0], [0]), [1], (10**9, 10**9)), format="coo")
    row = tm.tensor(([[5, 10**8]], [2, 3], (10**9,)), format="sparse")
    made = tm.at(t)[7].set(row)
    assert made.nnz == 3 and made[7, 10**8] == 3 and tm.at(made)[7].set(0).nnz == 1
    with pytest.raises(tm.TooLarge):
        tm.at(t)[7].set(1)
    assert tm.at(t)[0, 0].set(0.5)[0, 0] == 0.5 and tm.at(t)[0, 0].add(1).dtype == t.dtype
    for wrong in (lambda: tm.at(t)[0, 0].set([1, 2]), lambda: tm.at(t)[None].set(1), lambda: tm.at(t)[10**9, 0].set(1)):
        with pytest.raises(tm.Error):
            wrong()
    with pytest.raises(tm.Error) as caught:
        t[0, 0] = 5
    assert "tamis.at" in str(caught.value)


HUGE = tm.tensor((([0, 5, 10**9 - 1], [7, 0, 10**9 - 1]), [1.0, -2.0, 3.0], (10**9, 10**9)), format="coo")
LINE = tm.tensor(([[3, 10**15]], [1.0, 2.0], (10**15 + 1,)), format="sparse")

#: Each answers with what is stored, or is refused at once: an array of every element would be 8 EB.
LARGE: dict[str, Callable[[], Any]] = {
    "hstack": lambda: tm.hstack([HUGE, HUGE]),
    "vstack": lambda: tm.vstack([HUGE, HUGE]),
    "block_diag": lambda: tm.block_diag([HUGE, HUGE], format="coo"),
    "block_array": lambda: tm.block_array([[HUGE, None], [None, HUGE]]),
    "kron": lambda: tm.kron(HUGE, [[1.0, 2.0]]),
    "diag": lambda: tm.diag(LINE),
    "diags": lambda: tm.diags([1.0], [10**9 - 5], shape=(10**9, 10**9), format="coo"),
    "eye": lambda: tm.eye(10**6),
    "zeros": lambda: tm.zeros((10**9, 10**9)),
    "find": lambda: tm.find(HUGE)[0],
    "argwhere": lambda: tm.argwhere(HUGE),
    "flatnonzero": lambda: tm.flatnonzero(HUGE),
    "flip": lambda: tm.flip(HUGE),
    "roll": lambda: tm.roll(HUGE, 3, axis=0),
    "pad": lambda: tm.pad(HUGE, 5),
    "swapaxes": lambda: tm.swapaxes(HUGE, 0, 1),
    "tril": lambda: tm.tril(HUGE),
    "isin": lambda: tm.isin(HUGE, [1.0]),
    "isclose": lambda: tm.isclose(HUGE, HUGE),
    "allclose": lambda: tm.allclose(HUGE, HUGE),
    "array_equal": lambda: tm.array_equal(HUGE, HUGE),
    "unique": lambda: tm.unique(HUGE),
    "bincount": lambda: tm.bincount(LINE.astype(int)),
    "cumsum": lambda: tm.cumsum(LINE),
    "sort": lambda: tm.sort(HUGE),
    "mask": lambda: HUGE[HUGE > 0],
    "nansum": lambda: tm.nansum(HUGE),
    "nanmax": lambda: tm.nanmax(HUGE),
    "nanmean": lambda: tm.nanmean(HUGE),
    "norm": lambda: tm.linalg.norm(HUGE),
    "norm 1": lambda: tm.linalg.norm(LINE, 1),
    "norm inf": lambda: tm.linalg.norm(LINE, np.inf),
    "at": lambda: tm.at(HUGE)[3, 4].set(5.0),
    "at rows": lambda: tm.at(HUGE)[[3, 5]].multiply(tm.tensor(([[0]], [2.0], (10**9,)), "sparse")),
    "eliminate_zeros": lambda: (HUGE * 0).eliminate_zeros(),
    "topk": lambda: tm.topk(HUGE, 2),
    "tolist": lambda: HUGE.tolist(),
    "toarray": lambda: HUGE.toarray(),
    "getnnz": lambda: LINE.getnnz(),
    "matrix_power": lambda: tm.linalg.matrix_power(HUGE, 2),
    "inv": lambda: tm.linalg.inv(HUGE),
    "svd": lambda: tm.linalg.svd(HUGE),
    "norm 2": lambda: tm.linalg.norm(LINE),
    "A @ x": lambda: HUGE @ tm.tensor(([[7]], [1.0], (10**9,)), "sparse"),
}


@pytest.mark.parametrize("name", LARGE)
def test_nothing_becomes_dense(name: str) -> None:
    try:
        made = LARGE[name]()
    except tm.Error as error:
        assert error.code in ("E0706", "E0404"), error
        assert error.help
        return
    if isinstance(made, tm.Tensor):
        assert made.nbytes < 40_000_000, name


#: Functions of NumPy's on a matrix too large for any array: the answer, or ``None`` where it is refused with the size.
OF_NUMPY: dict[str, tuple[Callable[[Any], Any], Any]] = {
    "sum": (np.sum, 2.0),
    "sum, axis": (lambda t: np.sum(t, axis=0)[7], 1.0),
    "max": (np.max, 3.0),
    "amin": (np.amin, -2.0),
    "mean": (lambda t: np.mean(t) > 0, True),
    "std": (lambda t: np.std(t, ddof=1) > 0, True),
    "count_nonzero": (np.count_nonzero, 3),
    "nansum": (np.nansum, 2.0),
    "ptp": (np.ptp, 5.0),
    "average": (np.average, 2.0 / 1e18),
    "shape": (np.shape, (10**9, 10**9)),
    "ndim": (np.ndim, 2),
    "size": (np.size, 10**18),
    "iscomplexobj": (np.iscomplexobj, False),
    "transpose": (lambda t: np.transpose(t)[7, 0], 1.0),
    "swapaxes": (lambda t: np.swapaxes(t, 0, 1).nnz, 3),
    "moveaxis": (lambda t: np.moveaxis(t, 0, 1).nnz, 3),
    "hstack": (lambda t: np.hstack([t, t]).nnz, 6),
    "vstack": (lambda t: np.vstack([t, t]).nnz, 6),
    "concatenate": (lambda t: np.concatenate([t, t], axis=1).nnz, 6),
    "stack": (lambda t: np.stack([t, t]).nnz, 6),
    "flip": (lambda t: np.flip(t).nnz, 3),
    "fliplr": (lambda t: np.fliplr(t).nnz, 3),
    "flipud": (lambda t: np.flipud(t).nnz, 3),
    "roll": (lambda t: np.roll(t, 1, axis=0).nnz, 3),
    "tril": (lambda t: np.tril(t).nnz, 2),
    "triu": (lambda t: np.triu(t, 1).nnz, 1),
    "diagonal": (lambda t: np.diagonal(t).nnz, 1),
    "diag": (lambda t: np.diag(t).nnz, 1),
    "trace": (np.trace, 3.0),
    "pad": (lambda t: np.pad(t, 1).nnz, 3),
    "where": (lambda t: np.where(t > 0, t, 0).nnz > 0, True),
    "clip": (lambda t: np.clip(t, 0, 1).nnz, 3),
    "round": (lambda t: np.round(t, 1).nnz, 3),
    "real": (lambda t: np.real(t).nnz, 3),
    "nonzero": (lambda t: len(np.nonzero(t)[0]), 3),
    "argwhere": (lambda t: np.argwhere(t).shape, (3, 2)),
    "flatnonzero": (lambda t: len(np.flatnonzero(t)), 3),
    "unique": (lambda t: np.unique(t).tolist(), [-2.0, 0.0, 1.0, 3.0]),
    "isin": (lambda t: np.isin(t, [1.0]).nnz, 3),
    "allclose": (lambda t: np.allclose(t, t), True),
    "array_equal": (lambda t: np.array_equal(t, t), True),
    "einsum": (lambda t: np.einsum("ij->", t), 2.0),
    "tensordot": (lambda t: np.tensordot(t, t, axes=2), 14.0),
    "vdot": (lambda t: np.vdot(t, t), 14.0),
    "linalg.norm": (lambda t: round(np.linalg.norm(t) ** 2, 6), 14.0),
    "zeros_like": (lambda t: np.zeros_like(t).nnz, 0),
    "copy": (lambda t: np.copy(t).nnz, 3),
    "exp": (lambda t: np.exp(t).fill_value, 1.0),
    "array_repr": (lambda t: "tamis.Tensor" in np.array_repr(t), True),
    "take": (lambda t: np.take(t, [5], axis=0).nnz, 1),
    "expand_dims": (lambda t: np.expand_dims(t, 0).shape, (1, 10**9, 10**9)),
    "can_cast": (lambda t: np.can_cast(t, "f4"), False),
    "result_type": (lambda t: np.result_type(t, np.float32), np.float64),
    "median": (np.median, None),
    "percentile": (lambda t: np.percentile(t, 50), None),
    "histogram": (lambda t: np.histogram(t), None),
    "gradient": (lambda t: np.gradient(t), None),
    "cov": (lambda t: np.cov(t), None),
    "corrcoef": (lambda t: np.corrcoef(t), None),
    "argsort": (lambda t: np.argsort(t), None),
    "interp": (lambda t: np.interp(t, [0.0, 1.0], [0.0, 1.0]), None),
    "linalg.inv": (np.linalg.inv, None),
    "linalg.svd": (np.linalg.svd, None),
    "linalg.eigh": (np.linalg.eigh, None),
    "fft": (np.fft.fft, None),
    "rot90": (np.rot90, None),
    "cross": (lambda t: np.cross(t, t), None),
}


@pytest.mark.parametrize("name", OF_NUMPY)
def test_functions_of_numpy_answer_or_refuse(name: str) -> None:
    function, expected = OF_NUMPY[name]
    if expected is None:
        with pytest.raises(tm.Error) as caught:
            function(HUGE)
        assert "TB" in str(caught.value) or "EB" in str(caught.value) or "1,000,000,000" in str(caught.value), caught.value
    else:
        made = function(HUGE)
        made = made.item() if isinstance(made, tm.Tensor) else made
        assert made == expected, (name, made)


def test_functions_of_numpy_take_dense_tensors() -> None:
    x = np.arange(6.0).reshape(2, 3)
    t = tm.tensor(x)
    assert np.median(t) == np.median(x)
    np.testing.assert_allclose(np.percentile(t, 30), np.percentile(x, 30))
    np.testing.assert_allclose(np.gradient(t)[0], np.gradient(x)[0])
    np.testing.assert_allclose(np.linalg.svd(t)[1], np.linalg.svd(x)[1])


def test_attributes_of_scipy() -> None:
    S = sp.csr_array(np.nan_to_num(X))
    t = tm.asarray(S)
    for name in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(t, name), getattr(S, name))
        assert getattr(t, name).dtype == getattr(S, name).dtype
    assert t.getnnz() == S.nnz and t.has_sorted_indices and t.has_canonical_format
    for axis in (0, 1):
        np.testing.assert_array_equal(t.getnnz(axis), np.count_nonzero(S.toarray(), axis=axis))
    for format in ("csr", "csc", "coo"):
        assert getattr(t, f"to{format}")().format == format and t.asformat(format).format == format
    np.testing.assert_array_equal(t.tobsr((2, 2)).toarray(), S.toarray())
    np.testing.assert_array_equal(t.todia().todense(), S.toarray())
    assert t.asformat(None) is t and t.sum_duplicates() is t and t.sorted_indices() is t
    with pytest.raises(AttributeError):
        t.tocoo().indptr
    assert not hasattr(t.tocoo(), "indices")
    out = np.ones((6, 4))
    assert t.toarray(out=out) is out


def test_everything_public_is_documented() -> None:
    import inspect

    for name in tm.__all__:
        thing = getattr(tm, name)
        if inspect.isfunction(thing) or inspect.isclass(thing) or inspect.ismodule(thing):
            assert (thing.__doc__ or "").strip(), name
    for kind in (tm.Tensor, tm.LabeledTensor, tm.TopK, tm.linalg.Preconditioner, tm.Program, tm.Explanation, tm.Result, tm.Settings):
        for name in dir(kind):
            found = inspect.getattr_static(kind, name)
            assert name.startswith("_") or inspect.getdoc(found) or inspect.getdoc(getattr(kind, name)), f"{kind.__name__}.{name}"
    for module in (tm.linalg, tm.graph):
        for name in module.__all__:
            assert getattr(module, name).__doc__, name


def test_linalg_is_the_extension_of_the_standard() -> None:
    names = (
        "cholesky cross det diagonal eigh eigvalsh inv matmul matrix_norm matrix_power matrix_rank matrix_transpose outer pinv qr "
        "slogdet solve svd svdvals tensordot trace vecdot vector_norm"
    ).split()
    assert not [name for name in names if not hasattr(tm.linalg, name)]
