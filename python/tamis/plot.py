"""Plots of tensors with matplotlib."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from ._display import density
from ._coordinates import as_tensor
from ._errors import fail

if TYPE_CHECKING:
    from ._tensor import Tensor

__all__ = ["format", "spy"]

#: The maximum nnz of a tensor whose fiber tree is drawn.
_LEAVES = 64


def _figure(width: float, height: float, current: bool = False) -> tuple[Any, Any]:
    """A figure and its axes: with ``current`` those of ``matplotlib.pyplot``, where that is used."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if current and pyplot is not None:
        return pyplot.gcf(), pyplot.gca()
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise fail(
            "E0903",
            "plots need matplotlib, which is not installed",
            "install it: `pip install matplotlib`",
            "notebooks show tensors without it: `t._repr_html_()`",
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.add_subplot()


def spy(tensor: Any, ax: Any = None, *, cells: int = 400) -> Any:
    """A matplotlib figure of the sparsity pattern of a vector or matrix, darker where more is stored.

    It is drawn on the axes ``ax``; without them, on the current axes if ``matplotlib.pyplot`` is used, else on a new figure.

    >>> import tamis as tm
    >>> tm.plot.spy(tm.gallery.laplacian(10)).axes[0].get_title()       # doctest: +SKIP
    '100x100 f64 csr, 460 stored'
    """
    t: Tensor = as_tensor(tensor)
    shares = density(t, cells)
    if shares is None:
        raise fail(
            "E0401",
            f"a tensor of {t.ndim} dimensions and {t.nnz:,} stored elements cannot be drawn as a matrix",
            "take a slice of it, as in `t[0]`, or sums over the other axes, as in `t.sum(axis=0)`",
        )
    figure, axes = (ax.figure, ax) if ax is not None else _figure(5, 5 if t.ndim == 2 else 1.2, current=True)
    rows, columns = t.shape if t.ndim == 2 else (1, t.shape[0])
    axes.imshow(
        np.sqrt(shares),
        cmap="Blues",
        aspect="auto",
        interpolation="nearest",
        extent=(-0.5, columns - 0.5, rows - 0.5, -0.5),
        vmin=0,
    )
    axes.set_title(t.summary())
    return figure


def format(tensor: Any) -> Any:
    """A matplotlib figure of the fiber tree of a small tensor: one row for each dimension, and the values.

    >>> import tamis as tm
    >>> len(tm.plot.format(tm.eye(3, format="csr")).axes)               # doctest: +SKIP
    1
    """
    t: Tensor = as_tensor(tensor)
    if t.nnz > _LEAVES:
        raise fail(
            "E0404",
            f"a tree of {t.nnz:,} stored elements is too large to draw",
            f"draw at most {_LEAVES} stored elements, as in `tm.plot.format(t[:4, :4])`",
            "`tm.plot.spy(t)` draws large ones",
        )
    figure, axes = _figure(max(4.0, 0.55 * t.nnz), 1.2 * (t.ndim + 2))
    columns, values = t.to_coo()
    places: dict[tuple[int, ...], tuple[float, float]] = {(): (max(len(values) - 1, 0) / 2, 0.0)}
    leaves: dict[tuple[int, ...], list[float]] = {}
    for k in range(len(values)):
        for depth in range(1, t.ndim + 1):
            leaves.setdefault(tuple(int(c) for c in columns[:depth, k]), []).append(float(k))
    for node, spots in leaves.items():
        places[node] = (sum(spots) / len(spots), -float(len(node)))
    for node, (x, y) in places.items():
        if node:
            above = places[node[:-1]]
            axes.plot([above[0], x], [above[1], y], color="#999", zorder=1)
        axes.text(
            x,
            y,
            str(node[-1]) if node else "root",
            ha="center",
            va="center",
            zorder=2,
            bbox={"boxstyle": "round", "fc": "white", "ec": "#1f4e79"},
        )
    for k, value in enumerate(values):
        axes.text(
            float(k),
            -float(t.ndim) - 0.8,
            f"{value:.3g}" if not isinstance(value, np.bool_) else str(value),
            ha="center",
            color="#1f4e79",
        )
    names = [f"dimension {d}" for d in range(t.ndim)]
    axes.set_yticks([-float(d) for d in range(1, t.ndim + 1)], names)
    axes.set_xticks([])
    axes.set_ylim(-t.ndim - 1.3, 0.6)
    axes.set_xlim(-0.8, max(len(values), 1) - 0.2)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
    axes.set_title(t.summary())
    return figure
