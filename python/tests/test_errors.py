"""Errors: what they are, what they say, and that the process is well afterwards."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import tamis as tm

A = tm.gallery.laplacian(3)


@pytest.mark.parametrize(
    "text, tensors, kind, code",
    [
        ("y[i] = A[i,j] * x[j]", {"A": A}, KeyError, "E0902"),
        ("y[i] = A[i,j] * x[j]", {"A": A, "x": np.ones(9), "z": 1}, KeyError, "E0903"),
        ("y[i] = A[i,j] * x[j]", {"A": A, "x": np.ones(8)}, ValueError, "E0402"),
        ("y[i] = A[i] * x[i]", {"A": A, "x": np.ones(9)}, ValueError, "E0401"),
        ("y[i] = A[i,j] *", {"A": A}, ValueError, "E0101"),
        ("y[i] = nothing(A[i,j])", {"A": A}, Exception, None),
        ("y[i] = abs(A[i,j])", {"A": A}, ValueError, "E0112"),
        ("y[k] = A[i,j]", {"A": A}, ValueError, "E0113"),
        ("", {}, Exception, None),
        ("🙂", {}, Exception, None),
        ("ij,jk->ik", {"A": A}, ValueError, "E0111"),
        ("y[i] = x[i] < z[i]", {"x": np.ones(2) * 1j, "z": np.ones(2)}, TypeError, "E0301"),
        ("y[i] = x[I[i]]", {"x": np.ones(2), "I": np.array([0, 5])}, IndexError, "E1001"),
    ],
    ids=str,
)
def test_mistakes(text: str, tensors: dict[str, object], kind: type, code: str | None) -> None:
    for _ in range(2):  # The second call must not hit a wrongly cached result.
        with pytest.raises(tm.Error) as caught:
            tm.einsum(text, **tensors)
        error = caught.value
        assert isinstance(error, kind) and error.help and error.message and error.code in str(error)
        assert code is None or error.code == code


def test_a_failure_after_a_success_is_reported_in_the_users_text() -> None:
    text = "y[i] = A[i,j] * x[j]"
    tm.einsum(text, A=A, x=np.ones(9))
    with pytest.raises(tm.Error) as caught:
        tm.einsum(text, A=A, x=np.ones(10))
    assert caught.value.span == ("notation", 1, 17, 1, 21) and text in str(caught.value)


def test_errors_are_values() -> None:
    with pytest.raises(tm.Error) as caught:
        tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=np.ones(8))
    error = caught.value
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert again == error and hash(again) == hash(error) and type(again) is type(error)
        assert str(again) == str(error) and again.span == error.span and again.help == error.help
    assert len({error, pickle.loads(pickle.dumps(error))}) == 1
    with pytest.raises(tm.Error) as missing:
        tm.read("/nowhere/a.mtx")
    again = pickle.loads(pickle.dumps(missing.value))
    assert str(again) == str(missing.value) and isinstance(again, OSError)


def test_several_mistakes_at_once() -> None:
    with pytest.raises(tm.Error) as caught:
        tm.program("def f(x):\n    y = tensor('dense')\n    for i in _:\n        y[i] = a[i] + b[i]\n    return y\n")
    error = caught.value
    assert [error.code, *(other.code for other in error.others)] == ["E0201", "E0201"]
    assert error.span is not None and error.span.line == 4 and error.span.source == "program"


def test_spans_name_the_source() -> None:
    with pytest.raises(tm.Error) as caught:
        tm.program("\n\ndef f(x):\n    return y\n", source="mine.py")
    assert caught.value.span is not None and (caught.value.span.source, caught.value.span.line) == ("mine.py", 4)


def test_wrong_arguments() -> None:
    for call in (
        lambda: tm.einsum("y[i] = x[i]", x=[1.0], format="nonsense"),
        lambda: tm.einsum("y[i] = x[i]", x=[1.0], format="csr"),
        lambda: tm.einsum("y[i] = x[i]", x=[1.0], format={"z": "dense"}),
        lambda: tm.einsum("y[i] = x[i]", x=[1.0], order="k"),
        lambda: tm.einsum("y[i] = x[i]", x=[1.0], schedule="nonsense(i)"),
        lambda: tm.einsum("y[i] = x[i]", x="text"),
        lambda: tm.einsum("y[i] = x[i]", x=object()),
        lambda: tm.einsum("y[i] = x[i]", x=None),
        lambda: tm.describe("E9999"),
    ):
        with pytest.raises(tm.Error) as caught:
            call()
        assert caught.value.help
    with pytest.raises(TypeError):
        tm.einsum(5)
    with pytest.raises(TypeError):
        tm.einsum("y[i] = x[i]", x=[1.0], format=5)


def test_every_code_has_a_class() -> None:
    from tamis import _tamis
    from tamis._errors import _BY_CODE

    assert set(_BY_CODE) <= {name for name, _, _ in _tamis.codes()}
    for name, title, _ in _tamis.codes():
        assert title in tm.describe(name)


def test_a_result_of_a_terabyte_is_refused() -> None:
    x = np.ones(400_000)
    for _ in range(3):
        with pytest.raises(MemoryError):
            tm.einsum("C[i,j] = x[i] * y[j]", x=x, y=x)
    assert tm.einsum("s = x[i]", x=x).item() == 400_000
    with pytest.raises(tm.Error):
        tm.gallery.ones((10**7, 10**7))
    with pytest.raises(MemoryError):
        tm.tensor(([[0], [0]], [1.0], (10**7, 10**7)), "dense")
