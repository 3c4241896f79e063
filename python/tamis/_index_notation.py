"""Index notation as Python objects: index variables, expressions of subscripted tensors, and assignable results.

A thin layer: objects record what is written, ``Result.text`` is the index notation that it becomes, and :func:`tamis.einsum` reads
that. Evaluation is lazy: reading a result compiles all statements that it depends on as one program.
"""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping, NamedTuple, Sequence

from . import _construct, _elementwise, _tamis
from ._errors import fail
from ._lazy_import import np
from ._operators import Operators
from ._trace import RESERVED, Symbolic

if TYPE_CHECKING:
    from ._tensor import Tensor

#: An expression of more nodes, or nested deeper, is cut into statements where subexpressions are shared or deep.
_LARGE, _DEEP, _SHARED, _NESTED = 400, 60, 8, 30
_ADD, _MULTIPLY, _ATOM = 1, 2, 9
_ADDITIVE, _PRODUCTS = ("{0} + {1}", "{0} - {1}"), ("{0} * {1}", "{0} / {1}")
#: Functions of two operands that update what they read: ``d[i] = minimum(d[i], e)`` is ``d[i] min= e``.
_UPDATES = {
    "{0} + {1}": "+=",
    "{0} * {1}": "*=",
    "min({0}, {1})": "min=",
    "max({0}, {1})": "max=",
    "{0} & {1}": "&=",
    "{0} | {1}": "|=",
    "{0} ^ {1}": "^=",
}


def _binary(name: str) -> tuple[Any, Any]:
    def forward(self: Expression, other: Any) -> Any:
        return apply(name, self, other) if _is_operand(other) else NotImplemented

    def backward(self: Expression, other: Any) -> Any:
        return apply(name, other, self) if _is_operand(other) else NotImplemented

    return forward, backward


def _is_operand(other: Any) -> bool:
    return isinstance(other, (Expression, Result, _tamis.Tensor)) or _elementwise.is_number(other) or hasattr(other, "__array__")


def _update(operator: str) -> Any:
    def update(self: Expression, other: Any) -> Any:
        if isinstance(self, Access) and isinstance(self.source, Result):
            return Update(self, operator, expression(other))
        return NotImplemented

    return update


