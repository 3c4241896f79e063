"""PyTorch's functions on tensors: ``torch.relu(A)``, ``torch.matmul(A, x)``, ``F.linear(x, A)`` by the functions of the package."""

from __future__ import annotations

from typing import Any, Callable

from . import _elementwise, _linalg, _reductions
from ._errors import fail

#: PyTorch's names of functions that have another name here.
_RENAMED = {
    "div": "divide",
    "eq": "equal",
    "floordiv": "floor_divide",
    "ge": "greater_equal",
    "gt": "greater",
    "le": "less_equal",
    "lt": "less",
    "mod": "remainder",
    "mul": "multiply",
    "ne": "not_equal",
    "neg": "negative",
    "sub": "subtract",
    "true_divide": "divide",
    "truediv": "divide",
}
_PRODUCTS = frozenset("matmul mm mv bmm".split())
_REDUCTIONS = frozenset("sum prod mean any all amin amax".split())


def _linear(x: Any, weight: Any, bias: Any = None) -> Any:
    made = _linalg.product(x, weight.mT if hasattr(weight, "mT") else weight.T)
    return made if bias is None else made + bias


def _reduction(name: str) -> Callable[..., Any]:
    reduce = getattr(_reductions, {"amin": "min", "amax": "max"}.get(name, name))

    def call(x: Any, dim: Any = None, keepdim: bool = False) -> Any:
        return reduce(x, axis=dim, keepdims=keepdim)

    return call


def _implementation(name: str) -> Callable[..., Any] | None:
    """The function of the package for a name of PyTorch's."""
    if name == "linear":
        return _linear
    if name in _PRODUCTS:
        return _linalg.product
    if name in _REDUCTIONS:
        return _reduction(name)
    name = _RENAMED.get(name, name)
    if name in _elementwise.OPS:
        return lambda *operands: _elementwise.apply(name, *operands)
    return None


def call(function: Any, args: Any, options: dict[str, Any]) -> Any:
    """A call of a function of PyTorch's with a tensor of ours among its arguments."""
    given = getattr(function, "__name__", str(function))
    name = given.strip("_")
    found = _implementation(name)
    if found is None and given.startswith("__r") and _implementation(name[1:]) is not None:
        found, args, name = _implementation(name[1:]), tuple(reversed(args)), name[1:]
    if found is None:
        raise fail(
            "E0205",
            f"`torch.{name}` does not support tensors of Tamis",
            "use a function of the package, or `tamis.einsum`",
            "`t.to_torch()` gives a tensor of PyTorch",
        )
    return found(*args, **options)
