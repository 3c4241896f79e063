"""Structured matrices: from diagonals, from blocks, Kronecker products, and random ones; as ``scipy.sparse`` names them.

Every result is sparse, ``csr`` unless a format is named, and costs what it stores.
"""

from __future__ import annotations

import itertools
import math
import operator
from typing import TYPE_CHECKING, Any, Sequence

from . import _construct, _tamis
from ._coordinates import as_tensor, check_nnz, to_coordinates
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import as_shape, check_dimensions, check_size, default_sparse_format, is_strided

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, DTypeLike, NDArray

    from ._tensor import Tensor

#: SciPy's names of formats that have another name here.
_FORMATS = {"dia": "(i,j) -> (j-i, i): sparse, dense", "bsr": "bsr(2,2)"}


def _build(columns: Sequence[Any], values: Any, shape: tuple[int, ...], format: str | None, duplicates: str = "error") -> Tensor:
    format = _FORMATS.get(format or "", format)
    arrays = [np.ascontiguousarray(column, dtype=np.int64) for column in columns]
    return _construct.from_coordinates(arrays, values, shape, format, None, None, duplicates)


def _entries(x: Any, what: str) -> tuple[Tensor, list[NDArray[np.int64]], NDArray[Any]]:
    """A matrix whose fill is 0, and what it stores."""
    t = as_tensor(x)
    if is_strided(t):
        array = t._readable()
        places = np.nonzero(array)
        return t, list(places), array[places]
    if t.fill_value:
        raise fail(
            "E0709",
            f"the fill value is {t.fill_value}, and `{what}` fills with 0",
            "subtract the fill value first: `t - t.fill_value`",
        )
    columns, values = to_coordinates(t)
    return t, columns, values


