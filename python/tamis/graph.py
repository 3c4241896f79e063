"""Graphs as adjacency matrices: traversal, components, ranking, triangles, cores and communities; NetworkX, igraph and csgraph.

A graph is a square sparse matrix: row ``i`` holds the edges out of node ``i``, and values are weights. Every function takes what
:func:`tamis.asarray` takes, a graph of NetworkX or igraph as well. Ranking, triangles and modularity are index notation; traversals
are compiled loops over the arrays of the rows.

>>> import tamis as tm
>>> G = tm.tensor(([[0, 1, 1, 2], [1, 0, 2, 1]], [1.0] * 4, (4, 4)))
>>> tm.graph.connected_components(G)
(2, array([0, 0, 0, 1]))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from . import _reductions, _tamis
from ._coordinates import as_tensor, to_coordinates
from ._errors import fail
from ._lazy_import import np
from ._shape_utils import format_levels, is_strided
from ._structured import _build

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ._tensor import Tensor

__all__ = [
    "adjacency",
    "bfs",
    "connected_components",
    "degrees",
    "from_igraph",
    "from_networkx",
    "k_core",
    "louvain",
    "modularity",
    "pagerank",
    "shortest_paths",
    "to_igraph",
    "to_networkx",
    "triangles",
]


class Paths(NamedTuple):
    """Distances from the sources, and the node before each on a shortest path: -1 for sources and where there is none."""

    distances: NDArray[Any]
    predecessors: NDArray[np.int64]


def adjacency(graph: Any) -> Tensor:
    """The adjacency matrix of a graph in CSR: of NetworkX, igraph, SciPy, or of anything that is a square matrix.

    >>> import tamis as tm
    >>> tm.graph.adjacency([[0, 1], [1, 0]]).nnz
    2
    """
    if type(graph).__module__.startswith("networkx"):
        return from_networkx(graph)
    if type(graph).__module__.startswith("igraph"):
        return from_igraph(graph)
    t = as_tensor(graph)
    if t.ndim != 2 or t.shape[0] != t.shape[1]:
        raise fail("E0402", f"a tensor of shape {t.shape} is no graph", "give a row and a column for each node")
    if not is_strided(t) and t.fill_value:
        raise fail("E0709", f"the fill value is {t.fill_value}, so every pair of nodes would have an edge", "subtract it: `t - t.fill_value`")
    return t if format_levels(t) == "csr" else t.convert("csr")


def from_networkx(graph: Any, weight: str | None = "weight", nodelist: Any = None) -> Tensor:
    """The adjacency matrix of a graph of NetworkX, in the order of its nodes; an edge without the attribute has weight 1.

    Parallel edges add up; an undirected edge is stored in both directions.

    >>> import networkx, tamis as tm                                    # doctest: +SKIP
    >>> tm.graph.from_networkx(networkx.karate_club_graph()).shape      # doctest: +SKIP
    (34, 34)
    """
    names = list(graph.nodes() if nodelist is None else nodelist)
    place = {name: k for k, name in enumerate(names)}
    rows, columns, values = [], [], []
    for u, v, data in graph.edges(data=True):
        if u in place and v in place:
            rows.append(place[u])
            columns.append(place[v])
            values.append(data.get(weight, 1) if weight is not None else 1)
    return _symmetric(rows, columns, values, len(names), graph.is_directed())


def _symmetric(rows: Any, columns: Any, values: Any, size: int, directed: bool) -> Tensor:
    i, j = np.asarray(rows, dtype=np.int64), np.asarray(columns, dtype=np.int64)
    v = np.asarray(values)
    if v.dtype.kind not in "iufb" or not len(v):
        v = v.astype(float)
    if not directed:
        other = i != j
        i, j, v = np.concatenate([i, j[other]]), np.concatenate([j, i[other]]), np.concatenate([v, v[other]])
    return _build([i, j], v, (size, size), "csr", "sum")


def to_networkx(graph: Any, directed: bool | None = None) -> Any:
    """A graph of NetworkX with the weights as attributes; directed unless the matrix is symmetric.

    >>> import tamis as tm
    >>> tm.graph.to_networkx([[0, 2], [2, 0]]).number_of_edges()        # doctest: +SKIP
    1
    """
    import networkx

    t = adjacency(graph)
    if directed is None:
        directed = not t.same_values(t.T)
    made = networkx.DiGraph() if directed else networkx.Graph()
    made.add_nodes_from(range(t.shape[0]))
    (i, j), values = to_coordinates(t)
    made.add_weighted_edges_from(zip(i.tolist(), j.tolist(), values.tolist()))
    return made


def from_igraph(graph: Any, weight: str | None = "weight") -> Tensor:
    """The adjacency matrix of a graph of igraph; weights are 1 where there is no such attribute.

    >>> import igraph, tamis as tm                                      # doctest: +SKIP
    >>> tm.graph.from_igraph(igraph.Graph.Full(3)).nnz                  # doctest: +SKIP
    6
    """
    edges = np.asarray(graph.get_edgelist(), dtype=np.int64).reshape(-1, 2)
    values = graph.es[weight] if weight is not None and weight in graph.es.attributes() else np.ones(len(edges))
    return _symmetric(edges[:, 0], edges[:, 1], values, graph.vcount(), graph.is_directed())


def to_igraph(graph: Any, directed: bool | None = None) -> Any:
    """A graph of igraph with the attribute ``weight``; directed unless the matrix is symmetric.

    >>> import tamis as tm
    >>> tm.graph.to_igraph([[0, 2], [2, 0]]).ecount()                   # doctest: +SKIP
    1
    """
    import igraph

    t = adjacency(graph)
    if directed is None:
        directed = not t.same_values(t.T)
    (i, j), values = to_coordinates(t)
    if not directed:
        upper = i <= j
        i, j, values = i[upper], j[upper], values[upper]
    made = igraph.Graph(t.shape[0], list(zip(i.tolist(), j.tolist())), directed=directed)
    made.es["weight"] = values.tolist()
    return made


def degrees(graph: Any, weighted: bool = False) -> NDArray[Any]:
    """The number of edges out of each node, or the sum of their weights.

    >>> import tamis as tm
    >>> tm.graph.degrees([[0, 1], [1, 0]])
    array([1, 1])
    """
    t = adjacency(graph)
    if weighted:
        return _reductions.sum(t, axis=1).to_numpy()
    return np.diff(t.level_arrays(1)["pos"].astype(np.int64))


def connected_components(graph: Any, *, connection: str = "weak") -> tuple[int, NDArray[np.int64]]:
    """How many components a graph has, and for each node which one it is in, numbered by their first nodes.

    Directions do not count; ``connection="strong"`` counts them, by SciPy.

    >>> import tamis as tm
    >>> tm.graph.connected_components(tm.eye(3, format="csr"))
    (3, array([0, 1, 2]))
    """
    t = adjacency(graph)
    if connection == "strong":
        from scipy.sparse import csgraph

        count, labels = csgraph.connected_components(_weights(t).to_scipy(copy=False), True, "strong")
        return int(count), labels.astype(np.int64)
    if connection != "weak":
        raise fail("E0709", f"`connection` is {connection!r}", "write `connection='weak'` or `connection='strong'`")
    return _tamis.components(t)


def _sources(source: Any) -> list[int]:
    return [int(k) for k in np.atleast_1d(np.asarray(source))]


def bfs(graph: Any, source: Any) -> Paths:
    """Distances in edges from a node, or from the nearest of several: -1 where there is no path.

    >>> import tamis as tm
    >>> tm.graph.bfs([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 0).distances
    array([0, 1, 2])
    """
    return Paths(*_tamis.breadth_first(adjacency(graph), _sources(source)))


def _weights(t: Tensor) -> Tensor:
    t = t.convert(format_levels(t)) if t.is_pattern else t
    return t if t.dtype == np.float64 else t.astype(float)


def shortest_paths(graph: Any, source: Any) -> Paths:
    """Lengths of shortest paths from a node, or from the nearest of several, by Dijkstra; infinite where there is none.

    >>> import tamis as tm
    >>> tm.graph.shortest_paths([[0, 5.0, 1.0], [0, 0, 0], [0, 1.0, 0]], 0).distances
    array([0., 2., 1.])
    """
    return Paths(*_tamis.dijkstra(_weights(adjacency(graph)), _sources(source)))


def pagerank(graph: Any, alpha: float = 0.85, *, tol: float = 1e-10, max_iter: int = 1000, personalization: Any = None) -> NDArray[Any]:
    """The stationary share of each node on a random walk along edges that starts anew with probability ``1 - alpha``.

    ``tol`` bounds the sum of changes in the last iteration; nodes without edges lead everywhere.

    >>> import tamis as tm
    >>> tm.graph.pagerank([[0, 1], [1, 0]])
    array([0.5, 0.5])
    """
    t = _weights(adjacency(graph))
    size = t.shape[0]
    if not size:
        return np.zeros(0)
    out = _reductions.sum(t, axis=1).to_numpy()
    sink = out == 0
    start = np.full(size, 1 / size) if personalization is None else np.asarray(personalization, dtype=float)
    start = start / start.sum()
    # Columns of the transition matrix are what a step reads: they are its rows, once.
    step = (t * np.where(sink, 1.0, 1 / np.where(sink, 1.0, out))[:, None]).T.convert("csr")
    rank = start
    for _ in range(max_iter):
        lost = float(rank[sink].sum())
        new: NDArray[Any] = _tamis.einsum_array(
            "new[i] = a * (A[i,j] * r[j]) + s * v[i]",
            *(np.asarray(alpha), step, rank, np.asarray(alpha * lost + 1 - alpha), start),
        )
        change = np.abs(new - rank).sum()
        rank = new
        if change < tol:
            return rank
    raise fail("E0709", f"the ranks did not converge to {tol} in {max_iter} iterations", "raise `max_iter` or `tol`, or lower `alpha`")


def _simple(graph: Any) -> Tensor:
    """The pattern of an undirected graph without loops, as ones."""
    t = _weights(adjacency(graph))
    (i, j), values = to_coordinates(t)
    keep = (i != j) & (values != 0)
    i, j = i[keep], j[keep]
    ones = np.ones(2 * len(i))
    return _build([np.concatenate([i, j]), np.concatenate([j, i])], ones, t.shape, "csr", "first")


def triangles(graph: Any) -> int:
    """The number of triangles of an undirected graph; directions, weights and loops do not count.

    >>> import tamis as tm
    >>> tm.graph.triangles(tm.ones((4, 4)))
    4
    """
    t = _simple(graph)
    # Edges lead to the node of greater degree, so that no node has many.
    degree = degrees(t)
    (i, j), _ = to_coordinates(t)
    ahead = (degree[i] < degree[j]) | ((degree[i] == degree[j]) & (i < j))
    lower = _build([i[ahead], j[ahead]], np.ones(int(ahead.sum()), dtype=np.int64), t.shape, "csr")
    return int(_tamis.einsum("s = L[i,j] * L[i,k] * L[j,k]", L=lower).item())


def k_core(graph: Any, k: int | None = None) -> NDArray[Any]:
    """The core number of each node; with ``k``, whether each node is in the ``k``-core. Directions and loops do not count.

    >>> import tamis as tm
    >>> tm.graph.k_core([[0, 1, 1, 0], [1, 0, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0]])
    array([2, 2, 2, 1])
    """
    cores = _tamis.core_numbers(_simple(graph))
    return cores if k is None else cores >= k


def modularity(graph: Any, communities: Any, resolution: float = 1.0) -> float:
    """Newman's modularity of a partition: how many more edges lie inside of communities than by chance.

    ``communities`` has a number for each node. Loops count twice, as in NetworkX.

    >>> import tamis as tm
    >>> G = tm.block_diag([tm.ones((2, 2)) - tm.eye(2)] * 2)
    >>> tm.graph.modularity(G, [0, 0, 1, 1])
    0.5
    """
    t = _weights(adjacency(graph))
    labels = np.unique(np.asarray(communities), return_inverse=True)[1].ravel()
    if len(labels) != t.shape[0]:
        raise fail("E0402", f"{len(labels)} communities are given for {t.shape[0]} nodes", "give one number for each node")
    (i, j), values = to_coordinates(t)
    loops = values[i == j].sum()
    whole = values.sum() + (loops if _is_symmetric(t) else 0)
    if not whole:
        return 0.0
    inside = values[labels[i] == labels[j]].sum() + (loops if _is_symmetric(t) else 0)
    extra = np.where(i == j, values, 0) if _is_symmetric(t) else np.zeros(len(values))
    count = int(labels.max()) + 1
    out = np.bincount(labels[i], values + extra, count)
    into = np.bincount(labels[j], values + extra, count)
    return float(inside / whole - resolution * (out @ into) / whole**2)


def _is_symmetric(t: Tensor) -> bool:
    return t.same_values(t.T)


def louvain(graph: Any, resolution: float = 1.0, seed: int = 0) -> NDArray[np.int64]:
    """Communities of an undirected graph of high modularity, by Louvain's method: moves of nodes, then of communities.

    >>> import tamis as tm
    >>> tm.graph.louvain(tm.block_diag([tm.ones((3, 3)) - tm.eye(3)] * 2))
    array([0, 0, 0, 1, 1, 1])
    """
    t = _weights(adjacency(graph))
    t = ((t + t.T) * 0.5).convert("csr")
    found = np.arange(t.shape[0])
    while True:
        labels, moved = _moves(t, resolution, seed)
        names, labels = np.unique(labels, return_inverse=True)
        found = labels.ravel()[found]
        if not moved or len(names) == t.shape[0]:
            break
        (i, j), values = to_coordinates(t)
        t = _build([labels[i], labels[j]], values, (len(names), len(names)), "csr", "sum")
    # Communities are numbered by their first nodes.
    _, first, inverse = np.unique(found, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[inverse.ravel()]


def _moves(t: Tensor, resolution: float, seed: int) -> tuple[NDArray[np.int64], bool]:
    """Moves nodes one by one to the community of a neighbour that gains most, until none gains."""
    arrays = t.level_arrays(1)
    pos, crd, values = arrays["pos"].tolist(), arrays["crd"].tolist(), t.values.tolist()  # type: ignore[union-attr]
    size = t.shape[0]
    strength = _reductions.sum(t, axis=1).to_numpy().tolist()
    whole = sum(strength)
    community, total = list(range(size)), list(strength)
    if not whole:
        return np.arange(size), False
    moved, changed = False, True
    order = np.random.default_rng(seed).permutation(size).tolist()
    while changed:
        changed = False
        for node in order:
            mine = community[node]
            links: dict[int, float] = {mine: 0.0}
            for p in range(pos[node], pos[node + 1]):
                if crd[p] != node:
                    other = community[crd[p]]
                    links[other] = links.get(other, 0.0) + values[p]
            total[mine] -= strength[node]
            best, gain = mine, links[mine] - resolution * total[mine] * strength[node] / whole
            for other, weight in links.items():
                found = weight - resolution * total[other] * strength[node] / whole
                if found > gain + 1e-12:
                    best, gain = other, found
            total[best] += strength[node]
            if best != mine:
                community[node] = best
                moved = changed = True
    return np.asarray(community), moved
