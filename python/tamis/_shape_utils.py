"""Shapes and axes: normalization, broadcasting and size limits, by NumPy's rules."""

from __future__ import annotations

import math
import operator
from typing import Any, Iterable, Sequence

from . import _tamis
from ._config import current
from ._errors import fail

Shape = tuple[int, ...]


def normalize_axis(axis: Any, rank: int) -> int:
    """Normalizes an axis to ``0..rank``."""
    try:
        found = operator.index(axis)
    except TypeError:
        raise fail(
            "E0305", f"an axis is an integer, not {axis!r}", "axes start at 0; -1 is the last one"
        ) from None
    if not -rank <= found < rank:
        there = f"axes are {-rank}..{rank - 1}" if rank else "a tensor without dimensions has no axes"
        raise fail("E1001", f"axis {found} is out of bounds for {rank} dimensions", there)
    return found % rank


def normalize_axes(axis: Any, rank: int) -> tuple[int, ...]:
    """Normalizes axes and sorts them; ``None`` means all axes."""
    if axis is None:
        return tuple(range(rank))
    found = [normalize_axis(a, rank) for a in axis] if isinstance(axis, (tuple, list)) else [normalize_axis(axis, rank)]
    if len(set(found)) != len(found):
        raise fail("E0401", f"an axis is named twice in {axis!r}", "name each axis once")
    return tuple(sorted(found))


def broadcast_shapes(shapes: Iterable[Shape]) -> Shape:
    """The common shape of operands after broadcasting, as :func:`numpy.broadcast_shapes`.

    >>> from tamis._shape_utils import broadcast_shapes
    >>> broadcast_shapes([(3, 1), (4,)])
    (3, 4)
    """
    given = list(shapes)
    rank = max((len(shape) for shape in given), default=0)
    result = [1] * rank
    for shape in given:
        for d, n in enumerate(shape, rank - len(shape)):
            if n == result[d] or n == 1:
                continue
            if result[d] != 1:
                text = " and ".join(str(shape) for shape in given)
                raise fail(
                    "E0402",
                    f"shapes {text} cannot be broadcast: dimension {d - rank} is {result[d]} and {n}",
                    "dimensions are compared from the last one; sizes are equal, or one of them is 1",
                    "`x[:, None]` adds a dimension of size 1",
                )
            result[d] = n
    return tuple(result)


def num_elements(shape: Iterable[int]) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)


def format_bytes(size: float) -> str:
    """A number of bytes with a decimal unit.

    >>> from tamis._shape_utils import format_bytes
    >>> format_bytes(80_000_000_000)
    '80.0 GB'
    """
    for unit, name in ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{int(size)} bytes"


def check_size(what: str, shape: Shape, entries: int, itemsize: int) -> None:
    """Raises E0706 if a result of ``entries`` stored elements exceeds ``config(dense_limit=...)``."""
    limit = current().dense_limit
    if entries * itemsize <= limit:
        return
    by = " x ".join(map(str, shape))
    raise fail(
        "E0706",
        f"`{what}` would store up to {entries:.3g} of the elements of a {by} tensor, {format_bytes(entries * itemsize)}",
        "keep operands sparse: a dense or broadcast operand makes the result dense, unless it is a factor",
        f"results of more than {format_bytes(limit)} need permission: raise `tamis.config(dense_limit=...)`",
    )


def check_dimensions(shape: Shape) -> Shape:
    """The shape; raises E0404 if a dimension has more coordinates than 64 bits number."""
    for n in shape:
        if n >= 1 << 63:
            raise fail("E0404", f"a dimension of size {n} is too large", "a dimension has at most 2**63 - 1 coordinates")
    return shape


def as_shape(shape: Any) -> Shape:
    """Normalizes a shape argument: an integer, or a sequence of integers."""
    given: Sequence[Any] = shape if isinstance(shape, (tuple, list)) else (shape,)
    sizes = []
    for n in given:
        if not hasattr(n, "__index__") or operator.index(n) < 0:
            raise fail("E0403", f"{n!r} is not the size of a dimension", "sizes are integers, 0 or more")
        sizes.append(operator.index(n))
    return check_dimensions(tuple(sizes))


def is_strided(tensor: _tamis.Tensor) -> bool:
    """Whether all levels are dense, so that every element is stored (PyTorch's strided layout)."""
    return tensor.is_dense or (not tensor.is_pattern and all(level == "dense" for level in tensor.levels))


def format_levels(tensor: _tamis.Tensor) -> str:
    """The text of a format without its leaf."""
    return tensor.format.split(";")[0].strip()


def default_sparse_format(rank: int) -> str:
    """The default sparse format of a rank: ``sparse``, ``csr`` or ``csf``."""
    return {0: "dense", 1: "sparse", 2: "csr"}.get(rank, "csf")
