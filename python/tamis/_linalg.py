"""Linear algebra products: matmul, dot, tensordot, vecdot, outer, batched."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Sequence

from . import _construct, _elementwise, _tamis
from ._errors import fail
from ._lazy_import import np
from ._returns import library_of
from ._shape_utils import normalize_axis, format_levels, broadcast_shapes, num_elements, check_size, is_strided
from ._torch_operands import accepts_torch
from ._trace import Tracer, trace_product

if TYPE_CHECKING:
    from ._tensor import Tensor

_INDICES = "abcdefghijklmnopqrstuvwxyz"

_PRODUCTS = {
    (1, 1): "r = A[a] * B[a]",
    (2, 1): "r[a] = A[a,b] * B[b]",
    (1, 2): "r[b] = A[a] * B[a,b]",
    (2, 2): "r[a,c] = A[a,b] * B[b,c]",
}
_BOOLEAN = {
    (1, 1): "r = any[a](A[a] and B[a])",
    (2, 1): "r[a] = any[b](A[a,b] and B[b])",
    (1, 2): "r[b] = any[a](A[a] and B[a,b])",
    (2, 2): "r[a,c] = any[b](A[a,b] and B[b,c])",
}


def _plain(given: Any) -> Any:
    return given if isinstance(given, (_tamis.Tensor, Tracer)) else _construct.asarray(given)


@accepts_torch
def matmul(a: Any, b: Any, /) -> Tensor:
    """The product of matrices, vectors, or stacks of matrices: ``a @ b``, as ``numpy.matmul``; always a tensor.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")
    >>> (A @ [1.0, 10.0]).to_numpy()
    array([ 1., 32.])
    >>> (A @ A).format
    'csr'
    """
    return _matmul(a, b, _tamis.einsum)  # type: ignore[no-any-return]


@accepts_torch
def product(a: Any, b: Any, compute: Any = None) -> Any:
    """``a @ b``, as the operator gives it: an array of NumPy or PyTorch if an operand is, and the result dense.

    >>> import numpy as np, tamis as tm
    >>> from tamis._linalg import product
    >>> product(tm.eye(2, format="csr"), np.ones(2))
    array([1., 1.])
    """
    library = library_of(b) or library_of(a)
    if compute is not None:
        return _matmul(a, b, compute)
    if library == "numpy":
        return _matmul(a, b, _tamis.einsum_array)
    made = _matmul(a, b, _tamis.einsum)
    return made.to_torch() if library and isinstance(made, _tamis.Tensor) and made.is_dense else made  # type: ignore[attr-defined]


def _matmul(a: Any, b: Any, compute: Any) -> Any:
    if type(b) is np.ndarray and b.ndim == 1 and b.dtype.kind != "b" and isinstance(a, _tamis.Tensor):
        # Fast path for the most frequent call, matrix times NumPy vector: it goes straight to compiled code.
        shape = a.shape
        if len(shape) == 2 and shape[1] == len(b):
            return compute("r[a] = A[a,b] * B[b]", a, b)
    a, b = _plain(a), _plain(b)
    ranks = a.ndim, b.ndim
    if not a.ndim or not b.ndim:
        raise fail("E0401", "`@` multiplies matrices and vectors, not numbers", "write `a * b`")
    inner = a.shape[-1], b.shape[max(b.ndim - 2, 0)]
    if inner[0] != inner[1]:
        raise fail(
            "E0402",
            f"shapes {a.shape} and {b.shape} are not aligned in `a @ b`: {inner[0]} columns, {inner[1]} rows",
            "the last dimension of `a` must equal the second to last one of `b`",
            *(["transpose one of them, as in `a.T @ b`"] if a.shape[0] == inner[1] or b.shape[-1] == inner[0] else []),
        )
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return trace_product(a, b, *_batched(a, b))
    texts = _BOOLEAN if a.dtype == bool and b.dtype == bool else _PRODUCTS
    text = texts.get(ranks)
    if text is None:
        return _product(a, b, *_batched(a, b), compute)
    result_format = None
    if is_strided(a) or is_strided(b) or a.fill_value or b.fill_value:
        check_size("matmul", a.shape[:-1] + b.shape[-1:], _rows(a) * _columns(b), a.dtype.itemsize)
        result_format = "dense" if a.is_dense and b.is_dense else None
    elif ranks == (2, 2):
        # Sparse operands give a sparse result, however small it is.
        result_format = "csc" if format_levels(a) == format_levels(b) == "csc" else "csr"
        if format_levels(a) in ("coo", "dcsr"):
            # These have no array of the length of a dimension, and neither has the result.
            result_format = format_levels(a)
    return compute(text, a, b, format=result_format)


def _rows(a: Tensor) -> int:
    return a.shape[0] if a.ndim > 1 else 1


def _columns(b: Tensor) -> int:
    return b.shape[-1] if b.ndim > 1 else 1


def _batched(a: Any, b: Any) -> tuple[str, str, str]:
    """The indices of stacks of matrices: the last two are multiplied, those before are broadcast."""
    stacks = broadcast_shapes([a.shape[:-2], b.shape[:-2]])
    names = _INDICES[: len(stacks)]
    row, inner, column = "xyz"

    def of(operand: Any, last: str) -> str:
        stack = operand.shape[:-2]
        first = len(stacks) - len(stack)
        return "".join("0" if n == 1 and stacks[first + d] != 1 else names[first + d] for d, n in enumerate(stack)) + last

    left = of(a, row + inner) if a.ndim > 1 else inner
    right = of(b, inner + column) if b.ndim > 1 else inner
    return left, right, names + (row if a.ndim > 1 else "") + (column if b.ndim > 1 else "")


def _product(a: Tensor, b: Tensor, left: str, right: str, result: str, compute: Any = None) -> Tensor:
    """A product of two tensors whose indices are these; ``0`` marks a dimension of size 1 that is broadcast."""
    from ._manipulation import squeeze

    parts = []
    for tensor, names in ((a, left), (b, right)):
        ones = tuple(d for d, n in enumerate(names) if n == "0")
        parts.append((squeeze(tensor, ones) if ones else tensor, names.replace("0", "")))
    (a, left), (b, right) = parts
    sizes = {**dict(zip(left, a.shape)), **dict(zip(right, b.shape))}
    if is_strided(a) and is_strided(b):
        shape = tuple(sizes[n] for n in result)
        check_size("product", shape, num_elements(shape), a.dtype.itemsize)
    result_format = "dense" if a.is_dense and b.is_dense else None
    text = _text(left, right, result, a.dtype == bool and b.dtype == bool)
    return (compute or _tamis.einsum)(text, a, b, format=result_format)


@lru_cache(maxsize=1024)
def _text(left: str, right: str, result: str, boolean: bool) -> str:
    def access(name: str, indices: str) -> str:
        return f"{name}[{','.join(indices)}]" if indices else name

    reduced = [n for n in dict.fromkeys(left + right) if n not in result]
    body = f"{access('A', left)} {'and' if boolean else '*'} {access('B', right)}"
    if boolean and reduced:
        body = f"any[{','.join(reduced)}]({body})"
    return f"{access('r', result)} = {body}"


@accepts_torch
def tensordot(a: Any, b: Any, /, *, axes: int | Sequence[Sequence[int]] = 2) -> Tensor:
    """Multiplies and sums over pairs of axes, as ``numpy.tensordot``.

    >>> import tamis as tm
    >>> X = tm.gallery.random((3, 4, 5), 0.2)
    >>> tm.tensordot(X, tm.ones((5, 2)), axes=1).shape
    (3, 4, 2)
    """
    a, b = _plain(a), _plain(b)
    if isinstance(axes, int):
        if not 0 <= axes <= min(a.ndim, b.ndim):
            raise fail("E0401", f"{axes} axes of {a.ndim} and {b.ndim} dimensions cannot be summed", "give fewer axes")
        pairs = [(a.ndim - axes + k, k) for k in range(axes)]
    else:
        first, second = ([x] if isinstance(x, int) else list(x) for x in axes)
        if len(first) != len(second):
            raise fail("E0401", f"{len(first)} axes are paired with {len(second)}", "name as many axes of both")
        pairs = [(normalize_axis(x, a.ndim), normalize_axis(y, b.ndim)) for x, y in zip(first, second)]
    for x, y in pairs:
        if a.shape[x] != b.shape[y]:
            raise fail(
                "E0402",
                f"axis {x} of size {a.shape[x]} is paired with axis {y} of size {b.shape[y]}",
                "pair axes of equal sizes: `axes=([0], [1])`",
            )
    if a.ndim + b.ndim > len(_INDICES):
        raise fail("E0404", "too many dimensions", f"at most {len(_INDICES)} are supported")
    left = _INDICES[: a.ndim]
    right = list(_INDICES[a.ndim : a.ndim + b.ndim])
    for x, y in pairs:
        right[y] = left[x]
    summed = {left[x] for x, _ in pairs}
    result = "".join(n for n in left + "".join(right) if n not in summed)
    if isinstance(a, Tracer) or isinstance(b, Tracer):
        return trace_product(a, b, left, "".join(right), result)
    return _product(a, b, left, "".join(right), result)


@accepts_torch
def outer(a: Any, b: Any, /) -> Tensor:
    """The product of every element with every other: ``r[i,j] = a[i] * b[j]``.

    >>> import tamis as tm
    >>> tm.outer([1, 2], [3, 4]).to_numpy()
    array([[3, 4],
           [6, 8]])
    """
    return tensordot(a, b, axes=0)


@accepts_torch
def vecdot(a: Any, b: Any, /, *, axis: int = -1) -> Tensor:
    """The sum over one axis of ``conj(a) * b``, broadcast over the others.

    >>> import tamis as tm
    >>> tm.vecdot([[1, 2], [3, 4]], [10, 100]).to_numpy()
    array([210, 430])
    """
    a, b = _plain(a), _plain(b)
    rank = min(a.ndim, b.ndim)
    place = axis if axis < 0 else axis - max(a.ndim, b.ndim)
    if not -rank <= place < 0 or a.shape[place] != b.shape[place]:
        raise fail(
            "E0402",
            f"shapes {a.shape} and {b.shape} differ in the size of axis {axis}",
            "the summed axis must have the same size in both; the others are broadcast",
        )
    if a.dtype.kind == "c":
        a = _elementwise.apply("conj", a)
    product = _elementwise.apply("multiply", a, b)
    from ._reductions import sum as total

    return total(product, axis=axis, dtype=product.dtype)


def matrix_transpose(x: Any, /) -> Tensor:
    """The last two dimensions exchanged, as a view: ``x.mT``."""
    x = _plain(x)
    if x.ndim < 2:
        raise fail("E0401", f"a tensor of {x.ndim} dimensions contains no matrices", "give one of two dimensions or more")
    return x.transpose((*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))
