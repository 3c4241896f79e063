"""Tracing of array code (after JAX): each operation on a tracer appends one statement of index notation to a graph.

Equal statements share one temporary, which is value numbering at trace time.
"""

from __future__ import annotations

import re
from collections import namedtuple
from typing import Any, Callable

from . import _tamis
from ._errors import fail
from ._lazy_import import np

#: Keywords and function names of index notation, which tracers must not take.
RESERVED = frozenset(
    "and or not if else for in def return True False inf nan sum prod min max any all follow walk gallop tensor scalar bool i8 i16 "
    "i32 i64 u8 u16 u32 u64 f32 f64 c64 c128 range pass import".split()
) | {row["name"] for row in _tamis.operators() if not row["symbol"]}


class Symbolic:
    """Base class of expressions of index variables; functions of the package dispatch on it."""

    __slots__ = ()


class Tracer:
    """An abstract array: a temporary of the graph with its shape and dtype, without values.

    ``subscripts`` maps each dimension of the temporary to a dimension of this array, or to ``None`` if the temporary has size 1
    there and this array lacks the dimension. A dimension of this array that no subscript names is a new axis of size 1.
    """

    __slots__ = ("dtype", "graph", "name", "shape", "subscripts", "weak")

    def __init__(
        self,
        graph: Graph,
        name: str,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        subscripts: tuple[int | None, ...],
        weak: bool = False,
    ) -> None:
        self.graph, self.name, self.shape, self.dtype, self.subscripts = graph, name, shape, dtype, subscripts
        #: Whether its type is weak, as that of Python scalars: it adapts to the other operands.
        self.weak = weak

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def access(self, indices: dict[int, str]) -> str:
        """The access in index notation; a broadcast dimension has the subscript ``0``."""
        if not self.subscripts:
            return self.name
        return f"{self.name}[{','.join('0' if s is None else indices[s] for s in self.subscripts)}]"


