"""Group-by in index notation: ``W[p, week[d]] += S[p,d]``, a result that is subscripted by an array of integers.

The array becomes a matrix with one element in each row, and the statement a product with it, so nothing but what is stored is
visited. A dimension of the result that the array subscripts has as many coordinates as the greatest number in it says; an operand
with the name of the result gives its sizes, and the values that the sums start from.
"""

from __future__ import annotations

import re
from typing import Any, Mapping

from . import _construct, _tamis
from ._errors import fail
from ._lazy_import import np

_STATEMENT = re.compile(r"^\s*(?P<name>\w+)\s*\[(?P<subscripts>.*?)\]\s*(?P<op>\+=)(?P<value>.*)$", re.S)
_GATHERED = re.compile(r"^\s*(?P<array>\w+)\s*\[\s*(?P<index>\w+)\s*\]\s*$")


def rewritten(text: str, tensors: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """The notation with products for gathered results, and its operands; ``None`` if no statement is of that kind.

    >>> from tamis._group_by import rewritten
    >>> rewritten("W[week[d]] += x[d]", {"week": [0, 1, 0], "x": [1.0, 2.0, 3.0]})[0]
    'W[week_d] = (x[d]) * week_is[d,week_d]'
    """
    given = dict(tensors)
    statements = []
    found = False
    for statement in re.split(r"[;\n]", text):
        made = _rewritten(statement, given, text)
        found |= made is not None
        statements.append(statement if made is None else made)
    if not found:
        return None
    used = {name: tensor for name, tensor in given.items() if any(re.search(rf"\b{name}\b", s) for s in statements)}
    return "; ".join(s for s in statements if s.strip()), used


def _rewritten(statement: str, given: dict[str, Any], text: str) -> str | None:
    parts = _STATEMENT.match(statement.replace("]]", "] ]"))
    if parts is None or "[" not in parts["subscripts"]:
        return None
    name, subscripts, value = parts["name"], _split(parts["subscripts"]), parts["value"].strip()
    start = _construct.asarray(given[name]) if name in given else None
    factors, indices = [], []
    for axis, subscript in enumerate(subscripts):
        gathered = _GATHERED.match(subscript)
        if gathered is None or gathered["array"] not in given:
            if "[" in subscript:
                return None
            indices.append(subscript.strip())
            continue
        array, index = gathered["array"], gathered["index"]
        matrix, fresh = _free(f"{array}_is", text, given), _free(f"{array}_{index}", text, {})
        size = None if start is None else start.shape[axis]
        given[matrix] = _one_hot(array, given[array], size)
        factors.append(f"{matrix}[{index},{fresh}]")
        indices.append(fresh)
    access = f"[{','.join(indices)}]"
    before = ""
    if start is not None:
        given[_free(f"{name}_start", text, {})] = given.pop(name)
        before = f"{name}_start{access} + "
    return f"{name}{access} = {before}({value}) * {' * '.join(factors)}"


def _split(subscripts: str) -> list[str]:
    """The parts between commas that are not in brackets."""
    parts, depth = [""], 0
    for letter in subscripts:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _free(name: str, text: str, given: Mapping[str, Any]) -> str:
    while re.search(rf"\b{name}\b", text) or name in given:
        name += "_"
    return name


def _one_hot(name: str, array: Any, size: int | None) -> Any:
    """The matrix whose row ``d`` has an element at the column that the array names there."""
    numbers = array._readable() if isinstance(array, _tamis.Tensor) else np.asarray(array)  # type: ignore[attr-defined]
    if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
        raise fail(
            "E0305",
            f"`{name}` subscripts a result, and is an array of {numbers.ndim} dimensions of {numbers.dtype}",
            "give a vector of integers",
        )
    least, most = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, -1)
    if least < 0:
        raise fail("E1001", f"`{name}` has the negative number {least}", "give the coordinates of the result, which start at 0")
    size = most + 1 if size is None else size
    if most >= size:
        message = f"`{name}` has {most}, which is out of bounds for a dimension of size {size}"
        raise fail("E1001", message, f"give numbers below {size}, or a larger tensor to add to")
    count = len(numbers)
    level = {"pos": np.arange(count + 1), "crd": np.ascontiguousarray(numbers, dtype=np.int64)}
    return _tamis.from_parts([count, size], "csr; pattern", [{}, level], None, False, False)
