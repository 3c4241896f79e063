"""Rich display in notebooks: tensors as spy plots with their levels, explanations as tabs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import Error
from ._lazy_import import np

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: The maximum number of cells per side of a spy plot, and the maximum number of visited entries.
_CELLS = 64
_ENTRIES = 5_000_000


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def density(tensor: Any, cells: int = _CELLS) -> NDArray[np.float64] | None:
    """The density of each part of a matrix, as a small picture."""
    if tensor.ndim not in (1, 2) or 0 in tensor.shape or tensor.nnz > _ENTRIES:
        return None
    shape = tensor.shape if tensor.ndim == 2 else (1, *tensor.shape)
    grid = tuple(min(n, cells) for n in shape)
    if tensor.is_dense:
        coords = np.nonzero(tensor._readable().reshape(shape))
    else:
        columns, _ = tensor.to_coo()
        coords = tuple(columns) if tensor.ndim == 2 else (np.zeros(columns.shape[1], dtype=np.int64), columns[0])
    place = [
        np.minimum(c * g // n, g - 1)
        for c, g, n in zip((np.asarray(c, dtype=object) if max(shape) > 1 << 55 else c for c in coords), grid, shape)
    ]
    counts = np.zeros(grid)
    np.add.at(counts, tuple(np.asarray(p, dtype=np.int64) for p in place), 1)
    rows, columns = ([max(1, (k + 1) * n // g - k * n // g) for k in range(g)] for g, n in zip(grid, shape))
    return counts / np.outer(np.asarray(rows, dtype=float), np.asarray(columns, dtype=float))


def spy_svg(tensor: Any, width: int = 192) -> str:
    """The picture as SVG, darker where more is stored."""
    shares = density(tensor)
    if shares is None:
        return ""
    rows, columns = shares.shape
    side = max(1.0, width / columns)
    height = max(side, min(width, rows * width / columns if tensor.ndim == 2 else 12))
    step = height / rows
    largest = shares.max() or 1.0
    boxes = []
    for r, c in zip(*np.nonzero(shares)):
        opacity = 0.25 + 0.75 * (shares[r, c] / largest) ** 0.5
        boxes.append(
            f'<rect x="{c * side:.2f}" y="{r * step:.2f}" width="{side:.2f}" height="{step:.2f}" fill-opacity="{opacity:.2f}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" viewBox="0 0 {columns * side:.2f} '
        f'{height:.2f}" role="img" aria-label="stored elements" style="border:1px solid #999;background:#fff">'
        f'<g fill="#1f4e79">{"".join(boxes)}</g></svg>'
    )


def levels_table(tensor: Any) -> str:
    """The levels of a tensor with their arrays, as a table."""
    rows = []
    for k, level in enumerate(tensor.levels):
        arrays = ", ".join(f"{name}: {len(array):,} {array.dtype}" for name, array in tensor.level_arrays(k).items())
        rows.append(f"<tr><td>{k}</td><td><code>{_escape(level)}</code></td><td>{_escape(arrays) or '&ndash;'}</td></tr>")
    values = tensor.values
    leaf = "pattern" if values is None else f"values: {len(values):,} {values.dtype}"
    rows.append(f"<tr><td>leaf</td><td>fill {_escape(str(tensor.fill_value))}</td><td>{_escape(leaf)}</td></tr>")
    return f"<table><thead><tr><th>level</th><th>kind</th><th>arrays</th></tr></thead><tbody>{''.join(rows)}</tbody></table>"


class Display:
    """The representation of a tensor in notebooks."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The values at the corners, a picture of what is stored, and the levels.

        >>> import tamis as tm
        >>> "<svg" in tm.eye(4, format="csr")._repr_html_()
        True
        """
        from ._tensor import corner, stored

        head = f"<div><b>tamis.Tensor</b> {_escape(self.summary())}</div>"  # type: ignore[attr-defined]
        values = f"<pre>{_escape(corner(self))}</pre>"  # type: ignore[arg-type]
        if "stored (" not in values:
            values += f"<div>{_escape(stored(self))}</div>"  # type: ignore[arg-type]
        return (
            '<div style="display:flex;gap:1.5em;align-items:flex-start;flex-wrap:wrap">'
            f"<div>{head}{values}{levels_table(self)}</div><div>{spy_svg(self)}</div></div>"
        )


_STYLE = (
    ".tamis-tabs>input{display:none}.tamis-tabs>label{display:inline-block;padding:.25em .8em;border:1px solid #bbb;"
    "border-bottom:none;cursor:pointer;background:#eee;color:#222}.tamis-tabs>input:checked+label{background:#fff;font-weight:bold}"
    ".tamis-tabs>pre{display:none;border:1px solid #bbb;padding:.8em;margin:0;max-height:32em;overflow:auto;background:#fff;color:#222}"
)


def tabs(explanation: Any) -> str:
    """The stages of an explanation, a tab for each; without scripts."""
    key = f"tamis{id(explanation):x}"
    buttons, panes, rules = [], [], []
    for k, stage in enumerate(explanation.STAGES):
        try:
            text = str(getattr(explanation, stage))
        except Error as error:
            text = str(error)
        checked = " checked" if k == 0 else ""
        buttons.append(f'<input type="radio" name="{key}" id="{key}{k}"{checked}><label for="{key}{k}">{stage}</label>')
        panes.append(f'<pre class="{key}{k}">{_escape(text)}</pre>')
        rules.append(f"#{key}{k}:checked~.{key}{k}{{display:block}}")
    cost = "" if explanation.cost is None else f"<div>expected cost: {explanation.cost:.4g} steps</div>"
    subject = f"<pre>{_escape(explanation.subject.strip())}</pre>"
    return f'{subject}{cost}<div class="tamis-tabs"><style>{_STYLE}{"".join(rules)}</style>{"".join(buttons)}{"".join(panes)}</div>'
