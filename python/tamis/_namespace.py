"""Array API namespace inspection: data types, their limits, and supported capabilities."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _tamis, _tensor
from ._elementwise import is_number
from ._coordinates import as_tensor
from ._errors import fail
from ._trace import Tracer

bool_ = np.dtype("bool")
int8, int16, int32, int64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
float32, float64 = np.dtype("float32"), np.dtype("float64")
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")

pi, e, inf, nan, newaxis = np.pi, np.e, np.inf, np.nan, None

_KINDS = {
    "bool": "b",
    "signed integer": "i",
    "unsigned integer": "u",
    "integral": "iu",
    "real floating": "f",
    "complex floating": "c",
    "numeric": "iufc",
}

__array_api_version__ = "2023.12"


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Any:
    """The tensor converted to another value type.

    >>> import tamis as tm
    >>> tm.astype([1.5, 2.5], "i64").to_numpy()
    array([1, 2])
    """
    found: Any = x if isinstance(x, Tracer) else as_tensor(x)
    return found.astype(dtype)


def result_type(*given: Any) -> np.dtype[Any]:
    """The common type of these, by NumPy's promotion rules.

    >>> import tamis as tm
    >>> tm.result_type("f32", tm.ones(2, dtype="i16"))
    dtype('float32')
    """
    types = [
        x if is_number(x) else x.dtype if hasattr(x, "dtype") and not isinstance(x, np.dtype) else _tensor.dtype_of(x)
        for x in given
    ]
    if not types:
        raise fail("E0304", "no types are given", "give one type or tensor, or more")
    return _tensor.dtype_of(np.result_type(*types))


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a type can be converted to another without loss.

    >>> import tamis as tm
    >>> tm.can_cast("i32", "f64"), tm.can_cast("f64", "i32")
    (True, False)
    """
    source = from_.dtype if isinstance(from_, _tamis.Tensor) else _tensor.dtype_of(from_)
    return np.can_cast(source, _tensor.dtype_of(to))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is of a kind, such as ``"integral"``.

    >>> import tamis as tm
    >>> tm.isdtype(tm.int8, "integral")
    True
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return np.dtype(dtype).kind in _KINDS[kind]
    return bool(np.dtype(dtype) == _tensor.dtype_of(kind))


class FloatInfo(NamedTuple):
    """The machine limits of a floating-point type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: np.dtype[Any]


def finfo(type: Any, /) -> FloatInfo:
    """The machine limits of a floating-point type.

    >>> import tamis as tm
    >>> tm.finfo("f32").bits
    32
    """
    found = np.finfo(type.dtype if isinstance(type, _tamis.Tensor) else _tensor.dtype_of(type))
    eps, largest, least, normal = (float(number) for number in (found.eps, found.max, found.min, found.smallest_normal))
    return FloatInfo(int(found.bits), eps, largest, least, normal, np.dtype(found.dtype))


def iinfo(type: Any, /) -> Any:
    """The machine limits of an integer type.

    >>> import tamis as tm
    >>> int(tm.iinfo("i8").max)
    127
    """
    return np.iinfo(type.dtype if isinstance(type, _tamis.Tensor) else _tensor.dtype_of(type))


class Info:
    """Capabilities of this namespace; made by ``tamis.__array_namespace_info__()``."""

    def capabilities(self) -> dict[str, Any]:
        """Shapes that depend on data are supported; there is no limit on dimensions but the alphabet's."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 26}

    def default_device(self) -> str:
        """The device that tensors are made on."""
        return "cpu"

    def devices(self) -> list[str]:
        """All devices."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default types of numbers."""
        return {"real floating": float64, "complex floating": complex128, "integral": int64, "indexing": int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """All types, or those of a kind."""
        known = {name: np.dtype(name) for name in _tensor.DTYPES.values()}
        return known if kind is None else {name: t for name, t in known.items() if isdtype(t, kind)}


def __array_namespace_info__() -> Info:
    """The inspection object of the Array API standard.

    >>> import tamis as tm
    >>> tm.__array_namespace_info__().default_device()
    'cpu'
    """
    return Info()
