"""Automatic differentiation in PyTorch: index notation and traced functions as functions of ``torch.autograd``.

A call becomes index notation (by tracing, or because it is one). Its differentiable operands are strided tensors of values, each on
a sparsity pattern or dense. One ``autograd.Function`` computes the notation; its backward pass computes the adjoint notation by the
same function, so gradients have gradients. Memory is shared both ways. Imported only when PyTorch was.
"""

from __future__ import annotations

import functools
from typing import Any, Callable, Mapping, NamedTuple, Sequence

import torch

from . import _construct, _grad, _tamis, _torch
from ._errors import Error, fail
from ._torch_layouts import HALF, SparseTensor, layout_of, tensor_of_layout


class Leaf(NamedTuple):
    """An operand or a result: a strided tensor of PyTorch, which holds all elements, or those that a pattern stores."""

    values: Any
    #: The pattern as a tensor of truth values; ``None`` for dense operands.
    pattern: Any = None
    #: What is not stored.
    fill: Any = 0

    def tensor(self) -> Any:
        """The same as a tensor that shares the memory."""
        array = _array(self.values)
        if self.pattern is None:
            return _construct.asarray(array)
        return self.pattern.with_values(_construct.asarray(array), array.dtype.type(self.fill))

    @property
    def is_recorded(self) -> bool:
        """Whether PyTorch records what is computed from it."""
        return _torch._requires_gradient(self.values, torch)


def _array(values: Any) -> Any:
    """The memory of a strided tensor as an array."""
    return _torch._values(values.detach())


# Operands.


class Lowered:
    """The arguments of a call with PyTorch's tensors replaced; records which of them are differentiable."""

    def __init__(self) -> None:
        self.leaves: dict[int, Leaf] = {}
        self.originals: dict[int, Any] = {}
        self._kept: list[Any] = []
        self._types: list[Any] = []
        self._patterned = False

    def tree(self, given: Any) -> Any:
        """A tree of arguments, lowered."""
        if isinstance(given, torch.Tensor):
            return self._tensor(given)
        if isinstance(given, SparseTensor):
            self._patterned = True
            return self._leaf(given, Leaf(self._wide(given.values).contiguous(), given.pattern.as_tensor()))
        if isinstance(given, dict):
            return {k: self.tree(v) for k, v in given.items()}
        if type(given) in (list, tuple) and any(isinstance(v, (torch.Tensor, SparseTensor, list, tuple, dict)) for v in given):
            return type(given)(self.tree(v) for v in given)
        return given

    def _tensor(self, given: Any) -> Any:
        if given.layout != torch.strided:
            pattern, values = layout_of(given)
            if pattern is not None:
                return self._leaf(given, Leaf(self._wide(values), pattern))
            _torch.refuse_gradient(given)
            return self._keep(given, _construct.asarray(given))
        given_here = _torch._on_cpu(given)
        return self._leaf(given, Leaf(self._wide(given_here).resolve_conj().resolve_neg().contiguous()))

    def _wide(self, values: Any) -> Any:
        """Values of 16 bits in 32; the types of all are recorded."""
        if values.dtype.is_floating_point or values.dtype.is_complex:
            self._types.append(values.dtype)
        return values.float() if values.dtype in HALF else values

    def _leaf(self, original: Any, leaf: Leaf) -> Any:
        tensor = self._keep(original, leaf.tensor())
        self.leaves[id(tensor)] = leaf
        return tensor

    @property
    def is_recorded(self) -> bool:
        """Whether PyTorch records what is computed from an operand."""
        return any(leaf.is_recorded for leaf in self.leaves.values())

    def _keep(self, original: Any, tensor: Any) -> Any:
        # The identities of tensors are keys, so they live as long as this.
        self._kept.append(tensor)
        self.originals[id(tensor)] = original
        return tensor

    def raised(self, leaf: Leaf) -> Any:
        """A result as PyTorch has it, in 16 bits if all operands of floats are."""
        values = leaf.values
        if self._types and all(t in HALF for t in self._types) and values.dtype == torch.float32:
            values = values.to(functools.reduce(torch.promote_types, self._types))
        if leaf.pattern is None:
            return values
        if leaf.pattern._stores_all:
            places = leaf.pattern.with_values(_construct.asarray(torch.arange(len(values)).numpy()), 0)
            return values[torch.from_numpy(places.to_numpy())]
        if self._patterned and not leaf.fill:
            from ._pattern import Pattern

            return SparseTensor(Pattern(leaf.pattern), values)
        return tensor_of_layout(leaf.pattern, values, leaf.fill)

    def restored(self, made: Any) -> Any:
        """A tree of results of a call that was not recorded, as PyTorch has them."""
        if isinstance(made, _tamis.Tensor):
            original = self.originals.get(id(made))
            return self.raised(_leaf_of(made)) if original is None else original
        if isinstance(made, tuple) and hasattr(made, "_make"):
            return made._make(self.restored(v) for v in made)  # type: ignore[attr-defined]
        if isinstance(made, (tuple, list)):
            return type(made)(self.restored(v) for v in made)
        if isinstance(made, dict):
            return {k: self.restored(v) for k, v in made.items()}
        return made


