"""Performance warnings: a loop that visits more than its sparse operands store is reported, once, with the remedy."""

from __future__ import annotations

import re
import warnings
from typing import Any, Callable

import numpy as np
import pytest
import tamis as tm

N = 128
A = tm.gallery.random((N, N), 0.02, 1).convert("csr")
V = tm.tensor(np.r_[1.0, np.zeros(9999)], format="sparse")
X = np.ones(N)


def raised(call: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        call()
    assert all(w.category is tm.SparseEfficiencyWarning and w.filename == __file__ for w in seen)
    return [str(w.message) for w in seen]


@pytest.mark.parametrize(
    "text",
    [
        "C[i,j] = A[i,j] + s",  # a scalar that is known at run time: every element of the result differs from its fill
        "d[i] = min[j](A[i,j] + x[j])",  # the fill 0 is not the identity of min
        "t = V[k] + sin(k)",
    ],
)
def test_dense_loops_are_reported(text: str) -> None:
    names = {"A": A, "V": V, "x": X, "s": 2.0}
    given = {name: t for name, t in names.items() if re.search(rf"\b{name}\b", text)}
    format = "csr" if text.startswith("C") else None
    found = raised(lambda: tm.einsum(text, format=format, **given))
    assert len(found) == 1 and "[E0611]" in found[0] and "stores" in found[0] and "Help" in found[0]
    # Each statement is reported once.
    assert raised(lambda: tm.einsum(text, format=format, **given)) == []
    assert any("[E0611]" in w for w in tm.explain(text, format=format, **given).warnings)


@pytest.mark.parametrize(
    "text",
    [
        "y[i] = A[i,j] * x[j]",
        "y[i] = max[j](A[i,j] * x[j])",
        "y[j] = max[i](A[i,j])",
        "C[i,j] = A[i,j] + 1",  # the fill of the result is 1
        "C[i,j] = A[i,j] * A[j,i] + A[i,j]",
        "C[i,k] = A[i,j] * A[j,k]",
        "o[k] = V[k+l] * F[l]",
        "p = prod[k](V[k] + 1)",
        "D[i,j] = A[i,j] + x[i] * x[j]",  # the result is dense
    ],
)
def test_loops_bounded_by_what_is_stored_are_silent(text: str) -> None:
    names = {"A": A, "V": V, "x": X, "F": np.ones(3)}
    assert raised(lambda: tm.einsum(text, **{name: t for name, t in names.items() if re.search(rf"\b{name}\[", text)})) == []


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        ("A[i, j % 128]", True),  # a remainder has no structure along j, so each element is searched for
        ("A[i, j // 2]", True),
        ("A[i, p[j]]", True),
        ("A[i, follow(j % 128)]", False),  # as written
        ("V[j % 128]", False),  # x is dense, and moves with j, too
        ("A[i % 64, j // 2] * A[i, j // 2]", True),
    ],
)
def test_searches_in_each_iteration_are_reported(value: str, reported: bool) -> None:
    given = {"A": A, "V": V, "p": np.arange(256) % N, "x": np.ones(256)}
    given = {name: t for name, t in given.items() if f"{name}[" in value or name == "x"}
    text = f"""
def f({", ".join(given)}):
    y = tensor("dense", shape=(128,))
    for i in range(128):
        for j in range(256):
            y[i] += {value} * x[j]
    return y
"""
    found = raised(lambda: tm.program(text)(*given.values()))
    assert bool(found) == reported
    assert all("[E0611]" in w and "all 256 coordinates" in w and "`A` stores" in w and "Help" in w for w in found)


def test_programs_are_reported_when_operands_grow() -> None:
    column_max = tm.program(
        """
def column_max(A):
    y = tensor("dense", fill=-inf)
    for i, j in _:
        y[j] = max(y[j], A[i,j])
    return y
"""
    )
    small = tm.tensor(np.eye(3), format="csr")
    assert raised(lambda: column_max(small)) == []
    found = raised(lambda: column_max(A))
    assert len(found) == 1 and "the loop over `j` visits" in found[0]
    # With the identity of max as the fill, the same program visits what is stored.
    stored = tm.tensor(np.where(np.eye(N) == 1, 1.0, -np.inf), format="csr", fill=-np.inf)
    assert raised(lambda: tm.program(column_max.text)(stored)) == []


def test_a_fill_is_one_number_in_every_type() -> None:
    C = tm.einsum("C[i,j] = A[i,j] + 1", A=A, format="dense, sparse; element(1)")
    assert C.fill_value == 1 and C.nnz == A.nnz


def test_warnings_can_be_errors() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", tm.SparseEfficiencyWarning)
        with pytest.raises(tm.SparseEfficiencyWarning, match="E0611"):
            tm.einsum("C[i,j] = A[i,j] - s", A=A, s=2.0, format="csr")


def test_eager_operations_are_named_and_not_their_notation() -> None:
    # The operation becomes index notation, whose operands the compiler converts: the caller has seen neither.
    blocked = tm.gallery.random((2000, 2000), 0.001, 1).convert("bsr(4,4)")
    matrix = tm.gallery.random((2000, 2000), 0.001, 2).convert("csr")
    operations: dict[str, Callable[[], Any]] = {
        "A @ B": lambda: matrix @ blocked,
        "A + B": lambda: blocked + np.ones(2000),
        "prod": lambda: matrix.convert("dcsr").prod(axis=1),
        "maximum": lambda: tm.maximum(blocked, np.ones(2000)),
        "tensordot": lambda: tm.tensordot(blocked, matrix.convert("csc"), axes=([0], [0])),
    }
    for words, call in operations.items():
        found = raised(call)
        assert found, words
        for text in found:
            first, *others = text.splitlines()
            assert f"Warning: in `{words}`, " in first, text
            assert "operand" in first and all(re.match(r"  (Help|Note)", line) for line in others), text
            assert not re.search(r"`([abcr]|x\d*|[A-D](_\w*)?)[`\[]", text.replace(f"`{words}`", "")), text


def test_mistakes_in_eager_operations_show_no_notation() -> None:
    with pytest.raises(tm.Error) as error:
        tm.tensor([1 + 2j]) < tm.tensor([1j])
    assert error.value.message.startswith("in `A < B`, `<` needs an order") and "x0" not in str(error.value)


def test_converted_operands_have_their_own_names() -> None:
    blocked = tm.gallery.random((2000, 2000), 0.001, 1).convert("bsr(4,4)")
    found = raised(lambda: tm.einsum("C[i,k] = A[i,j] * B[j,k]", A=tm.gallery.random((2000, 2000), 0.001, 2), B=blocked, format="csr"))
    assert all("A_" not in text for text in found)
    assert any("`A` was converted to" in text for text in found)