class Expression(Symbolic):
    """A value for each combination of its indices; it has all operators, and the functions of the package take it.

    >>> import tamis as tm
    >>> i, j = tm.indices("i j")
    >>> A, x = tm.ones((2, 3)), tm.ones(3)
    >>> tm.maximum(A[i, j] * x[j] - 1, 0)
    max(A[i,j] * B[j] - 1, 0)
    >>> (A[i, j] * x[j]).evaluate(i).to_numpy()
    array([3., 3.])
    """

    __slots__ = ()

    __add__, __radd__ = _binary("add")
    __sub__, __rsub__ = _binary("subtract")
    __mul__, __rmul__ = _binary("multiply")
    __truediv__, __rtruediv__ = _binary("divide")
    __floordiv__, __rfloordiv__ = _binary("floor_divide")
    __mod__, __rmod__ = _binary("remainder")
    __pow__, __rpow__ = _binary("pow")
    __and__, __rand__ = _binary("bitwise_and")
    __or__, __ror__ = _binary("bitwise_or")
    __xor__, __rxor__ = _binary("bitwise_xor")
    __lshift__, __rlshift__ = _binary("bitwise_left_shift")
    __rshift__, __rrshift__ = _binary("bitwise_right_shift")
    __eq__ = _binary("equal")[0]
    __ne__ = _binary("not_equal")[0]
    __lt__ = _binary("less")[0]
    __le__ = _binary("less_equal")[0]
    __gt__ = _binary("greater")[0]
    __ge__ = _binary("greater_equal")[0]
    __iadd__, __isub__, __imul__, __itruediv__ = (_update(op) for op in ("+=", "-=", "*=", "/="))
    __ifloordiv__, __imod__, __ipow__ = (_update(op) for op in ("//=", "%=", "**="))
    __iand__, __ior__, __ixor__, __ilshift__, __irshift__ = (_update(op) for op in ("&=", "|=", "^=", "<<=", ">>="))
    __hash__ = object.__hash__
    #: NumPy's arrays leave operators to the expression.
    __array_ufunc__ = None
    __iter__ = None

    def __neg__(self) -> Expression:
        return apply("negative", self)

    def __pos__(self) -> Expression:
        return self

    def __abs__(self) -> Expression:
        return apply("abs", self)

    def __invert__(self) -> Expression:
        return apply("bitwise_invert", self)

    def __round__(self, digits: int | None = None) -> Expression:
        return apply("round", self) if not digits else apply("round", self * 10.0**digits) / 10.0**digits

    def __bool__(self) -> bool:
        raise fail(
            "E0303",
            "the truth value of an index expression is ambiguous: it has many elements",
            "write `&`, `|`, `~` instead of `and`, `or`, `not`, and `(a < b) & (b < c)` instead of `a < b < c`",
            "`tamis.where(condition, a, b)` selects elementwise",
        )

    def sum(self, *over: Index) -> Expression:
        """The sum over indices."""
        return reduced("sum", self, over)

    def prod(self, *over: Index) -> Expression:
        """The product over indices."""
        return reduced("prod", self, over)

    def min(self, *over: Index) -> Expression:
        """The least value over indices."""
        return reduced("min", self, over)

    def max(self, *over: Index) -> Expression:
        """The greatest value over indices."""
        return reduced("max", self, over)

    def any(self, *over: Index) -> Expression:
        """Whether some value over indices is true."""
        return reduced("any", self, over)

    def all(self, *over: Index) -> Expression:
        """Whether every value over indices is true."""
        return reduced("all", self, over)

    def astype(self, dtype: Any) -> Expression:
        """The same numbers in another type."""
        from ._tensor import OURS, dtype_of

        ours = OURS[dtype_of(dtype).name]
        return Function("{0} != 0" if ours == "bool" else f"{ours}({{0}})", (self,))

    def evaluate(
        self, *indices: Any, format: str | None = None, order: str | Iterable[str] | None = None, schedule: str | None = None
    ) -> Tensor:
        """The tensor whose dimensions have these indices; all others are reduced."""
        made = Result(format=format, order=order, schedule=schedule)
        made[indices] = self
        return made.tensor

    def __repr__(self) -> str:
        return _Writer((), [self]).line(self, set())


class Index(Expression):
    """An index variable; made by :func:`index` and :func:`indices`. Two of one name are the same."""

    __slots__ = ("name",)

    def __init__(self, name: str | None = None) -> None:
        self.name = name

    @property
    def key(self) -> Any:
        """What makes it equal to another index variable: its name, or itself if it has none."""
        return id(self) if self.name is None else self.name


