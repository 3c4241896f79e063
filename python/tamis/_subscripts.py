"""NumPy's einsum subscripts: ``"...ij,...jk->...ik"``, implicit results, broadcasting and lists of integers, as index notation.

Plain subscripts are read by the compiled module. Subscripts that depend on the operands' ranks, sizes and types are rewritten here into index
notation, with the same letters as indices: ellipses, dimensions of size 1 that are broadcast, products of booleans.
"""

from __future__ import annotations

import string
from typing import Any, Callable, NamedTuple, Sequence

from . import _construct, _tamis
from ._errors import Error, fail
from ._trace import Tracer

_LETTERS = string.ascii_uppercase + string.ascii_lowercase
_OPERANDS = "write `ij,jk->ik`, or `C[i,k] = A[i,j] * B[j,k]`"


def is_subscripts(text: Any) -> bool:
    """Whether a text is NumPy's spelling rather than index notation.

    >>> from tamis._subscripts import is_subscripts
    >>> is_subscripts("...ij,j"), is_subscripts("y[i] = A[i,j] * x[j]"), is_subscripts("s = x")
    (True, False, False)
    """
    return isinstance(text, str) and "[" not in text and "=" not in text


def einsum(compute: Callable[..., Any], text: Any, operands: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Computes or explains NumPy's subscripts; ``compute`` takes a text and operands by position."""
    if not isinstance(text, str):
        text, operands = from_lists((text, *operands))
    if "." in text or not text.islower() or _all_boolean(operands):
        return compute(*expand(text, operands), **options)
    try:
        return compute(text, *operands, **options)
    except Error as error:
        if error.code != "E0402":
            raise
        # Sizes that do not agree: NumPy broadcasts those that are 1.
        wider = _broadcast(text, operands)
        if wider is None:
            raise
    return compute(*wider, **options)


def _all_boolean(operands: Sequence[Any]) -> bool:
    return bool(operands) and all(str(getattr(x, "dtype", "")).endswith("bool") for x in operands)


def _broadcast(text: str, operands: Sequence[Any]) -> tuple[Any, ...] | None:
    """The text and operands where every mismatch is a dimension of size 1; ``None`` if one is not."""
    try:
        return expand(text, operands)
    except Error:
        return None


class _Term(NamedTuple):
    """The subscripts of one operand or of the result: letters before and after an ellipsis."""

    before: str
    after: str
    ellipsis: bool

    @property
    def letters(self) -> str:
        return self.before + self.after


def _term(part: str) -> _Term:
    part = "".join(part.split())
    before, dots, after = part.partition("...")
    for c in before + after:
        if c not in _LETTERS:
            what = "a `.` that belongs to no `...`, which stands once in each operand" if c == "." else f"`{c}`, which is no letter"
            raise fail("E0111", f"the subscripts `{part}` have {what}", _OPERANDS, "`...` stands for all other dimensions")
    return _Term(before, after, bool(dots))


def expand(text: str, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Index notation for NumPy's subscripts on these operands, followed by the operands themselves.

    >>> import numpy as np
    >>> from tamis._subscripts import expand
    >>> expand("...ij,...jk->...ik", [np.ones((5, 2, 3)), np.ones((3, 4))])[0]
    'out[e0,i,k] = x0[e0,i,j] * x1[j,k]'
    """
    left, arrow, right = text.partition("->")
    terms = [_term(part) for part in left.split(",")]
    if len(terms) != len(operands):
        raise fail(
            "E0111", f"the text has {len(terms)} operands, but {len(operands)} are given", "give one tensor for each"
        )
    tensors: list[Any] = [x if isinstance(x, (_tamis.Tensor, Tracer)) else _construct.asarray(x) for x in operands]
    indices = [_indices(k, term, tensor.ndim) for k, (term, tensor) in enumerate(zip(terms, tensors))]
    sizes = _sizes(indices, tensors)
    most = max((sum(len(i) > 1 for i in own) for own in indices), default=0)
    extra = [f"e{k}" for k in reversed(range(most))]
    result = _result(_term(right), extra, sizes) if arrow else _implicit(terms, extra)
    given: list[Any] = []
    accesses: list[str] = []
    for own, tensor in zip(indices, tensors):
        tensor, kept = _squeezed(tensor, own, sizes)
        accesses.append(_access(f"x{len(given)}", kept))
        given.append(tensor)
    boolean = _all_boolean(tensors)
    body = (" and " if boolean else " * ").join(accesses)
    reduced = [i for i in sizes if i not in result]
    if boolean and reduced:
        body = f"any[{','.join(reduced)}]({body})"
    return (f"{_access('out', result)} = {body}", *given)


def _access(name: str, indices: Sequence[str]) -> str:
    return f"{name}[{','.join(indices)}]" if indices else name


def _indices(place: int, term: _Term, rank: int) -> list[str]:
    """One index for each dimension; those of the ellipsis are counted from the last."""
    extra = rank - len(term.letters)
    if extra < 0 or (extra and not term.ellipsis):
        shown = term.before + ("..." if term.ellipsis else "") + term.after
        raise fail(
            "E0401",
            f"operand {place} has {rank} dimensions, but `{shown}` subscripts {len(term.letters)}",
            "write a letter for each dimension, or `...` for the others",
        )
    return [*term.before, *(f"e{k}" for k in reversed(range(extra))), *term.after]


def _sizes(indices: list[list[str]], tensors: Sequence[Any]) -> dict[str, int]:
    """The size of each index; 1 gives way to any other."""
    sizes: dict[str, int] = {}
    for place, (own, tensor) in enumerate(zip(indices, tensors)):
        inside: dict[str, int] = {}
        for index, n in zip(own, tensor.shape):
            if inside.setdefault(index, n) != n:
                raise fail(
                    "E0402",
                    f"`{index}` has two sizes in operand {place}, {inside[index]} and {n}",
                    "a diagonal needs dimensions of equal sizes",
                )
        for index, n in inside.items():
            known = sizes.get(index, 1)
            if known != 1 and n not in (1, known):
                what = f"the ellipsis stands for dimensions of sizes {known} and {n}" if len(index) > 1 else f"`{index}` is {known} and {n} long"
                raise fail("E0402", what, "sizes are equal, or 1, which is broadcast")
            sizes[index] = n if known == 1 else known
    return sizes


def _result(term: _Term, extra: list[str], sizes: dict[str, int]) -> list[str]:
    if extra and not term.ellipsis:
        raise fail(
            "E0111",
            f"the ellipsis stands for {len(extra)} dimensions, which the result `{term.letters}` lacks",
            f"write `->...{term.letters}` to keep them",
            "give them letters to sum over them",
        )
    for k, c in enumerate(term.letters):
        if c in term.letters[:k]:
            raise fail("E0111", f"`{c}` occurs twice in the result", "write each index of the result once")
        if c not in sizes:
            raise fail("E0113", f"index `{c}` has no extent", "an index of the result must subscript an operand")
    return [*term.before, *extra, *term.after] if term.ellipsis else list(term.letters)


def _implicit(terms: list[_Term], extra: list[str]) -> list[str]:
    """Without ``->``: what the ellipses stand for, and the letters that occur once, in alphabetical order."""
    every = "".join(term.letters for term in terms)
    return extra + sorted(c for c in set(every) if every.count(c) == 1)


def _squeezed(tensor: Any, own: list[str], sizes: dict[str, int]) -> tuple[Any, list[str]]:
    """An operand without the dimensions of size 1 that are broadcast."""
    ones = tuple(d for d, (index, n) in enumerate(zip(own, tensor.shape)) if n != sizes[index])
    if not ones:
        return tensor, own
    from ._manipulation import squeeze

    return squeeze(tensor, ones), [index for d, index in enumerate(own) if d not in ones]


def from_lists(given: tuple[Any, ...]) -> tuple[str, tuple[Any, ...]]:
    """NumPy's other spelling: each operand is followed by a list of integers, and a last list is the result.

    >>> from tamis._subscripts import from_lists
    >>> from_lists(([[1, 2]], [0, 1], [3], [1], [0]))[0]
    'AB,B->A'
    """
    if len(given) < 2:
        raise TypeError(f"einsum takes a text and operands, not {type(given[0]).__name__}")
    operands, lists = given[0 : len(given) // 2 * 2 : 2], given[1::2]
    parts = [_letters(one) for one in lists]
    text = ",".join(parts)
    return (f"{text}->{_letters(given[-1])}" if len(given) % 2 else text), operands


def _letters(subscripts: Any) -> str:
    known = isinstance(subscripts, (list, tuple))
    if not known or not all(s is Ellipsis or (isinstance(s, int) and 0 <= s < len(_LETTERS)) for s in subscripts):
        raise fail(
            "E0111",
            f"subscripts are a list of integers from 0 to {len(_LETTERS) - 1}, and `...`, not {subscripts!r}",
            "write `tm.einsum(A, [0, 1], B, [1, 2], [0, 2])`",
            _OPERANDS,
        )
    return "".join("..." if s is Ellipsis else _LETTERS[s] for s in subscripts)
