"""Elementwise functions, which are made from the operator table: their stub, documentation and values.

`TAMIS_BLESS=1` rewrites the stub.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import tamis as tm
from tamis import _elementwise, _functions
from tamis._trace import RESERVED

API = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
STUB = Path(_functions.__file__).with_suffix(".pyi")


def stub() -> str:
    lines = ['"""Elementwise functions; made from the operator table by `TAMIS_BLESS=1 pytest tests/test_elementwise.py`."""']
    lines += ["", "from typing import Any", "", "from ._tensor import Tensor", "", f"__all__ = {sorted(_functions.__all__)!r}", ""]
    for name, op in sorted(_elementwise.OPS.items()):
        operands = {1: "x: Any", 2: "x1: Any, x2: Any", 3: "condition: Any, x1: Any, x2: Any"}[op.operands]
        lines.append(f"def {name}({operands}, /) -> Tensor: ...")
    lines += ["def clip(x: Any, /, min: Any = ..., max: Any = ...) -> Tensor: ...", ""]
    return "\n".join(lines)


def test_stub_is_current() -> None:
    if os.environ.get("TAMIS_BLESS"):
        STUB.write_text(stub())
    assert STUB.read_text() == stub(), f"run TAMIS_BLESS=1 pytest {__file__}"


def test_api_page_is_current() -> None:
    text = API.read_text()
    head, _, rest = text.partition("## Elementwise functions")
    intro, _, tail = rest.partition("   :nosignatures:\n")
    _, _, tail = tail.partition("```")
    names = "".join(f"   {name}\n" for name in sorted(_functions.__all__))
    page = f"{head}## Elementwise functions{intro}   :nosignatures:\n\n{names}```{tail}"
    if os.environ.get("TAMIS_BLESS"):
        API.write_text(page)
    assert text == page, f"run TAMIS_BLESS=1 pytest {__file__}"


def test_every_operator_is_a_function_with_documentation() -> None:
    for name, op in _elementwise.OPS.items():
        function = getattr(tm, name)
        assert name in tm.__all__ and function.__name__ == name
        assert function.__doc__ and (op.operands == 3 or op.summary[1:] in function.__doc__)


def test_every_word_of_the_table_is_reserved() -> None:
    for row in _elementwise.TABLE:
        assert row["name"] in RESERVED or row["symbol"]


@pytest.mark.parametrize("row", _elementwise.TABLE, ids=lambda row: row["name"])
def test_ufuncs_dispatch_to_the_table(row: dict[str, object]) -> None:
    for ufunc in row["ufuncs"]:  # type: ignore[attr-defined]
        function = getattr(np, ufunc)
        assert isinstance(function, np.ufunc) and function.nin == row["operands"]
        floats = any("d" in signature for signature in function.types)
        operands = [tm.tensor([0.25, 0.5] if floats else [1, 2])] * function.nin
        assert isinstance(function(*operands), tm.Tensor)


#: NumPy's names of functions that have another name here.
NUMPY = {row["function"]: row["ufuncs"][-1] for row in _elementwise.TABLE if row["function"] and row["ufuncs"]}
NUMPY |= {"divide": "divide", "pow": "power", "abs": "absolute"}


@pytest.mark.parametrize("name", sorted(_elementwise.OPS))
def test_functions_agree_with_numpy(name: str) -> None:
    theirs = getattr(np, NUMPY.get(name, name), None)
    if not isinstance(theirs, np.ufunc):
        pytest.skip("NumPy has no such function")
    x, y = np.array([0.25, 0.5, -0.75, 0.0]), np.array([0.5, -0.25, -0.75, 1.0])
    if not any("d" in signature for signature in theirs.types):
        x, y = np.array([1, 2, 3, 0]), np.array([2, 1, 3, 1])
    operands = (x, y)[: theirs.nin]
    with np.errstate(all="ignore"):
        expected = theirs(*operands)
    for format in ("dense", "sparse"):
        made = getattr(tm, name)(*(tm.tensor(operand, format=format) for operand in operands))
        np.testing.assert_allclose(np.asarray(made.to_numpy()), expected, rtol=1e-12, err_msg=name)
