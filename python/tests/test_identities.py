"""Identities of reductions: every reduction on every type in several formats, against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tamis as tm

TYPES = "bool i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()
FORMATS = ["dense", "csr", "csc", "coo", "dcsr", "dense, runs", "dense, sparse_runs", "dense, blocks", "dense, band"]

#: The word in notation, the update, and NumPy's function.
REDUCTIONS = [
    ("sum", "+=", np.add),
    ("prod", "*=", np.multiply),
    ("min", "min=", np.minimum),
    ("max", "max=", np.maximum),
    ("any", "or=", np.logical_or),
    ("all", "and=", np.logical_and),
    (None, "&=", np.bitwise_and),
    (None, "|=", np.bitwise_or),
    (None, "^=", np.bitwise_xor),
]


def rows(dtype: str) -> np.ndarray[Any, Any]:
    """Rows of zeros, of numbers other than 0 and 1, of equal numbers, and mixed ones: sizes within every type."""
    numbers = [
        [0, 0, 0, 0],
        [2, 3, 5, 2],
        [7, 7, 7, 7],
        [1, 1, 1, 1],
        [0, 2, 0, 4],
        [0, 0, 0, 6],
        [-1, -2, -3, -4],
        [-3, 0, 0, 3],
        [127, 127, 1, 127],
    ]
    made = np.array(numbers)
    if dtype == "bool":
        return made != 0
    if dtype[0] == "u":
        made = np.abs(made)
    if dtype[0] == "c":
        return (made + 1j * made[::-1]).astype(dtype)
    return made.astype(dtype)


def takes(function: np.ufunc, dtype: str) -> bool:
    if function in (np.minimum, np.maximum):
        return dtype[0] != "c"
    return not (function in (np.bitwise_and, np.bitwise_or, np.bitwise_xor) and dtype[0] in "fc")


def reduced(function: np.ufunc, array: np.ndarray[Any, Any], axis: Any) -> Any:
    """In the type of the array, booleans counted in 64 bits: notation does not widen."""
    if function in (np.add, np.multiply):
        return function.reduce(array, axis=axis, dtype="i8" if array.dtype == bool else array.dtype)
    return function.reduce(array, axis=axis)


def same(ours: tm.Tensor, theirs: Any, about: Any) -> None:
    found, expected = np.asarray(ours), np.asarray(theirs)
    assert found.dtype == expected.dtype, (about, found.dtype, expected.dtype)
    close = 1e-5 if expected.dtype in (np.float32, np.complex64) else 1e-13
    np.testing.assert_allclose(found, expected, rtol=close, err_msg=str(about))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("word", "update", "function"), REDUCTIONS)
def test_in_notation(word: str | None, update: str, function: np.ufunc, dtype: str) -> None:
    if not takes(function, dtype):
        pytest.skip("has no such operator")
    x = rows(dtype)
    with tm.config(check=True):
        for format in FORMATS:
            A = tm.tensor(x, format=format)
            texts = [(f"r[i] {update} A[i,j]", 1), (f"r[j] {update} A[i,j]", 0), (f"r {update} A[i,j]", (0, 1))]
            if word is not None:
                texts += [(f"r[i] = {word}[j](A[i,j])", 1), (f"r = {word}[i,j](A[i,j])", (0, 1))]
            for text, axis in texts:
                same(tm.einsum(text, A=A), reduced(function, x, axis), (text, dtype, format))


@pytest.mark.parametrize("dtype", TYPES)
def test_over_nothing(dtype: str) -> None:
    empty = np.zeros((3, 0), dtype)
    for word, update, function in REDUCTIONS:
        if not takes(function, dtype):
            continue
        texts = [f"r[i] {update} A[i,j]"] + ([f"r[i] = {word}[j](A[i,j])"] if word else [])
        if function in (np.minimum, np.maximum):
            # NumPy refuses; the identity is the end of the type.
            kind = np.dtype(dtype).kind
            ends = (False, True) if kind == "b" else (-np.inf, np.inf) if kind == "f" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
            expected = np.full(3, ends[word == "min"], dtype)
        else:
            expected = reduced(function, empty, 1)
        for text in texts:
            for format in ("dense", "csr"):
                same(tm.einsum(text, A=tm.tensor(empty, format=format)), expected, (text, dtype, format))


@pytest.mark.parametrize("dtype", TYPES)
def test_methods(dtype: str) -> None:
    x = rows(dtype)
    for format in FORMATS:
        t = tm.tensor(x, format=format)
        for axis in (None, 0, 1):
            for name in "sum prod any all".split() + ["min", "max"] * (dtype[0] != "c"):
                same(getattr(tm, name)(t, axis=axis), getattr(x, name)(axis=axis), (name, axis, dtype, format))
                method = getattr(t, name)(axis=axis)
                assert np.allclose(method, getattr(x, name)(axis=axis)) and (axis is not None) == isinstance(method, tm.Tensor)
                traced = tm.jit(lambda v, name=name, axis=axis: getattr(v, name)(axis=axis))
                same(traced(t), getattr(x, name)(axis=axis), ("jit", name, axis, dtype, format))


#: What a reduction starts from, as programs write it, for types other than booleans.
STARTS = {"+=": "0", "*=": "1", "or=": "0", "and=": "1", "|=": "0", "^=": "0"}


@pytest.mark.parametrize("dtype", TYPES)
def test_in_programs(dtype: str) -> None:
    x = rows(dtype)
    with tm.config(check=True):
        for update, start in STARTS.items():
            function = next(f for _, u, f in REDUCTIONS if u == update)
            if not takes(function, dtype):
                continue
            boolean = update in ("or=", "and=") or (dtype == "bool" and update not in ("+=", "*="))
            fill = {"0": "False", "1": "True"}[start] if boolean else start
            text = f"def f(A):\n    r = tensor('dense', fill={fill})\n    for i, j in _:\n        r[i] {update} A[i,j]\n    return r\n"
            for format in ("dense", "csr", "dense, runs"):
                made = tm.program(text)(tm.tensor(x, format=format))
                same(made, reduced(function, x, 1), (text, dtype, format))


def test_truth_values_as_numbers() -> None:
    x = rows("f8")
    for update, start, function in (("or=", "0.0", np.logical_or), ("and=", "1.0", np.logical_and)):
        text = f"def f(A):\n    r = tensor('dense', fill={start}, dtype='f64')\n    for i, j in _:\n        r[i] {update} A[i,j]\n    return r\n"
        for format in FORMATS:
            same(tm.program(text)(tm.tensor(x, format=format)), function.reduce(x, axis=1).astype("f8"), (update, format))


def test_numbers_become_truth_values() -> None:
    """`2 or 0` is 1, whether the 0 is stored or not."""
    x = rows("f8")
    for update, function in (("or=", np.logical_or), ("and=", np.logical_and)):
        for start in (0.0, 1.0, 2.0, np.nan):
            text = f"def f(A):\n    r = tensor('dense', fill={start}, dtype='f64')\n    for i, j in _:\n        r[i] {update} A[i,j]\n    return r\n"
            expected = np.full(len(x), start)
            for column in x.T:
                expected = function(expected, column).astype("f8")
            with tm.config(check=True):
                for format in FORMATS:
                    same(tm.program(text)(tm.tensor(x, format=format)), expected, (update, start, format))
