"""A function of PyTorch tensors that is index notation, with constants and patterns bound: in eager mode recorded by autograd, under
``torch.compile`` and ``torch.export`` a custom operator with shape inference on fake tensors."""

from __future__ import annotations

import functools
import itertools
import weakref
from typing import Any, Mapping

import torch

from .. import _construct, _grad, _tamis, _torch
from .._errors import fail
from .._lazy_import import np
from .._pattern import Pattern
from .._tensor import OURS
from .._torch_autograd import Leaf, Statements, on_pattern
from .._torch_layouts import HALF

_COUNT = itertools.count()
#: The functions that compiled graphs name.
_NAMED: weakref.WeakValueDictionary[str, Notation] = weakref.WeakValueDictionary()


class Notation:
    """Index notation as a function of PyTorch tensors, which are given by name.

    ``patterns`` names the operands and results that are values on a :class:`tamis.Pattern`, in storage order; all others are dense.
    ``fills`` gives what such an operand has where it stores nothing, if that is not 0. ``constants`` are tensors that are never
    differentiated. The derivative of a derivative exists in eager mode only; a graph of ``torch.compile`` has first derivatives.

    ::

        spmm = tm.torch.Notation("y[i,f] = A[i,j] * x[j,f]", patterns={"A": P})
        y = spmm(A=values, x=x)
    """

    def __init__(
        self,
        text: str,
        *,
        patterns: Mapping[str, Pattern] | None = None,
        constants: Mapping[str, Any] | None = None,
        fills: Mapping[str, float] | None = None,
    ) -> None:
        self.text = text
        self.patterns = dict(patterns or {})
        self.constants = {name: x if isinstance(x, (int, float, complex)) else _construct.asarray(x) for name, x in (constants or {}).items()}
        self.fills = dict(fills or {})
        bound = {name: p.as_tensor() for name, p in self.patterns.items()}
        params, results = _grad._names(text, (*self.constants, *bound))
        #: The operands that a call gives, in order.
        self.names = [name for name in params if name not in self.constants]
        self.results = [name for name, _ in results]
        self._format = {
            name: _grad._levels(bound[name]) if name in bound else ", ".join(["dense"] * rank) for name, rank in results if rank
        }
        self._bound = bound
        #: The adjoints by types of operands.
        self._adjoints: dict[Any, Any] = {}
        self._key: str = ""
        self._named()

    def _named(self) -> None:
        self._key = f"{next(_COUNT)}"
        _NAMED[self._key] = self

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.text, self.patterns, self.constants, self.fills)

    def __deepcopy__(self, memo: dict[int, Any]) -> Notation:
        return self

    def __call__(self, **values: Any) -> Any:
        if torch.compiler.is_compiling() or any(x.is_meta for x in values.values()):
            outputs = torch.ops.tamis.notation(self._key, [values[name] for name in self.names])
            return outputs[0] if len(outputs) == 1 else tuple(outputs)
        missing = [name for name in self.names if name not in values]
        if missing or len(values) != len(self.names):
            raise fail("E0902", f"the notation reads {', '.join(self.names)}, and was given {', '.join(values)}", "give each by name")
        types = {x.dtype for x in values.values()}
        wide = {name: x.float() if x.dtype in HALF else x for name, x in values.items()}
        outputs = [self._values(name, leaf) for name, leaf in zip(self.results, self._statements(wide)())]
        if types and types <= set(HALF):
            narrow = torch.float16 if types == {torch.float16} else torch.bfloat16 if types == {torch.bfloat16} else torch.float32
            outputs = [x.to(narrow) if x.dtype == torch.float32 else x for x in outputs]
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _statements(self, values: Mapping[str, Any]) -> Statements:
        operands: dict[str, Any] = dict(self.constants)
        for name in self.names:
            x = _torch._on_cpu(values[name])
            operands[name] = Leaf(x.contiguous(), self._bound.get(name), self.fills.get(name, 0))
        return Statements(self.text, operands, self.results, {"format": self._format or None}, None, self._adjoints)

    def _values(self, name: str, leaf: Leaf) -> Any:
        """The values of a result, in the storage order of its pattern if it has one."""
        pattern = self._bound.get(name)
        if pattern is None:
            return leaf.values
        return on_pattern(leaf, Leaf(torch.empty(_count(pattern), dtype=leaf.values.dtype, device="meta"), pattern))

    def __repr__(self) -> str:
        return f"<tamis.torch.Notation {self.text!r}>"

    # As an operator of PyTorch's graphs.

    def _shapes(self, values: list[Any]) -> list[tuple[tuple[int, ...], Any]]:
        """The shapes and types of the results for operands of these shapes and types, which need no memory."""
        given = dict(self.constants)
        for name, x in zip(self.names, values):
            array = np.empty([int(n) for n in x.shape], dtype=_numpy_type(x.dtype))
            bound = self._bound.get(name)
            tensor = _construct.asarray(array)
            given[name] = tensor if bound is None else bound.with_values(tensor, array.dtype.type(self.fills.get(name, 0)))
        found = {
            name: ((_count(self._bound[name]),) if name in self._bound else tuple(shape), dtype)
            for name, shape, dtype in _tamis.abstract_einsum(self.text, **given)[2]
        }
        return [(found[name][0], _OF[found[name][1]]) for name in self.results]


