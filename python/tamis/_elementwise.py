"""Elementwise operations: the common path of all elementwise operators and functions.

A function of one tensor and numbers is computed on the stored values, and on the fill: the result has the format of the tensor,
whatever it is. Several tensors become index notation, stretched to a common shape as in NumPy; what is stored by the result is
known before it runs, so that no result becomes dense and huge unexpectedly.
"""

from __future__ import annotations

import numbers
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from . import _construct, _tamis, _tensor
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import Shape, format_levels, broadcast_shapes, num_elements, check_size, is_strided, default_sparse_format
from ._torch_operands import involves_torch
from ._trace import Symbolic, Tracer, trace_elementwise

if TYPE_CHECKING:
    from ._tensor import Tensor


class Op(NamedTuple):
    """An elementwise function in index notation; ``{0}`` is its first operand."""

    text: str
    #: The text for booleans, where NumPy means something else by it; ``""`` if booleans are refused.
    booleans: str | None = None
    #: The text for complex numbers, where the operator table knows real ones only.
    complexes: str | None = None
    #: The result is zero where an operand is.
    annihilates: bool = False
    #: Gives truth values; numbers in it keep their own type.
    compares: bool = False
    #: Computed in floating point: operands are converted to the type of the result first.
    floats: bool = False
    #: The number of operands.
    operands: int = 2
    #: One line of documentation.
    summary: str = ""


def _from_table(row: dict[str, Any]) -> Op:
    fields = ("text", "booleans", "complexes", "annihilates", "compares", "operands", "summary")
    return Op(**{field: row[field] for field in fields})


#: Functions that are compositions of operators.
_COMPOSITIONS = {
    "logical_xor": Op("({0} != 0) != ({1} != 0)", "{0} != {1}", summary="exactly one is true (not zero)"),
    "positive": Op("{0}", "", operands=1, summary="the same number"),
    "square": Op("{0} * {0}", "{0}", operands=1, summary="the product with itself"),
    "reciprocal": Op("1 / {0}", operands=1, summary="1 divided by the number"),
    "signbit": Op(
        "({0} < 0) or (({0} == 0) and (atan2({0}, -1) < 0))",
        "",
        operands=1,
        summary="whether the number is negative, -0.0 included",
    ),
    "copysign": Op(
        "select(({1} < 0) or (({1} == 0) and (atan2({1}, -1) < 0)), -abs({0}), abs({0}))",
        floats=True,
        summary="the first number with the sign of the second",
    ),
    # Equal infinities have no difference.
    "logaddexp": Op(
        "max({0}, {1}) + log1p(exp(-select({0} == {1}, 0, abs({0} - {1}))))",
        floats=True,
        summary="logarithm of a sum of exponentials: log(exp(x) + exp(y)), without overflow",
    ),
}

#: The operator table of the compiler, row by row.
TABLE: list[dict[str, Any]] = _tamis.operators()

#: All elementwise functions: those of the operator table, and compositions.
OPS = {row["function"]: _from_table(row) for row in TABLE if row["function"]} | _COMPOSITIONS

_INDICES = "abcdefghijklmnopqrstuvwxyz"


def is_number(given: Any) -> bool:
    """Whether it is one number, of Python's or NumPy's."""
    return isinstance(given, (numbers.Number, np.generic))


def apply(name: str, *given: Any, compute: Any = None) -> Any:
    """Computes a function of the table on tensors, arrays of other libraries and numbers.

    ``compute`` stands for ``_tamis.einsum`` where a dense result may be written into an array of the caller.

    >>> from tamis._elementwise import apply
    >>> import tamis as tm
    >>> apply("exp", tm.tensor([[0.0, 1.0]], format="csr")).fill_value
    np.float64(1.0)
    """
    if involves_torch(*given):
        from ._torch_autograd import eager_call

        return eager_call(apply, (name,), given, {})
    for operand in given:
        if isinstance(operand, Tracer):
            return trace_elementwise(name, given)
        if isinstance(operand, Symbolic):
            from . import _index_notation

            return _index_notation.apply(name, *given)
    op = OPS[name]
    operands: list[Any] = [x if isinstance(x, _tamis.Tensor) or is_number(x) else _construct.asarray(x) for x in given]
    tensors: list[Any] = [x for x in operands if isinstance(x, _tamis.Tensor)]
    if not tensors:
        # Numbers of NumPy's have a type of their own, to which Python's adapt.
        typed = [isinstance(x, np.generic) for x in operands]
        operands = [_construct.asarray(x) if t or not any(typed) else x for x, t in zip(operands, typed)]
        tensors = [x for x in operands if isinstance(x, _tamis.Tensor)]
    text = _spelled(name, op, operands)
    if op.floats:
        text = _in_floats(text, operands)
    ranked = [x for x in tensors if x.ndim]
    fixed = [_fixed(x, operands, op, name) if is_number(x) else x for x in operands]
    if len(ranked) == 1 and (compute is None or not ranked[0].is_dense):
        return _on_values(text, fixed, ranked[0])
    if not ranked:
        return _tamis.einsum(_scalar_text(text, len(fixed)), format="dense", **_named(fixed))
    return _stretched(name, op, text, fixed, ranked, compute or _tamis.einsum)


