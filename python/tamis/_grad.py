"""Automatic differentiation: gradients, vector-Jacobian and Jacobian-vector products of traced functions and index notation.

A function becomes index notation (by tracing, or because it is a text), the compiler makes the adjoint statements, which are index
notation again, and these are scheduled, compiled and cached as everything else. The gradient of a sparse operand lives on its pattern and
shares its coordinate arrays. Gradients of complex operands follow PyTorch: they are the direction of steepest ascent.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Callable, NamedTuple, Sequence

from . import _construct, _tamis
from ._errors import fail
from ._lazy_import import np

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
#: Words of index notation that are no tensors or indices, as far as adjoint statements use them.
_SYNTAX = frozenset("for in range and or not True False inf nan shape".split())


class Traced(NamedTuple):
    """A function as index notation, for some arguments."""

    text: str
    #: The operands by name: tensors, Python scalars, or tracers.
    operands: dict[str, Any]
    #: The results, in order.
    results: list[str]
    #: The value of the function, from operands and results by name.
    rebuild: Callable[[dict[str, Any]], Any]
    #: For each argument, by position and by name, the operands in it, as a tree.
    arguments: dict[Any, Any]


class _Adjoint(NamedTuple):
    text: str
    forward: str
    cotangents: dict[str, str]
    gradients: dict[str, str]
    zeros: frozenset[str]
    patterns: dict[str, str]
    saved: dict[str, str]
    recomputed: list[str]


@functools.lru_cache(maxsize=1024)
def _adjoint(
    text: str,
    names: tuple[str, ...],
    wrt: tuple[str, ...],
    results: tuple[str, ...],
    patterns: tuple[str, ...],
    zero_fills: tuple[str, ...],
    complexes: tuple[str, ...],
    save: bool,
) -> _Adjoint:
    made = _tamis.adjoint(
        text,
        list(names),
        list(wrt),
        results=list(results),
        patterns=list(patterns),
        zero_fills=list(zero_fills),
        complex=list(complexes),
        save=save,
    )
    return _Adjoint(
        made["text"],
        made["forward"],
        dict(made["cotangents"]),
        dict(made["gradients"]),
        frozenset(made["zeros"]),
        dict(made["patterns"]),
        dict(made["saved"]),
        made["recomputed"],
    )


@functools.lru_cache(maxsize=1024)
def _tangents(text: str, names: tuple[str, ...], wrt: tuple[str, ...], complexes: tuple[str, ...]) -> dict[str, Any]:
    return _tamis.tangents(text, list(names), list(wrt), complex=list(complexes))


@functools.lru_cache(maxsize=1024)
def _names(text: str, given: tuple[str, ...]) -> tuple[list[str], list[tuple[str, int]]]:
    return _tamis.notation_names(text, list(given))


# Functions as index notation.


def _is_tracer(given: Any) -> bool:
    from ._trace import Tracer

    return isinstance(given, Tracer)


def _leaf(given: Any) -> Any:
    from ._trace import is_weak

    return given if isinstance(given, _tamis.Tensor) or _is_tracer(given) or is_weak(given) else _construct.asarray(given)


def _trace_text(text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    from . import _subscripts

    if args and _subscripts.is_subscripts(text):
        given = tuple(chr(ord("A") + k) for k in range(len(args)))
        params, results = _names(text, given)
        operands = dict(zip(given, map(_leaf, args)))
        arguments: dict[Any, Any] = {k: name for k, name in enumerate(given)}
    else:
        params, results = _names(text, tuple(kwargs))
        free = [name for name in params if name not in kwargs]
        operands = {**dict(zip(free, map(_leaf, args))), **{name: _leaf(value) for name, value in kwargs.items()}}
        if len(args) > len(free):
            raise fail("E0902", f"the notation reads {len(params)} tensors, not {len(args) + len(kwargs)}", f"pass {', '.join(params)}")
        arguments = {**{k: name for k, name in enumerate(params)}, **{name: name for name in params}}
    for name in params:
        if name not in operands:
            raise fail("E0902", f"`{name}` was given no tensor", f"pass {', '.join(params)}")
    names = [name for name, _ in results]

    def rebuild(found: dict[str, Any]) -> Any:
        from ._einsum import results as named

        return found[names[0]] if len(names) == 1 else named(tuple(names), tuple(found[name] for name in names))

    return Traced(text, {name: operands[name] for name in params}, names, rebuild, arguments)


def _trace_function(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    trace, flat = function._traced(args, kwargs)
    operands = {**{name: flat[place] for name, place in trace.inputs}, **trace.captured}
    places = {place: name for name, place in trace.inputs}
    bound = function._signature.bind(*args, **kwargs)
    bound.apply_defaults()
    count = iter(range(len(flat)))
    arguments: dict[Any, Any] = {}
    for k, (name, value) in enumerate(bound.arguments.items()):
        arguments[k] = arguments[name] = _leaves(value, count, places)
    return Traced(trace.text, operands, list(trace.outputs), trace.rebuild, arguments)


def _leaves(value: Any, count: Any, places: dict[int, str]) -> Any:
    """An argument with each tensor in it replaced by the name of its operand; ``None`` for constants."""
    from ._jit import _STATIC, _is_data

    if isinstance(value, (tuple, list)) and not _is_data(value):
        return type(value)(_leaves(v, count, places) for v in value)
    if isinstance(value, dict):
        return {k: _leaves(v, count, places) for k, v in value.items()}
    if isinstance(value, _STATIC):
        return None
    return places.get(next(count))


def _traceable(function: Any) -> Callable[[tuple[Any, ...], dict[str, Any]], Traced]:
    """Whatever can be differentiated, as a function of arguments."""
    from ._jit import Jit

    if isinstance(function, str) and function.lstrip().startswith(("def ", "@op")) and "return" in function:
        from ._program import Program

        function = Program(function)
    if isinstance(function, str):
        return lambda args, kwargs: _trace_text(function, args, kwargs)
    loops = getattr(function, "__tamis_program__", function)
    if isinstance(loops, _tamis.Program):
        text, renamed = loops.notation()
        order, wanted = list(loops.parameters), dict(renamed)

        def trace_loops(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
            given = {**dict(zip(order, args)), **kwargs}
            params, _ = _names(text, tuple(given))
            # A parameter may only give loops their extent.
            traced = _trace_text(text, (), {name: x for name, x in given.items() if name in params})
            results = [wanted[name] for name in loops.results]

            def rebuild(found: dict[str, Any]) -> Any:
                from ._einsum import results as named

                tensors = tuple(found[name] for name in results)
                return tensors[0] if len(tensors) == 1 else named(tuple(loops.results), tensors)

            arguments = {k: name if name in params else None for k, name in enumerate(order)}
            return Traced(text, traced.operands, results, rebuild, {**arguments, **{name: arguments[k] for k, name in enumerate(order)}})

        return trace_loops
    if not callable(function):
        raise fail("E0116", f"{function!r} cannot be differentiated", "give a function of tensors, index notation, or a kernel")
    if not isinstance(function, Jit):
        function = Jit(function)
    return lambda args, kwargs: _trace_function(function, args, kwargs)


# Derivatives on tensors.


def _described(operands: dict[str, Any], wrt: Sequence[str]) -> dict[str, tuple[str, ...]]:
    tensors = {name: x for name, x in operands.items() if isinstance(x, _tamis.Tensor)}
    complexes = tuple(name for name, x in operands.items() if (x.dtype.kind == "c" if hasattr(x, "dtype") else isinstance(x, complex)))
    for name in wrt:
        kind = operands[name].dtype.kind if hasattr(operands[name], "dtype") else "f"
        if kind not in "fc":
            raise fail(
                "E0116",
                f"the operand `{name}` has the type {operands[name].dtype}, which is discrete: there is no gradient",
                "convert it to floats first, as in `x.astype('f64')`",
                "choose other arguments by `argnums`",
            )
    return {
        "patterns": tuple(name for name, x in tensors.items() if not x._stores_all),
        "zero_fills": tuple(name for name, x in tensors.items() if not x.fill_value),
        "complexes": complexes,
    }


def _adjoint_of(traced: Traced, wrt: list[str], save: bool) -> _Adjoint:
    """The adjoint of a traced function; operands that its text does not read have the gradient 0."""
    facts = _described(traced.operands, wrt)
    names = tuple(traced.operands)
    read = set(_names(traced.text, names)[0]) if traced.text else set()
    own, unread = tuple(name for name in wrt if name in read), frozenset(wrt) - read
    if not own:
        return _Adjoint("", traced.text, {}, {}, unread, {}, {}, [])
    adjoint = _adjoint(traced.text, names, own, tuple(traced.results), save=save, **facts)
    return adjoint._replace(zeros=adjoint.zeros | unread)


def _levels(tensor: Any) -> str:
    """The format of a tensor without its leaf."""
    return str(tensor.full_format).split(";")[0].strip()


def _evaluate(text: str, tensors: dict[str, Any], format: dict[str, str] | None = None) -> dict[str, Any]:
    params, results = _names(text, tuple(tensors))
    given = {name: tensors[name] for name in params}
    made = _tamis.einsum(text, format=format or None, **given)
    found = [made] if isinstance(made, _tamis.Tensor) else list(made)
    return dict(zip((name for name, _ in results), found))


def _on_pattern(rank: int, format: str) -> tuple[str, dict[str, Any]]:
    """The notation that stores a gradient `g` on the pattern `P` of `zeros`."""
    access = f"[{','.join(f'i{k}' for k in range(rank))}]" if rank else ""
    return f"h{access} = zeros{access} + P{access} * g{access}", {"format": {"h": format}}


def _like(gradient: Any, operand: Any) -> Any:
    """A gradient in the type of its operand, on the coordinate arrays of its operand."""
    if not isinstance(operand, _tamis.Tensor):
        return gradient
    if gradient.dtype != operand.dtype:
        gradient = gradient.astype(operand.dtype)
    if operand._stores_all or operand.is_pattern:
        return gradient
    if not gradient.same_pattern(operand):
        # It stores less, such as a diagonal or what a mask keeps.
        text, options = _on_pattern(operand.ndim, _levels(operand))
        gradient = _tamis.einsum(text, zeros=_zeros(operand), P=operand.sparsity_pattern(), g=gradient, **options)
        if not gradient.same_pattern(operand):
            return gradient
    return operand.with_values(_construct.asarray(gradient.values), operand.dtype.type(0))


def _zeros(operand: Any) -> Any:
    if not isinstance(operand, _tamis.Tensor):
        return _construct.asarray(0.0)
    if operand._stores_all or operand.is_pattern:
        return _construct.asarray(np.zeros(operand.shape, dtype=operand.dtype))
    return operand.with_values(_construct.asarray(np.zeros_like(operand.values)), operand.dtype.type(0))


def _gradients(traced: Traced, adjoint: _Adjoint, cotangents: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The gradients by operand. ``found`` holds what the forward pass computed."""
    tensors = dict(traced.operands)
    tensors.update({name: tensors[operand].sparsity_pattern() for operand, name in adjoint.patterns.items()})
    tensors.update({name: cotangents[result] for result, name in adjoint.cotangents.items()})
    tensors.update({name: found[result] for result, name in adjoint.saved.items()})
    operands = traced.operands
    tensor_gradients = {g: operands[name] for name, g in adjoint.gradients.items() if isinstance(operands[name], _tamis.Tensor)}
    format = {g: _levels(x) for g, x in tensor_gradients.items() if x.ndim and not x.is_pattern}
    made = _evaluate(adjoint.text, tensors, format) if adjoint.gradients else {}
    gradients = {name: _like(made[g], operands[name]) for name, g in adjoint.gradients.items()}
    gradients.update({name: _zeros(operands[name]) for name in adjoint.zeros})
    return gradients


