"""The examples run, each with its own check, and stay short."""

from __future__ import annotations

import pathlib
import runpy

import pytest

EXAMPLES = sorted((pathlib.Path(__file__).parents[2] / "examples" / "python").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example(path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = path.read_text()
    assert len(text.splitlines()) < 60 and "def check(" in text
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()


def test_all_are_there() -> None:
    names = {path.stem for path in EXAMPLES}
    assert names >= {"pagerank", "conjugate_gradient", "gcn", "cp_als", "triangles", "erosion", "life", "attention"}
