"""Sparse convolutions in any number of dimensions, submanifold and strided: the kernel map is a sparse tensor of the notation."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from .. import _construct
from .._errors import fail
from .._lazy_import import np
from ._notation import Notation

#: The kernel maps that a layer keeps.
_KEPT = 8


class SparseConv(nn.Module):  # type: ignore[misc]
    """A convolution of features at sparse sites, a hybrid COO tensor of PyTorch: ``[*sites, in_channels]``, whose last dimension is dense.

    With ``submanifold`` (the default for stride 1) the result has the sites of its operand; else every site that the kernel reaches. The
    kernel is centred: a site ``s`` of the result reads the sites ``stride * s + offset`` for ``-k//2 <= offset <= (k-1)//2``. The
    *kernel map*, which pairs sites, is made once for a set of sites.

    ::

        x = torch.sparse_coo_tensor(coordinates, features, (64, 64, 64, 16)).coalesce()
        y = tm.torch.SparseConv(16, 32, kernel_size=3, dims=3)(x)
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | tuple[int, ...] = 3,
        dims: int = 2,
        stride: int | tuple[int, ...] = 1,
        submanifold: bool | None = None,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size = (kernel_size,) * dims if isinstance(kernel_size, int) else tuple(kernel_size)
        self.stride = (stride,) * dims if isinstance(stride, int) else tuple(stride)
        self.submanifold = all(s == 1 for s in self.stride) if submanifold is None else submanifold
        if len(self.kernel_size) != dims or len(self.stride) != dims:
            raise fail("E0401", f"{dims} dimensions need {dims} sizes and strides", "give one for each dimension, or one number")
        if self.submanifold and any(s != 1 for s in self.stride):
            raise fail("E0302", "a submanifold convolution keeps its sites, so its stride is 1", "write `submanifold=False`")
        taps = math.prod(self.kernel_size)
        self.weight = nn.Parameter(torch.empty(taps, in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        nn.init.kaiming_uniform_(self.weight.view(-1, out_channels).t(), a=math.sqrt(5))
        self._maps: list[tuple[Any, Any]] = []

    def forward(self, x: Any) -> Any:
        """The convolution; gradients flow to the features and the weights."""
        dims = len(self.kernel_size)
        if x.layout != torch.sparse_coo or x.sparse_dim() != dims or x.dense_dim() != 1:
            raise fail(
                "E0709",
                f"the operand is no COO tensor with {dims} sparse dimensions and one dense dimension",
                "write `torch.sparse_coo_tensor(coordinates, features, (*sizes, channels)).coalesce()`",
            )
        x = x.coalesce()
        sites, shape = x.indices(), tuple(x.shape[:dims])
        function, reached, out_shape = self._map(sites, shape)
        made = function(x=x.values(), F=self.weight)
        if self.bias is not None:
            made = made + self.bias
        return torch.sparse_coo_tensor(reached, made, (*out_shape, self.out_channels), is_coalesced=True)

    def _map(self, sites: Any, shape: tuple[int, ...]) -> Any:
        for (known, known_shape), made in self._maps:
            if known_shape == shape and (known is sites or torch.equal(known, sites)):
                return made
        made = self._kernel_map(sites, shape)
        self._maps = [((sites.clone(), shape), made), *self._maps[: _KEPT - 1]]
        return made

    def _kernel_map(self, sites: Any, shape: tuple[int, ...]) -> Any:
        """Which site of the result reads which site of the operand by which tap, as a sparse tensor."""
        coords = sites.numpy()
        strides = np.asarray(self.stride)[:, None]
        sizes = tuple(-(-n // s) for n, s in zip(shape, self.stride))
        count = coords.shape[1]
        pairs = []
        for tap, offset in enumerate(np.ndindex(*self.kernel_size)):
            # A site p is read by s where stride * s + offset == p.
            moved = coords - (np.asarray(offset) - np.asarray(self.kernel_size) // 2)[:, None]
            target = moved // strides
            fits = np.all((moved % strides == 0) & (target >= 0) & (target < np.asarray(sizes)[:, None]), axis=0)
            numbers = np.ravel_multi_index(tuple(target[:, fits]), sizes)
            pairs.append((numbers, np.flatnonzero(fits), np.full(len(numbers), tap)))
        target, source, taps = (np.concatenate(part) for part in zip(*pairs))
        if self.submanifold:
            reached = np.ravel_multi_index(tuple(coords), sizes)
        else:
            reached = np.unique(target)
        place = np.searchsorted(reached, target)
        kept = (place < len(reached)) & (reached[np.minimum(place, max(len(reached) - 1, 0))] == target) if len(reached) else place > 0
        coordinates = np.stack([taps[kept], place[kept], source[kept]])
        ones = np.ones(coordinates.shape[1], dtype="f4")
        K = _construct.tensor((coordinates, ones, (len(pairs), len(reached), count)), format="dense, sparse, singleton; pattern")
        found = np.stack(np.unravel_index(reached, sizes)) if len(reached) else np.zeros((len(sizes), 0), dtype=np.int64)
        text = "y[o,f] = K[t,o,i] * x[i,c] * F[t,c,f]"
        return Notation(text, constants={"K": K}), torch.from_numpy(np.ascontiguousarray(found)), sizes

    def extra_repr(self) -> str:
        """The sizes."""
        kind = "submanifold" if self.submanifold else f"stride={self.stride}"
        return f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, {kind}"