def _tree(leaves: Any, of: Callable[[str], Any]) -> Any:
    """A tree of names with each name replaced."""
    if leaves is None:
        return None
    if isinstance(leaves, str):
        return of(leaves)
    if isinstance(leaves, dict):
        return {k: _tree(v, of) for k, v in leaves.items()}
    return type(leaves)(_tree(v, of) for v in leaves)


def _flat(leaves: Any) -> list[str]:
    if leaves is None:
        return []
    if isinstance(leaves, str):
        return [leaves]
    return [name for part in (leaves.values() if isinstance(leaves, dict) else leaves) for name in _flat(part)]


# Derivatives inside of traced functions.


def _inline(graph: Any, text: str, operands: dict[str, Any], shapes: dict[str, tuple[tuple[int, ...], Any]]) -> dict[str, Any]:
    """Appends the statements of a text to a trace; the tracers of the results, by name."""
    from ._trace import Tracer, is_weak

    names: dict[str, str] = {}
    for name, operand in operands.items():
        if not isinstance(operand, Tracer) and not is_weak(operand):
            operand = graph.capture(operand)
        if isinstance(operand, Tracer):
            if operand.subscripts != tuple(range(operand.ndim)):
                raise fail("E0303", "a value with added dimensions cannot be differentiated while it is traced", "reshape it afterwards")
            graph.read.add(operand.name)
            names[name] = operand.name
        else:
            names[name] = repr(float(operand)) if not isinstance(operand, complex) else repr(operand)
    lines = text.splitlines()
    for line in lines:
        target = _WORD.match(line).group()  # type: ignore[union-attr]
        if target not in names:
            names[target] = graph.fresh(target)

    def renamed(match: re.Match[str]) -> str:
        word = match.group()
        called = match.string[match.end() : match.end() + 1] == "("
        if word in names:
            return names[word]
        return f"{word}_" if word in graph.names and not called and word not in _SYNTAX else word

    for line in lines:
        if " += " in line or re.search(r"\w+= ", line.split(" = ")[0]):
            raise fail(
                "E0303",
                "this derivative updates tensors in place, which cannot be traced",
                "call `tamis.grad` outside of the traced function",
            )
        graph.statements.append(_WORD.sub(renamed, line))
    return {
        name: graph.make(graph, names[name], shape, dtype, tuple(range(len(shape)))) for name, (shape, dtype) in shapes.items()
    }


