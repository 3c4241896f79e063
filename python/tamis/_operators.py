"""Operator overloading between tensors, arrays of other libraries, and scalars."""

from __future__ import annotations

import sys
from typing import Any

from . import _elementwise, _linalg
from ._errors import fail
from ._lazy_import import np
from ._returns import into, library_of, like, store, written

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
        return like(_elementwise.apply, name, self, other)

    def backward(self: Any, other: Any) -> Any:
        if not _is_operand(other):
            return NotImplemented
        if name == "multiply" and _is_matrix(other):
            return _linalg.matmul(other, self)
        return like(_elementwise.apply, name, other, self)

    return forward, backward


def _unary(name: str) -> Any:
    def forward(self: Any) -> Any:
        return _elementwise.apply(name, self)

    return forward


#: The function of the package for each NumPy ufunc of another name.
_UFUNCS = {ufunc: row["function"] for row in _elementwise.TABLE for ufunc in row["ufuncs"]} | {"mod": "remainder"}

#: The reduction that a ufunc makes.
_REDUCTIONS = {
    "add": "sum",
    "multiply": "prod",
    "minimum": "min",
    "maximum": "max",
    "logical_or": "any",
    "logical_and": "all",
}

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
        return _linalg.product(self, other) if type(other) is np.ndarray or _is_operand(other) else NotImplemented

    def __rmatmul__(self, other: Any) -> Any:
        return _linalg.product(other, self) if _is_operand(other) else NotImplemented

    __imatmul__ = __matmul__

    def __round__(self, digits: int | None = None) -> Any:
        if not digits:
            return _elementwise.apply("round", self)
        return _elementwise.apply("round", self * 10.0**digits) / 10.0**digits

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """NumPy's functions on tensors are ours of the same name: ``numpy.exp(A)`` is ``tamis.exp(A)``.

        ``out`` may be an array of NumPy's, so that ``x += A @ b`` and ``x += A`` write into ``x``: products and elementwise
        functions directly, if it is contiguous and has the type of the result.
        """
        outputs = options.pop("out", None)
        out = outputs[0] if isinstance(outputs, tuple) else outputs
        if out is not None and not isinstance(out, np.ndarray):
            raise fail(
                "E0204",
                "tensors are immutable, so `out` is not supported",
                "omit `out`, and write `x = x + A` instead of `x += A`",
                "`out` may be an array of NumPy's",
            )
        extra = {k: v for k, v in options.items() if v is not None or k == "axis"}
        if out is None:
            return self._ufunc(ufunc, method, inputs, extra)
        return store(self._ufunc(ufunc, method, inputs, extra, into(out)), out)

    def _ufunc(self, ufunc: Any, method: str, inputs: Any, extra: dict[str, Any], compute: Any = None) -> Any:
        name = _UFUNCS.get(ufunc.__name__, ufunc.__name__)
        if method == "reduce" and name in _REDUCTIONS and not set(extra) - {"axis", "keepdims"}:
            import tamis

            # NumPy reduces the first axis if none is named.
            return getattr(tamis, _REDUCTIONS[name])(inputs[0], **{"axis": 0, **extra})
        if method == "outer" and name == "multiply" and not extra:
            return _linalg.tensordot(*inputs, axes=0)
        if method != "__call__" or extra:
            raise fail(
                "E0205",
                f"`numpy.{ufunc.__name__}.{method}` with {', '.join(extra) or 'these arguments'} takes no tensors",
                "use Tamis' own functions, as in `tamis.sum(A, axis=0)`",
            )
        if name == "matmul":
            left, right = inputs
            return _linalg.product(left, right, compute=compute)
        if name == "divmod":
            return tuple(self._ufunc(part, method, inputs, extra) for part in (np.floor_divide, np.remainder))
        if name not in _elementwise.OPS:
            raise fail(
                "E0205",
                f"`numpy.{ufunc.__name__}` does not support tensors",
                "`tamis.op` defines functions for `tamis.einsum`",
                "`t.to_numpy()` gives a dense array for NumPy",
            )
        made = _elementwise.apply(name, *inputs, compute=compute)
        return written(made, next(filter(None, map(library_of, inputs)), ""))

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), options: Any = None) -> Any:
        """PyTorch's functions that the package has are the package's: ``torch.relu(A)``, ``torch.matmul(A, x)``."""
        from ._torch_functions import call

        return call(function, args, options or {})

    def __array_function__(self, function: Any, types: Any, args: Any, options: Any) -> Any:
        """NumPy's functions that the package has are the package's; others take dense tensors only, and no sparse ones."""
        from ._numpy_functions import call

        return call(function, args, options)

    def __setitem__(self, key: Any, value: Any) -> None:
        raise fail(
            "E0204",
            "tensors are immutable",
            "make a new one: `tamis.at(t)[i, j].set(value)`, or `.add(value)`",
            "`tamis.where(mask, value, t)` replaces masked elements",
            "collect the elements first, and build the tensor once: `tamis.tensor((coords, values, shape))`",
            "expressions of index variables are assigned to `tamis.result()`",
        )
