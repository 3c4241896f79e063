"""NumPy's functions on tensors (``__array_function__``): answered without densifying, or refused with the size.

A function of NumPy's that the package has is the package's. Any other takes dense tensors only, as arrays; given a sparse one it
is refused, and the error tells how large the array would be.
"""

from __future__ import annotations

from typing import Any, Callable

from . import _tamis
from ._errors import fail
from ._lazy_import import np
from ._returns import library_of, written
from ._shape_utils import format_bytes, is_strided, num_elements

#: Functions whose name and arguments are the same in the package.
_SAME = (
    "sum prod mean std var min max any all argmax argmin count_nonzero nansum nanprod nanmin nanmax nanmean cumsum "
    "where stack hstack vstack tensordot outer kron expand_dims squeeze reshape ravel flip roll tile repeat tril triu "
    "diagonal trace diag moveaxis swapaxes broadcast_to broadcast_arrays unique bincount isin isclose allclose "
    "array_equal nonzero flatnonzero argwhere pad diff clip round real imag take take_along_axis sort argsort searchsorted "
    "zeros_like ones_like full_like empty_like einsum copy matmul dot vdot inner"
).split()

#: Functions of another name in the package.
_RENAMED = {
    "amax": "max",
    "amin": "min",
    "around": "round",
    "concatenate": "concat",
    "transpose": "permute_dims",
    "permute_dims": "permute_dims",
    "concat": "concat",
    "unstack": "unstack",
    "matrix_transpose": "matrix_transpose",
    "vecdot": "vecdot",
    "cumulative_sum": "cumulative_sum",
    "cumulative_prod": "cumulative_prod",
    "unique_values": "unique_values",
    "unique_counts": "unique_counts",
    "unique_inverse": "unique_inverse",
    "unique_all": "unique_all",
    "astype": "astype",
}

#: Functions of ``numpy.linalg``.
_LINALG = "norm solve lstsq matmul tensordot outer trace diagonal matrix_transpose vecdot vector_norm matrix_norm".split()

#: Options that mean the same here; others are refused unless they are left at their default.
_OPTIONS = {
    "axis", "axes", "keepdims", "dtype", "k", "offset", "shape", "return_index", "return_inverse", "return_counts", "weights",
    "minlength", "rtol", "atol", "equal_nan", "invert", "correction", "repeats", "shift", "mode", "constant_values", "n",
    "decimals", "ord", "side", "sorter", "axis1", "axis2", "source", "destination", "pad_width", "min", "max",
    "fill_value", "indices", "ddof",
}  # fmt: skip


def call(function: Callable[..., Any], args: Any, options: dict[str, Any]) -> Any:
    """The answer to one of NumPy's functions with a tensor among its arguments.

    >>> import numpy as np, tamis as tm
    >>> A = tm.eye(10**6, format="csr")
    >>> float(np.sum(A)), np.linalg.norm(A)
    (1000000.0, 1000.0)
    >>> try:
    ...     np.median(A)
    ... except tm.TooLarge as error:
    ...     print(error.message)
    `numpy.median` needs an array of every element: 1000000 x 1000000 values, 8.0 TB, where 1,000,000 are stored
    """
    name, module = function.__name__, function.__module__ or ""
    given = {key: value for key, value in options.items() if value is not None and value is not np._NoValue}
    ours = _handler(name, module)
    out = given.pop("out", None)
    if ours is not None and set(given) <= _OPTIONS and not (out is not None and not isinstance(out, np.ndarray)):
        made = ours(*args, **given)
        made = written(made, _library(args))
        if out is None:
            return made
        from ._returns import store

        return store(made, out)
    _refuse_sparse(f"{module}.{name}", (args, options))
    return function(*_as_arrays(args), **_as_arrays(options))


def _library(args: Any) -> str:
    return next(filter(None, map(library_of, args)), "")


def _handler(name: str, module: str) -> Callable[..., Any] | None:
    import tamis

    if module == "numpy.linalg":
        return getattr(tamis.linalg, name) if name in _LINALG else None
    if module != "numpy":
        return None
    special = _SPECIAL.get(name)
    if special is not None:
        return special
    ours = name if name in _SAME else _RENAMED.get(name)
    return None if ours is None else getattr(tamis, ours, None)


def _tensors(given: Any) -> Any:
    """The tensors in arguments."""
    if isinstance(given, _tamis.Tensor):
        yield given
    elif isinstance(given, (list, tuple)):
        for part in given:
            yield from _tensors(part)
    elif isinstance(given, dict):
        yield from _tensors(list(given.values()))


def _refuse_sparse(name: str, given: Any) -> None:
    for tensor in _tensors(given):
        if is_strided(tensor):
            continue
        count = num_elements(tensor.shape)
        raise fail(
            "E0706",
            f"`{name}` needs an array of every element: {' x '.join(map(str, tensor.shape))} values, "
            f"{format_bytes(count * tensor.dtype.itemsize)}, where {tensor.nnz:,} are stored",
            "`t.to_numpy()` makes that array",
            "`t.to_scipy()` gives an array of SciPy's, `t.to_coo()` coordinates and values",
            "`tamis.op` defines functions of elements for `tamis.einsum`",
        )


def _as_arrays(given: Any) -> Any:
    """Dense tensors in arguments as arrays; values that are traced say what is wrong."""
    from ._operators import Operators

    if isinstance(given, Operators):
        return np.asarray(given)
    if isinstance(given, (list, tuple)):
        return type(given)(_as_arrays(part) for part in given)
    return {key: _as_arrays(part) for key, part in given.items()} if isinstance(given, dict) else given