def _made(text: str, patterns: Any, constants: Any, fills: Any) -> Notation:
    return Notation(text, patterns=patterns, constants=constants, fills=fills)


@functools.lru_cache(maxsize=256)
def _stored(pattern: Pattern) -> int:
    values = pattern.as_tensor().astype("u8").values
    return 0 if values is None else len(values)


def _count(pattern: Any) -> int:
    """The number of values that a pattern stores."""
    return _stored(Pattern(pattern))


_OF = {ours: getattr(torch, name) for name, ours in OURS.items() if hasattr(torch, name)}


def _numpy_type(dtype: Any) -> str:
    return "float32" if dtype in HALF else str(dtype).removeprefix("torch.")


@torch.library.custom_op("tamis::notation", mutates_args=())  # type: ignore[untyped-decorator]
def _notation(key: str, values: list[torch.Tensor]) -> list[torch.Tensor]:
    function = _NAMED[key]
    with torch.no_grad():
        made = function(**dict(zip(function.names, values)))
    return list(made) if isinstance(made, tuple) else [made]


@_notation.register_fake  # type: ignore[untyped-decorator]
def _(key: str, values: list[torch.Tensor]) -> list[torch.Tensor]:
    function = _NAMED[key]
    half = {x.dtype for x in values} <= set(HALF)
    made = []
    for shape, dtype in function._shapes(values):
        narrow = values[0].dtype if half and dtype == torch.float32 else dtype
        made.append(values[0].new_empty(shape, dtype=narrow))
    return made


@torch.library.custom_op("tamis::pullback", mutates_args=())  # type: ignore[untyped-decorator]
def _pullback(key: str, values: list[torch.Tensor], above: list[torch.Tensor]) -> list[torch.Tensor]:
    # Inside of an operator PyTorch records nothing: the adjoint is computed as such, and what is saved in eager mode is computed again.
    function = _NAMED[key]
    wide = [(v.float() if v.dtype in HALF else v.detach()).contiguous() for v in values]
    wide = [v.detach().requires_grad_(v.dtype.is_floating_point or v.dtype.is_complex) for v in wide]
    with torch.enable_grad():
        statements = function._statements(dict(zip(function.names, wide)))
    with torch.no_grad():
        given = [g.float() if g.dtype in HALF else g for g in above]
        statements.made = [Leaf(g.to("meta"), function._bound.get(name)) for name, g in zip(function.results, given)]
        leaves = [statements.operands[name].values for name in statements.names]
        wrt = [name for name, v in zip(statements.names, leaves) if v.requires_grad]
        made = dict(zip(statements.names, statements.pullback(None, wrt, leaves, [], given)))
        found = [made.get(name) for name in function.names]
    return [torch.zeros_like(v, memory_format=torch.contiguous_format) if g is None else g.to(v.dtype) for v, g in zip(values, found)]


@_pullback.register_fake  # type: ignore[untyped-decorator]
def _(key: str, values: list[torch.Tensor], above: list[torch.Tensor]) -> list[torch.Tensor]:
    return [v.new_empty(v.shape) for v in values]


def _saves(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.key, values = inputs
    ctx.save_for_backward(*values)
    ctx.shapes = [(tuple(y.shape), y.dtype) for y in output]


def _backward(ctx: Any, above: Any) -> Any:
    values = list(ctx.saved_tensors)
    given = [values[0].new_zeros(shape, dtype=dtype) if g is None else g for g, (shape, dtype) in zip(above, ctx.shapes)]
    gradients = torch.ops.tamis.pullback(ctx.key, values, given)
    return None, [g if needed else None for g, needed in zip(gradients, ctx.needs_input_grad[1])]


_notation.register_autograd(_backward, setup_context=_saves)
