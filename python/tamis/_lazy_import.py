"""Lazy import of NumPy: ``np`` loads the package at its first attribute access, so that ``import tamis`` stays quick."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _NumPy:
        """A proxy of the module; each attribute is looked up once and cached."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _NumPy()

__all__ = ["np"]