def _dot(a: Any, b: Any) -> Any:
    from . import _elementwise, _linalg

    if _elementwise.is_number(a) or _elementwise.is_number(b):
        return _elementwise.apply("multiply", a, b)
    ranks = np.ndim(a), np.ndim(b)
    if max(ranks) > 2 and ranks[1] > 1:
        return _linalg.tensordot(a, b, axes=([ranks[0] - 1], [ranks[1] - 2]))
    return _linalg.product(a, b)


def _vdot(a: Any, b: Any) -> Any:
    import tamis

    a, b = tamis.asarray(a), tamis.asarray(b)
    return tamis.vecdot(a.ravel(), b.ravel())


def _inner(a: Any, b: Any) -> Any:
    import tamis

    a, b = tamis.asarray(a), tamis.asarray(b)
    return tamis.tensordot(a, b, axes=([a.ndim - 1], [b.ndim - 1]))


def _average(a: Any, axis: Any = None, weights: Any = None, **options: Any) -> Any:
    import tamis

    if weights is None:
        return tamis.mean(a, axis=axis, **options)
    w = np.asarray(weights)
    a = tamis.asarray(a)
    if axis is not None and w.ndim == 1 and a.ndim > 1:
        w = w.reshape([len(w) if d == axis % a.ndim else 1 for d in range(a.ndim)])
    return tamis.sum(a * w, axis=axis, **options) / (w.sum() if axis is not None or w.shape == a.shape else w.sum())


def _spread(name: str) -> Callable[..., Any]:
    def compute(a: Any, axis: Any = None, dtype: Any = None, ddof: float = 0, correction: float = 0, keepdims: bool = False) -> Any:
        import tamis

        a = a if dtype is None else tamis.astype(a, dtype)
        return getattr(tamis, name)(a, axis=axis, correction=ddof or correction, keepdims=keepdims)

    return compute


def _reduction(name: str) -> Callable[..., Any]:
    def compute(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        import tamis

        a = a if dtype is None else tamis.astype(a, dtype)
        return getattr(tamis, name)(a, axis=axis, keepdims=keepdims)

    return compute



def _flip(axis: int) -> Callable[[Any], Any]:
    def compute(m: Any) -> Any:
        import tamis

        return tamis.flip(m, axis=axis)

    return compute


def _einsum(*operands: Any) -> Any:
    import tamis

    made = tamis.einsum(*operands)
    return written(made, _library(operands))


def _ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Any:
    import tamis

    return tamis.max(a, axis=axis, keepdims=keepdims) - tamis.min(a, axis=axis, keepdims=keepdims)


def _nonzero(a: Any) -> Any:
    return tuple(np.asarray(column) for column in a.nonzero())


def _size(a: Any, axis: int | None = None) -> int:
    return int(num_elements(a.shape) if axis is None else a.shape[axis])


def _take(a: Any, indices: Any, axis: int | None = None) -> Any:
    import tamis

    return tamis.take(a, indices, axis=axis)


def _transposed(a: Any, axes: Any = None) -> Any:
    return a.transpose(axes)


def _columns(tup: Any) -> Any:
    import tamis

    parts = [tamis.asarray(t) for t in tup]
    return tamis.hstack([tamis.expand_dims(p, 1) if p.ndim == 1 else p for p in parts])


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    import tamis

    return tamis.concat([arr, values], axis=axis)


def _text(a: Any, *given: Any, **options: Any) -> str:
    return repr(a)


def _round(a: Any, decimals: int = 0) -> Any:
    return round(a, decimals)


def _clip(a: Any, a_min: Any = None, a_max: Any = None, **options: Any) -> Any:
    import tamis

    return tamis.clip(a, options.get("min", a_min), options.get("max", a_max))


#: Functions whose arguments differ.
_SPECIAL: dict[str, Callable[..., Any]] = {
    **{name: _reduction(name) for name in "sum prod mean min max any all nansum nanprod nanmin nanmax nanmean".split()},
    "amax": _reduction("max"),
    "amin": _reduction("min"),
    "std": _spread("std"),
    "var": _spread("var"),
    "dot": _dot,
    "vdot": _vdot,
    "inner": _inner,
    "average": _average,
    "fliplr": _flip(1),
    "flipud": _flip(0),
    "einsum": _einsum,
    "ptp": _ptp,
    "nonzero": _nonzero,
    "take": _take,
    "transpose": _transposed,
    "column_stack": _columns,
    "append": _append,
    "clip": _clip,
    "round": _round,
    "around": _round,
    "shape": lambda a: a.shape,
    "ndim": lambda a: a.ndim,
    "size": _size,
    "copy": lambda a, **options: a.copy(),
    "ravel": lambda a, order="C": a.ravel(),
    "iscomplexobj": lambda x: x.dtype.kind == "c",
    "isrealobj": lambda x: x.dtype.kind != "c",
    "array_repr": _text,
    "array_str": _text,
    "array2string": _text,
    "result_type": lambda *given: np.result_type(*(x.dtype if isinstance(x, _tamis.Tensor) else x for x in given)),
    "can_cast": lambda from_, to, casting="safe": np.can_cast(from_.dtype, to, casting),
    "common_type": lambda *arrays: np.result_type(*(x.dtype for x in arrays), np.float16).type,
    "may_share_memory": lambda a, b, max_work=None: any(
        np.may_share_memory(x, y) for x in _memory(a) for y in _memory(b)
    ),
    "shares_memory": lambda a, b, max_work=None: any(np.shares_memory(x, y) for x in _memory(a) for y in _memory(b)),
}


def _memory(x: Any) -> list[Any]:
    if not isinstance(x, _tamis.Tensor):
        return [x]
    return [] if x.values is None else [x.values]
