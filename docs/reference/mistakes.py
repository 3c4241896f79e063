"""Makes ``mistakes.md``: runs fifteen common mistakes, and writes down what Tamis says. ``python docs/reference/mistakes.py`` writes it."""

from __future__ import annotations

import pathlib
import re

import numpy as np

import tamis as tm

HEAD = """# Fifteen common mistakes, and what Tamis says

Made by `python docs/reference/mistakes.py`, which runs every one of them; a test compares. Each is a `tm.Error` that is also the exception of
Python's that one would expect; `error.code`, `error.span`, `error.notes` and `error.help` are there for programs.
"""

#: What is said about a mistake, and the lines that make it; the last one raises.
MISTAKES = [
    ("Sizes that do not agree", 'A = tm.gallery.laplacian(3)                      # 9 x 9\ntm.einsum("y[i] = A[i,j] * x[j]", A=A, x=np.ones(8))'),
    ("The wrong way round", "A = tm.gallery.random((5, 3), 0.5)\nA @ np.ones(5)"),
    ("Shapes that cannot be broadcast", "tm.zeros((4, 3)) + np.ones(4)"),
    ("A sparse matrix plus a dense vector: no huge dense result without permission", "A = tm.gallery.random((100_000, 100_000), 1e-7)\nA + np.ones(100_000)"),
    ("Asking for a dense array", "tm.gallery.random((1_000_000, 1_000_000), 1e-9).to_numpy()"),
    ("Changing an element", "A = tm.eye(3, format=\"csr\")\nA[0, 0] = 5.0"),
    ("An index outside", "A = tm.eye(3, format=\"csr\")\nA[3, 0]"),
    ("An operand that the notation does not read", 'tm.einsum("y[i] = A[i,j] * x[j]", A=tm.eye(2), X=np.ones(2))'),
    ("A reduction that can be read in two ways", 'tm.einsum("y[i] = abs(A[i,j])", A=tm.eye(2))'),
    ("A slip of the pen", 'tm.einsum("y[i] = A[i,j * x[j]", A=tm.eye(2), x=np.ones(2))'),
    ("A function that is not known", 'tm.einsum("y[i] = tahn(x[i])", x=np.ones(2))'),
    ("A format that is none", 'tm.tensor([[1, 2], [3, 4]], format="crs")'),
    ("A type that tensors do not hold", "tm.tensor(np.array([1.0, 2.0], dtype=np.float16))"),
    ("Order among complex numbers", "tm.tensor([1j, 2.0]) < 1"),
    ("A value that is not there while a function is traced", "@tm.jit\ndef f(x):\n    return x if x.sum() > 0 else -x\nf(np.ones(3))"),
]


def run(code: str) -> tm.Error:
    """The error that some lines end in."""
    try:
        exec(compile(code, "<mistake>", "exec"), {"tm": tm, "np": np})
    except tm.Error as error:
        return error
    raise AssertionError(f"this is no mistake:\n{code}")


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for number, (title, code) in enumerate(MISTAKES, 1):
        error = run(code)
        builtin = next(base.__name__ for base in type(error).__mro__ if base.__module__ == "builtins")
        said = re.sub(r"[ \t]+$", "", str(error), flags=re.M)
        article = "an" if builtin[0] in "AEIO" else "a"
        kind = f"`tm.{type(error).__name__}`, {article} `{builtin}`:"
        parts.append(f"## {number}. {title}\n\n```python\n{code}\n```\n\n{kind}\n\n```text\n{said}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    pathlib.Path(__file__).with_suffix(".md").write_text(page())
