"""Tensors made of whatever Python programs have, and given back."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import tamis as tm
from hypothesis import given, settings
from hypothesis import strategies as st

DTYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
FORMATS = {
    0: ["dense"],
    1: ["dense", "sparse", "runs", "bytemap", "sparse_runs", "hash", "coo"],
    2: ["dense", "csr", "csc", "coo", "dcsr", "bsr(2,3)", "dense, runs", "dense, band", "dense, blocks", "(i,j) -> (j,i): dense, dense"],
    3: ["dense", "csf", "coo", "dense, dense, sparse"],
}
SHAPES = [(), (5,), (0,), (4, 6), (0, 3), (3, 0), (2, 3, 4), (2, 0, 4)]


def sample(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    numbers = np.random.default_rng(len(shape)).integers(0, 3, size=shape)
    return np.asarray(numbers).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_format_gives_back_what_it_was_made_of(shape: tuple[int, ...], dtype: str) -> None:
    array = sample(shape, dtype)
    for format in FORMATS[len(shape)]:
        t = tm.tensor(array, format)
        assert (t.shape, t.dtype, t.ndim, t.size) == (shape, np.dtype(dtype), len(shape), array.size)
        for again in (t, pickle.loads(pickle.dumps(t)), copy.copy(t), copy.deepcopy(t), t.convert("dense"), tm.tensor(t)):
            assert type(again) is tm.Tensor
            back = again.to_numpy()
            assert back.dtype == array.dtype and back.shape == array.shape
            np.testing.assert_array_equal(back, array)
        assert pickle.loads(pickle.dumps(t)).full_format == t.full_format
        assert t.nbytes >= 0 and t.format in repr(t).replace("  ", " ") or "element" in t.format
        np.testing.assert_array_equal(np.asarray(t), array)


@pytest.mark.parametrize("dtype", DTYPES)
def test_strides_of_every_kind(dtype: str) -> None:
    array = sample((6, 8), dtype)
    for view in (array[::2], array[:, ::-1], array.T, array[1:4, 2:7], np.asfortranarray(array), np.broadcast_to(array[0], (3, 8))):
        for made in (tm.tensor(view), tm.asarray(view), tm.tensor(view, "csr")):
            np.testing.assert_array_equal(made.to_numpy(), view)
    swapped = array.astype(np.dtype(dtype).newbyteorder())
    np.testing.assert_array_equal(tm.asarray(swapped).to_numpy(), array)


def test_memory_is_shared_where_layouts_agree() -> None:
    x = np.arange(6.0).reshape(2, 3)
    shared, own = tm.asarray(x), tm.tensor(x)
    x[0, 0] = 99.0
    assert shared[0, 0] == 99.0 and own[0, 0] == 0.0
    assert shared.is_borrowed and not own.is_borrowed
    assert np.shares_memory(shared.to_numpy(copy=False), x)
    kept = shared.copy()
    x[0, 0] = 1.0
    assert kept[0, 0] == 99.0 and tm.einsum("s = A[i,j]", A=shared).item() == x.sum()
    with pytest.raises(ValueError):
        shared.to_numpy(copy=False)[0, 0] = 5.0
    with pytest.raises(ValueError):
        own.to_numpy(copy=False).flags.writeable = True
    assert own.to_numpy().flags.writeable and own.to_numpy(copy=True).flags.writeable


def test_a_view_outlives_its_tensor() -> None:
    views = [tm.tensor(np.full(1000, k)).to_numpy(copy=False) for k in range(100)]
    assert all((view == k).all() for k, view in enumerate(views))
    level = tm.gallery.laplacian(30).level_arrays(1)
    assert level["pos"][-1] == len(level["crd"])


def test_booleans_that_are_not_0_or_1() -> None:
    odd = np.array([0, 1, 2, 255], dtype=np.uint8).view(bool)
    assert tm.einsum("n = sum[i](i64(x[i]))", x=tm.asarray(odd)).item() == 3


def test_what_is_changed_is_converted_again() -> None:
    values = np.arange(1.0, 5.0)
    t = tm.asarray(values.reshape(2, 2))
    both = [tm.einsum("y[j] = A[i,j] * x[i]", A=t, x=[1.0, 1.0], format="sparse").to_numpy() for _ in range(3)]
    values *= 2
    after = tm.einsum("y[j] = A[i,j] * x[i]", A=t, x=[1.0, 1.0], format="sparse").to_numpy()
    np.testing.assert_array_equal(after, 2 * both[-1])


def test_coordinates() -> None:
    coords, values = [[2, 0, 2], [1, 3, 1]], [1.0, 2.0, 3.0]
    t = tm.tensor((coords, values, (3, 4)))
    assert t.format == "csr" and t[2, 1] == 4.0 and t[0, 3] == 2.0 and t[-1, -3] == 4.0
    assert tm.tensor((coords, values, (3, 4)), duplicates="max")[2, 1] == 3.0
    assert tm.tensor((np.array(coords), 1, (3, 4)), format="coo", dtype="u8").dtype == np.uint8
    found, stored = t.to_coo()
    np.testing.assert_array_equal(found, [[0, 2], [3, 1]])
    np.testing.assert_array_equal(stored, [2.0, 4.0])
    again = tm.tensor((*t.to_coo(), t.shape), "dcsr")
    assert again.same_values(t)
    large = tm.tensor(([[10**15], [3]], [1.0], (10**18, 10**18)), "coo")
    assert large.size == 10**36 and large[10**15, 3] == 1.0 and large.nnz == 1
    assert tm.tensor(([[], []], [], (3, 4))).nnz == 0


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.integers(-3, 3)), max_size=30))
@settings(max_examples=50, deadline=None)
def test_coordinates_in_any_order(entries: list[tuple[int, int, int]]) -> None:
    expected = np.zeros((5, 7), dtype=np.int64)
    for i, j, v in entries:
        expected[i, j] += v
    rows, columns, values = ([e[k] for e in entries] for k in range(3))
    for format in ("csr", "csc", "coo", "dcsr", "dense"):
        made = tm.tensor(([rows, columns], np.array(values, dtype=np.int64), (5, 7)), format)
        np.testing.assert_array_equal(made.to_numpy(), expected)


def test_fills() -> None:
    t = tm.tensor([[np.inf, 1.0], [np.inf, np.inf]], "csr", fill=np.inf)
    assert t.nnz == 1 and t.fill_value == np.inf and t[1, 1] == np.inf
    again = pickle.loads(pickle.dumps(t))
    assert again.fill_value == np.inf and again.same_values(t)
    with pytest.raises(tm.Error) as caught:
        t.to_scipy()
    assert caught.value.code == "E0709"
    with pytest.raises(TypeError):
        tm.tensor([1, 2], fill=0.5)
    pattern = tm.tensor([[True, False], [True, True]], "csr; pattern")
    assert pattern.values is None and pattern.is_pattern and pattern.nnz == 3 and pattern[0, 0]
    assert pickle.loads(pickle.dumps(pattern)).format == "csr; pattern"
    assert pattern.to_scipy().sum() == 3


def test_scalars_and_lists() -> None:
    assert tm.tensor(3).shape == () and tm.tensor(3).item() == 3 and int(tm.tensor(3)) == 3
    assert float(tm.tensor(2.5)) == 2.5 and complex(tm.tensor(1j)) == 1j and bool(tm.tensor(True))
    assert tm.tensor([[1, 2], [3, 4]]).dtype == np.int64
    assert tm.tensor([1, 2], dtype="f32").dtype == np.float32
    assert tm.asarray(range(3)).to_numpy().tolist() == [0, 1, 2]
    assert len(tm.tensor([1, 2, 3])) == 3
    assert tm.tensor([1.5, 2.5]).astype(np.int32).dtype == np.int32


def test_dlpack() -> None:
    x = np.arange(4.0)
    np.testing.assert_array_equal(np.from_dlpack(tm.tensor(x)), x)

    class OnlyDlpack:
        def __dlpack__(self, **options: object) -> object:
            return x.__dlpack__(**options)

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    np.testing.assert_array_equal(tm.asarray(OnlyDlpack()).to_numpy(), x)
    with pytest.raises(tm.Error):
        tm.tensor(x, "sparse").__dlpack__()


def test_transposes_are_views() -> None:
    a = tm.gallery.random((3, 4, 5), 0.4, format="csf")
    t = a.transpose((2, 0, 1))
    np.testing.assert_array_equal(t.to_numpy(), a.to_numpy().transpose(2, 0, 1))
    assert np.shares_memory(t.values, a.values)
    np.testing.assert_array_equal(a.T.to_numpy(), a.to_numpy().T)
    b = tm.gallery.random((4, 6), 0.4, format="bsr(2,3)")
    np.testing.assert_array_equal(b.T.to_numpy(), b.to_numpy().T)
    assert a.transpose((0, -1, 1)).shape == (3, 5, 4)
    for wrong in [(0, 0, 1), (0, 1), (0, 1, 3), (0, 1, -4)]:
        with pytest.raises(tm.Error):
            a.transpose(wrong)


@pytest.mark.parametrize(
    "data, code",
    [
        (np.zeros(3, dtype=np.float16), "E0308"),
        (np.zeros(3, dtype=np.longdouble), "E0308"),
        (np.array(["a"]), "E0308"),
        (np.array([None]), "E0308"),
        (np.array(["2020-01-01"], dtype="datetime64[D]"), "E0308"),
        ([[1, 2], [3]], "E0701"),
        (([[0], [5]], [1.0], (2, 2)), "E0703"),
        (([[0], [-1]], [1.0], (2, 2)), "E0703"),
        (([[0], [0.5]], [1.0], (2, 2)), "E0305"),
        (([[0, 1], [0]], [1.0, 2.0], (2, 2)), "E0701"),
        (([[0], [0]], [1.0], (2, -2)), "E0403"),
        (np.ones((1,) * 40), "E0603"),
        (np.ma.masked_array([1, 2], [True, False]), "E0308"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_refused(data: object, code: str) -> None:
    for make in (tm.tensor, tm.asarray):
        with pytest.raises(tm.Error) as caught:
            make(data)
        assert caught.value.code == code and caught.value.help


def test_refused_formats() -> None:
    for format in ("cs", "dense, sprase", "csr(", "", "csr; elements", "bsr(0,1)", "dense, dense, dense", "🙂"):
        with pytest.raises(ValueError) as caught:
            tm.tensor([[1.0]], format)
        assert isinstance(caught.value, tm.Error) and caught.value.help
    with pytest.raises(tm.Error):
        tm.tensor([1.0], "sparse", fill="nothing")
    with pytest.raises(tm.Error):
        tm.tensor([1.0], dtype="f7")


def test_elements_outside() -> None:
    t = tm.gallery.laplacian(3)
    for key in [(9, 0), (0, -10), 9, (0, 0, 0), (0.5, 1), (slice(None), 9)]:
        with pytest.raises(tm.Error):
            t[key]
    with pytest.raises(IndexError):
        t[9, 0]
    with pytest.raises(IndexError):
        t.level_arrays(2)
    with pytest.raises(tm.Error):
        t.item()


def test_pickles_are_checked() -> None:
    t = tm.gallery.laplacian(3)
    rebuild, (shape, format, levels, values, fill) = t.__reduce__()
    bad = dict(levels[1], crd=levels[1]["crd"] + np.uint32(100))
    with pytest.raises(tm.Error):
        rebuild(shape, format, [{}, bad], values, fill)
    with pytest.raises(tm.Error):
        rebuild(shape, format, [{}, dict(levels[1], nonsense=levels[1]["crd"])], values, fill)
    with pytest.raises(tm.Error):
        rebuild(shape, format, levels, values[:-1], fill)


def test_too_large_to_be_dense() -> None:
    t = tm.tensor(([[0], [1]], [1.0], (10**9, 10**9)), "coo")
    with pytest.raises(MemoryError) as caught:
        t.to_numpy()
    assert isinstance(caught.value, tm.Error) and "8.0 EB" in str(caught.value)
    assert "<tamis.Tensor" in repr(t)
    small = tm.gallery.laplacian(20)
    with tm.config(dense_limit=1000), pytest.raises(tm.Error):
        small.to_numpy()
    assert small.to_numpy().shape == (400, 400)


def test_arrays_that_begin_anywhere() -> None:
    """Elements need not begin where processors load them from."""
    numbers = np.arange(6.0)
    array = np.frombuffer(b"\0" + numbers.tobytes(), np.uint8)[1:].view(float)
    assert not array.flags.aligned
    assert (tm.tensor(array).to_numpy() == numbers).all()
    assert (tm.tensor(array.reshape(2, 3), format="csr").to_numpy() == numbers.reshape(2, 3)).all()
    rows = np.frombuffer(b"\0" + np.arange(6).tobytes(), np.uint8)[1:].view(np.int64)
    assert (tm.tensor(([rows], array, (6,)), "sparse").to_numpy() == numbers).all()
