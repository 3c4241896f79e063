"""What type checkers say of a user's program: strict, and without `Any` where it matters."""

from __future__ import annotations

import pathlib

import pytest

#: An expression, and its type.
REVEALED = {
    "A @ x": "ndarray",
    "x @ A": "ndarray",
    "A @ A": "Tensor",
    "A @ [1.0, 2.0]": "Tensor",
    "A + A": "Tensor",
    "2 * A": "Tensor",
    "A * 2.0": "Tensor",
    "-A": "Tensor",
    "A == A": "Tensor",
    "A < 1": "Tensor",
    "A[0]": "Tensor",
    "A[1:3]": "Tensor",
    "A[A > 0]": "Tensor",
    "A.T": "Tensor",
    "A.H": "Tensor",
    "A.sum(axis=0)": "Tensor",
    "A.tocsc()": "Tensor",
    "A.sin()": "Tensor",
    "A.to_numpy()": "ndarray",
    "tm.exp(A)": "Tensor",
    "tm.matmul(A, x)": "Tensor",
    "tm.hstack([A, A])": "Tensor",
    "tm.diags([1.0, 2.0])": "Tensor",
    "tm.at(A)[0, 1].set(2.0)": "Tensor",
    "tm.linalg.cg(A, x)[0]": "ndarray",
    "tm.graph.bfs(A, 0).distances": "ndarray",
    'tm.from_columns({"a": [1]}, ["a"])': "LabeledTensor",
}


def test_a_program_is_checked(tmp_path: pathlib.Path) -> None:
    api = pytest.importorskip("mypy.api")
    lines = ["import numpy as np", "import tamis as tm", "A = tm.gallery.laplacian(3)", "x = np.ones(9)", "total: float = A.sum()"]
    first = len(lines) + 1
    program = tmp_path / "program.py"
    program.write_text("\n".join([*lines, *(f"reveal_type({expression})" for expression in REVEALED)]) + "\n")
    # A cache of an earlier run would know the program, and reveal nothing.
    cache = f"--cache-dir={tmp_path / 'cache'}"
    found, _, _ = api.run(["--strict", "--no-error-summary", "--follow-imports=silent", cache, str(program)])
    said = {int(line.split(":")[1]): line for line in found.splitlines() if str(program) in line}
    assert not [line for line in said.values() if "error:" in line], found
    for number, (expression, wanted) in enumerate(REVEALED.items(), first):
        assert wanted in said[number].split("type is")[1].split("[")[0], said[number]
