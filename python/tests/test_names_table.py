"""The table of names is complete and true: names that exist here exist, and equivalents that are code run."""

from __future__ import annotations

import pathlib
import re
import runpy
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.linalg as sl
from scipy.sparse import csgraph

import tamis as tm

MADE = runpy.run_path(str(pathlib.Path(__file__).parents[2] / "docs" / "reference" / "names.py"))
LIBRARIES = MADE["LIBRARIES"]
L = tm.gallery.laplacian(6)
B = np.ones(36)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.title)
def test_every_name_has_an_answer(library: Any) -> None:
    same, instead = MADE["resolved"](library)
    written = MADE["covered"](MADE["PAGE"].read_text())
    missing = {*same, *instead} - written
    assert not missing, f"names.md lacks {sorted(missing)}: run `python docs/reference/names.py`"


def test_the_page_is_up_to_date() -> None:
    try:
        import scipy
        import sparse
    except ImportError:
        pytest.skip("the page is written where both are installed")
    if (scipy.__version__.split(".")[:2], sparse.__version__.split(".")[:2]) != (["1", "17"], ["0", "19"]):
        pytest.skip("other versions have other names")
    assert MADE["page"]() == MADE["PAGE"].read_text(), "run `python docs/reference/names.py`"


def test_equivalents_that_are_names_exist() -> None:
    t = tm.eye(3, format="csr")
    for table in MADE["INSTEAD"].values():
        for text in table.values():
            for path in re.findall(r"`tm\.([a-z_.]+)", text):
                thing: Any = tm
                for part in path.strip(".").split("."):
                    thing = getattr(thing, part)
            for attribute in re.findall(r"`t\.([a-zA-Z_]+)", text):
                assert hasattr(t, attribute), text


def test_functions_that_take_tensors() -> None:
    takes = [name for name, text in MADE["INSTEAD"]["scipy.sparse.linalg"].items() if text == MADE["TAKES"]]
    for name in takes:
        function = getattr(sl, name)
        if name == "aslinearoperator":
            np.testing.assert_allclose(function(L) @ B, L @ B)
        elif name == "onenormest":
            assert function(L) == pytest.approx(8)
        else:
            np.testing.assert_allclose(L @ function(L, B)[0], B, atol=1e-3, err_msg=name)


def test_functions_of_views() -> None:
    view = L.to_scipy(copy=False)
    np.testing.assert_allclose(sl.expm(view.tocsc()).toarray(), sl.expm(L.to_numpy()), atol=1e-10)
    np.testing.assert_allclose(L @ sl.factorized(view.tocsc())(B), B)
    assert sl.spilu(view.tocsc()).solve(B).shape == (36,) and sl.spbandwidth(view) == (6, 6) and sl.is_sptriangular(view) == (False, False)
    named = [name for name, text in MADE["INSTEAD"]["scipy.sparse.csgraph"].items() if text == MADE["VIEW"]]
    graph = abs(L).to_scipy(copy=False)
    for name in named:
        function = getattr(csgraph, name)
        if name in ("depth_first_order", "depth_first_tree"):
            function(graph, 0)
        elif name == "construct_dist_matrix":
            function(graph, csgraph.dijkstra(graph, return_predecessors=True)[1])
        elif name != "NegativeCycleError":
            function(graph)
    assert csgraph.maximum_flow(abs(L).astype("i4").to_scipy(), 0, 35).flow_value > 0
    assert len(csgraph.yen(abs(L).to_scipy(), 0, 35, 2)) == 2
    assert tm.array_equal(tm.diags(tm.graph.degrees(abs(L), weighted=True)) - abs(L), csgraph.laplacian(graph))


def test_equivalents_of_scipy(tmp_path: pathlib.Path) -> None:
    t = tm.eye(3, format="csr")
    tm.write(tmp_path / "a.npz", t)
    assert sp.load_npz(tmp_path / "a.npz").nnz == 3 and tm.read(tmp_path / "a.npz").nnz == 3
    assert t.format == "csr" and t.H.shape == (3, 3) and list(zip(*t.coords))[0] == (0, 0) and t.density == 1 / 3
    assert t.tensordot(t, 2).item() == 3 and t.row.tolist() == t.col.tolist() == [0, 1, 2]
