"""Configuration: process-wide settings, and context-local settings for a ``with`` block."""

from __future__ import annotations

from contextvars import ContextVar, Token
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _tamis
from ._errors import fail

if TYPE_CHECKING:
    from types import TracebackType


class Settings(NamedTuple):
    """Settings of :func:`config`."""

    #: How many threads share the work of reading, converting and computing; as many as TAMIS_NUM_THREADS says, or as there
    #: are cores.
    threads: int | None = None
    #: Compare every result with the reference interpreter's, and check every access. Slow.
    check: bool = False
    #: How many points of loops the interpreter may visit for that.
    check_limit: int | None = None
    #: IEEE arithmetic throughout: what is not stored does not annihilate NaN, and nothing is reassociated.
    strict: bool = False
    #: Do not compile: the reference interpreter runs everything. Very slow.
    interpret: bool = False
    #: The maximum size in bytes of a dense array that a sparse tensor is converted to (``to_numpy`` etc.).
    dense_limit: int = 4 << 30
    #: Dense results of operators with arrays of NumPy or PyTorch are such arrays, and full reductions are numbers
    #: (``"operands"``); or all results are tensors (``"tensors"``).
    returns: str = "operands"

    def _compiled(self) -> tuple[bool, bool, int | None, bool, int | None]:
        return self.strict, self.check, self.check_limit, self.interpret, self.threads


_process = Settings()
_block: ContextVar[Settings | None] = ContextVar("tamis settings", default=None)


def current() -> Settings:
    """The settings that hold here.

    >>> import tamis as tm
    >>> with tm.config(check=True):
    ...     tm.settings().check
    True
    >>> tm.settings().check
    False
    """
    return _block.get() or _process


def _scope() -> tuple[Any, ...] | None:
    """Asked by the compiled module while there are blocks."""
    settings = _block.get()
    return None if settings is None else settings._compiled()


def _set(settings: Settings) -> None:
    global _process
    _process = settings
    _tamis.set_settings(*settings._compiled())


class config:
    """Changes settings: for the process when called, and only for the block when used with ``with``.

    ``threads``, ``check``, ``check_limit``, ``strict``, ``interpret``, ``dense_limit`` and ``returns`` are explained by
    :class:`Settings`.

    >>> import tamis as tm
    >>> with tm.config(check=True):                # compares with the interpreter
    ...     tm.einsum("s = x[i] * x[i]", x=[1.0, 2.0]).item()
    5.0
    """

    def __init__(self, **changes: Any) -> None:
        known = Settings._fields
        for name, value in changes.items():
            if name not in known:
                raise fail("E0903", f"there is no setting `{name}`", f"settings are {', '.join(sorted(known))}")
            _check(name, value)
        self._before = _process
        self._changes = changes
        self._tokens: list[Token[Settings | None]] = []
        _set(_process._replace(**changes))

    def __enter__(self) -> Settings:
        if not self._tokens:
            _set(self._before)  # It was meant for this block only.
        self._tokens.append(_block.set(current()._replace(**self._changes)))
        _tamis.count_scopes(1)
        return current()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _tamis.count_scopes(-1)
        _block.reset(self._tokens.pop())


def _check(name: str, value: object) -> None:
    if name == "returns":
        if value not in ("operands", "tensors"):
            raise fail("E0709", f"`returns` is {value!r}", "write `returns='operands'` or `returns='tensors'`")
        return
    flags = ("check", "strict", "interpret")
    if name in flags:
        if not isinstance(value, bool):
            raise fail("E0709", f"`{name}` is {value!r}, not a truth value", f"write `{name}=True` or `{name}=False`")
        return
    if value is None and name != "dense_limit":
        return
    if isinstance(value, bool) or not isinstance(value, int) or not (0 < value < 1 << 63):
        raise fail("E0709", f"`{name}` is {value!r}, not a positive integer", f"write a number, as in `{name}=4`")
