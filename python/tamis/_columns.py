"""Tables as tensors and back: columns of pandas, polars, Arrow or plain arrays, with their labels kept.

None of these libraries is imported: an object that has columns is taken by its methods.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, Mapping, Sequence

from . import _construct
from ._errors import fail
from ._lazy_import import np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from ._tensor import Tensor


class LabeledTensor:
    """A tensor whose dimensions have names, and whose coordinates have labels; made by :func:`from_columns`.

    Every function takes it as its ``tensor``; ``labels["item"]`` is an array of the labels of a dimension, in order.
    """

    __slots__ = {
        "tensor": "The tensor, without labels.",
        "dims": "The names of the dimensions.",
        "labels": "For each dimension an array with the label of each coordinate.",
        "name": "What the values are called in a table.",
        "_positions": "The coordinates of labels, computed on first use.",
    }

    def __init__(self, tensor: Any, dims: Sequence[str], labels: Mapping[str, Any] | None = None, name: str = "value") -> None:
        self.tensor: Tensor = _construct.asarray(tensor)
        self.dims: tuple[str, ...] = tuple(dims)
        if len(self.dims) != self.tensor.ndim:
            raise fail("E0401", f"{len(self.dims)} names are given for {self.tensor.ndim} dimensions", "name each dimension")
        given = labels or {}
        self.labels: dict[str, NDArray[Any]] = {
            dim: np.asarray(given[dim]) if dim in given else np.arange(n) for dim, n in zip(self.dims, self.tensor.shape)
        }
        for dim, n in zip(self.dims, self.tensor.shape):
            if len(self.labels[dim]) != n:
                raise fail("E0402", f"`{dim}` has {len(self.labels[dim])} labels and {n} coordinates", "give one label for each")
        self.name = name
        self._positions: dict[str, dict[Any, int]] = {}

    @property
    def __tamis_tensor__(self) -> Tensor:
        return self.tensor

    def position(self, dim: str, label: Any) -> int:
        """The coordinate of a label."""
        if dim not in self.labels:
            raise fail("E0903", f"there is no dimension `{dim}`", f"dimensions are {', '.join(self.dims)}")
        if dim not in self._positions:
            self._positions[dim] = {name: k for k, name in enumerate(self.labels[dim].tolist())}
        found = self._positions[dim].get(label.item() if isinstance(label, np.generic) else label)
        if found is None:
            raise fail("E0903", f"`{dim}` has no label {label!r}", f"`t.labels[{dim!r}]` lists its {len(self.labels[dim]):,} labels")
        return found

    def sel(self, **labels: Any) -> Any:
        """The part with these labels: a number, or what is left with its labels.

        >>> import tamis as tm
        >>> W = tm.from_columns({"user": ["ann", "bob"], "item": ["x", "y"], "rating": [4.0, 5.0]}, ["user", "item"], "rating")
        >>> W.sel(user="bob", item="y"), W.sel(user="ann").tensor.to_numpy()
        (np.float64(5.0), array([4., 0.]))
        """
        key: list[Any] = [slice(None)] * len(self.dims)
        kept = dict(self.labels)
        dims = list(self.dims)
        for dim, label in labels.items():
            if isinstance(label, (list, tuple, np.ndarray)):
                places = np.array([self.position(dim, one) for one in label], dtype=np.int64)
                key[self.dims.index(dim)] = places
                kept[dim] = self.labels[dim][places]
            else:
                place = self.position(dim, label)
                key[self.dims.index(dim)] = place
                dims.remove(dim)
        part: Any = self.tensor
        for axis in reversed(range(len(key))):
            part = part[(slice(None),) * axis + (key[axis],)]
        return LabeledTensor(part, dims, {dim: kept[dim] for dim in dims}, self.name) if dims else part

    def columns(self) -> dict[str, NDArray[Any]]:
        """What is stored as columns: the labels of each dimension, and the values."""
        coords, values = self.tensor.to_coo()
        made = {dim: self.labels[dim][places] for dim, places in zip(self.dims, coords)}
        return {**made, self.name: values}

    def to_pandas(self) -> Any:
        """What is stored as a ``pandas.DataFrame``, a row for each element."""
        import pandas

        return pandas.DataFrame(self.columns())

    def to_polars(self) -> Any:
        """What is stored as a ``polars.DataFrame``, a row for each element."""
        import polars

        return polars.DataFrame(self.columns())

    def to_arrow(self) -> Any:
        """What is stored as a ``pyarrow.Table``, a row for each element."""
        import pyarrow

        return pyarrow.table(self.columns())

    def __repr__(self) -> str:
        names = ", ".join(f"{dim}: {n}" for dim, n in zip(self.dims, self.tensor.shape))
        return f"<tamis.LabeledTensor {self.name} ({names}) {self.tensor.format}, {self.tensor.nnz} stored>"


def from_columns(
    data: Any,
    dims: Sequence[str],
    values: str | None = None,
    *,
    categories: Mapping[str, Any] | None = None,
    format: str | None = None,
    fill: Any = None,
    dtype: DTypeLike | None = None,
    duplicates: str = "sum",
) -> LabeledTensor:
    """A tensor of columns: those of ``dims`` say where, that of ``values`` what; without one, 1 for each row.

    ``data`` is a DataFrame of pandas or polars, an Arrow table, or a dictionary of columns. The labels of a dimension are the
    different values of its column, sorted; those of a categorical column are its categories. ``categories`` fixes them: a list of
    labels, or a number ``n`` for a column that has the coordinates ``0 .. n-1`` already. Rows with equal labels are combined as
    ``duplicates`` says, as by :func:`tamis.tensor`.

    >>> import tamis as tm
    >>> table = {"user": ["bob", "ann", "bob"], "item": [7, 7, 9], "rating": [1.0, 2.0, 3.0]}
    >>> W = tm.from_columns(table, ["user", "item"], "rating")
    >>> W.tensor.to_numpy(), W.labels["user"].tolist()
    (array([[2., 0.],
           [1., 3.]]), ['ann', 'bob'])
    """
    wanted = categories or {}
    for name in wanted:
        if name not in dims:
            raise fail("E0903", f"there is no dimension `{name}`", f"dimensions are {', '.join(dims)}")
    places, labels = [], {}
    for dim in dims:
        codes, names = _coded(_column(data, dim), dim, wanted.get(dim))
        places.append(codes)
        labels[dim] = names
    count = len(places[0]) if places else 0
    for dim, codes in zip(dims, places):
        if len(codes) != count:
            raise fail("E0402", f"column `{dim}` has {len(codes)} rows, and others have {count}", "give columns of one length")
    numbers = np.ones(count) if values is None else _plain(_column(data, values))
    if len(numbers) != count:
        raise fail("E0402", f"column `{values}` has {len(numbers)} rows, and others have {count}", "give columns of one length")
    shape = tuple(len(labels[dim]) for dim in dims)
    made = _construct.tensor((places, numbers, shape), format, fill, dtype, duplicates=duplicates)
    return LabeledTensor(made, dims, labels, values or "count")


def _column(data: Any, name: str) -> Any:
    try:
        return data[name]
    except (KeyError, TypeError, ValueError, IndexError):
        columns = getattr(data, "columns", None)
        known = getattr(data, "column_names", None) or list(data if columns is None else columns)
        raise fail("E0903", f"there is no column `{name}`", f"columns are {', '.join(map(str, known))}") from None
    except Exception as error:  # polars has exceptions of its own.
        raise fail("E0903", f"there is no column `{name}`: {error}", "name a column of the table") from None


def _plain(column: Any) -> NDArray[Any]:
    """A column as an array; of Arrow and polars, too."""
    if hasattr(column, "to_numpy"):
        found = np.asarray(column.to_numpy())
    else:
        found = np.asarray(column)
    if found.dtype == object and len(found) and isinstance(found[0], (int, float, bool)):
        found = np.asarray(found.tolist())
    return found


def _coded(column: Any, name: str, wanted: Any) -> tuple[NDArray[np.int64], Any]:
    """For each row its coordinate, and the labels of the coordinates."""
    if isinstance(wanted, (int, np.integer)):
        size = operator.index(wanted)
        codes = _plain(column)
        if codes.dtype.kind not in "iu":
            raise fail("E0305", f"column `{name}` has no coordinates but {codes.dtype}", f"give labels: `categories={{{name!r}: [...]}}`")
        if len(codes) and (codes.min() < 0 or codes.max() >= size):
            raise fail("E1001", f"column `{name}` has coordinates {codes.min()}..{codes.max()}, not 0..{size - 1}", "give a greater number")
        return codes.astype(np.int64), range(size)
    if wanted is None:
        return _categories(column, name)
    labels = np.asarray(wanted)
    codes, names = _categories(column, name)
    place = {label: k for k, label in enumerate(labels.tolist())}
    if len(place) != len(labels):
        raise fail("E0709", f"the categories of `{name}` name a label twice", "name each label once")
    order = np.array([place.get(label, -1) for label in np.asarray(names).tolist()], dtype=np.int64)
    used = order[codes] if len(codes) else codes
    if len(used) and used.min() < 0:
        lost = np.asarray(names)[codes[used < 0][0]]
        raise fail("E0709", f"column `{name}` has {lost!r}, which is no category", "add it to the categories, or leave such rows out")
    return used, labels


def _categories(column: Any, name: str) -> tuple[NDArray[np.int64], Any]:
    known = getattr(column, "cat", None)
    if known is not None and hasattr(known, "codes"):  # pandas
        return _present(np.asarray(known.codes, dtype=np.int64), name), np.asarray(known.categories)
    if hasattr(column, "combine_chunks") and hasattr(column, "dictionary_encode"):  # Arrow
        if column.null_count:
            _present(np.array([-1]), name)
        coded = column.dictionary_encode().combine_chunks()
        chunk = coded.chunk(0) if hasattr(coded, "num_chunks") else coded
        labels = np.asarray(chunk.dictionary.to_pylist())
        codes = np.asarray(chunk.indices.to_numpy(zero_copy_only=False), dtype=np.int64)
        order = np.argsort(labels, kind="stable")
        ranks = np.empty(len(order), dtype=np.int64)
        ranks[order] = np.arange(len(order))
        return ranks[codes], labels[order]
    array = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if array.dtype.kind == "f" and np.isnan(array).any() or array.dtype == object and any(x is None or x != x for x in array.flat):
        _present(np.array([-1]), name)
    pandas = sys.modules.get("pandas")
    if pandas is not None and array.dtype == object:
        codes, labels = pandas.factorize(array, sort=True)
        return _present(np.asarray(codes, dtype=np.int64), name), np.asarray(labels)
    labels, codes = np.unique(array.astype(str) if array.dtype == object else array, return_inverse=True)
    return codes.ravel().astype(np.int64), labels


def _present(codes: NDArray[np.int64], name: str) -> NDArray[np.int64]:
    if len(codes) and codes.min() < 0:
        raise fail("E0709", f"column `{name}` has rows without a label", "drop them first, as in `df.dropna(subset=[...])`")
    return codes