def _graph_of(operands: dict[str, Any]) -> Any:
    return next((x.graph for x in operands.values() if _is_tracer(x)), None)


# The interface.


class _Derivative:
    """A function that computes gradients; made by :func:`grad` and :func:`value_and_grad`."""

    def __init__(self, function: Any, argnums: Any, has_value: bool) -> None:
        self._grad_of = _traceable(function)
        # `Jit` takes over the attributes of what it wraps: these are no attributes of its own.
        self._grad_argnums, self._grad_has_value = argnums, has_value
        if callable(function):
            functools.update_wrapper(self, function, updated=())

    def _wrt(self, traced: Traced) -> tuple[list[Any], list[str]]:
        chosen = self._grad_argnums if isinstance(self._grad_argnums, (tuple, list)) else [self._grad_argnums]
        trees = []
        for argument in chosen:
            if argument not in traced.arguments:
                known = [str(name) for name in traced.arguments if isinstance(name, str)]
                raise fail("E0116", f"there is no argument {argument!r}", f"choose from {', '.join(known) or 'the positions of the arguments'}")
            trees.append(traced.arguments[argument])
        wrt = list(dict.fromkeys(name for tree in trees for name in _flat(tree)))
        if not wrt:
            raise fail("E0116", f"argument {chosen[0]!r} holds no tensor", "choose arguments that are tensors or floats by `argnums`")
        return trees, wrt

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        traced = self._grad_of(args, kwargs)
        trees, wrt = self._wrt(traced)
        if not traced.text or len(traced.results) != 1:
            raise fail(
                "E0116",
                f"the function computes {len(traced.results)} values: a gradient is that of one number",
                "return one number, as `tamis.sum(y * y)`",
                "or call `tamis.vjp`, which takes a cotangent for each result",
            )
        graph = _graph_of(traced.operands)
        adjoint = _adjoint_of(traced, wrt, self._grad_has_value and graph is None)
        if graph is not None:
            value, gradients = _traced_gradients(graph, traced, adjoint, wrt, self._grad_has_value)
        else:
            params, results = _names(traced.text, tuple(traced.operands))
            if results[0][1] != 0:
                raise _not_scalar(results[0])
            found = _evaluate(adjoint.forward, traced.operands) if self._grad_has_value else {}
            value = traced.rebuild({**traced.operands, **found}) if self._grad_has_value else None
            gradients = _gradients(traced, adjoint, {traced.results[0]: 1.0}, found)
        parts = [_tree(tree, gradients.__getitem__) for tree in trees]
        gradient = tuple(parts) if isinstance(self._grad_argnums, (tuple, list)) else parts[0]
        return (value, gradient) if self._grad_has_value else gradient

    def text(self, *args: Any, **kwargs: Any) -> str:
        """The adjoint statements for such arguments, as index notation."""
        return self._explained(args, kwargs).text

    def _explained(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Adjoint:
        traced = self._grad_of(args, kwargs)
        _, wrt = self._wrt(traced)
        return _adjoint_of(traced, wrt, self._grad_has_value)

    def __tamis_notation__(self, *args: Any, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        traced = self._grad_of(args, kwargs)
        adjoint = self._explained(args, kwargs)
        tensors = dict(traced.operands)
        tensors.update({name: tensors[operand].sparsity_pattern() for operand, name in adjoint.patterns.items()})
        tensors.update({name: 1.0 for name in adjoint.cotangents.values()})
        if adjoint.saved:
            found = _evaluate(adjoint.forward, traced.operands)
            tensors.update({name: found[result] for result, name in adjoint.saved.items()})
        params, _ = _names(adjoint.text, tuple(tensors))
        return adjoint.text, {name: tensors[name] for name in params}

    def __tamis_saved__(self, *args: Any, **kwargs: Any) -> str:
        """What the forward pass saves, and what is computed again."""
        adjoint = self._explained(args, kwargs)
        saved, again = ", ".join(adjoint.saved.values()), ", ".join(adjoint.recomputed)
        return f"# saved by the forward pass: {saved or 'nothing'}\n# recomputed by the adjoint: {again or 'nothing'}\n"

    def __repr__(self) -> str:
        return f"<tamis.{'value_and_grad' if self._grad_has_value else 'grad'} of {getattr(self, '__name__', 'notation')}>"


def _not_scalar(result: tuple[str, int]) -> Exception:
    name, rank = result
    return fail(
        "E0116",
        f"`{name}` has {rank} dimensions: only a single number has a gradient",
        "reduce it, as in `tamis.sum(y * y)`",
        "or call `tamis.vjp`, which takes a cotangent",
    )


def _traced_gradients(graph: Any, traced: Traced, adjoint: _Adjoint, wrt: list[str], has_value: bool) -> tuple[Any, dict[str, Any]]:
    """Gradients of traced values: the statements become part of the trace."""
    operands = dict(traced.operands)
    for operand, name in adjoint.patterns.items():
        if _is_tracer(operands[operand]):
            raise fail("E0303", "the pattern of a traced value is not known", "call `tamis.grad` outside of the traced function")
        operands[name] = operands[operand].sparsity_pattern()
    operands.update({name: 1.0 for name in adjoint.cotangents.values()})
    shapes = {g: (tuple(operands[name].shape), operands[name].dtype) for name, g in adjoint.gradients.items()}
    params = set(_names(adjoint.text, tuple(operands))[0]) if adjoint.gradients else set()
    read = {name: x for name, x in operands.items() if name in params}
    made = _inline(graph, adjoint.text, read, shapes) if adjoint.gradients else {}
    gradients = {name: made[g] for name, g in adjoint.gradients.items()}
    for name in adjoint.zeros:
        gradients[name] = operands[name] * 0.0
    value = None
    if has_value:
        values = _inline(graph, traced.text, dict(traced.operands), {traced.results[0]: ((), np.dtype("f8"))})
        value = values[traced.results[0]]
    return value, gradients


def grad(function: Any, argnums: Any = 0) -> Any:
    """The gradient of a function that returns one number, with respect to some of its arguments; as ``jax.grad``.

    ``function`` is a function of tensors (which is traced, see :func:`tamis.jit`), index notation, or a loop program whose tensors are
    written once or updated by an associative operator. ``argnums`` is a position, the name of an argument or operand, or several: then
    the result is a tuple. An argument may be a tuple, list or dict of tensors; its gradient is one of gradients.

    The gradient of a sparse operand has its pattern: nothing is computed elsewhere. Complex gradients follow PyTorch. Comparisons,
    roundings and integers have no gradient; where minima or maxima are attained several times, the gradient is shared evenly.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")
    >>> x = tm.tensor([1.0, 10.0])
    >>> loss = lambda A, x: tm.sum((A @ x) ** 2)
    >>> tm.grad(loss, argnums=(0, 1))(A, x)[1].to_numpy()
    array([130., 192.])
    >>> tm.grad(loss)(A, x).nnz, A.nnz
    (3, 3)
    >>> print(tm.grad("L = A[i,j] * x[j] * b[i]", "A").text(A=A, x=x, b=x))
    gA[i, j] = A_pattern[i, j] * gL * x[j] * b[i]
    """
    return _Derivative(function, argnums, False)


def value_and_grad(function: Any, argnums: Any = 0) -> Any:
    """The value of a function and its gradient, computed together; see :func:`grad`. The forward pass saves what the gradient needs.

    >>> import tamis as tm
    >>> value, gradient = tm.value_and_grad(lambda x: tm.sum(x * x))(tm.tensor([1.0, 2.0]))
    >>> value.item(), gradient.to_numpy()
    (5.0, array([2., 4.]))
    """
    return _Derivative(function, argnums, True)


def vjp(function: Any, *args: Any, **kwargs: Any) -> tuple[Any, Callable[..., Any]]:
    """The value of a function, and its vector-Jacobian product: a function from a cotangent of the value to gradients.

    The gradients are a tuple, one for each positional argument, or a dict if operands are given by name. A cotangent has the shape of the
    result, in any format; several results take a tuple.

    >>> import tamis as tm
    >>> y, pullback = tm.vjp("y[i] = A[i,j] * x[j]", A=tm.eye(2, format="csr"), x=tm.tensor([3.0, 4.0]))
    >>> pullback(tm.tensor([1.0, 2.0]))["x"].to_numpy()
    array([1., 2.])
    """
    traced = _traceable(function)(args, kwargs)
    chosen = list(kwargs) if kwargs and not args else list(range(len(args))) + list(kwargs)
    trees = {argument: traced.arguments[argument] for argument in chosen}
    floats = {name for name, x in traced.operands.items() if not hasattr(x, "dtype") or x.dtype.kind in "fc"}
    wrt = [name for name in dict.fromkeys(n for tree in trees.values() for n in _flat(tree)) if name in floats]
    if not wrt:
        raise fail("E0116", "no argument is a tensor of floats", "pass tensors of floats or complex numbers")
    adjoint = _adjoint_of(traced, wrt, True)
    found = _evaluate(adjoint.forward, traced.operands)
    value = traced.rebuild({**traced.operands, **found})

    def pullback(cotangent: Any) -> Any:
        several = cotangent if isinstance(cotangent, (tuple, list)) and len(traced.results) > 1 else (cotangent,)
        if len(several) != len(traced.results):
            raise fail("E0304", f"there are {len(traced.results)} results, but {len(several)} cotangents", "give a cotangent for each result")
        given = {}
        for name, one in zip(traced.results, several):
            given[name] = one if isinstance(one, _tamis.Tensor) else _construct.asarray(one)
            if tuple(given[name].shape) != tuple(found[name].shape):
                raise fail(
                    "E0401",
                    f"the cotangent of `{name}` has the shape {tuple(given[name].shape)}, but the result {tuple(found[name].shape)}",
                    "give a cotangent of the shape of the result",
                )
        gradients = _gradients(traced, adjoint, given, found)
        parts = {argument: _tree(tree, lambda name: gradients.get(name)) for argument, tree in trees.items()}
        return parts if kwargs and not args else tuple(parts.values())

    return value, pullback


def jvp(function: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """The value of a function and its directional derivative (Jacobian-vector product), as ``jax.jvp``.

    ``primals`` and ``tangents`` are tuples of the same length, or dicts by name; an operand without a tangent is a constant.

    >>> import tamis as tm
    >>> x = tm.tensor([1.0, 2.0])
    >>> value, tangent = tm.jvp(lambda x: x * x, (x,), (tm.tensor([1.0, 0.5]),))
    >>> tangent.to_numpy()
    array([2., 2.])
    """
    named = isinstance(primals, dict)
    args, kwargs = ((), primals) if named else (tuple(primals), {})
    traced = _traceable(function)(args, kwargs)
    given = dict(tangents) if named else {k: t for k, t in enumerate(tangents) if t is not None}
    if not named and len(tangents) != len(args):
        raise fail("E0304", f"there are {len(args)} primals, but {len(tangents)} tangents", "give one for each; `None` is zero")
    moving: dict[str, Any] = {}
    for argument, tangent in given.items():
        if argument not in traced.arguments:
            raise fail("E0116", f"there is no argument {argument!r}", "give tangents of arguments")
        leaves = _flat(traced.arguments[argument])
        parts = [tangent] if isinstance(traced.arguments[argument], str) else _parts(tangent)
        if len(leaves) != len(parts):
            raise fail("E0304", f"the tangent of argument {argument!r} has another structure", "give a tangent for each tensor in it")
        moving.update(zip(leaves, map(_leaf, parts)))
    if not moving:
        raise fail("E0116", "there is no tangent", "give a tangent of at least one argument")
    facts = _described(traced.operands, list(moving))
    made = _tangents(traced.text, tuple(traced.operands), tuple(moving), facts["complexes"])
    found = _evaluate(traced.text, traced.operands)
    value = traced.rebuild({**traced.operands, **found})
    tensors = {**traced.operands, **{name: moving[operand] for operand, name in made["operands"]}}
    results = dict(made["results"])
    computed = _evaluate(made["text"], tensors) if results else {}
    zero = {name: _construct.asarray(np.zeros(found[name].shape, dtype=found[name].dtype)) for name in made["zeros"]}
    tangent_of = {**{name: computed[d] for name, d in results.items()}, **zero}
    return value, traced.rebuild({**traced.operands, **tangent_of})


def _parts(tree: Any) -> list[Any]:
    if isinstance(tree, dict):
        return [part for value in tree.values() for part in _parts(value)]
    return [part for value in tree for part in _parts(value)] if isinstance(tree, (tuple, list)) else [tree]
