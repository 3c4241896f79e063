"""NumPy, loaded when it is first used: most of the time that an import would take is its."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
else:

    class _NumPy:
        """The names of NumPy. Each is looked up once."""

        def __getattr__(self, name: str) -> Any:
            import numpy

            found = getattr(numpy, name)
            setattr(self, name, found)
            return found

    np = _NumPy()

__all__ = ["np"]
