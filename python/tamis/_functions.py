"""Functions that work element by element: each keeps what is sparse sparse, and changes the fill with everything else."""

# These are the names that NumPy and the Array API give them.
# ruff: noqa: A001

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import _construct, _elementwise, _tamis
from ._trace import Tracer

if TYPE_CHECKING:
    from ._tensor import Tensor


def _one(name: str, text: str) -> Any:
    def function(x: Any, /) -> Tensor:
        found: Tensor = _elementwise.apply(name, x)
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text}; element by element. What is not stored is changed with the fill."
    return function


def _two(name: str, text: str) -> Any:
    def function(x1: Any, x2: Any, /) -> Tensor:
        found: Tensor = _elementwise.apply(name, x1, x2)
        return found

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{text}; element by element, stretched to a common shape as in NumPy."
    return function


acos = _one("acos", "The inverse cosine")
acosh = _one("acosh", "The inverse hyperbolic cosine")
asin = _one("asin", "The inverse sine")
asinh = _one("asinh", "The inverse hyperbolic sine")
atan = _one("atan", "The inverse tangent")
atanh = _one("atanh", "The inverse hyperbolic tangent")
cos = _one("cos", "The cosine")
cosh = _one("cosh", "The hyperbolic cosine")
sin = _one("sin", "The sine")
sinh = _one("sinh", "The hyperbolic sine")
tan = _one("tan", "The tangent")
tanh = _one("tanh", "The hyperbolic tangent")
exp = _one("exp", "*e* to the power of each element")
exp2 = _one("exp2", "2 to the power of each element")
expm1 = _one("expm1", "``exp(x) - 1``, exact near 0")
log = _one("log", "The natural logarithm")
log2 = _one("log2", "The binary logarithm")
log10 = _one("log10", "The decimal logarithm")
log1p = _one("log1p", "``log(1 + x)``, exact near 0")
sqrt = _one("sqrt", "The square root")
cbrt = _one("cbrt", "The cube root")
square = _one("square", "Each element times itself")
reciprocal = _one("reciprocal", "1 divided by each element")
abs = _one("abs", "The absolute value")
sign = _one("sign", "-1, 0 or 1")
floor = _one("floor", "Rounded down")
ceil = _one("ceil", "Rounded up")
trunc = _one("trunc", "Rounded towards 0")
round = _one("round", "Rounded to the nearest integer, halves to the even one")
negative = _one("negative", "The negative")
positive = _one("positive", "The same")
conj = _one("conj", "The complex conjugate")
real = _one("real", "The real part")
imag = _one("imag", "The imaginary part")
isnan = _one("isnan", "Whether each element is NaN")
isinf = _one("isinf", "Whether each element is infinite")
isfinite = _one("isfinite", "Whether each element is neither infinite nor NaN")
signbit = _one("signbit", "Whether each element is negative, -0.0 included")
logical_not = _one("logical_not", "Whether each element is zero")
bitwise_invert = _one("bitwise_invert", "Every bit flipped")
relu = _one("relu", "``max(x, 0)``")
sigmoid = _one("sigmoid", "``1 / (1 + exp(-x))``")
add = _two("add", "Sums")
subtract = _two("subtract", "Differences")
multiply = _two("multiply", "Products")
divide = _two("divide", "Quotients, as floats")
floor_divide = _two("floor_divide", "Quotients rounded down")
remainder = _two("remainder", "Remainders, with the sign of the divisor")
pow = _two("pow", "Powers")
equal = _two("equal", "Whether elements are equal")
not_equal = _two("not_equal", "Whether elements differ")
less = _two("less", "Whether elements are less")
less_equal = _two("less_equal", "Whether elements are less or equal")
greater = _two("greater", "Whether elements are greater")
greater_equal = _two("greater_equal", "Whether elements are greater or equal")
bitwise_and = _two("bitwise_and", "Bitwise and")
bitwise_or = _two("bitwise_or", "Bitwise or")
bitwise_xor = _two("bitwise_xor", "Bitwise exclusive or")
bitwise_left_shift = _two("bitwise_left_shift", "Bits moved up")
bitwise_right_shift = _two("bitwise_right_shift", "Bits moved down")
logical_and = _two("logical_and", "Whether both are not zero")
logical_or = _two("logical_or", "Whether one is not zero")
logical_xor = _two("logical_xor", "Whether exactly one is not zero")
minimum = _two("minimum", "The lesser of two elements; NaN wins")
maximum = _two("maximum", "The greater of two elements; NaN wins")
atan2 = _two("atan2", "The angle of the point ``(x2, x1)``")
hypot = _two("hypot", "``sqrt(x1**2 + x2**2)``")
copysign = _two("copysign", "The first with the sign of the second")
logaddexp = _two("logaddexp", "``log(exp(x1) + exp(x2))``")


def where(condition: Any, x1: Any, x2: Any, /) -> Tensor:
    """Elements of the first where the condition is true, of the second elsewhere.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [-2.0, 3.0]], format="csr")
    >>> tm.where(A > 0, A, 0).nnz
    3
    """
    found: Tensor = _elementwise.apply("where", condition, x1, x2)
    return found


def clip(x: Any, /, min: Any = None, max: Any = None) -> Tensor:
    """Elements no less than ``min`` and no greater than ``max``.

    >>> import tamis as tm
    >>> tm.clip([-5, 0, 5], -1, 1).to_numpy()
    array([-1,  0,  1])
    """
    if min is not None:
        x = _elementwise.apply("maximum", x, min)
    if max is not None:
        x = _elementwise.apply("minimum", x, max)
    if isinstance(x, (_tamis.Tensor, Tracer)):
        return x  # type: ignore[return-value]
    return _construct.asarray(x)
