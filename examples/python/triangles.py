"""Counts the triangles of a graph: paths of length two that are closed by an edge."""

import numpy as np

import tamis as tm


def triangles(G):
    """Each triangle once: its nodes in order, by the lower half of the matrix."""
    L = tm.tril(G, k=-1)
    return int(tm.einsum("t = L[i,j] * L[j,k] * L[i,k]", L=L))


@tm.kernel
def triangles_kernel(L):
    """The same as loops: only what is stored is visited."""
    t = scalar(0)  # noqa: F821
    for i, j, k in _:  # noqa: F821
        t += L[i, j] * L[j, k] * L[i, k]
    return t


def check(G, found):
    """The trace of the third power counts every triangle six times."""
    A = G.to_numpy()
    assert found == np.trace(A @ A @ A) // 6, (found, np.trace(A @ A @ A) // 6)


def main():
    """A random graph with hubs."""
    links = tm.gallery.rmat(9, 8)
    G = tm.tril((links + links.T) != 0, k=-1)
    G = (G | G.T).astype("i64").convert("csr")
    found = triangles(G)
    assert found == int(triangles_kernel(tm.tril(G, k=-1)))
    check(G, found)
    print(f"{G.shape[0]} nodes, {G.nnz // 2} edges, {found} triangles")


if __name__ == "__main__":
    main()
