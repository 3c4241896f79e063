"""Graph convolutions (GCN) and graph attention (GATv2); the graph is a sparse matrix, whose rows receive from columns."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from .. import _construct
from .._einsum import einsum
from .._errors import fail
from .._lazy_import import np
from .._pattern import Pattern
from .._torch_layouts import SparseTensor, layout_of
from ._attention import RowSoftmax
from ._notation import Notation


def normalized(adjacency: Any, self_loops: bool = True) -> Any:
    """The adjacency matrix with self-loops, divided by the square roots of the degrees of both ends, as a tensor in CSR."""
    A = _construct.asarray(adjacency).convert("csr")
    if self_loops:
        places = np.arange(A.shape[0])
        missing = np.zeros(A.shape[0], dtype=A.dtype)
        missing[:] = einsum("d[i] = A[i,i] == 0", A=A, format="dense").to_numpy()
        A = _construct.asarray(A + _construct.tensor(((places, places), missing, A.shape), format="csr")).convert("csr")
    degree = einsum("d[i] = A[i,j]", A=A, format="dense").to_numpy()
    scale = np.divide(1.0, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    return einsum("N[i,j] = s[i] * A[i,j] * s[j]", A=A, s=scale.astype(A.dtype), format="csr")


class _OnGraph(nn.Module):  # type: ignore[misc]
    """Keeps the functions of the graph that was seen last."""

    def __init__(self, adjacency: Any) -> None:
        super().__init__()
        self._seen: tuple[Any, Any] = (None, None)
        if adjacency is not None:
            self._functions(adjacency)

    def _functions(self, adjacency: Any) -> Any:
        if adjacency is None or adjacency is self._seen[0]:
            if self._seen[1] is None:
                raise fail("E0902", "the layer has no graph", "give it to the layer, or to the call: `layer(x, adjacency)`")
            return self._seen[1]
        made = self._bind(adjacency)
        self._seen = (adjacency, made)
        return made

    def _bind(self, adjacency: Any) -> Any:
        raise NotImplementedError


class GraphConv(_OnGraph):
    """A graph convolution: ``A @ x @ W + b``, where ``A`` is mostly :func:`normalized`.

    ``adjacency`` is a tensor in any format, SciPy's or PyTorch's; given to the layer or to each call. Its values are constants, unless it is a
    :class:`tamis.torch.SparseTensor`, or a sparse tensor of PyTorch that requires a gradient. The product that makes fewer columns
    comes first.
    """

    def __init__(self, in_channels: int, out_channels: int, adjacency: Any = None, bias: bool = True) -> None:
        super().__init__(adjacency)
        self.in_channels, self.out_channels = in_channels, out_channels
        #: The pattern of the sparse features that were seen last, and their product with the weights.
        self._features: tuple[Any, Any] = (None, None)
        self.weight = nn.Parameter(torch.empty(in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels)) if bias else None
        nn.init.xavier_uniform_(self.weight)

    def _bind(self, adjacency: Any) -> Any:
        if isinstance(adjacency, (SparseTensor, torch.Tensor)) and adjacency.requires_grad:
            return None, adjacency
        if isinstance(adjacency, SparseTensor):
            adjacency = adjacency.to_tensor()
        A = _construct.tensor(adjacency)
        made = {}
        for dtype, ours in ((torch.float32, "f32"), (torch.float64, "f64")):
            constants = {"A": A.astype(ours)}
            plain = Notation("y[i,f] = A[i,j] * x[j,f]", constants=constants)
            made[dtype] = plain, Notation("y[i,f] = sum[j](A[i,j] * x[j,f]) + c[f]", constants=constants)
        return made, None

    def forward(self, x: Any, adjacency: Any = None) -> Any:
        """The features of the nodes after a step; ``x`` is a dense matrix, or a sparse one of PyTorch's."""
        functions, learned = self._functions(adjacency)
        if functions is None:
            made = einsum("y[i,f] = A[i,j] * x[j,f]", A=learned, x=self._mixed(x), format="dense")
            return made if self.bias is None else made + self.bias
        # The graph is as precise as the weights; those of 16 bits are computed in f32.
        plain, biased = functions[torch.float64 if self.weight.dtype == torch.float64 else torch.float32]
        if self.in_channels < self.out_channels and _is_strided(x):
            made = plain(x=x) @ self.weight
            return made if self.bias is None else made + self.bias
        mixed = self._mixed(x)
        return plain(x=mixed) if self.bias is None else biased(x=mixed, c=self.bias)

    def _mixed(self, x: Any) -> Any:
        """The features times the weights."""
        if _is_strided(x):
            return x @ self.weight
        pattern, values = (x.pattern, x.values) if isinstance(x, SparseTensor) else layout_of(x)
        text = "h[i,f] = x[i,c] * W[c,f]"
        if pattern is None:
            return einsum(text, x=x, W=self.weight, format="dense")
        if self._features[0] is not pattern:
            self._features = pattern, Notation(text, patterns={"x": pattern if isinstance(pattern, Pattern) else Pattern(pattern)})
        return self._features[1](x=values, W=self.weight)

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.in_channels}, {self.out_channels}, bias={self.bias is not None}"


