"""Types of operators and methods for type checkers: what comes out, by what goes in. Nothing here exists at run time."""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING, Any, Literal, Protocol, Sequence, overload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor


class Elementwise(Protocol):
    """An operator of elements: with an array, the result is an array where it is dense."""

    @overload
    def __call__(self, other: Tensor | complex | Sequence[Any], /) -> Tensor: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


class Product(Protocol):
    """The product of matrices and vectors: with an array, an array."""

    @overload
    def __call__(self, other: Tensor | Sequence[Any], /) -> Tensor: ...
    @overload
    def __call__(self, other: NDArray[Any], /) -> NDArray[Any]: ...
    @overload
    def __call__(self, other: Any, /) -> Any: ...


class Sign(Protocol):
    """An operator of one tensor."""

    def __call__(self) -> Tensor: ...


class Reduction(Protocol):
    """A reduction: of everything to a number, over axes to a tensor."""

    @overload
    def __call__(self, axis: None = None, *, keepdims: Literal[False] = False) -> Any: ...
    @overload
    def __call__(self, axis: int | tuple[int, ...], *, keepdims: bool = False) -> Tensor: ...
    @overload
    def __call__(self, axis: Any = None, *args: Any, **options: Any) -> Any: ...


class Selection(Protocol):
    """An index: a part of a tensor; an element if there is an integer for each dimension."""

    @overload
    def __call__(self, key: int | slice | EllipsisType | list[Any] | Tensor | NDArray[Any] | None, /) -> Tensor: ...
    @overload
    def __call__(self, key: Any, /) -> Any: ...
