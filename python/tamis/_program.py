"""Loop programs from text, and user-defined operators."""

from __future__ import annotations

from typing import Any, Callable, Iterable, overload

from . import _tamis
from ._errors import fail
from ._torch_operands import involves_torch


class Program(_tamis.Program):
    """A loop program that can be called, with tensors by position or by name; made by :func:`program`.

    ``name``, ``parameters``, ``results`` and ``text`` say what it is; ``str(p)`` is the program as it was understood.
    """

    def __call__(self, *operands: Any, **tensors: Any) -> Any:
        if involves_torch(operands, tensors):
            from ._torch_autograd import program_call

            return program_call(self, operands, tensors)
        return super().__call__(*operands, **tensors)

    def __repr__(self) -> str:
        return f"<tamis.Program {self.name}({', '.join(self.parameters)}) -> {', '.join(self.results)}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _read, (self.text, self.source, self.schedule)


def _read(text: str, source: str, schedule: str) -> Program:
    return Program(text, source, schedule or None)


def program(text: str, *, source: str = "program", schedule: str | None = None) -> Program:
    """A loop program from its text: a callable that gives what ``return`` names.

    It is compiled when it is called, once for each combination of formats and types. ``source`` is what errors call the text;
    ``schedule`` gives scheduling commands, such as ``"reorder(j,i)"``.

    >>> import tamis as tm
    >>> rowsum = tm.program('''
    ... def rowsum(A):
    ...     y = tensor("dense")
    ...     for i, j in _:
    ...         y[i] += A[i,j]
    ...     return y
    ... ''')
    >>> rowsum(tm.tensor([[1.0, 2.0], [0.0, 4.0]], format="csr")).to_numpy()
    array([3., 4.])
    >>> rowsum
    <tamis.Program rowsum(A) -> y>
    """
    return Program(text, source, schedule)


Operator = _tamis.Operator


@overload
def op(name: str, parameters: str | Iterable[str], body: str, **laws: Any) -> Operator: ...
@overload
def op(name: Callable[..., Any]) -> Operator: ...
@overload
def op(**laws: Any) -> Callable[[Callable[..., Any]], Operator]: ...


def op(name: Any = None, parameters: Any = None, body: str | None = None, **laws: Any) -> Any:
    """Defines an operator that later texts know by name, in index notation and in programs.

    By text, or as a decorator of a function that returns one expression. Laws are ``commutative``, ``associative``, ``idempotent``
    (truth values), ``identity``, ``left_identity``, ``right_identity`` and ``annihilator`` (numbers). None is needed; each that is
    given is tested on the types that the operator is used with. ``derivative`` is an expression for the derivative by each operand,
    which :func:`grad` uses instead of differentiating the body.

    >>> import tamis as tm
    >>> tm.op("through", "a", "round(a)", derivative="1")
    <tamis operator through(a): round(a)>
    >>> tm.grad("s = sum[i](through(x[i]))")(x=[0.4, 1.6]).to_numpy()
    array([1., 1.])
    >>> tm.op("far", "a, b", "abs(a - b) > 1", commutative=True)
    <tamis operator far(a, b): abs(a - b) > 1>
    >>> tm.einsum("z[i] = far(x[i], y[i])", x=[1.0, 5.0], y=[1.5, 1.0]).to_numpy()
    array([False,  True])
    """
    if isinstance(laws.get("derivative"), str):
        laws["derivative"] = [laws["derivative"]]
    if callable(name):
        return _from_function(name, laws)
    if name is None:
        return lambda function: _from_function(function, laws)
    if parameters is None or body is None:
        raise fail("E0110", f"the operator `{name}` has no body", "write `tm.op('least', 'a, b', 'select(a < b, a, b)')`")
    if isinstance(parameters, str):
        parameters = [part.strip() for part in parameters.split(",")]
    return _tamis.define(name, list(parameters), body, **laws)


def _from_function(function: Callable[..., Any], laws: dict[str, Any]) -> Operator:
    import ast
    import inspect
    import textwrap

    def is_docstring(statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)

    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        raise fail(
            "E0110", "the source of this function is not available", "write `tm.op('least', 'a, b', 'select(a < b, a, b)')`"
        ) from None
    defined = next((node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)), None)
    body = [] if defined is None else [s for s in defined.body if not is_docstring(s)]
    if defined is None or len(body) != 1 or not isinstance(body[0], ast.Return) or body[0].value is None:
        raise fail("E0110", "an operator is a function that returns one expression", "write `return select(a < b, a, b)`")
    parameters = [argument.arg for argument in defined.args.args]
    return _tamis.define(defined.name, parameters, ast.unparse(body[0].value), **laws)
