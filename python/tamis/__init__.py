"""Tamis: sparse and structured tensors, compiled.

>>> import tamis as tm
>>> A = tm.gallery.laplacian(3)
>>> tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=[1.0] * 9).to_numpy()
array([2., 1., 2., 1., 0., 1., 2., 1., 2.])

Tensors: :func:`tensor`, :func:`asarray`, :func:`read`, :func:`write`, :mod:`gallery`. Computing: operators, the functions of the
Array API standard, :mod:`linalg`, :mod:`graph`, :func:`einsum`, :func:`jit`, :func:`kernel`, :func:`program`, :func:`op`. Looking
inside: :func:`explain`, :func:`advise`, :mod:`plot`, :func:`config`.
"""

from __future__ import annotations

import os as _os
import warnings as _warnings
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

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
    SparseEfficiencyWarning,
    TooLarge,
    UnknownName,
    describe,
)
from ._explain import Explanation, explain
from ._files import read, write
from ._program import Operator, Program, op, program
from ._tensor import Tensor
from ._functions import *
from ._functions import __all__ as _elementwise_names
from ._indexing import (
    take,
    take_along_axis,
)
from ._linalg import (
    matmul,
    matrix_transpose,
    outer,
    tensordot,
    vecdot,
)
from ._scipy_methods import issparse
from ._reductions import (
    all,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    mean,
    min,
    prod,
    std,
    sum,
    var,
)

if _TYPE_CHECKING:
    from . import graph as graph
    from . import linalg as linalg
    from . import plot as plot
    from . import torch as torch
    from ._creation import (
        arange,
        empty,
        empty_like,
        eye,
        from_dlpack,
        full,
        full_like,
        linspace,
        meshgrid,
        ones,
        ones_like,
        zeros,
        zeros_like,
    )
    from ._grad import (
        grad,
        jvp,
        value_and_grad,
        vjp,
    )
    from ._index_notation import (
        Expression,
        Index,
        Result,
        call,
        evaluate,
        index,
        indices,
        result,
    )
    from ._columns import (
        LabeledTensor,
        from_columns,
    )
    from ._nan_reductions import (
        nanmax,
        nanmean,
        nanmin,
        nanprod,
        nansum,
    )
    from ._sets import (
        TopK,
        allclose,
        array_equal,
        bincount,
        cumsum,
        flatnonzero,
        isclose,
        isin,
        topk,
    )
    from ._structured import (
        argwhere,
        block_array,
        block_diag,
        bmat,
        diag,
        diags,
        find,
        identity,
        kron,
        kronsum,
        random,
        random_array,
        spdiags,
    )
    from ._updates import (
        at,
    )
    from ._jit import (
        Jit,
        jit,
    )
    from ._kernel import (
        Kernel,
        kernel,
    )
    from ._manipulation import (
        broadcast_arrays,
        broadcast_to,
        concat,
        diagonal,
        expand_dims,
        flip,
        hstack,
        moveaxis,
        pad,
        permute_dims,
        repeat,
        reshape,
        roll,
        squeeze,
        stack,
        swapaxes,
        tile,
        trace,
        tril,
        triu,
        unstack,
        vstack,
    )
    from ._pattern import (
        CacheInfo,
        Pattern,
        cache_info,
        cache_limit,
    )
    from ._search import (
        UniqueAll,
        UniqueCounts,
        UniqueInverse,
        argsort,
        cumulative_prod,
        cumulative_sum,
        diff,
        nonzero,
        searchsorted,
        sort,
        unique,
        unique_all,
        unique_counts,
        unique_inverse,
        unique_values,
    )
    from ._namespace import (
        astype,
        can_cast,
        complex128,
        complex64,
        e,
        finfo,
        float32,
        float64,
        iinfo,
        inf,
        int16,
        int32,
        int64,
        int8,
        isdtype,
        nan,
        newaxis,
        pi,
        result_type,
        uint16,
        uint32,
        uint64,
        uint8,
    )
    from ._namespace import __array_api_version__, __array_namespace_info__
    from ._namespace import bool_ as bool

__version__ = _tamis.__version__