class Graph:
    """The statements of one trace, and the tensors that they capture."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make
        self.statements: list[str] = []
        #: Value numbering: the temporary of each statement, by its left and right side.
        self.stated: dict[tuple[str, str], str] = {}
        self.captured: dict[str, Any] = {}
        self.names: set[str] = set(RESERVED)
        self.read: set[str] = set()

    def fresh(self, wanted: str) -> str:
        """A name that is not in use."""
        name, k = wanted, 0
        while name in self.names or name.startswith("_"):
            name, k = f"{wanted.strip('_') or 'x'}_{k}", k + 1
        self.names.add(name)
        return name

    def leaf(self, name: str, tensor: Any) -> Any:
        """A tracer for an input: a tensor or a Python scalar."""
        if is_weak(tensor):
            return self.make(self, self.fresh(name), (), np.dtype(type(tensor)), (), True)
        return self.make(self, self.fresh(name), tuple(tensor.shape), tensor.dtype, tuple(range(tensor.ndim)))

    def capture(self, tensor: Any) -> Any:
        """A tracer for a tensor of an enclosing scope (closed over); every call passes it again."""
        made = self.leaf("captured", tensor)
        self.captured[made.name] = tensor
        return made

    def index(self, k: int) -> str:
        """The name of the ``k``-th index variable."""
        name = f"i{k}"
        while name in self.names:
            name += "_"
        return name

    def state(
        self, body: str, shape: tuple[int, ...], dtype: Any, indices: dict[int, str], used: set[str], weak: bool = False
    ) -> Any:
        """Appends a statement and returns its tracer; a dimension whose index no operand bounds stays a new axis."""
        real = [d for d in range(len(shape)) if indices[d] in used]
        access = f"[{','.join(indices[d] for d in real)}]" if real else ""
        name = self.stated.get((access, body), "")
        if not name:
            name = self.stated[access, body] = self.fresh(f"t{len(self.statements)}")
            self.statements.append(f"{name}{access} = {body}")
        return self.make(self, name, shape, dtype, tuple(real), weak)


def is_weak(given: Any) -> bool:
    """Whether an operand is a Python scalar of weak type (``bool`` is not weak)."""
    return type(given) in (int, float, complex)


def _graph(given: tuple[Any, ...]) -> Graph:
    return next(x.graph for x in given if isinstance(x, Tracer))


def _operand(graph: Graph, given: Any) -> Any:
    from . import _construct

    if isinstance(given, Tracer):
        if given.graph is not graph:
            raise fail(
                "E0303",
                f"`{given.name}` is a value of another traced call, which has ended",
                "return the values of a traced function; do not store them elsewhere",
            )
        return given
    return graph.capture(given if isinstance(given, _tamis.Tensor) else _construct.asarray(given))


def trace_elementwise(name: str, given: tuple[Any, ...]) -> Any:
    """Traces an elementwise operator or function."""
    from . import _construct
    from . import _elementwise as elementwise
    from ._shape_utils import broadcast_shapes

    graph = _graph(given)
    operands = [x if elementwise.is_number(x) else _operand(graph, x) for x in given]
    values = [x for x in operands if isinstance(x, Tracer)]
    shape = broadcast_shapes(x.shape for x in values)
    indices = {d: graph.index(d) for d in range(len(shape))}
    # A weakly typed operand is represented by a Python scalar.
    ones = [x.dtype.type(1).item() if x.weak else np.ones((), dtype=x.dtype) for x in values]
    rest = iter(ones)
    samples = [next(rest) if isinstance(x, Tracer) else x for x in operands]
    weak = all(is_weak(x) for x in samples)
    tensors = [_construct.asarray(x) if isinstance(x, np.ndarray) else x for x in samples]
    op = elementwise.OPS[name]
    text = elementwise._spelled(name, op, tensors)
    if op.floats:
        text = elementwise._in_floats(text, tensors)
    fixed = [elementwise._fixed(x, tensors, op, name) if elementwise.is_number(x) else x for x in tensors]
    # Abstract evaluation: one element is computed to find the dtype of the result.
    dtype = _tamis.einsum(elementwise._scalar_text(text, len(fixed)), **elementwise._named(fixed)).dtype
    terms, used = [], set()
    for x, number in zip(operands, fixed):
        if isinstance(x, Tracer):
            first = len(shape) - x.ndim
            own = {d: "0" if n == 1 != shape[first + d] else indices[first + d] for d, n in enumerate(x.shape)}
            used |= {own[s] for s in x.subscripts if s is not None}
            graph.read.add(x.name)
            terms.append(x.access(own))
        else:
            terms.append(elementwise.weak_literal(x) if weak else elementwise.literal(number[()], number.dtype))
    return graph.state(text.format(*terms), shape, dtype, indices, used, weak and dtype != bool)


def trace_cast(x: Any, dtype: np.dtype[Any], ours: str) -> Any:
    """Traces a cast."""
    indices = {d: x.graph.index(d) for d in range(x.ndim)}
    x.graph.read.add(x.name)
    used = {indices[s] for s in x.subscripts if s is not None}
    body = x.access(indices)
    return x.graph.state(f"{body} != 0" if ours == "bool" else f"{ours}({body})", x.shape, dtype, indices, used)


def trace_reduction(x: Any, word: str, axes: tuple[int, ...], keepdims: bool, body: str) -> Any:
    """Traces a reduction over axes."""
    from . import _construct

    graph = x.graph
    indices = {d: graph.index(d) for d in range(x.ndim)}
    gone = [indices[s] for s in x.subscripts if s in axes]
    text = body.format(x.access(indices))
    graph.read.add(x.name)
    sample = _construct.asarray(np.ones((1,), dtype=x.dtype))
    dtype = _tamis.einsum(f"r = {word}[a]({body.format('x[a]')})", x=sample).dtype
    used = {indices[s] for s in x.subscripts if s is not None} - set(gone)
    kept = [d for d in range(x.ndim) if d not in axes]
    made = graph.state(
        f"{word}[{','.join(gone)}]({text})" if gone else text,
        tuple(x.shape[d] for d in kept),
        dtype,
        {k: indices[d] for k, d in enumerate(kept)},
        used,
    )
    return trace_reshape(made, axes, ()) if keepdims else made


def trace_product(a: Any, b: Any, left: str, right: str, result: str) -> Any:
    """Traces a contraction of two operands by einsum letters; ``0`` marks a broadcast dimension."""
    from . import _construct

    graph = _graph((a, b))
    a, b = _operand(graph, a), _operand(graph, b)
    letters = {n: graph.index(k) for k, n in enumerate(dict.fromkeys(left + right)) if n != "0"}
    sizes, used, terms = {}, set(), []
    for x, names in ((a, left), (b, right)):
        own = {d: "0" if n == "0" else letters[n] for d, n in enumerate(names)}
        sizes.update({n: x.shape[d] for d, n in enumerate(names)})
        used |= {own[s] for s in x.subscripts if s is not None}
        graph.read.add(x.name)
        terms.append(x.access(own))
    boolean = a.dtype == bool and b.dtype == bool
    body = f"{terms[0]} {'and' if boolean else '*'} {terms[1]}"
    gone = [letters[n] for n in letters if n not in result and letters[n] in used]
    if gone:
        body = f"{'any' if boolean else 'sum'}[{','.join(gone)}]({body})"
    samples = [_construct.asarray(np.ones((1,), dtype=x.dtype)) for x in (a, b)]
    dtype = np.dtype(bool) if boolean else _tamis.einsum("r = sum[a](x[a] * y[a])", *samples).dtype
    shape = tuple(sizes[n] for n in result)
    return graph.state(body, shape, dtype, {k: letters[n] for k, n in enumerate(result)}, used - set(gone))


def trace_reshape(x: Any, added: tuple[int, ...], removed: tuple[int, ...]) -> Any:
    """Adds and removes dimensions of size 1; no statement is appended."""
    rank = x.ndim + len(added) - len(removed)
    places = [d for d in range(rank) if d not in added]
    moved = dict(zip((d for d in range(x.ndim) if d not in removed), places))
    shape = [1] * rank
    for d, place in moved.items():
        shape[place] = x.shape[d]
    subscripts = tuple(None if s is None else moved.get(s) for s in x.subscripts)
    return x.graph.make(x.graph, x.name, tuple(shape), x.dtype, subscripts, x.weak)


def trace_transpose(x: Any, axes: list[int]) -> Any:
    """Permutes dimensions; no statement is appended."""
    place = {axis: k for k, axis in enumerate(axes)}
    subscripts = tuple(None if s is None else place[s] for s in x.subscripts)
    return x.graph.make(x.graph, x.name, tuple(x.shape[a] for a in axes), x.dtype, subscripts, x.weak)


#: Names in index notation that are neither fields nor functions.
_NAME = re.compile(r"(?<![.\w])[A-Za-z_]\w*(?!\w|\()")


def trace_einsum(text: str, *operands: Any, **tensors: Any) -> Any:
    """Traces index notation: its statements, with the names of the graph, are appended."""
    from ._elementwise import is_number, weak_literal

    given = [*operands, *tensors.values()]
    graph = _graph(tuple(given))
    traced = [x if is_number(x) else _plain(_operand(graph, x)) for x in given]
    samples = [_sample(x) for x in traced]
    named = dict(zip(tensors, samples[len(operands) :]))
    statements, params, results = _tamis.abstract_einsum(text, *samples[: len(operands)], **named)
    names: dict[str, str] = {}
    for name, place in params:
        x = traced[place]
        if isinstance(x, Tracer):
            graph.read.add(x.name)
            names[name] = x.name
        else:
            names[name] = weak_literal(x)
    for statement in statements:
        target = split_statement(statement)[0]
        if target not in names:
            names[target] = graph.fresh(f"t{len(graph.statements)}")
    indices: dict[str, str] = {}

    def renamed(found: re.Match[str]) -> str:
        name = found.group()
        if name in names or name in RESERVED:
            return names.get(name, name)
        if name not in indices:
            free = name
            while free in graph.names or free in indices.values():
                free += "_"
            indices[name] = free
        return indices[name]

    lines = [_NAME.sub(renamed, statement) for statement in statements]
    graph.statements += lines
    made = []
    for name, shape, dtype in results:
        name = names[name]
        own = [split_statement(line) for line in lines if split_statement(line)[0] == name]
        rank = len(shape)
        result = graph.make(graph, name, tuple(shape), np.dtype(NUMPY[dtype]), tuple(range(rank)))
        plain = len(own) == 1 and not own[0][2] and re.fullmatch(r"\w+(\[\w+(, ?\w+)*\])?", own[0][1])
        # A tensor that is updated, or written at computed subscripts, is read as a whole.
        made.append(result if plain else _copied(result))
    if len(made) == 1:
        return made[0]
    return namedtuple("Results", [name for name, _, _ in results], rename=True)(*made)  # type: ignore[misc]


#: Types of index notation that NumPy calls by another name.
NUMPY = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "u8": "uint8", "u16": "uint16",
    "u32": "uint32", "u64": "uint64", "f32": "float32", "f64": "float64", "c64": "complex64", "c128": "complex128",
}  # fmt: skip


def split_statement(statement: str) -> tuple[str, str, str, str]:
    """The name, the whole target, the operator and the right-hand side of a statement.

    >>> from tamis._trace import split_statement
    >>> split_statement("y[i] += A[i,j] * x[j]")
    ('y', 'y[i]', '+', 'A[i,j] * x[j]')
    """
    found = re.match(r"(([A-Za-z_]\w*)(?:\[.*?\])?) (\S*)= (.*)", statement, re.S)
    assert found is not None
    return found.group(2), found.group(1), found.group(3), found.group(4)


def _sample(x: Any) -> Any:
    """An operand of the same sizes and type, which stores nothing."""
    from ._creation import zeros

    if not isinstance(x, Tracer):
        return x
    if x.weak:
        return x.dtype.type(1).item()
    return zeros(x.shape, dtype=x.dtype, format=", ".join(["sparse"] * x.ndim) if x.ndim else None)


def _copied(x: Any) -> Any:
    indices = {d: x.graph.index(d) for d in range(x.ndim)}
    x.graph.read.add(x.name)
    return x.graph.state(x.access(indices), x.shape, x.dtype, indices, set(indices.values()))


def _plain(x: Any) -> Any:
    """An operand whose temporary has the same dimensions in the same order."""
    if sorted(s if s is not None else -1 for s in x.subscripts) != list(range(x.ndim)):
        raise fail(
            "E0303",
            "an operand of `einsum` has a dimension of size 1 that was added while the function is traced",
            "leave that dimension out of the operand and of its subscripts",
        )
    return x if x.subscripts == tuple(range(x.ndim)) else _copied(x)
