"""Linear layers with sparse weights: unstructured, in blocks, or n of m; and magnitude pruning."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from .. import _construct
from .._errors import fail
from .._pattern import Pattern
from ._notation import Notation


def magnitude_mask(
    weight: Any, density: float | None = None, *, block: tuple[int, int] | None = None, n_of_m: tuple[int, int] | None = None
) -> Any:
    """The mask that keeps the weights of greatest magnitude.

    ``density`` is the fraction that is kept, of single weights or of blocks of the size ``block``; ``n_of_m=(2, 4)`` keeps two of each
    four weights in a row.
    """
    size = weight.detach().abs()
    if n_of_m is not None:
        n, m = n_of_m
        if size.shape[1] % m:
            raise fail("E0401", f"rows of {size.shape[1]} weights are no groups of {m}", "choose a divisor")
        groups = size.reshape(size.shape[0], -1, m)
        kept = torch.zeros_like(groups, dtype=torch.bool).scatter_(2, groups.topk(n, dim=2).indices, True)
        return kept.reshape(size.shape)
    if density is None or not 0 < density <= 1:
        raise fail("E0302", f"a density of {density} is not between 0 and 1", "give the fraction of weights that is kept")
    if block is not None:
        rows, columns = block
        if size.shape[0] % rows or size.shape[1] % columns:
            raise fail("E0401", f"a matrix of shape {tuple(size.shape)} is not made of blocks of {block}", "choose divisors")
        size = size.reshape(size.shape[0] // rows, rows, -1, columns).sum((1, 3))
    count = max(1, round(density * size.numel()))
    kept = torch.zeros(size.numel(), dtype=torch.bool)
    kept[size.reshape(-1).topk(count).indices] = True
    kept = kept.reshape(size.shape)
    return kept if block is None else kept.repeat_interleave(rows, 0).repeat_interleave(columns, 1)


class SparseLinear(nn.Module):  # type: ignore[misc]
    """``y = x @ W.T + b`` with a sparse weight ``W`` of ``out_features x in_features``, in any format of matrices.

    ``values`` is the parameter: the stored weights, in storage order; ``pattern`` says where they are. Batches of any rank are taken. The
    result of a batch is stored by features, so that a chain of layers transposes nothing.

    ::

        layer = tm.torch.SparseLinear(784, 256, density=0.05)
        layer = tm.torch.SparseLinear.from_dense(linear, density=0.05)            # the weights of greatest magnitude
        layer = tm.torch.SparseLinear.from_dense(linear, density=0.1, block=(4, 4), format="bsr(4,4)")
        layer = tm.torch.SparseLinear.from_dense(linear, n_of_m=(2, 4))
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        *,
        pattern: Pattern | None = None,
        density: float = 0.1,
        format: str = "csr",
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        if pattern is None:
            kept = magnitude_mask(torch.rand(out_features, in_features), density)
            pattern = _construct.tensor(kept.float().numpy(), format=format).pattern
        if pattern.shape != (out_features, in_features):
            raise fail("E0401", f"the pattern has the shape {pattern.shape}, not {(out_features, in_features)}", "give one of that shape")
        self.pattern = pattern
        stored = pattern.as_tensor().astype("f32").values
        count = 0 if stored is None else len(stored)
        self.values = nn.Parameter(torch.empty(count, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(out_features, dtype=dtype)) if bias else None
        term = "sum[i](W[o,i] * x[i,b]) + c[o]" if bias else "W[o,i] * x[i,b]"
        self._product = Notation(f"y[o,b] = {term}", patterns={"W": pattern})
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """As ``torch.nn.Linear``, with the number of stored weights in a row in place of that of all."""
        fan = max(1.0, self.values.numel() / max(1, self.out_features))
        bound = 1 / math.sqrt(fan)
        nn.init.uniform_(self.values, -bound, bound)
        if self.bias is not None:
            nn.init.uniform_(self.bias, -bound, bound)

    @classmethod
    def from_dense(
        cls,
        linear: Any,
        density: float | None = None,
        *,
        mask: Any = None,
        block: tuple[int, int] | None = None,
        n_of_m: tuple[int, int] | None = None,
        format: str | None = None,
    ) -> SparseLinear:
        """The layer with the weights of a ``torch.nn.Linear`` that a mask keeps; without one, as :func:`magnitude_mask`, and with neither
        that nor ``density``, those that are not 0, as ``torch.nn.utils.prune`` leaves them."""
        weight = linear.weight.detach()
        if mask is None:
            some = density is not None or n_of_m is not None
            mask = magnitude_mask(weight, density, block=block, n_of_m=n_of_m) if some else weight != 0
        if format is None:
            format = f"bsr({block[0]},{block[1]})" if block is not None else "csr"
        # Weights that are kept are stored even if they are 0.
        places = _construct.tensor(mask.float().numpy(), format=format).pattern
        kept = _construct.tensor((mask * torch.arange(1, weight.numel() + 1).reshape(weight.shape)).numpy(), format=format)
        layer = cls(linear.in_features, linear.out_features, linear.bias is not None, pattern=places, dtype=weight.dtype)
        found = kept.values
        assert found is not None
        where = torch.from_numpy(found.copy())
        with torch.no_grad():
            layer.values.copy_(torch.where(where > 0, weight.reshape(-1)[(where - 1).clamp(min=0)], 0))
            if layer.bias is not None:
                layer.bias.copy_(linear.bias)
        return layer

    def to_dense(self) -> Any:
        """The ``torch.nn.Linear`` that computes the same."""
        made = nn.Linear(self.in_features, self.out_features, self.bias is not None, dtype=self.values.dtype)
        with torch.no_grad():
            made.weight.copy_(torch.from_numpy(self.pattern.with_values(self.values.detach()).to_tensor().to_numpy()))  # type: ignore[attr-defined]
            if self.bias is not None:
                made.bias.copy_(self.bias)
        return made

    def forward(self, x: Any) -> Any:
        """The product with a batch of vectors."""
        rows = x.reshape(-1, self.in_features)
        operands = {"W": self.values, "x": rows.t()}
        if self.bias is not None:
            operands["c"] = self.bias
        made = self._product(**operands)
        return made.t().reshape(*x.shape[:-1], self.out_features)

    def extra_repr(self) -> str:
        """The sizes and the format."""
        return f"{self.in_features}, {self.out_features}, {self.pattern.format}, {self.values.numel()} stored, bias={self.bias is not None}"
