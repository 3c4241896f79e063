"""Trains a graph convolutional network on a citation graph, by `tm.torch.GraphConv` and by torch.sparse, from equal parameters: gcn_cora.py [FOLDER [GRAPH]]

FOLDER holds cora.adj.mtx.gz, cora.features.mtx.gz and cora.labels.txt; the first 140 papers are trained on and the last 1000 are tested. Without a
folder, a small graph of communities is made. A plot of the losses goes to gcn_cora.svg if matplotlib is installed.
"""

import sys

import numpy as np
import torch
import torch.nn.functional as F

import tamis as tm


def citations(folder, name):
    """The graph, the features, the labels, and the papers of training and test."""
    A = tm.read(f"{folder}/{name}.adj.mtx.gz").astype("f32").convert("csr")
    X = tm.read(f"{folder}/{name}.features.mtx.gz").astype("f32").convert("csr")
    labels = torch.from_numpy(np.loadtxt(f"{folder}/{name}.labels.txt", dtype=np.int64))
    return A, X, labels, slice(0, 140), slice(len(labels) - 1000, None)


def communities(n=600, classes=4):
    """A graph whose communities are its classes, with features that tell them apart poorly."""
    random = np.random.default_rng(0)
    labels = random.integers(0, classes, n)
    chance = np.where(labels[:, None] == labels, 0.05, 0.005)
    A = np.triu(random.uniform(size=(n, n)) < chance, 1)
    X = (random.uniform(size=(n, 64)) < 0.05 + 0.1 * (np.arange(64) % classes == labels[:, None])).astype("f4")
    A = tm.tensor((A | A.T).astype("f4"), format="csr")
    return A, tm.tensor(X, format="csr"), torch.from_numpy(labels), slice(0, 60), slice(300, None)


def train(weights, layers, x, labels, train, test, steps=200):
    """The losses, and the accuracy in percent on the test set."""
    torch.manual_seed(1)  # Both drop the same.
    optimizer = torch.optim.Adam(weights, lr=0.01, weight_decay=5e-4)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(layers(x, True)[train], labels[train])
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    with torch.no_grad():
        right = layers(x, False)[test].argmax(1) == labels[test]
    return losses, 100 * float(right.float().mean())


def main(arguments):
    """Three seeds of both."""
    A, X, labels, *sets = citations(*arguments, *(["cora"] if len(arguments) == 1 else [])) if arguments else communities()
    N, x = tm.torch.normalized(A), X.to_torch()
    S, shown = N.to_torch(), []
    for seed in range(3):
        torch.manual_seed(seed)
        a, b = tm.torch.GraphConv(X.shape[1], 16, N), tm.torch.GraphConv(16, int(labels.max()) + 1, N)
        w = [p.detach().clone().requires_grad_() for p in (*a.parameters(), *b.parameters())]
        ours = train([*a.parameters(), *b.parameters()], lambda x, on: b(F.dropout(F.relu(a(x)), 0.5, on)), x, labels, *sets)
        peer = train(w, lambda x, on: S @ (F.dropout(F.relu(S @ (x @ w[0]) + w[1]), 0.5, on) @ w[2]) + w[3], x, labels, *sets)
        print(f"seed {seed}: loss {ours[0][-1]:.4f} and {peer[0][-1]:.4f}, accuracy {ours[1]:.1f} % and {peer[1]:.1f} % by torch.sparse")
        assert abs(ours[1] - peer[1]) <= 1.0
        shown += [ours[0], peer[0]]
    return shown


def plot(shown):
    """The losses of both."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        return
    for k, losses in enumerate(shown):
        plt.plot(losses, "--" if k % 2 else "-", label=f"{'torch.sparse' if k % 2 else 'tamis'}, seed {k // 2}")
    plt.legend(), plt.xlabel("step"), plt.ylabel("loss"), plt.savefig("gcn_cora.svg")


if __name__ == "__main__":
    plot(main(sys.argv[1:]))