def diags(
    diagonals: Any,
    offsets: int | Sequence[int] = 0,
    shape: tuple[int, int] | None = None,
    format: str | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """A matrix from its diagonals; a number is repeated along a diagonal.

    >>> import tamis as tm
    >>> tm.diags([[1, 2, 3], [4, 5]], [0, 1]).to_numpy()
    array([[1, 4, 0],
           [0, 2, 5],
           [0, 0, 3]])
    >>> tm.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(10**6, 10**6)).nnz
    2999998
    """
    if np.ndim(offsets) == 0:
        offsets = [operator.index(offsets)]  # type: ignore[arg-type]
        if len(diagonals) == 0 or np.ndim(diagonals[0]) == 0:
            diagonals = [diagonals]
    places = [operator.index(k) for k in offsets]  # type: ignore[union-attr]
    parts = [np.atleast_1d(_array(d)) for d in diagonals]
    if len(parts) != len(places):
        raise fail("E0401", f"{len(parts)} diagonals are given, and {len(places)} offsets", "give one offset for each diagonal")
    if len(set(places)) != len(places):
        raise fail("E0401", "an offset is given twice", "name each diagonal once")
    if shape is None:
        if not parts:
            raise fail("E0401", "the shape of a matrix without diagonals is not known", "give `shape=`")
        n = len(parts[0]) + abs(places[0])
        shape = n, n
    rows, columns = as_shape(shape)
    found: list[tuple[Any, Any, Any]] = []
    for part, k in zip(parts, places):
        length = max(0, min(rows + min(k, 0), columns - max(k, 0)))
        check_size("diags", (rows, columns), length, part.dtype.itemsize + 16)
        if len(part) not in (1, length):
            raise fail(
                "E0402",
                f"the diagonal at offset {k} has {len(part)} elements, and a {rows} x {columns} matrix has {length} there",
                "give one number for each element of the diagonal, or one for all",
            )
        along = np.arange(length)
        found.append((along - min(k, 0), along + max(k, 0), np.broadcast_to(part, (length,))))
    kind = np.result_type(*(values.dtype for _, _, values in found)) if dtype is None and found else np.dtype(float)
    from ._tensor import dtype_of

    kind = kind if dtype is None else dtype_of(dtype)
    i, j, values = (np.concatenate([part[p] for part in found] or [np.zeros(0)]) for p in range(3))
    return _build([i, j], values.astype(kind), (rows, columns), format)


def _array(given: Any) -> NDArray[Any]:
    return given._readable() if isinstance(given, _tamis.Tensor) else np.asarray(given)  # type: ignore[attr-defined, no-any-return]


def diag(v: Any, k: int = 0, *, format: str | None = None) -> Tensor:
    """The diagonal of a matrix; of a vector, the sparse matrix that has it as its diagonal.

    >>> import tamis as tm
    >>> tm.diag([1, 2]).to_numpy()
    array([[1, 0],
           [0, 2]])
    >>> tm.diag(tm.eye(3, format="csr")).nnz
    3
    """
    t = as_tensor(v)
    if t.ndim == 1 and not is_strided(t):
        n = t.shape[0] + abs(k)
        _, (place,), values = _entries(t, "diag")
        return _build([place - min(k, 0), place + max(k, 0)], values, (n, n), format or ("csr" if n <= 1 << 28 else "coo"))
    if t.ndim == 1:
        return diags([t._readable()], [k], format=format)
    from ._manipulation import diagonal

    return diagonal(t, offset=k)


def block_array(blocks: Sequence[Sequence[Any]], *, format: str | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """A matrix from a grid of blocks, where ``None`` is a block of zeros.

    >>> import tamis as tm
    >>> A = tm.eye(2, format="csr")
    >>> tm.block_array([[A, None], [[[7.0, 8.0]], [[9.0]]]]).to_numpy()
    array([[1., 0., 0.],
           [0., 1., 0.],
           [7., 8., 9.]])
    """
    grid = [list(row) for row in blocks]
    if not grid or any(len(row) != len(grid[0]) for row in grid) or not grid[0]:
        raise fail("E0401", "the blocks are no grid", "give rows of equally many blocks; `None` is a block of zeros")
    heights: list[int | None] = [None] * len(grid)
    widths: list[int | None] = [None] * len(grid[0])
    found = []
    for r, row in enumerate(grid):
        for c, block in enumerate(row):
            if block is None:
                continue
            t, columns, values = _entries(_matrix(block), "block_array")
            for sizes, place, n, what in ((heights, r, t.shape[0], "row"), (widths, c, t.shape[1], "column")):
                if sizes[place] not in (None, n):
                    raise fail(
                        "E0402", f"blocks in {what} {place} of the grid have sizes {sizes[place]} and {n}", "give blocks that fit"
                    )
                sizes[place] = n
            found.append((r, c, columns, values))
    for name, sizes in (("row", heights), ("column", widths)):
        if None in sizes:
            raise fail("E0401", f"{name} {sizes.index(None)} of the grid has only `None`, so its size is not known", "give a block of zeros")
    tops, lefts = ([0, *itertools.accumulate(n or 0 for n in sizes)] for sizes in (heights, widths))
    shape = check_dimensions((tops[-1], lefts[-1]))
    rows = [columns[0] + tops[r] for r, _, columns, _ in found]
    return _together(rows, [columns[1] + lefts[c] for _, c, columns, _ in found], [v for *_, v in found], shape, format, dtype)


def _matrix(block: Any) -> Any:
    t = as_tensor(block)
    if t.ndim > 2:
        raise fail("E0401", f"a tensor of {t.ndim} dimensions is no block of a matrix", "give matrices")
    from ._manipulation import reshape

    return t if t.ndim == 2 else reshape(t, (1, -1) if t.ndim and t.shape[0] else (1, t.shape[0] if t.ndim else 1))


def _together(rows: Any, columns: Any, values: Any, shape: tuple[int, ...], format: str | None, dtype: Any) -> Tensor:
    from ._tensor import dtype_of

    kind = np.result_type(*(v.dtype for v in values)) if values and dtype is None else dtype_of(float if dtype is None else dtype)
    if format is None:
        format = "csr" if shape[0] <= 1 << 28 else "dcsr"
    joined = np.concatenate([v.astype(kind) for v in values]) if values else np.zeros(0, dtype=kind)
    none = [np.zeros(0, dtype=np.int64)]
    return _build([np.concatenate(rows or none), np.concatenate(columns or none)], joined, shape, format)


bmat = block_array


def block_diag(mats: Sequence[Any], format: str | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """A matrix with blocks along its diagonal.

    >>> import tamis as tm
    >>> tm.block_diag([[[1, 2]], [[3], [4]]]).to_numpy()
    array([[1, 2, 0],
           [0, 0, 3],
           [0, 0, 4]])
    """
    rows, columns, values = [], [], []
    top = left = 0
    for mat in mats:
        t, (i, j), v = _entries(_matrix(mat), "block_diag")
        rows.append(i + top)
        columns.append(j + left)
        values.append(v)
        top, left = top + t.shape[0], left + t.shape[1]
    return _together(rows, columns, values, check_dimensions((top, left)), format, dtype)


def kron(a: Any, b: Any, format: str | None = None) -> Tensor:
    """The Kronecker product: every element of the first times the whole second.

    >>> import tamis as tm
    >>> tm.kron(tm.eye(2, format="csr"), [[1, 2]]).to_numpy()
    array([[1., 2., 0., 0.],
           [0., 0., 1., 2.]])
    """
    a, (i, j), v = _entries(_matrix(a), "kron")
    b, (k, m), w = _entries(_matrix(b), "kron")
    shape = check_dimensions((a.shape[0] * b.shape[0], a.shape[1] * b.shape[1]))
    check_nnz("kron", a, shape, len(v) * len(w))
    rows = (i[:, None] * b.shape[0] + k).ravel()
    columns = (j[:, None] * b.shape[1] + m).ravel()
    return _together([rows], [columns], [(v[:, None] * w).ravel()], shape, format, None)


def kronsum(a: Any, b: Any, format: str | None = None) -> Tensor:
    """The Kronecker sum of square matrices: ``kron(I, a) + kron(b, I)``.

    >>> import tamis as tm
    >>> tm.kronsum(tm.diag([1, 2]), tm.diag([10, 20])).diagonal().to_numpy()
    array([11., 12., 21., 22.])
    """
    from ._creation import eye

    a, b = as_tensor(a), as_tensor(b)
    for t in (a, b):
        if t.ndim != 2 or t.shape[0] != t.shape[1]:
            raise fail("E0401", f"a Kronecker sum is of square matrices, not of shape {t.shape}", "`tamis.kron` takes any")
    kind = np.result_type(a.dtype, b.dtype, float)
    made: Tensor = kron(eye(b.shape[0], format="csr", dtype=kind), a) + kron(b, eye(a.shape[0], format="csr", dtype=kind))
    return made if format is None else made.convert(format)


def identity(n: int, dtype: DTypeLike | None = None, format: str | None = None) -> Tensor:
    """The identity matrix, sparse.

    >>> import tamis as tm
    >>> tm.identity(10**6).nnz
    1000000
    """
    from ._creation import eye

    return eye(n, dtype=dtype, format=format or "csr")


def random(
    *shape: Any,
    density: float = 0.01,
    format: str | None = None,
    dtype: DTypeLike | None = None,
    rng: Any = None,
    data_rvs: Any = None,
) -> Tensor:
    """A tensor with so large a share of elements at random places, uniformly distributed in [0, 1) or from ``data_rvs(count)``.

    >>> import tamis as tm
    >>> tm.random(100, 200, density=0.05, rng=0)
    <tamis.Tensor 100x200 f64 csr, 1000 stored>
    ...
    >>> tm.random((4, 5, 6), density=0.1).nnz
    12
    """
    if len(shape) > 1 and isinstance(shape[-1], float):
        shape, density = shape[:-1], shape[-1]
    sizes = as_shape(shape[0] if len(shape) == 1 else shape)
    if not 0 <= density <= 1:
        raise fail("E0709", f"the density {density} is not a share", "give a number between 0 and 1")
    source = np.random.default_rng(rng) if not hasattr(rng, "random_sample") else rng
    total = math.prod(sizes)
    count = round(density * total)
    check_size("random", sizes, count, 8 * (len(sizes) + 1))
    if total >= 1 << 62:
        raise fail("E0404", f"the elements of a tensor of shape {sizes} cannot be counted in 64 bits", "give smaller sizes")
    place = _places(source, total, count)
    values = np.asarray(data_rvs(count) if data_rvs is not None else source.random(count))
    if dtype is not None:
        from ._tensor import dtype_of

        values = values.astype(dtype_of(dtype))
    columns = list(np.unravel_index(place, sizes)) if sizes else []
    return _build(columns, values, sizes, format or default_sparse_format(len(sizes)))


def _places(source: Any, total: int, count: int) -> NDArray[np.int64]:
    """So many different numbers below ``total``, in order; memory for so many, unless they are nearly all."""
    draw = source.integers if hasattr(source, "integers") else source.randint
    if count > total // 3:
        return np.sort(source.permutation(total)[:count])  # type: ignore[no-any-return]
    found = np.zeros(0, dtype=np.int64)
    while len(found) < count:
        more = draw(0, total, count - len(found) + 16)
        found = np.unique(np.concatenate([found, more]))
    while len(found) > count:
        found = np.delete(found, draw(0, len(found), len(found) - count))
    return found if len(found) == count else _places(source, total, count)


def random_array(shape: Any, *, density: float = 0.01, format: str | None = None, dtype: Any = None, rng: Any = None) -> Tensor:
    """See :func:`tamis.random`.

    >>> import tamis as tm
    >>> tm.random_array((10, 10), density=0.1).nnz
    10
    """
    return random(shape, density=density, format=format, dtype=dtype, rng=rng)


def find(A: Any) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]:
    """The rows, columns and values of all elements that are not zero.

    >>> import tamis as tm
    >>> tm.find(tm.tensor([[0.0, 5.0], [7.0, 0.0]], format="csr"))
    (array([0, 1]), array([1, 0]), array([5., 7.]))
    """
    t, columns, values = _entries(_matrix(A), "find")
    keep = values != 0
    return columns[0][keep], columns[1][keep], values[keep]


def argwhere(x: Any) -> NDArray[np.int64]:
    """The coordinates of all elements that are not zero, a row for each.

    >>> import tamis as tm
    >>> tm.argwhere(tm.tensor([[0, 5], [7, 0]], format="csr"))
    array([[0, 1],
           [1, 0]])
    """
    from ._search import nonzero

    return np.stack([column._readable() for column in nonzero(x)], axis=1)


def spdiags(data: ArrayLike, diags: ArrayLike, m: Any = None, n: int | None = None, format: str | None = None) -> Tensor:
    """A matrix from the rows of ``data`` along its diagonals, aligned by column, as ``scipy.sparse.spdiags``.

    >>> import tamis as tm
    >>> tm.spdiags([[1, 2, 3], [4, 5, 6]], [0, 1], 3, 3).to_numpy()
    array([[1, 5, 0],
           [0, 2, 6],
           [0, 0, 3]])
    """
    array, offsets = np.atleast_2d(_array(data)), np.atleast_1d(_array(diags))
    rows, columns = as_shape((m, n) if n is not None else m if m is not None else (array.shape[1],) * 2)
    j = np.arange(min(array.shape[1], columns))
    i = j - offsets[:, None]
    keep = (i >= 0) & (i < rows)
    return _build([i[keep], np.broadcast_to(j, i.shape)[keep]], array[:, : len(j)][keep], (rows, columns), format)
