"""``@tamis.kernel``: loop programs written as Python functions; errors point into the user's file."""

from __future__ import annotations

import ast
import functools
import inspect
import linecache
from typing import Any, Callable, overload

from ._errors import Error, Span, fail
from ._program import Program


class Kernel:
    """A function that is a loop program; made by :func:`kernel`.

    Called with tensors, by position or by name, it gives what ``return`` names. ``program`` is the program that was read.
    """

    def __init__(self, function: Callable[..., Any], schedule: str | None) -> None:
        functools.update_wrapper(self, function)
        text, file, first, indent = _source(function)
        self._file, self._first, self._indent = file, first, indent
        self.program: Program = self._with_location(lambda: Program(text, file, schedule))

    @property
    def __tamis_program__(self) -> Program:
        return self.program

    def __call__(self, *operands: Any, **tensors: Any) -> Any:
        try:
            return self.program(*operands, **tensors)
        except Error as error:
            raise _moved(error, self._file, self._first, self._indent) from None

    def _with_location(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except Error as error:
            raise _moved(error, self._file, self._first, self._indent) from None

    def __repr__(self) -> str:
        program = self.program
        return f"<tamis.kernel {program.name}({', '.join(program.parameters)}) -> {', '.join(program.results)}>"

    def __reduce__(self) -> Any:
        return self.__qualname__  # type: ignore[attr-defined]


def _source(function: Callable[..., Any]) -> tuple[str, str, int, int]:
    """The text of a function from its ``def`` on, without its indentation; its file, first line, and indentation."""
    try:
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or "<python>"
    except (OSError, TypeError):
        raise fail(
            "E0109",
            "the source of this function is not available: it was not defined in a file or a notebook",
            "pass the source itself: `tamis.program('''def ...''')`",
        ) from None
    indent = len(lines[0]) - len(lines[0].lstrip())
    plain = [line[indent:] if line[:indent].isspace() or not indent else line for line in lines]
    try:
        defined = ast.parse("".join(plain)).body[0]
        start = defined.lineno - 1 if isinstance(defined, (ast.FunctionDef, ast.AsyncFunctionDef)) else 0
    except SyntaxError:
        start = next((k for k, line in enumerate(plain) if line.startswith("def ")), 0)
    # Decorators are not part of the program; what stood before is counted.
    return "".join(plain[start:]), file, first + start, indent


def _moved(error: Error, file: str, first: int, indent: int) -> Error:
    """The same error with its places in the user's file, and the lines there shown in its text."""
    others = tuple(_moved(other, file, first, indent) for other in error.others)
    span = error.span
    if span is None or span.source != file or span.line is None:
        return type(error)(str(error), error.code, error.message, span, error.notes, error.help, others)
    line = span.line + first - 1
    column = None if span.column is None else span.column + indent
    last = None if span.end_line is None else span.end_line + first - 1
    end = None if span.end_column is None else span.end_column + indent
    place = Span(file, line, column, last, end)
    return type(error)(_rendered(error, place), error.code, error.message, place, error.notes, error.help, others)


def _rendered(error: Error, span: Span) -> str:
    """The error as compilers print it, with the line of the file that it is about."""
    line, column = span.line or 1, span.column or 1
    text = linecache.getline(span.source, line).rstrip("\n")
    width = 1
    if span.end_column is not None and span.end_line == line:
        width = max(1, span.end_column - column)
    gutter = len(str(line))
    shown = [f"[{error.code}] Error: {error.message}", f"{'':>{gutter}} --> {span.source}:{line}:{column}"]
    if text:
        shown += [f"{'':>{gutter}} |", f"{line} | {text}", f"{'':>{gutter}} | {' ' * (column - 1)}{'^' * width}"]
    shown += [f"{'':>{gutter}} = note: {note}" for note in error.notes]
    shown += [f"{'':>{gutter}} = help: {help}" for help in error.help]
    return "\n".join(shown)


@overload
def kernel(function: Callable[..., Any]) -> Kernel: ...
@overload
def kernel(*, schedule: str | None = None) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(function: Any = None, *, schedule: str | None = None) -> Any:
    """Compiles a Python function that is a loop program, from its text; the function itself is never run.

    ``_`` is a range that is inferred, ``tensor("csr")`` declares, ``A[i,j]`` reads; see the book's chapter on loop programs.
    Mistakes are shown at their line and column in the file of the function.

    ::

        @tm.kernel
        def rowsum(A):
            y = tensor("dense")
            for i, j in _:
                y[i] += A[i,j]
            return y

        rowsum(A)
    """
    if function is None:
        return lambda given: Kernel(given, schedule)
    return Kernel(function, schedule)
