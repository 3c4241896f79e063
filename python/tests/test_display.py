"""Display in notebooks, and pictures."""

from __future__ import annotations

import sys

import pytest

import tamis as tm


def test_tensors_in_notebooks() -> None:
    for t in (
        tm.gallery.laplacian(30),
        tm.zeros((0, 3)),
        tm.ones(5),
        tm.gallery.random((4, 5, 6), 0.1),
        tm.tensor(3.0),
        tm.full((10**9, 10**9), 1, format="coo"),
    ):
        html = t._repr_html_()
        assert "<table>" in html and "tamis.Tensor" in html
    assert tm.gallery.laplacian(30)._repr_html_().count("<rect") > 60


def test_explanations_in_notebooks() -> None:
    html = tm.explain("y[i] = A[i,j] * x[j]", A=tm.gallery.laplacian(3), x=tm.ones(9))._repr_html_()
    for stage in ("schedule", "program", "kernel", "llvm", "asm"):
        assert f">{stage}</label>" in html
    assert "&lt;" in html or "for i" in html


def test_pictures() -> None:
    pytest.importorskip("matplotlib")
    assert tm.plot.spy(tm.gallery.laplacian(30)).axes[0].get_title().startswith("900x900")
    assert tm.plot.spy(tm.ones(5)).axes
    assert tm.plot.format(tm.eye(3, format="csr")).axes[0].texts
    with pytest.raises(tm.Error):
        tm.plot.format(tm.gallery.laplacian(30))
    with pytest.raises(tm.Error):
        tm.plot.spy(tm.zeros((2, 2, 2)))


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(tm.Error) as caught:
        tm.plot.spy(tm.eye(3))
    assert any("pip install" in help for help in caught.value.help)
