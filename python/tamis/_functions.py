"""Elementwise functions (ufuncs): one for each operator of the compiler's table, and some compositions.

Each keeps a sparse operand sparse, and computes the fill value like any element.
"""

# These are the names that NumPy and the Array API give them.
# ruff: noqa: A001

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _construct, _elementwise, _tamis
from ._trace import Tracer

if TYPE_CHECKING:
    from ._tensor import Tensor


def _unary(name: str, summary: str) -> Any:
    def function(x: Any, /) -> Tensor:
        found: Tensor = _elementwise.apply(name, x)
        return found

    function.__doc__ = f"{summary}; elementwise. The fill value is computed like any element."
    return function


def _binary(name: str, summary: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Tensor:
        found: Tensor = _elementwise.apply(name, x1, x2)
        return found

    function.__doc__ = f"{summary}; elementwise, broadcast to a common shape as in NumPy."
    return function


def _make(name: str, op: _elementwise.Op) -> Any:
    make = _unary if op.operands == 1 else _binary
    function = make(name, op.summary[0].upper() + op.summary[1:])
    function.__name__ = function.__qualname__ = name
    function.__module__ = __name__
    return function


#: One function per elementwise operator; `_functions.pyi` declares them for type checkers.
globals().update({name: _make(name, op) for name, op in _elementwise.OPS.items() if op.operands <= 2})

#: The public names of this module.
__all__ = sorted({*_elementwise.OPS, "clip", "where"})  # pyright: ignore


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Elements of the first where the condition is true, of the second elsewhere.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [-2.0, 3.0]], format="csr")
    >>> tm.where(A > 0, A, 0).nnz
    3
    """
    found: Tensor = _elementwise.apply("where", condition, x1, x2)
    return found


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements no less than ``min`` and no greater than ``max``.

    >>> import tamis as tm
    >>> tm.clip([-5, 0, 5], -1, 1).to_numpy()
    array([-1,  0,  1])
    """
    if min is not None:
        x = _elementwise.apply("maximum", x, min)
    if max is not None:
        x = _elementwise.apply("minimum", x, max)
    if isinstance(x, (_tamis.Tensor, Tracer)):
        return x  # type: ignore[return-value]
    return _construct.asarray(x)