#: Submodules and functions that are loaded lazily on first access, so that importing the package stays fast.
_LATER = {
    "_columns": (
        "LabeledTensor from_columns"
    ).split(),
    "_nan_reductions": (
        "nanmax nanmean nanmin nanprod nansum"
    ).split(),
    "_sets": (
        "TopK allclose array_equal bincount cumsum flatnonzero isclose isin topk"
    ).split(),
    "_structured": (
        "argwhere block_array block_diag bmat diag diags find identity kron kronsum random random_array spdiags"
    ).split(),
    "_updates": (
        "at"
    ).split(),
    "_creation": (
        "arange empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like zeros zeros_like"
    ).split(),
    "_grad": (
        "grad jvp value_and_grad vjp"
    ).split(),
    "_index_notation": (
        "Expression Index Result call evaluate index indices result"
    ).split(),
    "_jit": (
        "Jit jit"
    ).split(),
    "_kernel": (
        "Kernel kernel"
    ).split(),
    "_manipulation": (
        "broadcast_arrays broadcast_to concat diagonal expand_dims flip hstack moveaxis pad permute_dims repeat reshape "
        "roll squeeze stack swapaxes tile trace tril triu unstack vstack"
    ).split(),
    "_pattern": (
        "CacheInfo Pattern cache_info cache_limit"
    ).split(),
    "_search": (
        "UniqueAll UniqueCounts UniqueInverse argsort cumulative_prod cumulative_sum diff nonzero searchsorted sort "
        "unique unique_all unique_counts unique_inverse unique_values"
    ).split(),
    "_namespace": (
        "astype can_cast complex128 complex64 e finfo float32 float64 iinfo inf int16 int32 int64 int8 isdtype nan "
        "newaxis pi result_type uint16 uint32 uint64 uint8 __array_api_version__ __array_namespace_info__ bool"
    ).split(),
}
_PLACES = {name: module for module, names in _LATER.items() for name in names}


def __getattr__(name: str) -> _Any:
    from importlib import import_module

    if name in ("graph", "linalg", "plot", "torch"):
        return import_module(f".{name}", __name__)
    place = _PLACES.get(name)
    if place is None:
        raise AttributeError(f"module 'tamis' has no attribute {name!r}")
    found = getattr(import_module(f".{place}", __name__), "bool_" if name == "bool" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Advice",
    "Bug",
    "CacheInfo",
    "Error",
    "Explanation",
    "Expression",
    "FileError",
    "Index",
    "InvalidIndex",
    "InvalidType",
    "InvalidValue",
    "Jit",
    "Kernel",
    "LabeledTensor",
    "Operator",
    "Pattern",
    "Program",
    "Result",
    "Settings",
    "Span",
    "SparseEfficiencyWarning",
    "Tensor",
    "TooLarge",
    "TopK",
    "UniqueAll",
    "UniqueCounts",
    "UniqueInverse",
    "UnknownName",
    "__array_api_version__",
    "__array_namespace_info__",
    "advise",
    "all",
    "allclose",
    "any",
    "arange",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "array_equal",
    "asarray",
    "astype",
    "at",
    "bincount",
    "block_array",
    "block_diag",
    "bmat",
    "bool",
    "broadcast_arrays",
    "broadcast_to",
    "cache_info",
    "cache_limit",
    "call",
    "can_cast",
    "complex128",
    "complex64",
    "concat",
    "config",
    "count_nonzero",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "describe",
    "diag",
    "diagonal",
    "diags",
    "diff",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "evaluate",
    "expand_dims",
    "explain",
    "eye",
    "find",
    "finfo",
    "flatnonzero",
    "flip",
    "float32",
    "float64",
    "from_columns",
    "from_dlpack",
    "full",
    "full_like",
    "gallery",
    "grad",
    "graph",
    "hstack",
    "identity",
    "iinfo",
    "index",
    "indices",
    "inf",
    "int16",
    "int32",
    "int64",
    "int8",
    "isclose",
    "isdtype",
    "isin",
    "issparse",
    "jit",
    "jvp",
    "kernel",
    "kron",
    "kronsum",
    "linalg",
    "linspace",
    "matmul",
    "matrix_transpose",
    "max",
    "mean",
    "meshgrid",
    "min",
    "moveaxis",
    "nan",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nansum",
    "newaxis",
    "nonzero",
    "ones",
    "ones_like",
    "op",
    "outer",
    "pad",
    "permute_dims",
    "pi",
    "plot",
    "prod",
    "program",
    "random",
    "random_array",
    "read",
    "repeat",
    "reshape",
    "result",
    "result_type",
    "roll",
    "searchsorted",
    "settings",
    "sort",
    "spdiags",
    "squeeze",
    "stack",
    "std",
    "sum",
    "swapaxes",
    "take",
    "take_along_axis",
    "tensor",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "tril",
    "triu",
    "uint16",
    "uint32",
    "uint64",
    "uint8",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
    "unstack",
    "value_and_grad",
    "var",
    "vecdot",
    "vjp",
    "vstack",
    "write",
    "zeros",
    "zeros_like",
]
__all__ += _elementwise_names

_tamis.install(Tensor, _errors._make, _einsum.results, _construct.asarray, _errors._warn, _config._scope)
if hasattr(_os, "register_at_fork"):
    _os.register_at_fork(after_in_child=_tamis.forked)
if _mistake := _tamis.threads_mistaken():
    _warnings.warn(f"{_mistake}; every core is used", RuntimeWarning, stacklevel=2)
