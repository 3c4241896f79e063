"""Diagnostics of eager operations in the caller's words: ``A @ B`` and its operands instead of the notation that it becomes.

Eager operations are computed as index notation that the package writes. What the compiler says about that text names operands
and indices that the caller has never seen; here they become operands by position, and the operation by name.
"""

from __future__ import annotations

import os
import re
import sys
from types import FrameType
from typing import Any

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: Modules whose functions take a text, names or indices from the caller.
_TEXTS = frozenset({"_einsum", "_explain", "_kernel", "_program", "_index_notation", "_grad", "_advise", "_search", "_subscripts"})

_SYMBOLS = {
    "add": "A + B", "subtract": "A - B", "multiply": "A * B", "divide": "A / B", "floor_divide": "A // B", "remainder": "A % B",
    "pow": "A ** B", "bitwise_and": "A & B", "bitwise_or": "A | B", "bitwise_xor": "A ^ B", "bitwise_left_shift": "A << B",
    "bitwise_right_shift": "A >> B", "equal": "A == B", "not_equal": "A != B", "less": "A < B", "less_equal": "A <= B",
    "greater": "A > B", "greater_equal": "A >= B", "negative": "-A", "positive": "+A", "abs": "abs(A)", "bitwise_invert": "~A",
    "__matmul__": "A @ B", "__rmatmul__": "A @ B",
}  # fmt: skip

_OWN_WORDS = ("loop", "follow(", "gallop(", "[...]", "statement")


def operation() -> str:
    """The eager operation that the caller requested; ``""`` if the caller gave a text, or called no function of the package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _module(frame) in ("_errors", "_eager_words"):
        frame = frame.f_back
    entry = None
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        entry, frame = frame, frame.f_back
    if entry is None or _module(entry) in _TEXTS:
        return ""
    name: Any = entry.f_code.co_name
    if name in ("forward", "backward", "function"):
        # Operators and functions of the table are closures over their name.
        name = entry.f_locals.get("name", name)
    elif name == "call" and hasattr(entry.f_locals.get("function"), "__name__"):
        name = entry.f_locals["function"].__name__
    elif name == "__array_ufunc__":
        name = entry.f_locals["ufunc"].__name__
    elif name == "__call__" and _module(entry) == "_jit":
        name = getattr(entry.f_locals.get("self"), "__name__", "a traced function")
    return _SYMBOLS.get(name, str(name).strip("_"))


def is_of_text(part: tuple[Any, ...]) -> bool:
    """Whether a diagnostic points into index notation."""
    span = part[2]
    return span is not None and span[0] == "notation"


def _module(frame: FrameType) -> str:
    return os.path.splitext(os.path.basename(frame.f_code.co_filename))[0]


def worded(entry: str, part: tuple[Any, ...]) -> tuple[Any, ...]:
    """The parts of a diagnostic about a text that an operation has become: without the text, with operands by position.

    >>> from tamis._eager_words import worded
    >>> note = "`x1` stores 4 of 4000 elements"
    >>> message = "the loop over `a` visits all 9 coordinates, not only those that `x1` stores"
    >>> made = worded("A + B", ("E0611", message, None, (note,), (), "[E0611] Warning: ..."))
    >>> print(made[-1])
    [E0611] Warning: in `A + B`, a loop visits all 9 coordinates, not only those that operand 2 stores
      Help: write it with `tamis.einsum`, where the order of loops and formats can be chosen
      Note: operand 2 stores 4 of 4000 elements
    """
    code, message, _, notes, help, rendered = part
    kind = "Warning" if "] Warning: " in rendered else "Error"
    message = f"in `{entry}`, {_shown(message)}"
    notes = tuple(_shown(note) for note in notes)
    help = tuple(_shown(line) for line in help if not any(word in line for word in _OWN_WORDS))
    if not help and kind == "Warning":
        help = ("write it with `tamis.einsum`, where the order of loops and formats can be chosen",)
    lines = [f"[{code}] {kind}: {message}"]
    for what, found in (("Help", help), ("Note", notes)):
        lines += [f"  {what}{f' {k + 1}' if len(found) > 1 else ''}: {line}" for k, line in enumerate(found)]
    return (code, message, None, notes, help, "\n".join(lines))


def _shown(line: str) -> str:
    """A line with operands by position, and loops without names."""
    line = re.sub(r"(the|every) loop over `\w+`|(the|every) loop over blocks of `\w+`", "a loop", line)
    line = re.sub(r"for every (blocks of )?`(\w+)`", "in every iteration", line)
    line = re.sub(r"(an |the )?index `\w+`", "a dimension", line)
    line = re.sub(r"`x(\d+)(\[[^`]*\])?`", lambda found: f"operand {int(found[1]) + 1}", line)
    line = re.sub(r"`([A-D])(\[[^`]*\])?`", lambda found: f"operand {ord(found[1]) - 64}", line)
    line = re.sub(r"`x(\[[^`]*\])?`", "the operand", line)
    line = re.sub(r"`(r|out)(\[[^`]*\])?`", "the result", line)
    return re.sub(r"`t\d+(\[[^`]*\])?`", "an intermediate result", line)