def _spelled(name: str, op: Op, operands: list[Any]) -> str:
    if op.complexes is not None and any(x.dtype.kind == "c" for x in operands if isinstance(x, _tamis.Tensor)):
        return op.complexes
    if op.booleans is None:
        return op.text
    if not all((x.dtype == bool) if isinstance(x, _tamis.Tensor) else isinstance(x, (bool, np.bool_)) for x in operands):
        return op.text
    if not op.booleans:
        raise fail(
            "E0301",
            f"`{name}` does not accept booleans",
            "`tamis.logical_xor(a, b)` and `tamis.logical_not(a)` do",
            "convert them first: `t.astype(int)`",
        )
    return op.booleans


def _in_floats(text: str, operands: list[Any]) -> str:
    """The text with operands converted to the floating type that NumPy computes in; integers are computed in 64 bits."""
    dtype = np.result_type(*(getattr(x, "dtype", x) for x in operands))
    ours = _tensor.OURS[(dtype if dtype.kind in "fc" else np.dtype(float)).name]
    return text.format(*(f"{ours}({{{k}}})" for k in range(len(operands))))


def _fixed(number: Any, operands: list[Any], op: Op, name: str) -> np.ndarray[Any, Any]:
    """A number with the type that NumPy gives it beside the others: Python's adapt to them."""
    if isinstance(number, np.generic):
        return np.asarray(number, dtype=_tensor.dtype_of(number.dtype))
    types = [x.dtype for x in operands if not isinstance(x, (int, float, complex))]
    try:
        with np.errstate(all="ignore"):
            dtype = np.result_type(*types, number)
            # Booleans and small integers meet floats and large integers in comparisons without becoming those.
            return np.asarray(number, dtype=np.float64 if dtype == np.float16 else dtype)
    except OverflowError:
        if op.compares and isinstance(number, int) and -(1 << 63) <= number < 1 << 64:
            return np.asarray(number)
        known = " and ".join(sorted({str(t) for t in types}))
        raise fail(
            "E0306",
            f"{number} does not fit the type {known} in `{name}`",
            "convert the tensor first, for example with `t.astype('i64')`",
        ) from None


@lru_cache(maxsize=1024)
def _scalar_text(text: str, count: int) -> str:
    return "r = " + text.format(*(f"x{k}" for k in range(count)))


def _named(operands: list[Any]) -> dict[str, Any]:
    """Operands by the names that texts give them: by position they would be taken in the order in which a text reads them."""
    return {f"x{k}": x for k, x in enumerate(operands)}


@lru_cache(maxsize=1024)
def _value_text(text: str, ranked: tuple[bool, ...]) -> str:
    return "r[a] = " + text.format(*(f"x{k}[a]" if r else f"x{k}" for k, r in enumerate(ranked)))


def _on_values(text: str, operands: list[Any], tensor: Tensor) -> Tensor:
    """A function of what one tensor stores, with numbers: its coordinates stay what they are."""
    if tensor.is_pattern:
        tensor, before = tensor.convert(format_levels(tensor)), tensor
        operands = [tensor if x is before else x for x in operands]
    ranked = tuple(x is tensor for x in operands)
    values = tensor.values
    given: dict[str, Any] = {f"x{k}": values if r else operands[k] for k, r in enumerate(ranked)}
    made = _tamis.einsum(_value_text(text, ranked), format="dense", **given)
    if is_strided(tensor):
        return tensor.with_values(made, made.dtype.type(0))
    fill = np.asarray(tensor.fill_value)
    numbers: dict[str, Any] = {f"x{k}": fill if r else operands[k] for k, r in enumerate(ranked)}
    return tensor.with_values(made, _tamis.einsum(_scalar_text(text, len(operands)), **numbers).element([]))


def _stretched(name: str, op: Op, text: str, operands: list[Any], ranked: list[Tensor], compute: Any) -> Tensor:
    shape = broadcast_shapes(x.shape for x in ranked)
    names = _INDICES[: len(shape)]
    if len(shape) > len(_INDICES):
        raise fail("E0404", f"{len(shape)} dimensions are too many", f"tensors have at most {len(_INDICES)} here")
    sparse = [x for x in ranked if not is_strided(x)]
    stored, listed = _expected(name, op, operands, ranked, sparse, shape)
    if name == "divide" and not listed and _divides_safely(operands, sparse, ranked):
        text, listed = "select({0} != 0, {0} / {1}, 0)", True
        stored = _share(operands[0], shape)
    itemsize = max(x.dtype.itemsize for x in ranked)
    check_size(name, shape, stored, itemsize + (8 if listed else 0))
    terms: list[str] = []
    given: dict[str, Any] = {}
    for k, x in enumerate(operands):
        if isinstance(x, _tamis.Tensor) and x.ndim:
            part, used = _against(x, shape, names)
            given[f"x{k}"] = part
            terms.append(f"x{k}[{','.join(used)}]")
        elif listed:
            # Scalars in the text are constants, so the fill of the result is known before it runs.
            terms.append(literal(np.asarray(x)[()], x.dtype))
        else:
            given[f"x{k}"] = x
            terms.append(f"x{k}")
    target = f"r[{','.join(names)}] = "
    result_format = _format(sparse, shape) if listed else "dense"
    made: Tensor = compute(target + text.format(*terms), format=result_format, **given)
    return made


