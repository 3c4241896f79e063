"""Return types: which library's array an operator gives, and numbers of full reductions.

An operator of a tensor and an array of NumPy's (or PyTorch's) gives an array of that library where the result is dense; a sparse
result stays a tensor, and so does every result of tensors alone. A method that reduces a whole tensor gives a number of Python's.
``tamis.config(returns="tensors")`` turns both off. The functions of the package (``tamis.matmul``, ``tamis.sum``) always give
tensors, as the Array API standard asks of them.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Sequence

from . import _tamis
from ._config import current
from ._errors import fail
from ._lazy_import import np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def number(made: Any) -> Any:
    """A tensor without dimensions as a number of Python's; anything else as it is.

    >>> import json, tamis as tm
    >>> total = tm.tensor([[1.5, 0.0], [0.0, 2.0]], format="csr").sum()
    >>> f"{total:.2f}", total > 3, json.dumps({"total": total})
    ('3.50', True, '{"total": 3.5}')
    """
    if isinstance(made, _tamis.Tensor) and not made.ndim and current().returns == "operands":
        return made.element([]).item()
    return made


def library_of(operand: Any) -> str:
    """``"numpy"`` or ``"torch"`` where an operand is one of their dense arrays and results shall be, else ``""``.

    >>> import numpy as np
    >>> from tamis._returns import library_of
    >>> library_of(np.ones(2)), library_of([1, 2])
    ('numpy', '')
    """
    if isinstance(operand, np.ndarray):
        return "numpy" if current().returns == "operands" else ""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(operand, torch.Tensor) and operand.layout == torch.strided:
        return "torch" if current().returns == "operands" else ""
    return ""


def written(made: Any, library: str) -> Any:
    """A dense result as an array of a library; a sparse one as it is.

    >>> import tamis as tm
    >>> from tamis._returns import written
    >>> written(tm.ones(2), "numpy")
    array([1., 1.])
    """
    if not library or not isinstance(made, _tamis.Tensor) or not made.is_dense:
        return made
    return made.to_torch() if library == "torch" else made._written_array(0)  # type: ignore[attr-defined]


def like(compute: Callable[..., Any], name: str, a: Any, b: Any) -> Any:
    """``compute(name, a, b)``, as an array of the library that an operand comes from if it is dense."""
    made = compute(name, a, b)
    return written(made, library_of(a) or library_of(b))


def writer(arrays: Sequence[Any]) -> Callable[..., list[Any]]:
    """A function like ``_tamis.einsum`` that writes results into arrays; it gives those that could not be written there directly.

    >>> import numpy as np
    >>> from tamis._returns import writer
    >>> y = np.zeros(2)
    >>> writer([y])("y[i] = 2 * x[i]", [1.0, 2.0], format="dense"), y
    ([None], array([2., 4.]))
    """

    def compute(text: str, *operands: Any, **options: Any) -> list[Any]:
        return _tamis.einsum_into(text, arrays, *operands, **options)

    return compute


def into(out: NDArray[Any]) -> Callable[..., Any]:
    """A function like ``_tamis.einsum`` whose dense result is the array, if it can be written there directly."""
    write = writer([out])

    def compute(text: str, *operands: Any, format: Any = None, **options: Any) -> Any:
        (made,) = write(text, *operands, format="dense", **options)
        return out if made is None else made

    return compute


def store(made: Any, out: NDArray[Any]) -> Any:
    """Writes a result into an array of NumPy's: ``x += A @ b``, ``numpy.add(x, A, out=x)``.

    >>> import numpy as np, tamis as tm
    >>> x = np.ones(2)
    >>> x += tm.tensor([0.0, 2.0], format="sparse")
    >>> x
    array([1., 3.])
    """
    if made is out:
        return out
    array = made if isinstance(made, np.ndarray) else np.asarray(made)
    if np.broadcast_shapes(array.shape, out.shape) != out.shape:
        raise fail(
            "E0402", f"a result of shape {array.shape} does not fit an array of shape {out.shape}", "write `x = x + A` for a new one"
        )
    np.copyto(out, array, casting="same_kind")
    return out