class Number(Expression):
    """A number, of Python's, which adapts to the others, or of NumPy's, which has its own type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


class Function(Expression):
    """An operator or a function, as index notation writes it; ``{0}`` is its first operand."""

    __slots__ = ("operands", "template")

    def __init__(self, template: str, operands: tuple[Expression, ...]) -> None:
        self.template, self.operands = template, operands


class Reduction(Expression):
    """A reduction over indices."""

    __slots__ = ("body", "over", "word")

    def __init__(self, word: str, body: Expression, over: tuple[Index, ...]) -> None:
        self.word, self.body, self.over = word, body, over


class Access(Expression):
    """A tensor or a result with its subscripts."""

    __slots__ = ("source", "subscripts", "version")

    def __init__(self, source: Any, subscripts: tuple[Expression, ...]) -> None:
        self.source, self.subscripts = source, subscripts
        self.version: _Version | None = source._version if isinstance(source, Result) else None


class Update(NamedTuple):
    """The right-hand side of ``C[i] += e``."""

    access: Access
    operator: str
    value: Expression


class _Statement(NamedTuple):
    subscripts: tuple[Expression, ...]
    operator: str
    value: Expression


class _Version:
    """An immutable version of a result: an assignment and the updates so far."""

    __slots__ = ("result", "statements", "tensor")

    def __init__(self, result: Result, statements: tuple[_Statement, ...]) -> None:
        self.result, self.statements = result, statements
        self.tensor: Any = None


def expression(given: Any) -> Expression:
    """Converts an operand to an expression: numbers, and tensors without dimensions."""
    if isinstance(given, Expression):
        return given
    if _elementwise.is_number(given):
        return Number(given)
    if isinstance(given, Result):
        return given[()]  # type: ignore[no-any-return]
    if isinstance(given, Update):
        raise fail("E0113", "an update is not a value", "assign it to the result that it updates: `C[i, j] += ...`")
    tensor = given if isinstance(given, _tamis.Tensor) else _construct.asarray(given)
    return Access(tensor, _checked((), tensor.ndim))


def apply(name: str, *given: Any) -> Expression:
    """A function of the package on expressions."""
    template = _elementwise.OPS[name].text
    return Function(template, tuple(expression(x) for x in given))


def call(function: Any, /, *operands: Any) -> Expression:
    """A function of index notation by its name, or an operator that :func:`tamis.op` defined, on expressions.

    >>> import tamis as tm
    >>> i = tm.index("i")
    >>> x = tm.tensor([0.0, 2.0])
    >>> tm.call("choose", x[i], 5.0).evaluate(i).to_numpy()
    array([5., 2.])
    """
    name = function if isinstance(function, str) else getattr(function, "name", None)
    if not isinstance(name, str) or not name.isidentifier():
        raise fail("E0205", f"{function!r} is not a function of index notation", "give a name, as in `tm.call('choose', a, b)`")
    places = ", ".join(f"{{{k}}}" for k in range(len(operands)))
    return Function(f"{name}({places})", tuple(expression(x) for x in operands))


def reduced(word: str, body: Any, over: Any) -> Expression:
    """A reduction of an expression over one index or several."""
    indices = tuple(over) if isinstance(over, (tuple, list)) else (over,)
    if not indices or not all(isinstance(i, Index) for i in indices):
        raise fail(
            "E0113",
            f"`{word}` of an index expression needs indices to reduce over",
            f"write `tm.{word}(A[i, j], over=j)`, or `over=(i, j)`",
            "`axis=` is for tensors",
        )
    return Reduction(word, expression(body), indices)


def index(name: str) -> Index:
    """An index variable: ``A[i, j]`` with index variables is an expression, see :func:`result`.

    >>> import tamis as tm
    >>> i = tm.index("i")
    >>> i + 1
    i + 1
    """
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or name in RESERVED:
        raise fail("E0111", f"{name!r} is not a name of an index", "names are letters and digits, as in `tm.index('i')`")
    return Index(name)


def indices(names: str | int) -> tuple[Index, ...]:
    """Several index variables: by their names, or as many as a number says.

    >>> import tamis as tm
    >>> i, j = tm.indices("i j")
    >>> k, l = tm.indices(2)
    """
    if isinstance(names, int):
        return tuple(Index() for _ in range(names))
    return tuple(index(name) for name in names.replace(",", " ").split())


class Result(Operators):
    """The target of assignments; made by :func:`result`. It is evaluated to a tensor on first use."""

    __slots__ = ("_name", "_options", "_version")

    def __init__(
        self,
        name: str | None = None,
        *,
        format: str | None = None,
        order: str | Iterable[str] | None = None,
        schedule: str | None = None,
    ) -> None:
        self._name = None if name is None else index(name).name
        self._options: dict[str, Any] = {"format": format, "order": order, "schedule": schedule}
        self._version: _Version | None = None

    def __setitem__(self, key: Any, value: Any) -> None:
        subscripts = _subscripts(key)
        before = self._version
        if isinstance(value, Function):
            value = self._as_update(value, subscripts)
        if isinstance(value, Update):
            if value.access.source is not self or value.access.version is not before or not _same(value.access.subscripts, subscripts):
                raise fail("E0113", "an update must be assigned to the result that it updates", "write `C[i, j] += ...`")
            statements = () if before is None else before.statements
            self._version = _Version(self, (*statements, _Statement(subscripts, value.operator, value.value)))
        else:
            self._version = _Version(self, (_Statement(subscripts, "=", expression(value)),))

    def _as_update(self, value: Function, subscripts: tuple[Expression, ...]) -> Any:
        operator = _UPDATES.get(value.template)
        first = value.operands[0]
        if operator is None or not isinstance(first, Access) or first.source is not self or first.version is not self._version:
            return value
        return Update(first, operator, value.operands[1]) if _same(first.subscripts, subscripts) else value

    def __getitem__(self, key: Any) -> Any:
        keys = key if isinstance(key, tuple) else (key,)
        if key is None or not keys or any(isinstance(k, Expression) for k in keys):
            rank = None if self._version is None else len(self._version.statements[0].subscripts)
            return Access(self, _checked(_subscripts(key), rank))
        return self.tensor[key]

    @property
    def tensor(self) -> Tensor:
        """The result, computed on first access."""
        version = self._assigned()
        if version.tensor is None:
            evaluate(self)
        return version.tensor  # type: ignore[no-any-return]

    __tamis_tensor__ = tensor

    def evaluate(self) -> Tensor:
        """The result, computed now if it was not yet: ``tensor``."""
        return self.tensor

    @property
    def text(self) -> str:
        """The index notation that it becomes."""
        return self.__tamis_notation__()[0]

    def _assigned(self) -> _Version:
        if self._version is None:
            raise fail("E0201", f"the result{_shown(self)} has no assignment", "write `C[i, j] = A[i, j] + B[j, i]` first")
        return self._version

    def __tamis_notation__(self, **options: Any) -> tuple[str, dict[str, Any]]:
        self._assigned()
        writer = _Writer([self])
        chosen = {name: value for name, value in {**self._options, **options}.items() if value is not None}
        return writer.text, {**writer.tensors, **chosen}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.tensor, name)

    def __array__(self, *args: Any, **options: Any) -> Any:
        return self.tensor.__array__(*args, **options)

    def __len__(self) -> int:
        return len(self.tensor)

    def __iter__(self) -> Any:
        return iter(self.tensor)

    def __float__(self) -> float:
        return float(self.tensor)

    def __int__(self) -> int:
        return int(self.tensor)

    def __bool__(self) -> bool:
        return bool(self.tensor)

    def __repr__(self) -> str:
        if self._version is None:
            return f"<tamis.Result{_shown(self)}, nothing assigned>"
        return repr(self._version.tensor) if self._version.tensor is not None else f"<tamis.Result\n{self.text}>"


def _shown(result: Result) -> str:
    return "" if result._name is None else f" `{result._name}`"


def result(
    name: str | None = None,
    *,
    format: str | None = None,
    order: str | Iterable[str] | None = None,
    schedule: str | None = None,
) -> Result:
    """A target for assignments of expressions of index variables; ``name`` is its name in texts and explanations.

    An index on the right that is missing on the left is summed over, as in :func:`einsum`; :func:`sum`, :func:`max` and their like take
    ``over=``. A result that is read by another one is a temporary of it, unless it was computed before.

    >>> import tamis as tm
    >>> i, j, k = tm.indices("i j k")
    >>> A = tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")
    >>> C = tm.result("C", format="csr")
    >>> C[i, j] = A[i, k] * A[k, j] + A[j, i]
    >>> C.text
    'C[i,j] = A[i,k] * A[k,j] + A[j,i]'
    >>> C.to_numpy()
    array([[ 2.,  2.],
           [ 8., 12.]])
    >>> y = tm.result()
    >>> y[i] = tm.max(C[i, j], over=j)
    >>> y[i] += A[i, j]
    >>> y.to_numpy()
    array([ 3., 17.])
    """
    return Result(name, format=format, order=order, schedule=schedule)


def evaluate(
    *results: Result, order: str | Iterable[str] | None = None, schedule: str | None = None
) -> Tensor | tuple[Tensor, ...]:
    """Computes results together: what they share is computed once. One gives a tensor, several a tuple.

    >>> import tamis as tm
    >>> i, j = tm.indices("i j")
    >>> A = tm.ones((2, 3))
    >>> rows, total = tm.result(), tm.result()
    >>> rows[i] = A[i, j]
    >>> total[()] = rows[i]
    >>> [t.to_numpy().tolist() for t in tm.evaluate(rows, total)]
    [[3.0, 3.0], 6.0]
    """
    if not results or not all(isinstance(one, Result) for one in results):
        raise fail("E0902", "only a result can be evaluated", "write `tm.evaluate(C)` for `C = tm.result()`")
    missing = [one for one in results if one._assigned().tensor is None]
    if missing:
        writer = _Writer(missing)
        options: dict[str, Any] = {"order": order, "schedule": schedule}
        for one in missing:
            options = {name: one._options[name] if value is None else value for name, value in options.items()}
        formats = {name: one._options["format"] for name, one in zip(writer.outputs, missing) if one._options["format"]}
        made = _tamis.einsum(writer.text, **writer.tensors, **options, format=formats or None)
        found = [made] if len(writer.outputs) == 1 else list(made)
        # Results come in the order of their statements.
        for name, tensor in zip(writer.written, found):
            missing[writer.outputs.index(name)]._assigned().tensor = tensor
    tensors = tuple(one._assigned().tensor for one in results)
    return tensors[0] if len(tensors) == 1 else tensors


def access(tensor: Any, key: Any) -> Access:
    """A tensor with subscripts of which one is an expression."""
    return Access(tensor, _checked(_subscripts(key), tensor.ndim))


def _subscripts(key: Any) -> tuple[Expression, ...]:
    keys = () if key is None else key if isinstance(key, tuple) else (key,)
    found = []
    for k in keys:
        if not isinstance(k, (Expression, int, np.integer)) or isinstance(k, bool):
            raise fail(
                "E0111",
                f"{k!r} cannot be combined with index variables",
                "subscripts are index variables, integers, and expressions of them, as in `A[2*i + k, 0]`",
            )
        found.append(k if isinstance(k, Expression) else Number(int(k)))
    return tuple(found)


def _checked(subscripts: tuple[Expression, ...], rank: int | None) -> tuple[Expression, ...]:
    if rank is not None and len(subscripts) != rank:
        raise fail(
            "E0401",
            f"a tensor of {rank} dimensions has {len(subscripts)} subscripts",
            "give one subscript for each dimension, as in `A[i, j]`",
        )
    return subscripts


def _same(some: Sequence[Expression], others: Sequence[Expression]) -> bool:
    """Whether subscripts are the same indices or numbers, or the same objects."""

    def key(one: Expression) -> Any:
        return ("i", one.key) if isinstance(one, Index) else ("n", one.value) if isinstance(one, Number) else id(one)

    return len(some) == len(others) and all(key(a) == key(b) for a, b in zip(some, others))


def _children(node: Expression) -> tuple[Expression, ...]:
    if isinstance(node, Function):
        return node.operands
    if isinstance(node, Access):
        return node.subscripts
    return (node.body, *node.over) if isinstance(node, Reduction) else ()


def _postorder(roots: Iterable[Expression]) -> list[Expression]:
    """Every node once, operands first; without recursion, since chains are long."""
    done: set[int] = set()
    order: list[Expression] = []
    stack: list[tuple[Expression, bool]] = [(root, False) for root in reversed(list(roots))]
    while stack:
        node, entered = stack.pop()
        if entered:
            order.append(node)
        elif id(node) not in done:
            done.add(id(node))
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(_children(node)))
    return order


class _Writer:
    """Writes the statements that results depend on: names for everything, and one statement for what would be too large in another."""

    def __init__(self, results: Sequence[Result], loose: Sequence[Expression] = ()) -> None:
        self.lines: list[str] = []
        #: Operands by name, and which results the statements give, in the order of the results and of the statements.
        self.tensors: dict[str, Any] = {}
        self.outputs: list[str] = []
        self.written: list[str] = []
        self._taken: set[str] = set(RESERVED)
        self._operands: dict[int, str] = {}
        self._index_names: dict[Any, str] = {}
        self._versions: dict[int, str] = {}
        versions = self._dependencies([r._assigned() for r in results], loose)
        nodes = _postorder([*(e for v in versions for s in v.statements for e in (*s.subscripts, s.value)), *loose])
        self._name_indices(nodes)
        for version in versions:
            wanted = version.result._name
            self._versions[id(version)] = self._fresh([wanted] if wanted else [], "R")
        self._name_operands(nodes)
        read = {id(n.version) for n in nodes if isinstance(n, Access) and n.version is not None}
        for version in versions:
            self._write(version)
        for one in results:
            self._output(one, id(one._version) in read)

    @property
    def text(self) -> str:
        """The statements, one on each line."""
        return "\n".join(self.lines)

    def _fresh(self, wanted: Iterable[str], stem: str) -> str:
        numbered = (f"{stem}{k}" for k in itertools.count())
        name = next(n for n in itertools.chain(wanted, numbered) if n not in self._taken)
        self._taken.add(name)
        return name

    def _dependencies(self, wanted: list[_Version], loose: Sequence[Expression]) -> list[_Version]:
        """The versions that must be stated, each after those that it reads."""
        order: list[_Version] = []
        done: set[int] = set()

        def read(roots: Iterable[Expression]) -> list[_Version]:
            found = (n.version for n in _postorder(roots) if isinstance(n, Access))
            return [v for v in found if v is not None and v.tensor is None]

        stack = [(v, False) for v in reversed([*read(loose), *wanted])]
        while stack:
            version, entered = stack.pop()
            if entered:
                order.append(version)
            elif id(version) not in done:
                done.add(id(version))
                stack.append((version, True))
                values = [e for s in version.statements for e in (*s.subscripts, s.value)]
                stack.extend((v, False) for v in reversed(read(values)))
        return order

    def _name_indices(self, nodes: list[Expression]) -> None:
        found = {n.key: n for n in nodes if isinstance(n, Index)}
        for key, node in found.items():
            if node.name is not None:
                self._index_names[key] = node.name
                self._taken.add(node.name)
        for key, node in found.items():
            if node.name is None:
                self._index_names[key] = self._fresh("ijklmnpqr", "i")

    def _name_operands(self, nodes: list[Expression]) -> None:
        letters = [chr(c) for c in range(ord("A"), ord("Z") + 1)]
        for node in nodes:
            if not isinstance(node, Access):
                continue
            version = node.version
            if version is None and isinstance(node.source, Result):
                raise fail(
                    "E0201",
                    f"the result{_shown(node.source)} is read before it is assigned",
                    "assign it first: `C[i, j] = ...`; an update `C[i, j] += ...` may be the first statement",
                )
            if version is not None and version.tensor is None:
                continue
            tensor = node.source if version is None else version.tensor
            if id(tensor) not in self._operands:
                wanted = [version.result._name] if version is not None and version.result._name else []
                name = self._fresh([*wanted, *letters], "T")
                self._operands[id(tensor)] = name
                self.tensors[name] = tensor

    def _write(self, version: _Version) -> None:
        name = self._versions[id(version)]
        for statement in version.statements:
            left = self._subscripted(name, statement.subscripts)
            kept = {n.key for n in _postorder(statement.subscripts) if isinstance(n, Index)}
            right = self.line(statement.value, kept)
            self.lines.append(f"{left} {statement.operator} {right}")

    def _output(self, one: Result, is_read: bool) -> None:
        version = one._assigned()
        name = self._versions[id(version)]
        if is_read:
            # A version that is read again is a temporary: the result gets its own name.
            subscripts = [self._fresh((), "d") for _ in version.statements[0].subscripts]
            access = f"[{','.join(subscripts)}]" if subscripts else ""
            copy = self._fresh([f"{name}_result"], f"{name}_")
            self.lines.append(f"{copy}{access} = {name}{access}")
            name = copy
        self.outputs.append(name)
        first = {line.split("[")[0].split(" ")[0]: k for k, line in reversed(list(enumerate(self.lines)))}
        self.written = sorted(self.outputs, key=lambda output: first[output])

    def line(self, root: Expression, kept: set[Any]) -> str:
        """An expression as text; what is shared or deep in a large one is stated before."""
        order = _postorder([root])
        cut = self._cuts(root, order, kept)
        done: dict[int, tuple[str, int]] = {}
        for node in order:
            done[id(node)] = self._spelled(node, done)
            if id(node) in cut:
                name = self._fresh((), "t")
                left = f"{name}[{','.join(cut[id(node)])}]" if cut[id(node)] else name
                self.lines.append(f"{left} = {done[id(node)][0]}")
                done[id(node)] = (left, _ATOM)
        return done[id(root)][0]

    def _spelled(self, node: Expression, done: Mapping[int, tuple[str, int]]) -> tuple[str, int]:
        """The text of a node, and how tightly it binds."""
        if isinstance(node, Index):
            return self._index_names[node.key], _ATOM
        if isinstance(node, Number):
            return _literal(node.value)
        if isinstance(node, Access):
            version = node.version
            if version is not None and version.tensor is None:
                name = self._versions[id(version)]
            else:
                name = self._operands[id(node.source if version is None else version.tensor)]
            return self._subscripted(name, node.subscripts, done), _ATOM
        if isinstance(node, Reduction):
            over = ",".join(self._index_names[i.key] for i in node.over)
            return f"{node.word}[{over}]({done[id(node.body)][0]})", _ATOM
        assert isinstance(node, Function)
        template = node.template
        binds = _ADD if template in _ADDITIVE else _MULTIPLY if template in _PRODUCTS else 0
        if re.fullmatch(r"\w+\((\{\d\}(, )?)*\)", template):
            return template.format(*(done[id(o)][0] for o in node.operands)), _ATOM
        parts = []
        for k, operand in enumerate(node.operands):
            text, tight = done[id(operand)]
            needed = _ATOM if not binds else binds + (k > 0) if binds == _ADD else binds if k == 0 else _ATOM
            parts.append(text if tight >= needed else f"({text})")
        return template.format(*parts), binds

    def _subscripted(
        self, name: str, subscripts: Sequence[Expression], done: Mapping[int, tuple[str, int]] | None = None
    ) -> str:
        if not subscripts:
            return name
        if done is None:
            spelled: dict[int, tuple[str, int]] = {}
            for node in _postorder(subscripts):
                spelled[id(node)] = self._spelled(node, spelled)
            done = spelled
        return f"{name}[{','.join(done[id(s)][0] for s in subscripts)}]"

    def _cuts(self, root: Expression, order: list[Expression], kept: set[Any]) -> dict[int, list[str]]:
        """The nodes of a large expression that get a statement of their own, with the indices of its result.

        An index that occurs nowhere else is reduced there, where it would have been; all others are kept. A node is left where it
        is if nothing in it says how far one of them goes, and so is what stands in subscripts.
        """
        size: dict[int, int] = {}
        depth: dict[int, int] = {}
        for node in order:
            size[id(node)] = 1 + sum(size[id(c)] for c in _children(node))
            depth[id(node)] = 1 + max((depth[id(c)] for c in _children(node)), default=0)
        if size[id(root)] <= _LARGE and depth[id(root)] <= _DEEP:
            return {}
        times = {id(node): 0 for node in order}
        times[id(root)] = 1
        parents = dict(times)
        for node in reversed(order):
            if not isinstance(node, Access):
                for child in _children(node):
                    times[id(child)] += times[id(node)]
                    parents[id(child)] += 1
        uses: dict[int, dict[Any, int]] = {}
        sized: dict[int, set[Any]] = {}
        for node in order:
            if isinstance(node, Index):
                uses[id(node)], sized[id(node)] = {node.key: 1}, set()
                continue
            found: dict[Any, int] = {}
            for child in _children(node):
                for key, count in uses[id(child)].items():
                    found[key] = found.get(key, 0) + count
            known = set().union(*(sized[id(c)] for c in _children(node)))
            if isinstance(node, Access):
                known |= {s.key for s in node.subscripts if isinstance(s, Index)}
            if isinstance(node, Reduction):
                for i in node.over:
                    found.pop(i.key, None)
            uses[id(node)], sized[id(node)] = found, known
        cut: dict[int, list[str]] = {}
        left_size: dict[int, int] = {}
        left_depth: dict[int, int] = {}
        every = uses[id(root)]
        for node in order:
            here = id(node)
            left_size[here] = 1 + sum(left_size[id(c)] for c in _children(node))
            left_depth[here] = 1 + max((left_depth[id(c)] for c in _children(node)), default=0)
            shared = parents[here] > 1 and left_size[here] > _SHARED
            if node is root or not isinstance(node, (Function, Reduction)) or not (shared or left_depth[here] > _NESTED):
                continue
            own = uses[here]
            free = [k for k in own if k in kept or times[here] != 1 or own[k] != every.get(k, 0)]
            if times[here] and all(k in sized[here] for k in free):
                cut[here] = [self._index_names[k] for k in free]
                left_size[here], left_depth[here] = 1, 1
        return cut


def _literal(value: Any) -> tuple[str, int]:
    """A number as index notation writes it."""
    if isinstance(value, np.generic):
        from ._tensor import dtype_of

        return _elementwise.literal(value, dtype_of(value.dtype)), _ATOM
    if isinstance(value, complex):
        return f"({value.real!r} + {value.imag!r} * 1.0j)", _ATOM
    text = repr(value)
    return (text, _ATOM) if not text.startswith("-") else (text, 0)