def _is_strided(x: Any) -> bool:
    return isinstance(x, torch.Tensor) and x.layout == torch.strided


class GATv2(_OnGraph):
    """Graph attention (GATv2): a softmax over the neighbours of a node of ``a . leaky_relu(l[i] + r[j])`` weighs their features ``r[j]``.

    ``adjacency`` is a pattern, or a tensor whose stored elements are the edges, self-loops included if they are wanted; given to the layer
    or to each call. Only numbers of edges and heads are stored, never features of edges.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        adjacency: Any = None,
        heads: int = 1,
        concat: bool = True,
        negative_slope: float = 0.2,
        bias: bool = True,
    ) -> None:
        self.negative_slope, self.heads = negative_slope, heads
        super().__init__(adjacency)
        self.in_channels, self.out_channels, self.concat = in_channels, out_channels, concat
        self.left = nn.Linear(in_channels, heads * out_channels)
        self.right = nn.Linear(in_channels, heads * out_channels)
        self.attention = nn.Parameter(torch.empty(heads, out_channels))
        self.bias = nn.Parameter(torch.zeros(heads * out_channels if concat else out_channels)) if bias else None
        nn.init.xavier_uniform_(self.attention)

    def _bind(self, adjacency: Any) -> Any:
        graph = adjacency if isinstance(adjacency, Pattern) else _construct.tensor(adjacency).pattern
        edges = graph.as_tensor().convert("csr; pattern")
        # The edges once for each head.
        format, ones = "dense, sparse, dense", np.ones(self.heads, dtype="f4")
        pattern = einsum("K[i,j,h] = P[i,j] * o[h]", P=edges, o=ones, format=format).pattern
        edge = "(l[i,h,f] + r[j,h,f])"
        text = f"e[i,j,h] = sum[f](P[i,j] * a[h,f] * {edge} * select({edge} < 0, {float(self.negative_slope)!r}, 1.0))"
        return Notation(text, patterns={"e": pattern}, constants={"P": edges}), RowSoftmax(pattern)

    def forward(self, x: Any, adjacency: Any = None) -> Any:
        """The features of the nodes after a step."""
        scores, softmax = self._functions(adjacency)
        shape = (-1, self.heads, self.out_channels)
        left, right = self.left(x).reshape(shape), self.right(x).reshape(shape)
        made = softmax(scores(a=self.attention, l=left, r=right), right)
        made = made.flatten(1) if self.concat else made.mean(1)
        return made if self.bias is None else made + self.bias

    def extra_repr(self) -> str:
        """The sizes."""
        return f"{self.in_channels}, {self.out_channels}, heads={self.heads}, concat={self.concat}"
