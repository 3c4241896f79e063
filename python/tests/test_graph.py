"""Graphs against SciPy's csgraph and NetworkX."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

import tamis as tm


def random_graph(seed: int, n: int = 60, density: float = 0.03, directed: bool = False) -> tm.Tensor:
    rng = np.random.default_rng(seed)
    x = rng.random((n, n)) * (rng.random((n, n)) < density)
    return tm.tensor(x if directed else np.triu(x, 1) + np.triu(x, 1).T, format="csr")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("directed", [False, True])
def test_traversals(seed: int, directed: bool) -> None:
    G = random_graph(seed, directed=directed)
    S = G.to_scipy()
    count, labels = tm.graph.connected_components(G)
    wanted, theirs = csgraph.connected_components(S, directed, "weak")
    assert count == wanted and np.array_equal(labels, _by_first(theirs))
    assert tm.graph.connected_components(G, connection="strong")[0] == csgraph.connected_components(S, True, "strong")[0]
    levels = tm.graph.bfs(G, 3)
    expected = csgraph.shortest_path(S, unweighted=True, indices=3)
    np.testing.assert_array_equal(levels.distances, np.where(np.isinf(expected), -1, expected))
    for node, before in enumerate(levels.predecessors):
        assert before < 0 or levels.distances[node] == levels.distances[before] + 1 and G[before, node]
    paths = tm.graph.shortest_paths(G, 3)
    np.testing.assert_allclose(paths.distances, csgraph.dijkstra(S, indices=3))
    several = tm.graph.shortest_paths(G, [3, 5]).distances
    np.testing.assert_allclose(several, csgraph.dijkstra(S, indices=[3, 5], min_only=True))
    np.testing.assert_array_equal(tm.graph.degrees(G), np.diff(S.indptr))


def _by_first(labels: Any) -> Any:
    order: dict[int, int] = {}
    return np.array([order.setdefault(int(label), len(order)) for label in labels])


@pytest.mark.parametrize("seed", range(4))
def test_against_networkx(seed: int) -> None:
    networkx = pytest.importorskip("networkx")
    graph = networkx.gnp_random_graph(40, 0.15, seed=seed)
    G = tm.graph.adjacency(graph)
    assert tm.graph.triangles(G) == sum(networkx.triangles(graph).values()) // 3
    np.testing.assert_array_equal(tm.graph.k_core(graph), list(networkx.core_number(graph).values()))
    ranks = networkx.pagerank(graph, tol=1e-12)
    np.testing.assert_allclose(tm.graph.pagerank(graph), list(ranks.values()), atol=1e-8)
    directed = networkx.gnp_random_graph(40, 0.05, seed=seed, directed=True)
    np.testing.assert_allclose(tm.graph.pagerank(directed), list(networkx.pagerank(directed, tol=1e-12).values()), atol=1e-8)
    labels = np.arange(40) % 3
    parts = [set(np.flatnonzero(labels == k).tolist()) for k in range(3)]
    assert tm.graph.modularity(G, labels) == pytest.approx(networkx.community.modularity(graph, parts))
    found = tm.graph.louvain(G)
    theirs = networkx.community.louvain_communities(graph, seed=1)
    assert tm.graph.modularity(G, found) > 0.9 * networkx.community.modularity(graph, theirs)
    weighted = networkx.les_miserables_graph()
    back = tm.graph.to_networkx(tm.graph.from_networkx(weighted))
    assert back.number_of_edges() == weighted.number_of_edges() and not back.is_directed()
    assert back.size("weight") == weighted.size("weight")
    loops = networkx.Graph([(0, 0), (0, 1)])
    assert tm.graph.from_networkx(loops).to_numpy().tolist() == [[1, 1], [1, 0]]
    assert tm.graph.modularity(loops, [0, 1]) == pytest.approx(networkx.community.modularity(loops, [{0}, {1}]))


def test_against_igraph() -> None:
    igraph = pytest.importorskip("igraph")
    graph = igraph.Graph.Erdos_Renyi(30, 0.2)
    graph.es["weight"] = np.arange(1.0, graph.ecount() + 1).tolist()
    G = tm.graph.from_igraph(graph)
    assert G.nnz == 2 * graph.ecount() and G.sum() == 2 * sum(graph.es["weight"])
    assert tm.graph.to_igraph(G).ecount() == graph.ecount()
    assert tm.graph.k_core(graph).tolist() == graph.coreness()


def test_kinds_of_graphs() -> None:
    pattern = tm.tensor([[False, True, False], [True, False, False], [False, False, False]], format="csr; pattern")
    for graph in (pattern, pattern.convert("csc"), pattern.to_numpy(), sp.csr_array(pattern.to_numpy()), pattern.convert("coo")):
        assert tm.graph.connected_components(graph)[0] == 2
        assert tm.graph.bfs(graph, 0).distances.tolist() == [0, 1, -1]
        assert tm.graph.shortest_paths(graph, 0).distances.tolist() == [0, 1, np.inf]
        assert tm.graph.k_core(graph, 1).tolist() == [True, True, False]
        assert tm.graph.pagerank(graph).sum() == pytest.approx(1)
        assert tm.graph.triangles(graph) == 0
    empty = tm.zeros((0, 0), format="csr")
    assert tm.graph.connected_components(empty)[0] == 0 and len(tm.graph.pagerank(empty)) == 0
    assert tm.graph.modularity(tm.zeros((3, 3)), [0, 1, 2]) == 0


def test_mistakes() -> None:
    G = tm.eye(3, format="csr")
    for wrong in (
        lambda: tm.graph.bfs(np.ones((2, 3)), 0),
        lambda: tm.graph.bfs(G, 3),
        lambda: tm.graph.shortest_paths(-G, 0),
        lambda: tm.graph.shortest_paths(G * np.nan, 0),
        lambda: tm.graph.connected_components(G + 1),
        lambda: tm.graph.connected_components(G, connection="none"),
        lambda: tm.graph.modularity(G, [0]),
        lambda: tm.graph.pagerank(random_graph(1), max_iter=1),
    ):
        with pytest.raises(tm.Error) as caught:
            wrong()
        assert caught.value.help