def _leaf_of(tensor: Any) -> Leaf:
    if tensor.is_dense:
        return Leaf(torch.from_numpy(tensor.to_numpy(copy=True)))
    if tensor.is_pattern:
        return Leaf(torch.ones(tensor.nnz, dtype=torch.bool), tensor)
    return Leaf(torch.from_numpy(tensor.values.copy()), tensor.sparsity_pattern(), tensor.fill_value)


def _leaf_of_parts(parts: Any) -> Leaf:
    """A result of `einsum_parts`."""
    if isinstance(parts, tuple):
        pattern, values, fill = parts
        return Leaf(torch.from_numpy(values), pattern, fill)
    return _leaf_of(parts) if isinstance(parts, _tamis.Tensor) else Leaf(torch.from_numpy(parts))


# Statements as functions of `torch.autograd`.


class Statements:
    """Index notation with operands: constants are tensors and numbers, differentiable operands are leaves."""

    def __init__(
        self,
        text: str,
        operands: Mapping[str, Any],
        results: Sequence[str],
        options: Mapping[str, Any] | None = None,
        run: Any = None,
        adjoints: dict[Any, Any] | None = None,
    ) -> None:
        self.text, self.results, self.options = text, list(results), dict(options or {})
        self.operands = dict(operands)
        #: All leaves, also those without a gradient: PyTorch saves them, and knows if they change before the backward pass.
        self.names = [name for name, x in operands.items() if isinstance(x, Leaf)]
        #: Computes the results in another way, such as by the loops of a program.
        self.run = run
        #: The adjoints by types of operands, where the caller knows that all else is the same.
        self.adjoints = adjoints
        #: The patterns and fills of the results, once they are computed.
        self.made: list[Leaf] = []

    def __call__(self) -> list[Leaf]:
        """The results; PyTorch records them."""
        if not any(self.operands[name].is_recorded for name in self.names):
            tensors = self._tensors({})
            return self.compute(self.text, tensors, self.results) if self.run is None else self.run(tensors)
        values = [self.operands[name].values for name in self.names]
        # What is kept for the backward pass are shapes and patterns; PyTorch saves the values, and frees them.
        shapes = [torch.empty_like(v.detach(), device="meta") for v in values]
        self.operands.update({name: self.operands[name]._replace(values=s) for name, s in zip(self.names, shapes)})
        outputs = _Statements.apply(self, *values)
        return [made._replace(values=values) for made, values in zip(self.made, outputs)]

    def compute(self, text: str, tensors: dict[str, Any], wanted: Sequence[str], options: Any = None) -> list[Leaf]:
        """Runs notation; nothing is recorded."""
        params, results = _grad._names(text, tuple(tensors))
        given = {name: tensors[name] for name in params}
        parts = _tamis.einsum_parts(text, **(self.options if options is None else options), **given)
        found = dict(zip((name for name, _ in results), parts))
        return [_leaf_of_parts(found[name]) for name in wanted]

    def _tensors(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """All operands as tensors, with these values of leaves."""
        made = {}
        for name, x in self.operands.items():
            if isinstance(x, Leaf):
                x = (x._replace(values=values[name]) if name in values else x).tensor()
            made[name] = x
        return made

    def forward(self, values: Sequence[Any], wrt: list[str]) -> tuple[list[Leaf], Any, list[Leaf]]:
        """The results, the adjoint, and what it reads beside the operands."""
        tensors = self._tensors(dict(zip(self.names, values)))
        adjoint = self.adjoint(tensors, wrt, True) if wrt else None
        if self.run is not None:
            made = self.run(tensors)
            if adjoint is not None and not set(adjoint.saved) <= set(self.results):
                adjoint = self.adjoint(tensors, wrt, False)
            found = dict(zip(self.results, made))
        elif adjoint is None or self.options.get("order") or self.options.get("schedule"):
            made = self.compute(self.text, tensors, self.results)
            adjoint = self.adjoint(tensors, wrt, False) if wrt else None
            found = dict(zip(self.results, made))
        else:
            names = list(dict.fromkeys([*self.results, *adjoint.saved]))
            found = dict(zip(names, self.compute(adjoint.forward, tensors, names)))
            made = [found[name] for name in self.results]
        saved = [found[name] for name in adjoint.saved] if adjoint is not None else []
        return made, adjoint, saved

    def adjoint(self, tensors: dict[str, Any], wrt: list[str], save: bool) -> Any:
        """The adjoint statements."""
        key = (tuple(wrt), save, tuple(tensors[name].dtype for name in self.names))
        if self.adjoints is not None and key in self.adjoints:
            return self.adjoints[key]
        made = self._adjoint(tensors, wrt, save)
        if self.adjoints is not None:
            self.adjoints[key] = made
        return made

    def _adjoint(self, tensors: dict[str, Any], wrt: list[str], save: bool) -> Any:
        traced = _grad.Traced(self.text, tensors, self.results, lambda found: found, {})
        return _grad._adjoint_of(traced, wrt, save)

    def pullback(self, adjoint: Any, wrt: list[str], values: Sequence[Any], saved: list[Leaf], above: Sequence[Any]) -> list[Any]:
        """The gradients of leaves from those of the results; ``None`` where nothing flows."""
        operands = dict(self.operands)
        operands.update({name: operands[name]._replace(values=v) for name, v in zip(self.names, values)})
        cotangents = {
            name: made._replace(values=g.contiguous(), fill=0)
            for name, made, g in zip(self.results, self.made, above)
            if g is not None
        }
        recorded = torch.is_grad_enabled() and any(x.is_recorded for x in [*operands.values(), *cotangents.values()] if isinstance(x, Leaf))
        if recorded or adjoint is None:
            # What was saved is computed again, so that PyTorch records how it depends on the operands.
            adjoint, saved = self.adjoint(self._tensors(dict(zip(self.names, values))), wrt, False), []
        operands.update({name: x for name, x in zip(adjoint.saved.values(), saved)})
        operands.update({name: _pattern_of(self.operands[operand]) for operand, name in adjoint.patterns.items()})
        operands.update({name: cotangents[result] for result, name in adjoint.cotangents.items()})
        gradients: dict[str, Any] = {}
        if adjoint.gradients:
            params, _ = _grad._names(adjoint.text, tuple(operands))
            wanted = {g: name for name, g in adjoint.gradients.items()}
            format = {g: _format(self.operands[name]) for g, name in wanted.items()}
            made = Statements(
                adjoint.text,
                {name: operands[name] for name in params},
                list(wanted),
                {"format": {g: levels for g, levels in format.items() if levels} or None},
            )()
            gradients = {name: on_pattern(g, self.operands[name]) for g, name in zip(made, wanted.values())}
        return [gradients.get(name) for name in self.names]

    def tangents(self, values: Sequence[Any], moving: Mapping[str, Any]) -> list[Any]:
        """The directional derivatives of the results."""
        operands = dict(self.operands)
        operands.update({name: operands[name]._replace(values=v) for name, v in zip(self.names, values)})
        tensors = self._tensors(dict(zip(self.names, values)))
        complexes = _grad._described(tensors, list(moving))["complexes"]
        made = _grad._tangents(self.text, tuple(tensors), tuple(moving), complexes)
        operands.update({name: operands[of]._replace(values=moving[of].contiguous(), fill=0) for of, name in made["operands"]})
        results, found = dict(made["results"]), {}
        if results:
            params, _ = _grad._names(made["text"], tuple(operands))
            format = {d: _format(self.made[self.results.index(name)]) for name, d in results.items()}
            parts = Statements(made["text"], {n: operands[n] for n in params}, list(results.values()), {"format": {d: levels for d, levels in format.items() if levels} or None})()
            found = dict(zip(results, parts))
        return [
            on_pattern(found[name], leaf) if name in found else torch.zeros_like(leaf.values, device="cpu") for name, leaf in zip(self.results, self.made)
        ]


def _pattern_of(operand: Any) -> Any:
    return operand.pattern if isinstance(operand, Leaf) else operand.sparsity_pattern()


def _format(operand: Leaf) -> str:
    """The format of the gradient of an operand."""
    if operand.pattern is not None:
        return _grad._levels(operand.pattern)
    return ", ".join(["dense"] * operand.values.dim())


def on_pattern(gradient: Leaf, operand: Leaf) -> Any:
    """The values of a gradient in the type and the order of those of its operand."""
    if operand.pattern is not None and not (gradient.pattern is not None and gradient.pattern.same_pattern(operand.pattern)):
        values = _gathered(gradient, operand)
    else:
        values = gradient.values.reshape(operand.values.shape)
    if values.dtype != operand.values.dtype:
        values = values.real if values.dtype.is_complex and not operand.values.dtype.is_complex else values
        values = values.to(operand.values.dtype)
    return values


def _gathered(gradient: Leaf, operand: Leaf) -> Any:
    """A gradient that is stored in another way than its operand, such as a diagonal or what a mask keeps, or whose operand stores one value
    for several elements: the sum over the elements of each stored value."""
    rank, count = len(operand.pattern.shape), operand.values.numel()
    numbers = operand.pattern.with_values(_construct.asarray(torch.arange(1, count + 1).numpy()), 0)
    numbers = numbers.convert("coo" if rank > 1 else "sparse")
    zeros = Leaf(torch.zeros(numbers.nnz, dtype=gradient.values.dtype), numbers.sparsity_pattern())
    text, options = _grad._on_pattern(rank, _grad._levels(numbers))
    (made,) = Statements(text, {"zeros": zeros, "P": zeros.pattern, "g": gradient}, ["h"], options)()
    if made.pattern is None or not made.pattern.same_pattern(zeros.pattern):
        raise fail("E1101", f"a gradient does not lie on the pattern of its operand, in the format {_format(operand)!r}", "report this")
    return made.values.new_zeros(count).index_add(0, torch.from_numpy(numbers.values - 1), made.values)


class _Statements(torch.autograd.Function):  # type: ignore[misc]
    """A program of index notation, whose backward pass is another one."""

    @staticmethod
    def forward(ctx: Any, statements: Statements, *values: Any) -> Any:
        wrt = [name for name, needed in zip(statements.names, ctx.needs_input_grad[1:]) if needed]
        made, adjoint, saved = statements.forward(values, wrt)
        statements.run = None
        statements.made = [leaf._replace(values=leaf.values.to("meta")) for leaf in made]
        ctx.statements, ctx.adjoint, ctx.wrt = statements, adjoint, wrt
        ctx.saved = [leaf._replace(values=None) for leaf in saved]
        ctx.save_for_backward(*values, *(leaf.values for leaf in saved))
        ctx.save_for_forward(*values)
        ctx.count = len(values)
        outputs = tuple(leaf.values for leaf in made)
        ctx.mark_non_differentiable(*(x for x in outputs if not (x.dtype.is_floating_point or x.dtype.is_complex)))
        return outputs

    @staticmethod
    def backward(ctx: Any, *above: Any) -> Any:
        tensors = ctx.saved_tensors
        values, kept = tensors[: ctx.count], tensors[ctx.count :]
        saved = [leaf._replace(values=v) for leaf, v in zip(ctx.saved, kept)]
        return None, *ctx.statements.pullback(ctx.adjoint, ctx.wrt, values, saved, above)

    @staticmethod
    def jvp(ctx: Any, _: Any, *tangents: Any) -> Any:
        statements = ctx.statements
        moving = {name: t for name, t in zip(statements.names, tangents) if t is not None}
        return tuple(statements.tangents(ctx.saved_tensors[: ctx.count], moving))


# Calls.


def _recorded(traced: _grad.Traced, lowered: Lowered, options: Mapping[str, Any] | None = None, run: Any = None) -> Any:
    """The value of a traced call, which PyTorch records."""
    operands = {name: lowered.leaves.get(id(x), x) for name, x in traced.operands.items()}
    made = Statements(traced.text, operands, traced.results, options, run)()
    found = {name: lowered.raised(leaf) for name, leaf in zip(traced.results, made)}
    given = {name: lowered.originals.get(id(x), x) for name, x in traced.operands.items()}
    return traced.rebuild({**given, **found})


def traced_call(compute: Callable[..., Any], function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of ``compute`` with operands of PyTorch's; ``function``, which is traced, says the same."""
    lowered = Lowered()
    given, named = lowered.tree(args), lowered.tree(kwargs)
    if not lowered.is_recorded:
        return lowered.restored(compute(*given, **named))
    traced = _grad._trace_function(function, given, named)
    return _recorded(traced, lowered) if traced.text else traced.rebuild(
        {name: lowered.originals.get(id(x), x) for name, x in traced.operands.items()}
    )


@functools.lru_cache(maxsize=1024)
def _jitted(function: Callable[..., Any], leading: tuple[Any, ...], keywords: tuple[tuple[str, Any], ...]) -> Any:
    from ._jit import Jit

    def call(*operands: Any) -> Any:
        return function(*leading, *operands, **dict(keywords))

    return Jit(call)


def eager_call(function: Callable[..., Any], leading: tuple[Any, ...], operands: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
    """A call of a function of the package whose operands are given by position, after constants."""
    try:
        traced = _jitted(function, leading, tuple(keywords.items()))
    except TypeError:  # Keywords that are lists.
        frozen = tuple((k, tuple(v) if isinstance(v, list) else v) for k, v in keywords.items())
        traced = _jitted(function, leading, frozen)
    return traced_call(lambda *given: function(*leading, *given, **keywords), traced, operands, {})


def notation_call(text: str, operands: tuple[Any, ...], tensors: dict[str, Any], options: dict[str, Any]) -> Any:
    """Index notation on operands of PyTorch's."""
    lowered = Lowered()
    given, named = lowered.tree(operands), lowered.tree(tensors)
    try:
        traced = _grad._trace_text(text, given, named)
        return _recorded(traced, lowered, options)
    except Error as error:
        if error.code not in ("E0111", "E0403") or operands or "+=" not in text:
            raise
        from ._group_by import rewritten

        grouped = rewritten(text, named)
        if grouped is None:
            raise
    return _recorded(_grad._trace_text(grouped[0], (), grouped[1]), lowered, options)


def program_call(program: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A loop program on operands of PyTorch's: its own loops, and the adjoint of the notation that says the same."""
    lowered = Lowered()
    given, named = lowered.tree(args), lowered.tree(kwargs)
    compute = functools.partial(_tamis.Program.__call__, program)
    if not lowered.is_recorded:
        return lowered.restored(compute(*given, **named))
    traced = _grad._traceable(program)(given, named)
    by_name = {**dict(zip(program.parameters, given)), **named}

    def run(tensors: dict[str, Any]) -> list[Leaf]:
        made = compute(**{**by_name, **{name: x for name, x in tensors.items() if name in by_name}})
        return [_leaf_of(made)] if isinstance(made, _tamis.Tensor) else [_leaf_of(x) for x in made]

    return _recorded(traced, lowered, None, run)
