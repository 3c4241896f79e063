"""Layers of PyTorch whose weights, graphs or masks are sparse: their parameters are values on patterns.

Imported on first use, and only where PyTorch is installed. Each layer is an ordinary ``torch.nn.Module``: optimizers, ``state_dict``,
``copy.deepcopy``, ``.to(dtype)`` and ``torch.compile`` work. The functions of the package take PyTorch tensors without this module.
"""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError:
    raise ModuleNotFoundError("`tamis.torch` needs PyTorch, which is not installed: `pip install torch`", name="torch") from None

from .._torch_layouts import SparseTensor
from ._attention import SparseAttention
from ._convolution import SparseConv
from ._graph import GATv2, GraphConv, normalized
from ._linear import SparseLinear, magnitude_mask
from ._notation import Notation

__all__ = [
    "GATv2",
    "GraphConv",
    "Notation",
    "SparseAttention",
    "SparseConv",
    "SparseLinear",
    "SparseTensor",
    "magnitude_mask",
    "normalized",
]
