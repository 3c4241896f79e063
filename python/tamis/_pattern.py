"""Sparsity patterns: what a tensor stores, without the values. Immutable, hashable, and shared by all tensors on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _construct, _tamis
from ._errors import fail
from ._torch_operands import involves_torch

if TYPE_CHECKING:
    from ._tensor import Tensor


class CacheInfo(NamedTuple):
    """The state of the caches of patterns; made by :func:`cache_info`."""

    #: How many conversions of new values on a known pattern were one gather.
    hits: int
    #: How many made a permutation.
    misses: int
    #: How many permutations are cached.
    entries: int
    #: The bytes that they take.
    nbytes: int
    #: The bytes that they may take.
    limit: int


def cache_info() -> CacheInfo:
    """How often a conversion of new values on a known pattern was one gather (``hits``) or made a permutation (``misses``); how many
    permutations are kept, the bytes that they take, and the bytes that they may take.

    >>> import tamis as tm
    >>> tm.cache_info().limit > 0
    True
    """
    return CacheInfo(*_tamis.pattern_cache_info())


def cache_limit(nbytes: int) -> None:
    """Sets the bytes that the caches of patterns may take. What does not fit is converted as if there were no cache.

    >>> import tamis as tm
    >>> tm.cache_limit(1 << 30)
    """
    if nbytes < 0:
        raise fail("E0302", f"{nbytes} is not a number of bytes", "give a number that is not negative; 0 keeps nothing")
    _tamis.set_pattern_cache_limit(nbytes)


class Pattern:
    """The sparsity pattern of a tensor: its format and coordinate arrays, without the values; made by ``t.pattern``.

    Tensors made by :meth:`with_values` share the coordinate arrays, and what is known of them: a conversion to another format or order is
    computed once, and is one gather for each further set of values. Patterns with the same coordinates are equal.

    >>> import tamis as tm
    >>> A = tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")
    >>> P = A.pattern
    >>> P.shape, P.nnz, P.format
    ((2, 2), 3, 'csr')
    >>> P.with_values([10.0, 20.0, 30.0]).to_numpy()
    array([[10.,  0.],
           [20., 30.]])
    >>> P == (A * 2).pattern
    True
    """

    __slots__ = ("_hash", "_tensor")

    def __init__(self, tensor: Tensor) -> None:
        if not isinstance(tensor, _tamis.Tensor):
            tensor = _construct.asarray(tensor)
        self._tensor: Any = tensor.sparsity_pattern()
        self._hash: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The size of each dimension."""
        return self._tensor.shape  # type: ignore[no-any-return]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._tensor.ndim  # type: ignore[no-any-return]

    @property
    def nnz(self) -> int:
        """The number of stored elements."""
        return self._tensor.nnz  # type: ignore[no-any-return]

    @property
    def format(self) -> str:
        """The format of tensors on this pattern."""
        return str(self._tensor.format).split(";")[0].strip()

    @property
    def nbytes(self) -> int:
        """The bytes of the coordinate arrays."""
        return self._tensor.nbytes  # type: ignore[no-any-return]

    def with_values(self, values: Any, fill_value: Any = 0) -> Any:
        """The tensor that stores these values, in storage order; nothing is copied. Values of PyTorch give a
        :class:`tamis.torch.SparseTensor`, through which gradients flow.

        >>> import tamis as tm, numpy as np
        >>> P = tm.gallery.laplacian(3).pattern
        >>> P.with_values(np.ones(P.nnz, dtype="float32")).dtype
        dtype('float32')
        """
        if involves_torch(values):
            from ._torch_layouts import sparse_tensor

            return sparse_tensor(self, values, fill_value)
        given = values if isinstance(values, _tamis.Tensor) else _construct.asarray(values)
        return self._tensor.with_values(given, given.dtype.type(fill_value))

    def as_tensor(self) -> Tensor:
        """The pattern as a tensor of truth values, true where an element is stored."""
        return self._tensor  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Pattern) and self._tensor.same_pattern(other._tensor)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((self.shape, self._tensor.full_format, self.nnz))
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern, (self._tensor,)

    def __repr__(self) -> str:
        return f"<tamis.Pattern {'x'.join(map(str, self.shape))} {self.format}, {self.nnz} stored>"
