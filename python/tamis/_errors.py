"""Exceptions: one class for every diagnostic, derived from the built-in exception that Python users expect.

Every error has a stable ``code``, a ``message``, the ``span`` it is about, ``notes``, and ``help``: things that would work.
``str(error)`` is all of it, with the place shown in the user's own text.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any, NamedTuple, Sequence

from . import _tamis


class Span(NamedTuple):
    """A place in a text or a file; lines and columns are counted from 1, and are ``None`` where they are not known."""

    #: The name of the text or the file.
    source: str
    #: The first line.
    line: int | None
    #: The first column in it.
    column: int | None
    #: The last line.
    end_line: int | None
    #: The column in it after the place.
    end_column: int | None


class Error(Exception):
    """A mistake that Tamis found: the base class of all its exceptions.

    >>> import tamis as tm
    >>> try:
    ...     tm.einsum("y[i] = A[i,j] * x[j]", A=[[1.0, 2.0]], x=[1.0, 2.0, 3.0])
    ... except tm.Error as error:
    ...     print(error.code, isinstance(error, ValueError))
    E0402 True
    """

    #: The stable code, such as ``"E0402"``; ``tamis.describe(code)`` tells more.
    code: str
    #: The error in one line.
    message: str
    #: Where it is wrong, if it is about a place in a text or a file.
    span: Span | None
    #: Explanations.
    notes: tuple[str, ...]
    #: Suggestions that would work.
    help: tuple[str, ...]
    #: Further mistakes that were found in the same go.
    others: tuple[Error, ...]

    def __init__(
        self,
        text: str,
        code: str = "E1101",
        message: str | None = None,
        span: Sequence[Any] | None = None,
        notes: Sequence[str] = (),
        help: Sequence[str] = (),
        others: Sequence[Error] = (),
    ) -> None:
        super().__init__(text)
        self.code = code
        self.message = text if message is None else message
        self.span = None if span is None else Span(*span)
        self.notes = tuple(notes)
        self.help = tuple(help)
        self.others = tuple(others)

    def _key(self) -> tuple[Any, ...]:
        return (type(self), str(self), self.code, self.message, self.span, self.notes, self.help, self.others)

    def __str__(self) -> str:
        return str(self.args[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Error) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._key()[1:]


class InvalidValue(Error, ValueError):
    """A value, shape, format or text is invalid."""


class InvalidType(Error, TypeError):
    """A type does not fit."""


class InvalidIndex(Error, IndexError):
    """An index or coordinate is out of bounds."""


class UnknownName(Error, KeyError):
    """A name is not defined, or no tensor was passed for it."""


class TooLarge(Error, MemoryError):
    """A tensor does not fit in memory, or exceeds a limit of :func:`config`."""


class FileError(Error, OSError):
    """A file cannot be read or written."""

    def __str__(self) -> str:
        return str(self.args[0])


class Bug(Error, RuntimeError):
    """A bug in Tamis: please report it."""


class SparseEfficiencyWarning(UserWarning):
    """A correct statement visits more than its sparse operands store; the message has the cause and the remedy.

    Compilation raises it once per statement, for operands of some size; ``tm.explain(...).warnings`` always has it.
    Like any warning, it is silenced or made an error by :func:`warnings.filterwarnings`.
    """


_BY_CODE: dict[str, type[Error]] = {
    **dict.fromkeys(["E0201", "E0202", "E0205", "E0902", "E0903"], UnknownName),
    **dict.fromkeys(["E0301", "E0302", "E0303", "E0304", "E0305", "E0307", "E0308", "E0709", "E0710", "E0907"], InvalidType),
    **dict.fromkeys(["E0405", "E0703", "E0806", "E1001", "E1002"], InvalidIndex),
    **dict.fromkeys(["E0404", "E0706", "E1003"], TooLarge),
    **dict.fromkeys(["E0801", "E0811", "E0812"], FileError),
    **dict.fromkeys(["E1004", "E1101"], Bug),
}


def _make(text: str, parts: list[tuple[Any, ...]]) -> Error:
    """The exception for what the compiled module found; the first mistake decides its class."""
    from ._eager_words import is_of_text, operation, worded

    entry = operation() if any(map(is_of_text, parts)) else ""
    if entry:
        # The package has written this text, and the caller has not seen it.
        parts = [worded(entry, part) if is_of_text(part) else part for part in parts]
        text = "\n".join(part[-1] for part in parts)
    made: list[Error] = []
    for code, message, span, notes, help, rendered in reversed(parts):
        first = len(made) + 1 == len(parts)
        others = tuple(reversed(made)) if first else ()
        kind = _BY_CODE.get(code, InvalidValue)
        made.append(kind(text if first else rendered, code, message, span, notes, help, others))
    return made[-1] if made else Bug(text)


_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _warn(text: str, part: tuple[Any, ...] | None = None) -> None:
    """Issues a performance warning at the innermost line that is not one of this package."""
    if part is not None:
        from ._eager_words import is_of_text, operation, worded

        entry = operation() if is_of_text(part) else ""
        if entry:
            text = worded(entry, part)[-1]
    level = 1
    frame = sys._getframe()
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(text, SparseEfficiencyWarning, stacklevel=level)


def fail(code: str, message: str, *help: str) -> Error:
    """The error for something that the package found itself; to be raised by the caller."""
    try:
        _tamis.raise_error(code, message, list(help))
    except Error as error:
        return error
    raise AssertionError("an error was expected")


def describe(code: str) -> str:
    """Explains a diagnostic code: its meaning, its cause, and remedies.

    >>> import tamis as tm
    >>> print(tm.describe("E0402").splitlines()[0])
    E0402: dimensions do not agree
    """
    for name, title, explanation in _tamis.codes():
        if name == code.upper():
            return f"{name}: {title}\n\n{explanation}"
    raise fail("E0903", f"unknown code `{code}`", "`error.code` holds the code of an error")
