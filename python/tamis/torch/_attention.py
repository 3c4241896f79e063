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

#: What is not a pair has no weight.
_NO_PAIR = {"e": -math.inf}


class RowSoftmax:
    """``softmax(e) @ v`` for scores ``e``, which are values on a pattern, and the softmax is over what a row stores.

    A third dimension of the pattern is one of heads: each has its own scores, and its own values ``v[j,h,f]``.
    """

    def __init__(self, pattern: Pattern) -> None:
        h = ",h" if pattern.ndim == 3 else ""
        scores = {"e": pattern}
        # The greatest score of a row is subtracted; the result does not depend on it.
        self._greatest = Notation(f"m[i{h}] = max[j](e[i,j{h}])", patterns=scores, fills=_NO_PAIR)
        self._weights = Notation(f"w[i,j{h}] = exp(e[i,j{h}] - m[i{h}])", patterns={**scores, "w": pattern}, fills=_NO_PAIR)
        self._total = Notation(f"z[i{h}] = w[i,j{h}]", patterns={"w": pattern})
        self._product = Notation(f"y[i{h},f] = w[i,j{h}] * v[j{h},f]", patterns={"w": pattern})

    def __call__(self, e: Any, v: Any) -> Any:
        w = self._weights(e=e, m=self._greatest(e=e.detach()))
        return self._product(w=w, v=v) / self._total(w=w).unsqueeze(-1)


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
        self._scores = Notation(scores, patterns={"e": self.pattern}, constants={"P": self.pattern.as_tensor()})
        self._softmax = RowSoftmax(self.pattern)

    def _attend(self, q: Any, k: Any, v: Any) -> Any:
        return self._softmax(self._scores(q=q, k=k), v)

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
            return self._attend(q, k, v)
        batch = q.shape[:-2]
        parts = zip(*(x.expand(*batch, *x.shape[-2:]).reshape(-1, *x.shape[-2:]).unbind() for x in (q, k, v)))
        made = torch.stack([self._attend(a, b, c) for a, b, c in parts])
        return made.reshape(*batch, *made.shape[-2:])

    def extra_repr(self) -> str:
        """The mask."""
        return f"{self.pattern.shape[0]}x{self.pattern.shape[1]}, {self.pattern.nnz} pairs"
