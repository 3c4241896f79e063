"""Attention whose mask is sparse: scores, softmax and weighted values of the pairs that a pattern stores."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn

from .. import _construct
from .._errors import fail
from .._pattern import Pattern
from ._notation import Notation

#: The weights `w` and their sums `z` of the scores `e` of a row, of which the greatest is subtracted.
SOFTMAX = (
    "m[i] = max[j](select(P[i,j], e[i,j], -inf))",
    "w[i,j] = P[i,j] * exp(e[i,j] - m[i])",
    "z[i] = sum[j](w[i,j])",
)


class SparseAttention(nn.Module):  # type: ignore[misc]
    """``softmax(q @ k.T * scale) @ v`` over the pairs of positions that ``mask`` stores; the memory is proportional to their number.

    ``mask`` is a pattern, or a tensor in any format (also SciPy's or PyTorch's) whose stored elements are the pairs. The operands are
    ``[..., positions, features]``; leading dimensions are batches and heads. A position with no pairs gets NaN, as in
    ``torch.nn.functional.scaled_dot_product_attention``.
    """

    def __init__(self, mask: Any, scale: float | None = None) -> None:
        super().__init__()
        self.pattern = mask if isinstance(mask, Pattern) else _construct.tensor(mask).pattern
        self.scale = scale
        scores = "e[i,j] = sum[d](P[i,j] * q[i,d] * k[j,d])"
        self._function = Notation(
            "\n".join([scores, *SOFTMAX, "y[i,d] = sum[j](w[i,j] * v[j,d]) / z[i]"]), constants={"P": self.pattern.as_tensor()}
        )

    def forward(self, q: Any, k: Any, v: Any) -> Any:
        """The weighted values."""
        rows, columns = self.pattern.shape
        if q.shape[-2] != rows or k.shape[-2] != columns or v.shape[-2] != columns:
            raise fail(
                "E0402",
                f"the mask is {rows}x{columns}, but there are {q.shape[-2]} queries, {k.shape[-2]} keys and {v.shape[-2]} values",
                "give operands of the shape of the mask",
            )
        q = q * (1 / math.sqrt(q.shape[-1]) if self.scale is None else self.scale)
        if q.dim() == 2:
            return self._function(q=q, k=k, v=v)
        batch = q.shape[:-2]
        parts = zip(*(x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:]).unbind() for x in (q, k, v)))
        made = torch.stack([self._function(q=a, k=b, v=c) for a, b, c in parts])
        return made.reshape(*batch, *made.shape[-2:])

    def extra_repr(self) -> str:
        """The mask."""
        return f"{self.pattern.shape[0]}x{self.pattern.shape[1]}, {self.pattern.nnz} pairs"
