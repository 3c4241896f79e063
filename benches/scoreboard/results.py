"""Measurements in the form of tables: ratios, means, and the rows that need an explanation."""

from __future__ import annotations

import fnmatch
import math
import os
import statistics
import tomllib
from dataclasses import dataclass
from typing import Any, Iterable

from .targets import LEAST, Target

REMARKS = os.path.join(os.path.dirname(__file__), "remarks.toml")
OURS = "tamis"


@dataclass(frozen=True)
class Row:
    """One kernel on one input with one number of threads."""

    kernel: str
    input: str
    threads: int
    data: dict[str, Any]

    def least(self, side: str) -> float | None:
        found = self.data["times"].get(side)
        return found[0] if found else None

    def median(self, side: str) -> float | None:
        found = self.data["times"].get(side)
        return found[1] if found else None

    def ratio(self, side: str) -> float | None:
        """A peer's least time over ours: above 1, we are faster."""
        ours, theirs = self.least(OURS), self.least(side)
        return theirs / ours if ours and theirs else None

    def ratio_of_medians(self, side: str) -> float | None:
        """The same of medians."""
        ours, theirs = self.median(OURS), self.median(side)
        return theirs / ours if ours and theirs else None


def geometric_mean(numbers: Iterable[float]) -> float:
    kept = list(numbers)
    return math.exp(statistics.fmean(map(math.log, kept))) if kept else math.nan


class Results:
    """All rows of all runs."""

    def __init__(self, measured: dict[str, Any]) -> None:
        self.runs = measured["runs"]
        self.threads = [run["threads"] for run in self.runs]
        self.rows = [Row(c["kernel"], c["input"], run["threads"], c) for run in self.runs for c in run["cases"]]
        with open(REMARKS, "rb") as file:
            found = tomllib.load(file)
            self.remarks, self.known_limits = found.get("remark", []), found.get("limit", [])

    def kernels(self) -> list[str]:
        return list(dict.fromkeys(row.kernel for row in self.rows))

    def sides(self, rows: Iterable[Row]) -> list[str]:
        """All sides of these rows in the order of the first run, ours and its other ways first."""
        names = list(dict.fromkeys(name for row in rows for name in row.data["times"]))
        return sorted(names, key=lambda name: not name.startswith(OURS))

    def of(self, kernel: str, threads: int | None = None) -> list[Row]:
        return [r for r in self.rows if r.kernel == kernel and threads in (None, r.threads) and r.data["times"]]

    def ratios(self, kernel: str, side: str, threads: int) -> list[float]:
        return [ratio for row in self.of(kernel, threads) if (ratio := row.ratio(side)) is not None]

    def ratios_of_medians(self, kernel: str, side: str, threads: int) -> list[float]:
        return [ratio for row in self.of(kernel, threads) if (ratio := row.ratio_of_medians(side)) is not None]

    def target(self, target: Target, threads: int) -> list[tuple[float, Row, str]]:
        """The ratio of each row that a target is about, with the peer that it is of."""
        found = []
        for row in self.rows:
            if row.threads == threads and (target.kernels is None or row.kernel in target.kernels):
                ratios = [(ratio, peer) for peer in target.peers if (ratio := row.ratio(peer)) is not None]
                if ratios:
                    ratio, peer = min(ratios)
                    found.append((ratio, row, peer))
        return found

    def slow(self) -> list[tuple[Row, str, float]]:
        """Rows in which a peer needs less than 0.8 times our time; variants that do less (unsorted results) are excluded."""
        found = []
        for row in self.rows:
            for side in row.data["times"]:
                ratio = row.ratio(side)
                if not side.startswith(OURS) and "unsorted" not in side and ratio is not None and ratio < LEAST:
                    found.append((row, side, ratio))
        return found

    def explanation(self, row: Row, side: str) -> str:
        for remark in self.remarks:
            patterns = [(remark.get("kernel", "*"), row.kernel), (remark.get("input", "*"), row.input), (remark.get("peer", "*"), side)]
            if remark.get("threads", row.threads) == row.threads and all(fnmatch.fnmatchcase(text, pattern) for pattern, text in patterns):
                return str(remark["text"])
        return "unexplained"

    def limits(self, target: str) -> list[str]:
        """The limit that a target has met, if it was analysed."""
        texts = [str(limit["text"]) for limit in self.known_limits if target.startswith(limit["target"])]
        return texts or ["Not looked into."]
