"""NumPy's einsum subscripts: ``"...ij,...jk->...ik"``, implicit results, broadcasting and lists of integers, as index notation.

Plain subscripts are read by the compiled module, and so are those that depend on the operands' ranks, sizes and types: ellipses,
dimensions of size 1 that are broadcast, products of booleans.
"""

from __future__ import annotations

import string
from typing import Any, Callable, Sequence

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


def expand(text: str, operands: Sequence[Any]) -> tuple[Any, ...]:
    """Index notation for NumPy's subscripts on these operands, followed by the operands themselves.

    Those are without the dimensions of size 1 that are broadcast.

    >>> import numpy as np
    >>> from tamis._subscripts import expand
    >>> expand("...ij,...jk->...ik", [np.ones((5, 2, 3)), np.ones((3, 4))])[0]
    'out[e0,i,k] = x0[e0,i,j] * x1[j,k]'
    """
    tensors: list[Any] = [x if isinstance(x, (_tamis.Tensor, Tracer)) else _construct.asarray(x) for x in operands]
    notation, ones = _tamis.expand_subscripts(text, [(x.shape, x.dtype == bool) for x in tensors])
    return (notation, *(_squeezed(tensor, dims) for tensor, dims in zip(tensors, ones)))


def _squeezed(tensor: Any, dims: list[int]) -> Any:
    from ._manipulation import squeeze

    return squeeze(tensor, tuple(dims)) if dims else tensor


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