def weak_literal(number: Any) -> str:
    """A number of Python's as index notation writes it, without a type: it adapts.

    >>> from tamis._elementwise import weak_literal
    >>> weak_literal(2.5), weak_literal(-3), weak_literal(1 + 2j)
    ('2.5', '(-3)', '(1.0 + 2.0 * 1.0j)')
    """
    if isinstance(number, complex):
        return f"({weak_literal(number.real)} + {weak_literal(number.imag)} * 1.0j)"
    text = repr(number)
    return f"({text})" if text.startswith("-") else text


def literal(number: Any, dtype: np.dtype[Any]) -> str:
    """A number of a type, as index notation writes it.

    >>> import numpy as np
    >>> from tamis._elementwise import literal
    >>> literal(2.5, np.dtype("f4"))
    'f32(2.5)'
    """
    ours = _tensor.OURS[np.dtype(dtype).name]
    kind = np.dtype(dtype).kind
    if kind == "b":
        return "True" if number else "False"
    if kind == "c":
        number = complex(number)
        return f"{ours}({float(number.real)!r} + {float(number.imag)!r} * 1.0j)"
    return f"{ours}({float(number)!r})" if kind == "f" else f"{ours}({int(number)})"


def _against(tensor: Any, shape: Shape, names: str) -> tuple[Tensor, list[str]]:
    """A tensor with the indices it has in the result: dimensions of size 1 are stretched."""
    first = len(shape) - tensor.ndim
    stretched = [d for d, n in enumerate(tensor.shape) if n == 1 and shape[first + d] != 1]
    if not stretched:
        return tensor, list(names[first:])
    if is_strided(tensor):
        return tensor, ["0" if d in stretched else names[first + d] for d in range(tensor.ndim)]
    from ._manipulation import squeeze

    kept = [names[first + d] for d in range(tensor.ndim) if d not in stretched]
    return squeeze(tensor, tuple(stretched)), kept


def _share(tensor: Tensor, shape: Shape) -> int:
    """The number of result elements that the stored elements of a tensor are broadcast to."""
    size = num_elements(tensor.shape)
    return tensor.nnz * (num_elements(shape) // size) if size else 0


def _expected(
    name: str, op: Op, operands: list[Any], ranked: list[Tensor], sparse: list[Tensor], shape: Shape
) -> tuple[int, bool]:
    """An upper bound of the nnz, and whether all other elements have one known value."""
    total = num_elements(shape)
    if op.annihilates:
        zeros = [_share(x, shape) for x in sparse if not x.fill_value]
        if zeros:
            return min(zeros), True
    needed = operands
    if name == "where" and isinstance(operands[0], _tamis.Tensor) and operands[0].ndim and not is_strided(operands[0]):
        needed = [operands[0], operands[1] if operands[0].fill_value else operands[2]]
    tensors: list[Any] = [x for x in needed if isinstance(x, _tamis.Tensor) and x.ndim]
    if any(is_strided(x) for x in tensors) or not sparse:
        return total, False
    return min(total, sum(_share(x, shape) for x in tensors)), True


def _divides_safely(operands: list[Any], sparse: list[Tensor], ranked: list[Tensor]) -> bool:
    """Whether nothing is divided by zero, so that zeros that are not stored stay zeros."""
    from ._reductions import all as every

    top, bottom = operands
    if not (isinstance(top, _tamis.Tensor) and len(sparse) == 1 and sparse[0] is top and not top.fill_value):
        return False
    return bool(every(apply("logical_and", apply("equal", bottom, bottom), apply("not_equal", bottom, 0))))


_LISTS = ("csr", "csc", "coo", "dcsr", "dcsc", "csf", "sparse")


def _format(sparse: list[Tensor], shape: Shape) -> str | None:
    """The format of a result that is not dense: that of an operand of its shape, lists before others."""
    whole = [format_levels(x) for x in sparse if x.shape == shape]
    for format in whole:
        if format in _LISTS:
            return format
    if whole and len(set(whole)) == 1 and len(whole) == len(sparse) and not any(w in whole[0] for w in ("interval", "band", "singleton")):
        return whole[0]
    return default_sparse_format(len(shape)) if whole or len(shape) < 2 else None
