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


def test_corners() -> None:
    t = tm.gallery.laplacian(30)
    lines = repr(t).splitlines()
    assert lines[0] == "<tamis.Tensor 900x900 f64 csr, 4380 stored>" and lines[-1].startswith("4,380 of 810,000 elements stored (0.541 %)")
    assert lines[1].count("...") == 1 and lines[4].strip() == "..." and len(lines) == 9
    assert "..." not in repr(tm.eye(6, format="csr")) and "..." in repr(tm.eye(7, format="csr"))
    assert repr(tm.ones(100)).count("...") == 1 and "of 1,000 elements" in repr(tm.zeros((10, 10, 10)))
    assert "1,000,000,000,000,000,000" in repr(tm.zeros((10**9, 10**9)))
    assert "4,380 of 810,000" in t._repr_html_() and "<pre>" in tm.ones(3)._repr_html_()


def test_advice_in_notebooks() -> None:
    html = tm.advise(tm.gallery.laplacian(5), measure=False)._repr_html_()
    assert "<table>" in html and "<code>csr</code>" in html


def test_pictures_on_axes() -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    figure, axes = pyplot.subplots(1, 2)
    assert tm.plot.spy(tm.eye(4, format="csr"), ax=axes[1]) is figure and axes[1].images and not axes[0].images
    new = pyplot.figure()
    assert tm.plot.spy(tm.eye(4, format="csr")) is new and new.axes[0].images
    pyplot.close("all")


def test_explanations_in_notebooks() -> None:
    html = tm.explain("y[i] = A[i,j] * x[j]", A=tm.gallery.laplacian(3), x=tm.ones(9))._repr_html_()
    for stage in ("schedule", "program", "kernel", "llvm", "asm"):
        assert f">{stage}</label>" in html
    assert "&lt;" in html or "for i" in html


def test_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    assert tm.plot.spy(tm.gallery.laplacian(30)).axes[0].get_title().startswith("900x900")
    assert tm.plot.spy(tm.ones(5)).axes
    assert tm.plot.format(tm.eye(3, format="csr")).axes[0].texts
    with pytest.raises(tm.Error):
        tm.plot.format(tm.gallery.laplacian(30))
    with pytest.raises(tm.Error):
        tm.plot.spy(tm.zeros((2, 2, 2)))


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    with pytest.raises(tm.Error) as caught:
        tm.plot.spy(tm.eye(3))
    assert any("pip install" in help for help in caught.value.help)
