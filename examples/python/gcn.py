"""The forward pass of a graph convolutional network of two layers, traced and fused."""

import os

import numpy as np

import tamis as tm

DATA = os.environ.get("TAMIS_DATA", os.path.join(os.path.dirname(__file__), "../../../shared/data"))


def normalised(adjacency):
    """The adjacency with loops, divided by the roots of degrees on both sides."""
    looped = adjacency + tm.eye(adjacency.shape[0], format="csr")
    root = 1.0 / tm.sqrt(looped.sum(axis=1))
    return tm.einsum("N[i,j] = d[i] * A[i,j] * e[j]", A=looped, d=root, e=root, format="csr")


@tm.jit
def forward(A, X, W1, W2):
    """Two layers: relu(A X W1), then A H W2, and a softmax over classes."""
    hidden = tm.relu(A @ (X @ W1))
    scores = A @ (hidden @ W2)
    powers = tm.exp(scores - tm.max(scores, axis=1, keepdims=True))
    return powers / tm.sum(powers, axis=1, keepdims=True)


def check(A, X, W1, W2, found):
    """The same in NumPy, densely."""
    A, X, W1, W2 = (np.asarray(t) for t in (A, X, W1, W2))
    scores = A @ (np.maximum(A @ (X @ W1), 0) @ W2)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    np.testing.assert_allclose(found.to_numpy(), powers / powers.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)


def main():
    """Cora if it is there, else a random graph."""
    path = f"{DATA}/graphml/cora"
    if os.path.exists(f"{path}.adj.mtx.gz"):
        name, A, X = "cora", tm.read(f"{path}.adj.mtx.gz").astype("f64"), tm.read(f"{path}.features.mtx.gz").astype("f64")
        A, X = A.convert("csr"), X.convert("csr")
    else:
        name, A, X = "a random graph", tm.gallery.random((300, 300), 0.01, 1), tm.gallery.random((300, 100), 0.02, 2)
    rng = np.random.default_rng(0)
    W1, W2 = rng.normal(size=(X.shape[1], 16)), rng.normal(size=(16, 7))
    N = normalised((A != 0).astype("f64"))
    found = forward(N, X, W1, W2)
    check(N, X, W1, W2, found)
    print(f"{name}: {A.shape[0]} nodes, {A.nnz} edges, {X.shape[1]} features; classes {np.bincount(found.argmax(axis=1).to_numpy())}")


if __name__ == "__main__":
    main()
