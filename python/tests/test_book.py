"""The page of mistakes says what is said today."""

from __future__ import annotations

import pathlib
import runpy

REFERENCE = pathlib.Path(__file__).parents[2] / "docs" / "reference"


def test_mistakes_are_up_to_date() -> None:
    made = runpy.run_path(str(REFERENCE / "mistakes.py"))
    assert len(made["MISTAKES"]) == 15
    page = made["page"]()
    assert page == (REFERENCE / "mistakes.md").read_text(), "run `python docs/reference/mistakes.py`"


def test_every_mistake_has_help() -> None:
    made = runpy.run_path(str(REFERENCE / "mistakes.py"))
    for _, code in made["MISTAKES"]:
        assert made["run"](code).help, code
