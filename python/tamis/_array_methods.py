"""Array methods of tensors and tracers (mixin): each calls the function of the package of the same name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterator

from . import _elementwise, _linalg
from ._errors import fail

if TYPE_CHECKING:
    from ._tensor import Tensor


class ArrayMethods:
    """Shape manipulation, complex parts and protocol methods; each calls the function of its name."""

    __slots__ = ()

    if TYPE_CHECKING:
        ndim: Any
        shape: Any
        dtype: Any

    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged.

        >>> import tamis as tm
        >>> tm.zeros((2, 3, 4)).mT.shape
        (2, 4, 3)
        """
        return _linalg.matrix_transpose(self)

    @property
    def device(self) -> str:
        """The device: always ``"cpu"``."""
        return "cpu"

    def to_device(self, device: Any, /, *, stream: Any = None) -> Any:
        """The tensor itself; there is one device."""
        if device != "cpu":
            raise fail("E0709", f"there is no device {device!r}", "tensors live on the device 'cpu'")
        return self

    @property
    def real(self) -> Tensor:
        """The real parts."""
        return _elementwise.apply("real", self)  # type: ignore[no-any-return]

    @property
    def imag(self) -> Tensor:
        """The imaginary parts."""
        return _elementwise.apply("imag", self)  # type: ignore[no-any-return]

    def conj(self) -> Tensor:
        """The complex conjugates."""
        return _elementwise.apply("conj", self)  # type: ignore[no-any-return]

    def reshape(self, *shape: Any) -> Tensor:
        """See :func:`tamis.reshape`; sizes may be given one by one."""
        from ._manipulation import reshape

        return reshape(self, shape[0] if len(shape) == 1 else shape)

    def squeeze(self, axis: Any = None) -> Tensor:
        """See :func:`tamis.squeeze`."""
        from ._manipulation import squeeze

        return squeeze(self, axis)

    def ravel(self) -> Tensor:
        """All elements in one dimension, in row-major order."""
        return self.reshape(-1) if 0 not in self.shape else self.reshape(0)

    flatten = ravel

    def diagonal(self, offset: int = 0) -> Tensor:
        """See :func:`tamis.diagonal`."""
        from ._manipulation import diagonal

        return diagonal(self, offset=offset)

    def trace(self, offset: int = 0) -> Tensor:
        """See :func:`tamis.trace`."""
        from ._manipulation import trace

        return trace(self, offset=offset)

    def nonzero(self) -> tuple[Tensor, ...]:
        """See :func:`tamis.nonzero`."""
        from ._search import nonzero

        return nonzero(self)

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """See :func:`tamis.clip`."""
        from ._functions import clip

        return clip(self, min, max)

    def dot(self, other: Any) -> Tensor:
        """``self @ other``; with a number, ``self * other``."""
        return self * other if _elementwise.is_number(other) else _linalg.matmul(self, other)  # type: ignore[operator, no-any-return]

    def __iter__(self) -> Iterator[Any]:
        if self.ndim == 0:
            raise TypeError("a tensor without dimensions cannot be iterated over")
        return (self[k] for k in range(self.shape[0]))  # type: ignore[index]

    def __contains__(self, value: Any) -> bool:
        from ._reductions import any as some

        return bool(some(_elementwise.apply("equal", self, value)))

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        """The package, whose functions have the names of the Array API standard."""
        import tamis

        return tamis
