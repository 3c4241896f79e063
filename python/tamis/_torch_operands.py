"""Detection of operands that belong to PyTorch, without importing it."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, TypeVar

from ._config import current
from ._trace import Symbolic, Tracer

_Function = TypeVar("_Function", bound=Callable[..., Any])


def _kinds() -> tuple[type, ...]:
    """The classes of PyTorch's operands; none where it is not imported."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(getattr(torch, "autograd", None), "Function"):
        return ()
    layouts = sys.modules.get("tamis._torch_layouts")
    return (torch.Tensor,) if layouts is None else (torch.Tensor, layouts.SparseTensor)


def involves_torch(*given: Any) -> bool:
    """Whether an operand, or one in a list, tuple or dict of operands, is PyTorch's, so that results are to be.

    >>> from tamis._torch_operands import involves_torch
    >>> involves_torch([1.0, 2.0], {"x": 3})
    False
    """
    kinds = _kinds()
    if not kinds or current().returns != "operands" or not _holds(kinds, given):
        return False
    # What is traced becomes part of the trace, where PyTorch's tensors are constants.
    return not _holds((Symbolic, Tracer), given)


def _holds(kinds: tuple[type, ...], given: Any) -> bool:
    if isinstance(given, dict):
        given = given.values()
    return any(isinstance(x, kinds) or (type(x) in (list, tuple, dict) and _holds(kinds, x)) for x in given)


def accepts_torch(function: _Function) -> _Function:
    """Makes a function of tensors take operands of PyTorch: its result is PyTorch's, which records it."""

    @functools.wraps(function)
    def call(*operands: Any, **keywords: Any) -> Any:
        if "torch" not in sys.modules or not involves_torch(*operands):
            return function(*operands, **keywords)
        from ._torch_autograd import eager_call

        return eager_call(function, (), operands, keywords)

    return call  # type: ignore[return-value]
