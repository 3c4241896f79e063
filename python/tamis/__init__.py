"""Tamis: sparse and structured tensors, compiled.

>>> import tamis as tm
>>> A = tm.gallery.laplacian(3)
>>> tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=[1.0] * 9).to_numpy()
array([2., 1., 2., 1., 0., 1., 2., 1., 2.])

Tensors: :func:`tensor`, :func:`asarray`, :func:`read`, :func:`write`, :mod:`gallery`. Computing: :func:`einsum`, :func:`program`,
:func:`op`. Looking inside: :func:`explain`, :func:`advise`, :func:`config`.
"""

from __future__ import annotations

import os as _os

from . import _config, _construct, _einsum, _errors, _tamis, gallery
from ._advise import Advice, advise
from ._config import Settings, config
from ._config import current as settings
from ._construct import asarray, tensor
from ._einsum import einsum
from ._errors import (
    Bug,
    Error,
    FileError,
    InvalidIndex,
    InvalidType,
    InvalidValue,
    Span,
    TooLarge,
    UnknownName,
    describe,
)
from ._explain import Explanation, explain
from ._files import read, write
from ._program import Operator, Program, op, program
from ._tensor import Tensor

__version__ = _tamis.__version__

__all__ = [
    "Advice",
    "Bug",
    "Error",
    "Explanation",
    "FileError",
    "InvalidIndex",
    "InvalidType",
    "InvalidValue",
    "Operator",
    "Program",
    "Settings",
    "Span",
    "Tensor",
    "TooLarge",
    "UnknownName",
    "advise",
    "asarray",
    "config",
    "describe",
    "einsum",
    "explain",
    "gallery",
    "op",
    "program",
    "read",
    "settings",
    "tensor",
    "write",
]

_tamis.install(Tensor, _errors._make, _einsum.results, _construct.asarray, _config._scope)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_tamis.forked)
