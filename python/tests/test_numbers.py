"""Python's numbers beside tensors: their type adapts, as in NumPy 2, wherever they come in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tamis as tm

TYPES = "bool i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()
NUMBERS = [3, 2.5, 1 + 2j]


def same(ours: Any, theirs: Any, about: Any) -> None:
    found, expected = np.asarray(ours), np.asarray(theirs)
    assert found.dtype == expected.dtype, (about, found.dtype, expected.dtype)
    np.testing.assert_allclose(found, expected, rtol=1e-6, err_msg=str(about))


def data(dtype: str) -> np.ndarray[Any, Any]:
    return np.array([0, 1, 0, 2, 5], bool if dtype == "bool" else dtype)


def product(x: np.ndarray[Any, Any], number: Any) -> Any:
    """In notation and programs, small integers stay what they are, and so they do in NumPy."""
    return x * number


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("dtype", TYPES)
def test_every_door(dtype: str, number: Any) -> None:
    x = data(dtype)
    expected = product(x, number)
    program = tm.program("def f(A, s):\n    y = tensor('dense')\n    for i in _:\n        y[i] = A[i] * s\n    return y\n")
    traced = tm.jit(lambda a, s: a * s)
    for format in ("dense", "sparse"):
        A = tm.tensor(x, format=format)
        with tm.config(check=True):
            same(tm.einsum("y[i] = A[i] * s", A=A, s=number), expected, "einsum by name")
            same(tm.einsum("y[i] = A[i] * s", A, number), expected, "einsum by position")
            same(program(A, number), expected, "program")
        same(traced(A, number), expected, "jit")
        same(A * number, expected, "operator")
        same(number * A, expected, "operator")


def test_numbers_of_numpy_keep_their_type() -> None:
    x = data("f4")
    A = tm.tensor(x)
    for number in (np.float64(2.5), np.float32(2.5), np.int64(3)):
        expected = x * number
        same(tm.einsum("y[i] = A[i] * s", A=A, s=number), expected, number)
        same(tm.jit(lambda a, s: a * s)(A, number), expected, number)
        same(A * number, expected, number)
    same(tm.einsum("y[i] = A[i] * s", A=A, s=tm.asarray(2.5)), x * np.asarray(2.5), "a tensor of its own")


def test_through_temporaries() -> None:
    x = data("f4")
    A = tm.tensor(x)
    same(tm.einsum("t = s * 2; y[i] = A[i] * t + s", A=A, s=1.5), (x * 3 + np.float32(1.5)), "notation")
    step = tm.jit(lambda a, s: a * (s * 2 + 1) - tm.sqrt(s) / 2)
    same(step(A, 4.0), x * np.float32(9) - np.float32(1), "jit")
    same(tm.jit(lambda a, s: tm.where(a > 0, a, s))(A, 0.5), np.where(x > 0, x, np.float32(0.5)), "where")
    # Each tensor has its own type, and the number adapts to each.
    both = tm.einsum("y[i] = A[i] * s; z[i] = B[i] * s", A=A, B=tm.tensor(data("f8")), s=0.1)
    same(both[0], x * 0.1, "f4")
    same(both[1], data("f8") * 0.1, "f8")
    # Alone, numbers have the types that Python's arrays have.
    assert tm.einsum("y = s * t", s=2.0, t=3).dtype == np.float64
    assert tm.einsum("y = s * t", s=2, t=3).dtype == np.int64
    assert tm.jit(lambda s: s * 2)(1.5).dtype == np.float64


def test_integers_fit_the_type_that_they_meet() -> None:
    A = tm.tensor(data("u1"))
    same(tm.einsum("y[i] = A[i] * s", A=A, s=3), data("u1") * 3, "fits")
    for wrong in (300, -1):
        with pytest.raises(tm.Error, match="E0306"):
            tm.einsum("y[i] = A[i] * s", A=A, s=wrong)
    same(tm.einsum("y[i] = A[i] * s", A=A, s=255), data("u1") * 255, "fits again")
    same(tm.einsum("y[i] = A[i] > s", A=A, s=300), data("u1") > 300, "comparisons are exact")
