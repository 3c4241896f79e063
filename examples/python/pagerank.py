"""PageRank of a web of a few thousand pages: power iteration, one traced step."""

import numpy as np

import tamis as tm


@tm.jit
def step(links, ranks, out_degree, dangling, damping, count):
    """One step: each page passes its rank on along its links; pages without links pass it to everyone."""
    share = tm.where(dangling, 0.0, ranks / tm.maximum(out_degree, 1.0))
    lost = tm.sum(ranks * dangling)
    return damping * (links.T @ share + lost / count) + (1.0 - damping) / count


def pagerank(links, damping=0.85, tolerance=1e-12):
    """The rank of every page; ``links[i, j]`` is true if page i links to page j."""
    count = float(links.shape[0])
    out_degree = links.sum(axis=1).astype("f64")
    dangling = out_degree == 0
    ranks = tm.full(links.shape[0], 1.0 / count)
    while True:
        after = step(links, ranks, out_degree, dangling, damping, count)
        if float(tm.sum(abs(after - ranks))) < tolerance:
            return after
        ranks = after


def check(links, ranks):
    """The ranks are the eigenvector of Google's dense matrix, which NumPy finds on its own."""
    dense = links.to_numpy().astype(float)
    degree = dense.sum(axis=1, keepdims=True)
    chain = np.where(degree > 0, dense / np.maximum(degree, 1), 1 / len(dense))
    google = 0.85 * chain.T + 0.15 / len(dense)
    expected = np.full(len(dense), 1 / len(dense))
    for _ in range(200):
        expected = google @ expected
    np.testing.assert_allclose(ranks.to_numpy(), expected, atol=1e-10)


def main():
    """Ranks the pages of a random web."""
    links = tm.gallery.rmat(10, 8) != 0
    ranks = pagerank(links)
    check(links, ranks)
    best = tm.argsort(ranks, descending=True).to_numpy()[:5]
    print(f"{links.shape[0]} pages, {links.nnz} links; the best: {best.tolist()}")


if __name__ == "__main__":
    main()
