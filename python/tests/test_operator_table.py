"""The operator table against NumPy: every operator on every type and every pair of types, compiled code and interpreter."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np
import pytest

import tamis as tm

TYPES = "bool i1 i2 i4 i8 u1 u2 u4 u8 f4 f8 c8 c16".split()
Array = Any


def values(dtype: str, shift: int) -> Array:
    """Numbers of a type with its edges, rotated by `shift`; exponents and shifts stay small."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        made = np.array([0, 1, 1, 0, 1, 0, 0, 1, 1, 1, 0, 1], bool)
    elif kind == "u":
        made = np.array([0, 1, 2, 3, 5, 7, 0, 11, np.iinfo(dtype).max, 1, 4, 6], dtype)
    elif kind == "i":
        made = np.array([0, 1, -1, 3, -5, 7, 2, -11, np.iinfo(dtype).max, np.iinfo(dtype).min, 4, -6], dtype)
    elif kind == "f":
        made = np.array([0.0, -0.0, 1.0, -1.5, 2.25, 0.5, -7.0, 100.0, np.inf, -np.inf, np.nan, 3.0], dtype)
    else:
        made = np.array([0, 1, -1, 1j, -2j, 0.5 + 0.25j, -1.5 - 2j, 3 - 0.5j, 2, 1 + 1j, -3 + 4j, 0.125j], dtype)
    return np.roll(made, shift)


def floating(*arrays: Array) -> list[Array]:
    """Functions of integers are computed in 64 bits."""
    common = np.result_type(*arrays)
    return [a.astype(common if common.kind in "fc" else "f8") for a in arrays]


def counted(*arrays: Array) -> list[Array]:
    """Truth values count as integers."""
    common = np.result_type(*arrays)
    return [a.astype("i8" if common == bool else common) for a in arrays]


def real(*dtypes: np.dtype[Any]) -> bool:
    return all(d.kind != "c" for d in dtypes)


def whole(*dtypes: np.dtype[Any]) -> bool:
    return np.result_type(*dtypes).kind in "biu"


def small(x: Array, y: Array) -> tuple[Array, Array]:
    """Exponents and shifts that NumPy takes."""
    if y.dtype.kind in "biu":
        y = (np.abs(y.astype("i8")) % 5).astype(y.dtype)
    return x, y


ALWAYS: Callable[..., bool] = lambda *dtypes: True  # noqa: E731

#: How it is written, what NumPy computes, the types that it takes, and what operands are made of first.
BINARY: list[tuple[str, Callable[[Array, Array], Array], Callable[..., bool]]] = [
    ("x[i] + y[i]", lambda x, y: np.add(*counted(x, y)), ALWAYS),
    ("x[i] - y[i]", lambda x, y: np.subtract(*counted(x, y)), ALWAYS),
    ("x[i] * y[i]", lambda x, y: np.multiply(*counted(x, y)), ALWAYS),
    ("x[i] / y[i]", lambda x, y: np.divide(*floating(x, y)), real),
    ("x[i] // y[i]", lambda x, y: np.floor_divide(*counted(x, y)), real),
    ("x[i] % y[i]", lambda x, y: np.remainder(*counted(x, y)), real),
    ("min(x[i], y[i])", np.minimum, real),
    ("max(x[i], y[i])", np.maximum, real),
    ("x[i] == y[i]", np.equal, ALWAYS),
    ("x[i] != y[i]", np.not_equal, ALWAYS),
    ("x[i] < y[i]", np.less, real),
    ("x[i] <= y[i]", np.less_equal, real),
    ("x[i] > y[i]", np.greater, real),
    ("x[i] >= y[i]", np.greater_equal, real),
    ("x[i] and y[i]", np.logical_and, ALWAYS),
    ("x[i] or y[i]", np.logical_or, ALWAYS),
    ("x[i] & y[i]", np.bitwise_and, whole),
    ("x[i] | y[i]", np.bitwise_or, whole),
    ("x[i] ^ y[i]", np.bitwise_xor, whole),
    ("atan2(x[i], y[i])", lambda x, y: np.arctan2(*floating(x, y)), real),
    ("hypot(x[i], y[i])", lambda x, y: np.hypot(*floating(x, y)), real),
]

#: The same for operators whose second operand is small.
SMALL: list[tuple[str, Callable[[Array, Array], Array], Callable[..., bool]]] = [
    ("x[i] ** y[i]", lambda x, y: np.power(*counted(x, y)), ALWAYS),
    ("x[i] << y[i]", lambda x, y: np.left_shift(*counted(x, y)), whole),
    ("x[i] >> y[i]", lambda x, y: np.right_shift(*counted(x, y)), whole),
]


def same(ours: Any, theirs: Array, about: Any) -> None:
    found = np.asarray(ours)
    assert found.dtype == theirs.dtype, (about, found.dtype, theirs.dtype)
    close = 2e-6 if theirs.dtype in (np.float32, np.complex64) else 1e-12
    np.testing.assert_allclose(found, theirs, rtol=close, atol=close * (theirs.dtype.kind == "c"), err_msg=str(about))


def compare(rows: list[Any], x: Array, y: Array) -> None:
    """All of them in one kernel, dense and sparse, against NumPy and in check mode against the interpreter."""
    with np.errstate(all="ignore"):
        expected = [function(x, y) for _, function, _ in rows]
    text = "; ".join(f"r{k}[i] = {row[0]}" for k, row in enumerate(rows))
    with tm.config(check=True):
        made = tm.einsum(text, x=tm.tensor(x), y=tm.tensor(y), format="dense")
    made = made if isinstance(made, tuple) else (made,)
    for (written, *_), ours, theirs in zip(rows, made, expected):
        same(ours, theirs, (written, x.dtype, y.dtype))


