"""Operator overloading between tensors, arrays of other libraries, and scalars."""

from __future__ import annotations

import sys
from typing import Any

from . import _elementwise, _linalg
from ._errors import fail
from ._lazy_import import np

_KNOWN = (int, float, complex, list, tuple)


def _is_operand(other: Any) -> bool:
    """Whether an operator can take it; Python asks the other side if not."""
    return isinstance(other, _KNOWN) or hasattr(other, "__array__") or hasattr(other, "toarray") or hasattr(other, "_trace")


def _is_matrix(other: Any) -> bool:
    """Whether it is one of SciPy's matrices, for which ``*`` is the product of matrices; for its arrays it is not."""
    scipy = sys.modules.get("scipy.sparse")
    return scipy is not None and isinstance(other, scipy.spmatrix)


def _binary(name: str) -> tuple[Any, Any]:
    def forward(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        return _elementwise.apply(name, self, other)

    def backward(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        if name == "multiply" and _is_matrix(other):
            return _linalg.matmul(other, self)
        return _elementwise.apply(name, other, self)

    return forward, backward


def _unary(name: str) -> Any:
    def forward(self: Any) -> Any:
        return _elementwise.apply(name, self)

    return forward


#: The function of the package for each NumPy ufunc of another name.
_UFUNCS = {ufunc: row["function"] for row in _elementwise.TABLE for ufunc in row["ufuncs"]} | {"mod": "remainder"}

#: Functions of NumPy's that take an axis, which are ours under the same name or another.
_ALONG = ("sum", "prod", "mean", "any", "all", "argmax", "argmin", "count_nonzero", "amax", "amin", "max", "min", "concatenate")
_FUNCTIONS = {
    **{name: name for name in _ALONG},
    **{name: name for name in "where stack tensordot outer expand_dims squeeze reshape flip tril triu diagonal trace".split()},
    **{"amax": "max", "amin": "min", "concatenate": "concat", "dot": "matmul"},
}


def _as_arrays(given: Any) -> Any:
    """Tensors in arguments as arrays."""
    if isinstance(given, Operators):
        return np.asarray(given)
    if isinstance(given, (list, tuple)):
        return type(given)(_as_arrays(part) for part in given)
    return {key: _as_arrays(part) for key, part in given.items()} if isinstance(given, dict) else given


#: Where SciPy asks for an array in order to compute with it: there the operator is ours.
_SCIPY = ("_matmul_dispatch", "_multiply_2d_with_broadcasting", "_divide", "_comparison", "multiply", "_mul_dispatch")


def handed_over(tensor: Any, depth: int = 2) -> np.ndarray[Any, Any] | None:
    """An opaque stand-in for a dense array: SciPy's operators return ``NotImplemented`` for it, so Python calls ours."""
    frame = sys._getframe(depth)
    if frame.f_code.co_name not in _SCIPY or not frame.f_globals.get("__name__", "").startswith("scipy.sparse"):
        return None
    unknown = np.empty((), dtype=object)
    unknown[()] = tensor
    return unknown


class Operators:
    """The operators of tensors and of tracers.

    >>> import numpy as np, tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [0.0, 2.0]], format="csr")
    >>> B = np.array([10.0, 20.0]) * A + 1
    >>> B.format, B.fill_value, B.nnz
    ('csr', np.float64(1.0), 2)
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
    __neg__ = _unary("negative")
    __pos__ = _unary("positive")
    __abs__ = _unary("abs")
    __invert__ = _unary("bitwise_invert")
    # Tensors do not change: `A += B` is `A = A + B`.
    __iadd__, __isub__, __imul__, __itruediv__ = __add__, __sub__, __mul__, __truediv__
    __ifloordiv__, __imod__, __ipow__ = __floordiv__, __mod__, __pow__
    __iand__, __ior__, __ixor__, __ilshift__, __irshift__ = __and__, __or__, __xor__, __lshift__, __rshift__
    # Like NumPy's arrays: `==` compares elements, so tensors are no keys.
    __hash__ = None  # type: ignore[assignment]

    #: SciPy's matrices leave operators to the operand with the larger number.
    __array_priority__ = 1000.0

    def __matmul__(self, other: Any) -> Any:
        return _linalg.matmul(self, other) if _is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return _linalg.matmul(other, self) if _is_operand(other) else NotImplemented

    __imatmul__ = __matmul__

    def __round__(self, digits: int | None = None) -> Any:
        if not digits:
            return _elementwise.apply("round", self)
        return _elementwise.apply("round", self * 10.0**digits) / 10.0**digits

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions on tensors are ours of the same name: ``numpy.exp(A)`` is ``tamis.exp(A)``."""
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        given = {key: value[0] if key == "out" else value for key, value in options.items()}
        extra = [key for key, value in given.items() if value is not None]
        if "out" in extra:
            raise fail(
                "E0204",
                "tensors are immutable, so `out` is not supported",
                "omit `out`, and write `x = x + A` instead of `x += A`",
            )
        if method != "__call__" or extra:
            raise fail(
                "E0205",
                f"`numpy.{ufunc.__name__}.{method}` with {', '.join(extra) or 'these arguments'} takes no tensors",
                "use Tamis' own functions, as in `tamis.sum(A, axis=0)`",
            )
        if name == "matmul":
            return _linalg.matmul(*inputs)
        if name not in _elementwise.OPS:
            raise fail(
                "E0205",
                f"`numpy.{ufunc.__name__}` does not support tensors",
                "`tamis.op` defines functions for `tamis.einsum`",
                "`t.to_numpy()` gives a dense array for NumPy",
            )
        return _elementwise.apply(name, *inputs)

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """NumPy's functions that are ours as well are ours; for others, tensors become arrays as far as that is allowed."""
        ours = _FUNCTIONS.get(function.__name__) if function.__module__ == "numpy" else None
        given = {key: value for key, value in options.items() if value is not None and value is not np._NoValue}
        if ours is not None and not set(given) - {"axis", "keepdims", "axes"}:
            import tamis

            if len(args) == 2 and function.__name__ in _ALONG:
                args, given = args[:1], {"axis": args[1], **given}
            return getattr(tamis, ours)(*args, **given)
        return function(*_as_arrays(args), **_as_arrays(options))

    def __setitem__(self, key: Any, value: Any) -> None:
        raise fail(
            "E0204",
            "tensors are immutable",
            "make a new one: `tamis.where(mask, value, t)` replaces masked elements",
            "collect the elements first, and build the tensor once: `tamis.tensor((coords, values, shape))`",
            "expressions of index variables are assigned to `tamis.result()`",
        )
