"""Format advice: proposes formats for a tensor and benchmarks them on this machine."""

from __future__ import annotations

from typing import Any

from . import _tamis
from ._construct import asarray


class Advice:
    """Formats for a tensor, the fastest first; made by :func:`advise`.

    ``best`` is the format to take (``None`` if nothing was measured), ``task`` what was measured, and ``candidates`` a list of dictionaries.
    """

    __slots__ = ("task", "unmeasured", "candidates")

    def __init__(self, task: str | None, unmeasured: str | None, candidates: list[dict[str, Any]]) -> None:
        self.task = task
        self.unmeasured = unmeasured
        self.candidates = candidates

    @property
    def best(self) -> str | None:
        """The format to take, if one was measured."""
        return next((row["format"] for row in self.candidates if row["best"]), None)

    def __repr__(self) -> str:
        lines = [self.task or "formats for this tensor"]
        if self.unmeasured:
            lines.append(f"(not measured: {self.unmeasured})")
        for row in self.candidates:
            time = "         -" if row["seconds"] is None else f"{row['seconds'] * 1e6:8.1f}us"
            mark = "<- best" if row["best"] else ""
            lines.append(f"{time}  {row['bytes']:>12} bytes  {row['format']}  ({row['why']}) {mark}".rstrip())
        return "\n".join(lines)


def advise(t: Any, *, measure: bool = True, seconds: float = 10.0) -> Advice:
    """Proposes formats for a tensor, and times each of them within a time limit.

    >>> import tamis as tm
    >>> "csr" in [row["format"] for row in tm.advise(tm.gallery.laplacian(10), measure=False).candidates]
    True
    """
    return Advice(**_tamis.advise(asarray(t), measure, seconds))
