"""The registry of sides, Tamis first, and the reasons for missing ones."""

from __future__ import annotations

import importlib
from typing import Iterable

from .base import Peer, Unsupported

#: The modules of sides, in the order of the tables.
SIDES = {
    "tamis": ("..ours", "Tamis"),
    "scipy": (".scipy_side", "SciPy"),
    "mkl": (".mkl", "Mkl"),
    "eigen": (".eigen", "Eigen"),
    "C loops": (".loops", "Emitted"),
    "C by hand": (".loops", "ByHand"),
    "mlir": (".mlir", "Mlir"),
    "graphblas": (".graphblas_side", "GraphBlas"),
    "opencv": (".opencv", "OpenCv"),
    "pydata/sparse": (".pydata", "PyData"),
    "torch": (".torch_side", "Torch"),
}


def load(threads: int, wanted: Iterable[str] | None = None) -> tuple[list[Peer], dict[str, str]]:
    """All available sides, and the reasons for the others."""
    found, absent = [], {}
    for name, (module, kind) in SIDES.items():
        if wanted is not None and name not in wanted:
            continue
        try:
            found.append(getattr(importlib.import_module(module, __name__), kind)(threads))
        except Unsupported as problem:
            absent[name] = str(problem)
        except Exception as problem:  # whatever its import does
            absent[name] = f"{type(problem).__name__}: {problem}"
    return found, absent
