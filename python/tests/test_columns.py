"""Tensors of tables, and tables of tensors."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tamis as tm

DATA: dict[str, Any] = {
    "user": ["bob", "ann", "bob", "eve"],
    "item": [7, 7, 9, 9],
    "rating": [1.0, 2.0, 3.0, 4.0],
}
EXPECTED = [[2.0, 0.0], [1.0, 3.0], [0.0, 4.0]]


def tables() -> dict[str, Any]:
    made: dict[str, Any] = {"dict": DATA, "arrays": {name: np.asarray(column) for name, column in DATA.items()}}
    for name, make in (("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "table")):
        try:
            made[name] = getattr(__import__(name), make)(DATA)
        except ImportError:
            continue
    return made


@pytest.mark.parametrize("kind", tables())
def test_columns(kind: str) -> None:
    table = tables()[kind]
    W = tm.from_columns(table, ["user", "item"], "rating")
    assert W.dims == ("user", "item") and W.name == "rating" and W.tensor.format == "csr"
    assert W.labels["user"].tolist() == ["ann", "bob", "eve"] and W.labels["item"].tolist() == [7, 9]
    assert W.tensor.tolist() == EXPECTED
    counts = tm.from_columns(table, ["item"])
    assert counts.tensor.tolist() == [2.0, 2.0] and counts.name == "count"
    back = {name: column.tolist() for name, column in W.columns().items()}
    assert back == {"user": ["ann", "bob", "bob", "eve"], "item": [7, 7, 9, 9], "rating": [2.0, 1.0, 3.0, 4.0]}
    assert tm.einsum("y[i] = W[i,j]", W=W).tolist() == [2.0, 4.0, 4.0]
    assert (tm.asarray(W) @ np.ones(2)).tolist() == [2.0, 4.0, 4.0]
    with pytest.raises(tm.Error):
        tm.from_columns(table, ["user", "nothing"], "rating")


def test_categories() -> None:
    W = tm.from_columns(DATA, ["user", "item"], "rating", categories={"user": ["eve", "bob", "ann", "zoe"], "item": 12})
    assert W.tensor.shape == (4, 12) and W.sel(user="eve", item=9) == 4.0 and W.labels["user"][3] == "zoe"
    assert W.sel(user="bob").tensor.nnz == 2 and W.sel(user=["ann", "eve"]).labels["user"].tolist() == ["ann", "eve"]
    for wrong in (
        lambda: tm.from_columns(DATA, ["user"], categories={"user": ["bob"]}),
        lambda: tm.from_columns(DATA, ["user"], categories={"user": ["bob", "bob"]}),
        lambda: tm.from_columns(DATA, ["item"], categories={"item": 8}),
        lambda: tm.from_columns(DATA, ["user"], categories={"user": 8}),
        lambda: tm.from_columns(DATA, ["user"], categories={"item": 8}),
        lambda: tm.from_columns({"a": [1, 2], "b": [1]}, ["a", "b"]),
        lambda: tm.from_columns({"a": [1, 2], "b": [1]}, ["a"], "b"),
        lambda: tm.from_columns({"a": ["x", None]}, ["a"]),
        lambda: tm.from_columns({"a": [1.0, float("nan")]}, ["a"]),
        lambda: W.sel(user="missing"),
        lambda: W.sel(shop="x"),
        lambda: tm.LabeledTensor(np.eye(2), ["a"]),
        lambda: tm.LabeledTensor(np.eye(2), ["a", "b"], {"a": [1]}),
    ):
        with pytest.raises(tm.Error) as caught:
            wrong()
        assert caught.value.help


def test_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(DATA)
    frame["user"] = pandas.Categorical(frame["user"], categories=["zoe", "eve", "bob", "ann"])
    W = tm.from_columns(frame, ["user", "item"], "rating")
    assert W.labels["user"].tolist() == ["zoe", "eve", "bob", "ann"] and W.tensor.shape == (4, 2)
    grouped = frame.groupby(["user", "item"], observed=True)["rating"].sum()
    made = W.to_pandas().set_index(["user", "item"])["rating"]
    assert made.to_dict() == grouped.to_dict()
    frame.loc[1, "user"] = None
    with pytest.raises(tm.Error):
        tm.from_columns(frame, ["user"])
    dates = pandas.DataFrame({"day": pandas.to_datetime(["2024-01-02", "2024-01-01"]), "n": [1, 2]})
    D = tm.from_columns(dates, ["day"], "n")
    assert D.tensor.tolist() == [2, 1] and D.labels["day"].dtype.kind == "M"
    assert tm.eye(3, format="csr").to_pandas().shape == (3, 3)


def test_other_tables() -> None:
    polars, pyarrow = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    W = tm.from_columns(DATA, ["user", "item"], "rating")
    assert W.to_polars().height == 4 and W.to_arrow().num_rows == 4
    coded = pyarrow.table({"user": pyarrow.array(DATA["user"]).dictionary_encode(), "n": [1, 2, 3, 4]})
    assert tm.from_columns(coded, ["user"], "n").tensor.tolist() == [2, 4, 4]
    frame = polars.DataFrame(DATA).with_columns(polars.col("user").cast(polars.Categorical))
    assert tm.from_columns(frame, ["user"], "rating").tensor.tolist() == [2.0, 4.0, 4.0]
    with pytest.raises(tm.Error):
        tm.from_columns(pyarrow.table({"a": ["x", None]}), ["a"])


def test_nothing_is_imported() -> None:
    code = "import sys, tamis as tm, numpy\ntm.linalg, tm.graph, tm.from_columns({'a': ['x', 'y']}, ['a']), tm.linalg.cg(tm.eye(3), numpy.ones(3))\n"
    code += "print([m for m in ('scipy', 'pandas', 'polars', 'pyarrow', 'torch', 'networkx', 'igraph', 'sparse') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]", done.stdout + done.stderr


def test_groups_by_subscript() -> None:
    x = np.arange(18.0).reshape(2, 9) * (np.arange(18).reshape(2, 9) % 3 > 0)
    S, week = tm.tensor(x, format="csr"), np.array([0, 0, 0, 1, 1, 1, 3, 3, 3])
    expected = np.stack([x[:, week == k].sum(axis=1) for k in range(4)], axis=1)
    for array in (week, tm.asarray(week), week.tolist()):
        made = tm.einsum("W[p, week[d]] += S[p,d]", S=S, week=array)
        assert np.array_equal(made.to_numpy(), expected)
    assert tm.einsum("W[week[d], p] += S[p,d]", S=S, week=week, format="csr").format == "csr"
    start = np.ones((2, 6))
    made = tm.einsum("W[p, week[d]] += S[p,d]", W=start, S=S, week=week)
    assert np.array_equal(made.to_numpy(), np.pad(expected, ((0, 0), (0, 2))) + 1)
    i, j, v = np.array([0, 1, 1, 0]), np.array([2, 0, 0, 2]), np.array([1, 2, 3, 4])
    assert tm.einsum("W[i[e], j[e]] += v[e]", i=i, j=j, v=v).tolist() == [[0, 0, 5], [5, 0, 0]]
    both = tm.einsum("W[week[d]] += x[d] + 1; s = x[d]", x=x[0], week=week)
    assert np.array_equal(both.W.to_numpy(), np.bincount(week, x[0] + 1)) and both.s.item() == x[0].sum()
    for wrong in (
        lambda: tm.einsum("W[p, week[d]] += S[p,d]", S=S, week=week - 1),
        lambda: tm.einsum("W[p, week[d]] += S[p,d]", S=S, week=week * 1.0),
        lambda: tm.einsum("W[p, week[d]] += S[p,d]", W=np.ones((2, 2)), S=S, week=week),
        lambda: tm.einsum("W[p, week[d]] += S[p,d]", S=S, week=week[:4]),
        lambda: tm.einsum("W[p, week[d]] = S[p,d]", S=S, week=week),
        lambda: tm.einsum("W[p, week[d]] += S[p,d]", S, week),
    ):
        with pytest.raises(tm.Error) as caught:
            wrong()
        assert caught.value.help
