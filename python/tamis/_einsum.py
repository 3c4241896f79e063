"""Index notation: compiles and runs einsum statements."""

from __future__ import annotations

from collections import namedtuple
from functools import lru_cache
from typing import Any, Callable, Iterable, Mapping

from . import _subscripts, _tamis
from ._errors import Error, fail
from ._lazy_import import np
from ._tensor import Tensor
from ._torch_operands import involves_torch
from ._trace import Tracer, trace_einsum


@lru_cache(maxsize=256)
def _results_class(names: tuple[str, ...]) -> Callable[[Iterable[Tensor]], Any]:
    made = namedtuple("Results", names, rename=True)  # type: ignore[misc]
    return made._make


def results(names: tuple[str, ...], tensors: tuple[Tensor, ...]) -> Any:
    """Several results as a tuple whose fields have their names."""
    return _results_class(names)(tensors)


def einsum(
    text: Any,
    /,
    *operands: Any,
    format: str | Mapping[str, str] | None = None,
    order: str | Iterable[str] | None = None,
    schedule: str | None = None,
    out: Any = None,
    **tensors: Any,
) -> Any:
    """Computes index notation on tensors, NumPy arrays, SciPy arrays, lists and numbers.

    ``text`` is index notation, ``"C[i,k] = A[i,j] * B[j,k]"`` with tensors by name (or by position, in the order in which they
    are read), or NumPy's ``"ij,jk->ik"`` with operands by position: with ``...``, implicit results, broadcasting of dimensions of
    size 1, and lists of integers instead of letters, as :func:`numpy.einsum` takes them. Loops, the format of the result and what is converted first
    are chosen for these tensors; the choice is kept for tensors of the same formats and types whose sizes and numbers of entries
    differ by less than a factor of two. :func:`tamis.explain` takes the same arguments and tells what was chosen.

    ``format`` says how the result is stored, or a dictionary how each is; ``order`` which loops come first, outermost first;
    ``schedule`` gives scheduling commands for the loops. ``out`` is a NumPy array that receives the result, as in NumPy, and
    is returned; or a tuple of arrays, one for each result. Compiled code writes into it directly, without a temporary, if it is
    contiguous in row-major order and has the type of the result. It may be one of the operands: ``x[i] += A[i,j]`` with
    ``out=x`` updates ``x`` in place, and where the statement reads other elements of it, they are read before it is written. Several statements, one per line or split by ``;``, give a tuple with
    a field for each result.

    A result may be subscripted by a vector of integers, which groups: ``W[p, week[d]] += S[p,d]``. It has a coordinate for each
    number up to the greatest one, or the shape of an operand ``W``, to which the sums are added.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")
    >>> tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=[1.0, 10.0]).to_numpy()
    array([ 1., 32.])
    >>> tm.einsum("ij,jk->ik", A, A, format="csc").format
    'csc'
    >>> r = tm.einsum("s[i] = A[i,j]; m = max[i,j](A[i,j])", A=A)
    >>> r.s.to_numpy(), r.m.item()
    (array([1., 5.]), 3.0)
    >>> tm.einsum("...ij,...j->...i", [A.to_numpy()] * 3, [1.0, 10.0]).shape
    (3, 2)
    """
    traced = any(isinstance(x, Tracer) for x in (*operands, *tensors.values()))
    if traced:
        if format is not None or order is not None or schedule is not None or out is not None:
            raise fail(
                "E0303",
                "`format`, `order`, `schedule` and `out` of `einsum` have no meaning while a function is traced",
                "leave them out; the traced function is scheduled as a whole",
            )
        if isinstance(text, str) and (tensors or not _subscripts.is_subscripts(text)):
            return trace_einsum(text, *operands, **tensors)
        return _subscripts.einsum(trace_einsum, text, operands, tensors)
    if involves_torch(operands, tensors):
        from ._torch_autograd import eager_call, notation_call

        if out is not None:
            raise fail("E0303", "`out` is an array of NumPy's, and operands are PyTorch's", "leave `out` out: the result is PyTorch's")
        options = {"format": format, "order": order, "schedule": schedule}
        if isinstance(text, str) and (tensors or not _subscripts.is_subscripts(text) or any(options.values())):
            return notation_call(text, operands, tensors, options)
        if not isinstance(text, str):
            text, operands = _subscripts.from_lists((text, *operands))
        return eager_call(einsum, (text,), operands, {})
    compute: Callable[..., Any] = _tamis.einsum
    if out is not None:
        from ._returns import writer

        arrays = out if isinstance(out, tuple) else (out,)
        compute = writer(arrays)
        format = "dense" if format is None else format
    options = {"format": format, "order": order, "schedule": schedule}
    if not isinstance(text, str) or (not tensors and _subscripts.is_subscripts(text)):
        made = _subscripts.einsum(compute, text, operands, {**options, **tensors})
    else:
        made = _compiled(compute, text, operands, options, tensors)
    if out is None:
        return made
    _copy_out(made, arrays)
    return out


def _compiled(
    compute: Callable[..., Any], text: str, operands: tuple[Any, ...], options: dict[str, Any], tensors: dict[str, Any]
) -> Any:
    """Runs index notation; results that are subscripted by vectors of integers are grouped."""
    try:
        return compute(text, *operands, **options, **tensors)
    except Error as error:
        # The size of a result that is subscripted by a vector is that of its greatest number.
        if error.code not in ("E0111", "E0403") or operands or "+=" not in text:
            raise
        from ._group_by import rewritten

        grouped = rewritten(text, tensors)
        if grouped is None:
            raise
    return compute(grouped[0], **options, **grouped[1])


def _copy_out(results: list[Any], arrays: tuple[Any, ...]) -> None:
    """Copies the results that were not written there into arrays of the caller."""
    if len(arrays) != len(results):
        raise fail("E0304", f"there are {len(results)} results", "give `out` as a tuple of one array for each result")
    copied = [(result, array) for result, array in zip(results, arrays) if result is not None]
    for result, array in copied:
        if not isinstance(array, np.ndarray):
            raise fail(
                "E0303",
                f"`out` is a {type(array).__name__}, which cannot be written; tensors do not change",
                "give a NumPy array, or use the tensor that is returned",
            )
        if array.shape != result.shape:
            raise fail("E0402", f"`out` has the shape {array.shape}, and the result {result.shape}", "give an array of that shape")
        if not np.can_cast(result.dtype, array.dtype, "same_kind"):
            raise fail("E0302", f"the result is {result.dtype}, which `out` of {array.dtype} cannot hold", "give an array of that type")
        if not array.flags.writeable:
            raise fail("E0204", "`out` is an array that must not be written", "give a writable array, such as a copy: `x.copy()`")
    for result, array in copied:
        np.copyto(array, result.to_numpy(), casting="same_kind")
