"""``@tamis.jit``: traces array code to index notation, then schedules and compiles it as a whole."""

from __future__ import annotations

import functools
import inspect
import re
from typing import TYPE_CHECKING, Any, Callable, Iterable, NamedTuple

from . import _construct, _tamis, _tensor
from ._errors import Error, InvalidType, fail
from ._operators import Operators
from ._reductions import Reductions
from ._shape_utils import num_elements
from ._torch_operands import involves_torch
from ._array_methods import ArrayMethods
from ._trace import Graph, Tracer, is_weak, split_statement, trace_cast, trace_reshape, trace_transpose

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_STATIC = (bool, int, str, type(None))
#: The capacity of the cache of traces of one function, in signatures.
_CACHE_SIZE = 256


class NotTraced(InvalidType, AttributeError):
    """An attribute of tensors that does not exist while a function is traced."""


class ArrayTracer(Operators, Reductions, ArrayMethods, Tracer):
    """The tracer that a traced function receives for a tensor: shape, dtype, operators and methods, but no values."""

    __slots__ = ()

    @property
    def size(self) -> int:
        """The number of elements."""
        return num_elements(self.shape)

    @property
    def T(self) -> Any:
        """The dimensions reversed."""
        return self.transpose()

    def transpose(self, axes: Iterable[int] | None = None) -> Any:
        """The dimensions in another order."""
        return trace_transpose(self, _tensor.order_of(axes, self.ndim))

    def copy(self) -> Any:
        """Itself: nothing changes it."""
        return self

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(_tensor.Tensor, name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        error = _not_traced(
            f"`.{name}` needs the stored values or the format, which are not there while the function is traced",
            "ask outside of the traced function",
            "shapes, types, elementwise functions, reductions, products and transposes are traced",
        )
        raise NotTraced(str(error), error.code, error.message, None, error.notes, error.help)

    def astype(self, dtype: DTypeLike) -> Any:
        """The values converted to another type."""
        found = _tensor.dtype_of(dtype)
        return self if found == self.dtype else trace_cast(self, found, _tensor.OURS[found.name])

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if not all(k is None or k is Ellipsis or (isinstance(k, slice) and k == slice(None)) for k in keys):
            raise _not_traced(
                "only `:`, `...` and `None` can index a traced value", "take the part before the call"
            )
        count = sum(k is not None for k in keys if k is not Ellipsis)
        if count > self.ndim or sum(k is Ellipsis for k in keys) > 1:
            raise fail(
                "E1001",
                f"{count} subscripts do not fit {self.ndim} dimensions" if count > self.ndim else "`...` occurs twice in an index",
                "give at most one subscript for each dimension, and `...` once",
            )
        whole = [slice(None)] * (self.ndim - count)
        place = next((p for p, k in enumerate(keys) if k is Ellipsis), None)
        full = [*keys, *whole] if place is None else [*keys[:place], *whole, *keys[place + 1 :]]
        return trace_reshape(self, tuple(p for p, k in enumerate(full) if k is None), ())

    def __bool__(self) -> bool:
        raise _not_traced(
            "`if`, `while`, `and` and `or` need a value that is not there while the function is traced",
            "write `tamis.where(condition, a, b)`, `&` or `|`",
        )

    def __float__(self) -> float:
        raise _not_traced("a concrete number is required, which does not exist while the function is traced", "return it, and ask outside")

    __int__ = __index__ = __complex__ = __float__  # type: ignore[assignment]

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise _not_traced("NumPy asks for values that are not there while the function is traced", "use functions of Tamis")

    def __len__(self) -> int:
        return int(self.shape[0]) if self.shape else 0

    def __repr__(self) -> str:
        return f"<traced {self.name}: {'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype}>"


def _not_traced(message: str, *help: str) -> Error:
    return fail("E0303", message, *help)


class _Trace(NamedTuple):
    text: str
    captured: dict[str, Any]
    inputs: list[tuple[str, int]]
    rebuild: Callable[[dict[str, Any]], Any]
    outputs: list[str]


class Jit:
    """A traced function; made by :func:`jit`. ``text(...)`` is the notation that it becomes for some arguments."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._signature = inspect.signature(function)
        self._traces: dict[Any, _Trace] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if involves_torch(args, kwargs):
            from ._torch_autograd import traced_call

            return traced_call(self, self, args, kwargs)
        trace, flat = self._traced(args, kwargs)
        if any(isinstance(x, Tracer) for x in flat):
            # Inside of another traced function it is traced as a part of that.
            return self._function(*args, **kwargs)
        if not trace.text:
            return trace.rebuild(dict(zip((n for n, _ in trace.inputs), (flat[p] for _, p in trace.inputs))))
        tensors = self._tensors(trace, flat)
        read = _names(trace)
        made = _tamis.einsum(trace.text, **{name: tensors[name] for name in read})
        results = [made] if isinstance(made, _tamis.Tensor) else list(made)
        found = dict(zip(trace.outputs, results))
        return trace.rebuild({**tensors, **found})

    def _tensors(self, trace: _Trace, flat: list[Any]) -> dict[str, Any]:
        return {**{name: flat[place] for name, place in trace.inputs}, **trace.captured}

    def text(self, *args: Any, **kwargs: Any) -> str:
        """The index notation that this becomes for such arguments."""
        return self._traced(args, kwargs)[0].text

    def __tamis_notation__(self, *args: Any, **kwargs: Any) -> tuple[str, dict[str, Any]]:
        trace, flat = self._traced(args, kwargs)
        tensors = self._tensors(trace, flat)
        return trace.text, {name: tensors[name] for name in _names(trace)}

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __repr__(self) -> str:
        return f"<tamis.jit {getattr(self._function, '__name__', 'function')}, {len(self._traces)} traced>"

    def _traced(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[_Trace, list[Any]]:
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise fail("E0304", f"{error} of `{self._function.__name__}`", f"it takes {self._signature}") from None
        bound.apply_defaults()
        flat: list[Any] = []
        key = tuple((name, _flatten(value, flat)) for name, value in bound.arguments.items())
        seen = (key, tuple(type(t) if is_weak(t) else (t.shape, t.dtype) for t in flat))
        trace = self._traces.get(seen)
        if trace is None:
            trace = self._trace(bound, flat)
            if len(self._traces) >= _CACHE_SIZE:
                self._traces.clear()
            self._traces[seen] = trace
        return trace, flat

    def _trace(self, bound: inspect.BoundArguments, flat: list[Any]) -> _Trace:
        graph = Graph(ArrayTracer)
        inputs: list[tuple[str, int]] = []

        def stand_in(value: Any, name: str) -> Any:
            if isinstance(value, (tuple, list)) and not _is_data(value):
                return type(value)(stand_in(v, f"{name}{k}") for k, v in enumerate(value))
            if isinstance(value, dict):
                return {k: stand_in(v, f"{name}_{k}") for k, v in value.items()}
            if isinstance(value, _STATIC):
                return value
            made = graph.leaf(name if name.isidentifier() else "x", flat[len(inputs)])
            inputs.append((made.name, len(inputs)))
            return made

        arguments = {name: stand_in(value, name) for name, value in bound.arguments.items()}
        bound = inspect.BoundArguments(bound.signature, arguments)  # type: ignore[arg-type]
        given = self._function(*bound.args, **bound.kwargs)
        outputs: list[str] = []
        wanted: dict[str, str] = {}

        def finish(value: Any) -> Callable[[dict[str, Any]], Any]:
            if isinstance(value, (tuple, list)):
                parts = [finish(v) for v in value]
                kind = type(value)
                if hasattr(kind, "_make"):
                    return lambda found: kind._make(part(found) for part in parts)
                return lambda found: kind(part(found) for part in parts)
            if isinstance(value, dict):
                named = {k: finish(v) for k, v in value.items()}
                return lambda found: {k: part(found) for k, part in named.items()}
            if not isinstance(value, Tracer):
                return lambda found: value
            name = value.name
            if name in {n for n, _ in inputs} or name in graph.captured:
                return lambda found: _seen(value, found[name])
            wanted.setdefault(name, name)
            return lambda found: _seen(value, found[wanted[name]])

        rebuild = finish(given)
        statements = _needed(graph, set(wanted))
        lines = []
        read = set().union(*(_words(split_statement(statement)[3]) for statement in statements))
        last = {split_statement(statement)[0]: k for k, statement in enumerate(statements)}
        for k, statement in enumerate(statements):
            lines.append(statement)
            name, target, _, _ = split_statement(statement)
            if name in wanted and last[name] == k:
                if name in read:
                    # A value that is read again is a temporary: the result gets its own name.
                    wanted[name] = graph.fresh(f"{name}_result")
                    lines.append(f"{target.replace(name, wanted[name], 1)} = {target}")
                outputs.append(wanted[name])
        return _Trace("\n".join(lines), dict(graph.captured), inputs, rebuild, outputs)


def _words(text: str) -> set[str]:
    return set(re.findall(r"[A-Za-z][A-Za-z0-9_]*", text))


def _needed(graph: Graph, wanted: set[str]) -> list[str]:
    """The statements that results depend on, in order."""
    kept, wanted = [], set(wanted)
    for statement in reversed(graph.statements):
        name, target, _, body = split_statement(statement)
        if name in wanted:
            kept.append(statement)
            wanted |= _words(body) | _words(target)
    return kept[::-1]


@functools.lru_cache(maxsize=1024)
def _read_names(text: str) -> frozenset[str]:
    return frozenset(word for line in text.splitlines() for word in _words(split_statement(line)[3]))


def _names(trace: _Trace) -> list[str]:
    read = _read_names(trace.text)
    return [name for name in [*(n for n, _ in trace.inputs), *trace.captured] if name in read]


def _seen(value: Tracer, tensor: Any) -> Any:
    """A result as the function returned it: its dimensions in order, those of size 1 added or taken away."""
    from ._manipulation import expand_dims, squeeze

    hidden = tuple(k for k, s in enumerate(value.subscripts) if s is None)
    if not isinstance(tensor, _tamis.Tensor) and hasattr(tensor, "permute"):
        return _seen_in_torch(value, tensor, hidden)
    if hidden:
        tensor = squeeze(tensor, hidden)
    places = [s for s in value.subscripts if s is not None]
    if places != sorted(places):
        order = sorted(range(len(places)), key=lambda k: places[k])
        tensor = tensor.transpose(order)
    added = tuple(d for d in range(value.ndim) if d not in places)
    return expand_dims(tensor, axis=added) if added else tensor


def _seen_in_torch(value: Tracer, tensor: Any, hidden: tuple[int, ...]) -> Any:
    """The same for a result that is PyTorch's."""
    for k in reversed(hidden):
        tensor = tensor.squeeze(k)
    places = [s for s in value.subscripts if s is not None]
    if places != sorted(places):
        tensor = tensor.permute(sorted(range(len(places)), key=lambda k: places[k]))
    for d in range(value.ndim):
        if d not in places:
            tensor = tensor.unsqueeze(d)
    return tensor


def _is_data(value: Any) -> bool:
    """Whether a list holds numbers rather than tensors."""
    return bool(value) and all(
        isinstance(v, (int, float, complex)) or (isinstance(v, (list, tuple)) and _is_data(v)) for v in value
    )


def _flatten(value: Any, flat: list[Any]) -> Any:
    """The tensors in an argument, and a key for everything else."""
    if isinstance(value, _STATIC):
        return (type(value), value)
    if isinstance(value, (tuple, list)) and not _is_data(value):
        return (type(value), tuple(_flatten(v, flat) for v in value))
    if isinstance(value, dict):
        return (dict, tuple((k, _flatten(v, flat)) for k, v in value.items()))
    # Numbers stay Python's own: their type adapts to that of the tensors.
    flat.append(value if isinstance(value, (_tamis.Tensor, Tracer)) or is_weak(value) else _construct.asarray(value))
    return None


def jit(function: Callable[..., Any]) -> Jit:
    """Traces a function of tensors into index notation, which is scheduled and compiled as a whole.

    What is traced is kept for each combination of shapes, types and constants; compiled code is shared by all that become the same
    notation. Integers, booleans, strings and ``None`` are constants; floats are values that may change from call to call. A
    function is traced by calling it once: it must do the same for all tensors of one shape and type.

    >>> import tamis as tm
    >>> @tm.jit
    ... def step(A, x):
    ...     y = A @ x
    ...     return y / tm.sqrt(tm.sum(y * y))
    >>> step(tm.tensor([[3.0, 0.0], [0.0, 4.0]], format="csr"), [1.0, 1.0]).to_numpy()
    array([0.6, 0.8])
    >>> print(step.text(tm.eye(2), tm.ones(2)))
    t0[i0] = sum[i1](A[i0,i1] * x[i1])
    t1[i0] = t0[i0] * t0[i0]
    t2 = sum[i0](t1[i0])
    t3 = sqrt(t2)
    t4[i0] = t0[i0] / t3
    """
    return Jit(function)