@pytest.mark.parametrize("first", TYPES)
def test_two_operands(first: str) -> None:
    for shift, second in enumerate(TYPES):
        x, y = values(first, 0), values(second, shift)
        compare([row for row in BINARY if row[2](x.dtype, y.dtype)], x, y)
        # A complex power of a complex number near 0 has few digits.
        x, y = small(x[:8], y[:8])
        if not (x.dtype.kind == "c" or y.dtype.kind == "c"):
            compare([row for row in SMALL if row[2](x.dtype, y.dtype)], x, y)


UNARY = {
    name: getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh"}.get(name, name))
    for name in "sqrt exp log sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split()
}  # fmt: skip
REAL = {name: getattr(np, name) for name in "cbrt exp2 expm1 log2 log10 log1p".split()}


@pytest.mark.parametrize("dtype", TYPES)
def test_one_operand(dtype: str) -> None:
    x = values(dtype, 0)
    functions = dict(UNARY)
    if x.dtype.kind != "c":
        functions |= REAL
    else:
        x = x[np.abs(x) < 3]
        x = x[np.abs(np.abs(x) - 1) > 1e-3]  # where inverse functions have poles
        x = x[x != 0]
    rows = [(f"{name}(x[i])", lambda x, y, f=f: f(*floating(x)), ALWAYS) for name, f in functions.items()]
    rows += [("not x[i]", lambda x, y: np.logical_not(x), ALWAYS), ("conj(x[i])", lambda x, y: np.conj(*counted(x)), ALWAYS)]
    rows += [("-x[i]", lambda x, y: np.negative(*counted(x)), ALWAYS), ("abs(x[i])", lambda x, y: np.abs(*counted(x)), ALWAYS)]
    rows += [("isnan(x[i])", lambda x, y: np.isnan(x), ALWAYS), ("isfinite(x[i])", lambda x, y: np.isfinite(x), ALWAYS)]
    if x.dtype.kind != "c":
        rows += [
            (f"{name}(x[i])", lambda x, y, f=getattr(np, name): f(*counted(x)), ALWAYS)
            for name in "floor ceil trunc sign".split()
        ]
    rows += [("~x[i]", lambda x, y: np.invert(x), ALWAYS)] if x.dtype.kind in "biu" else []
    text = "; ".join(f"r{k}[i] = {row[0]}" for k, row in enumerate(rows))
    with tm.config(check=True):
        made = tm.einsum(text, x=tm.tensor(x), format="dense")
    for (written, function, _), ours in zip(rows, made):
        with np.errstate(all="ignore"):
            same(ours, function(x, x), (written, dtype))


@pytest.mark.parametrize("name", ["copysign", "logaddexp", "hypot", "atan2"])
def test_functions_of_integers_are_computed_in_floats(name: str) -> None:
    theirs = np.arctan2 if name == "atan2" else getattr(np, name)
    ours = getattr(tm, name)
    traced = tm.jit(lambda x, y: ours(x, y))
    for shift, first in enumerate(TYPES):
        for second in TYPES:
            if "c" in first[0] + second[0]:
                continue
            x, y = values(first, shift), values(second, 0)
            with np.errstate(all="ignore"):
                expected = theirs(*floating(x, y))
            with tm.config(check=True):
                same(ours(tm.tensor(x), tm.tensor(y)), expected, (name, first, second))
            same(traced(tm.tensor(x), tm.tensor(y)), expected, (name, first, second, "jit"))
            # What is not stored has no sign.
            x, y = np.where(x == 0, abs(x), x), np.where(y == 0, abs(y), y)
            with np.errstate(all="ignore"):
                expected = theirs(*floating(x, y))
            same(ours(tm.tensor(x, format="sparse"), tm.tensor(y, format="sparse")), expected, (name, first, second, "sparse"))
    assert float(tm.copysign(np.uint64(5), np.uint64(0))) == 5.0
    assert np.isclose(float(tm.logaddexp(np.uint32(0), True)), np.logaddexp(0.0, 1.0))
    same(tm.copysign(tm.tensor(np.array([3, -4], "i4")), -0.0), np.copysign([3.0, -4.0], -0.0), "number")


#: Both sides of every branch cut, and the points where they begin.
CUTS = [complex(a, b) for a in (-2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0) for b in (-2.0, -0.5, -0.0, 0.0, 0.5, 2.0)]


@pytest.mark.parametrize("name", list(UNARY))
def test_branch_cuts(name: str) -> None:
    for dtype in ("c16", "c8"):
        z = np.array(CUTS, dtype)
        with np.errstate(all="ignore"):
            expected = UNARY[name](z)
        finite = np.isfinite(expected)
        with tm.config(check=True):
            made = np.asarray(tm.einsum(f"r[i] = {name}(z[i])", z=tm.tensor(z), format="dense"))
        close = 1e-5 if dtype == "c8" else 1e-12
        np.testing.assert_allclose(made[finite], expected[finite], rtol=close, atol=close)
        # The sign of a zero part that lies on a cut decides the side.
        for part in ("real", "imag"):
            a, b = getattr(made, part)[finite], getattr(expected, part)[finite]
            large = np.abs(b) > 1e-3
            assert (np.signbit(a) == np.signbit(b))[large].all(), (name, dtype, part)
