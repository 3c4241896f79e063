"""Benchmark of training with PyTorch: our layers beside torch.sparse, dense PyTorch and PyG: python torch_training.py [--rounds N] [--small] [STUDY ...]

The studies are `gcn` (graph convolutions on citation graphs), `gat` (graph attention), `autoencoder` (linear layers pruned to 5 %) and `attention` (a
window of 256 positions and 16 global ones); all of them by default. All sides have equal parameters. Values and gradients are compared before anything
is timed; then all sides run alternately, and the minimum over the rounds counts. Everything is f32, on `--threads N` threads (1 by default). A training
step is forward, backward and Adam. Times are in milliseconds, of the processor on one thread and of the wall on
several; a ratio is a peer's time over ours (above 1, ours is faster).
"""

import copy
import itertools
import math
import os
import sys
import time
import warnings

import numpy as np
import torch
import torch.nn.functional as F

import tamis as tm

warnings.filterwarnings("ignore", message="Sparse")
DATA = os.environ.get("TAMIS_DATA", os.path.join(os.path.dirname(__file__), "../../shared/data")) + "/graphml"
GRAPHS = ["cora", "citeseer", "pubmed", "flickr", "amazon-cs", "coauthor-cs"]


def clock():
    """Seconds: of the processor on one thread, which other programs disturb less; on several threads, of the wall."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


def best(sides, rounds):
    """The least time of each side, in milliseconds, interleaved; each runs after each other one, whose data may fill the caches."""
    least = dict.fromkeys(sides, math.inf)
    for side in sides.values():
        side()
    orders = list(itertools.permutations(sides.items()))
    for k in range(rounds):
        for name, side in orders[k % len(orders)]:
            start = clock()
            side()
            least[name] = min(least[name], 1e3 * (clock() - start))
    return least


def close(a, b, what):
    """Equal to 1e-4 of the largest element, or an error."""
    difference = (a - b).abs().max() / b.abs().max().clamp(min=1e-12)
    assert difference <= 1e-4, f"{what} differs by {difference:.1e}"


def study(title, models, operands, loss, rounds, ratios, compare=None, wide=False):
    """Inference and a training step of several models on the same operands; the first one is ours.

    With ``wide``, gradients are compared in f64: in f32, rounding may decide about the sign of a number before a ReLU. Values are compared in f32.
    """
    gradients = {}
    for name, model in models.items():
        with torch.no_grad():
            value = model(*operands)
        checked = copy.deepcopy(model).double() if wide else model
        checked.zero_grad()
        loss(checked(*([x.double() for x in operands] if wide else operands))).backward()
        gradients[name] = value, (compare or {}).get(name, lambda m: [p.grad for p in m.parameters()])(checked)
    ours, *peers = models
    for peer in peers:
        close(gradients[peer][0], gradients[ours][0], f"{title}: the value by {peer}")
        for k, (a, b) in enumerate(zip(gradients[peer][1], gradients[ours][1], strict=True)):
            close(a, b, f"{title}: gradient {k} by {peer}")

    def inference(model):
        with torch.no_grad():
            return model(*operands)

    def training(model, optimizer):
        optimizer.zero_grad()
        loss(model(*operands)).backward()
        optimizer.step()

    forward = best({name: lambda m=m: inference(m) for name, m in models.items()}, rounds)
    adam = {name: torch.optim.Adam(m.parameters(), lr=1e-4) for name, m in models.items()}
    step = best({n: lambda n=n, m=m: training(m, adam[n]) for n, m in models.items()}, rounds)
    for what, times in (("inference", forward), ("training step", step)):
        shown = "  ".join(f"{name} {t:9.2f}" for name, t in times.items())
        ratio = {peer: times[peer] / times[ours] for peer in peers}
        print(f"{title:34} {what:14} {shown}   " + "  ".join(f"{peer}/ours {r:.2f}" for peer, r in ratio.items()), flush=True)
        for peer, r in ratio.items():
            ratios.setdefault((title.split()[0], what, peer), []).append(r)
        ratios.setdefault((title.split()[0], what, "best peer"), []).append(min(ratio.values()))


def graph(name):
    """The adjacency matrix, the features and the labels of a graph."""
    A = tm.read(f"{DATA}/{name}.adj.mtx.gz").astype("f32").convert("csr")
    A = tm.einsum("B[i,j] = max(A[i,j], A[j,i])", A=A, format="csr")
    X = tm.read(f"{DATA}/{name}.features.mtx.gz").astype("f32").convert("csr")
    path = f"{DATA}/{name}.labels.txt"
    labels = np.loadtxt(path if os.path.exists(path) else path + ".gz", dtype=np.int64)
    return A, X, torch.from_numpy(labels - labels.min())


class TorchGCN(torch.nn.Module):
    """Two graph convolutions by torch.sparse."""

    def __init__(self, ours, N):
        super().__init__()
        self.first, self.second = copy.deepcopy(ours.first), copy.deepcopy(ours.second)
        for layer in (self.first, self.second):
            layer._seen = (None, None)
        self.N = N

    def forward(self, x):
        h = self.N @ (x @ self.first.weight) + self.first.bias
        return self.N @ (torch.relu(h) @ self.second.weight) + self.second.bias


class GCN(torch.nn.Module):
    """Two graph convolutions."""

    def __init__(self, features, hidden, classes, N):
        super().__init__()
        self.first, self.second = tm.torch.GraphConv(features, hidden, N), tm.torch.GraphConv(hidden, classes, N)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


def gcn(options, rounds, ratios):
    """Graph convolutions on the features as a sparse matrix (ours, and torch.sparse), and as a dense one."""
    for name in GRAPHS[: 2 if options.small else None]:
        if not os.path.exists(f"{DATA}/{name}.adj.mtx.gz"):
            print(f"{name} is NOT measured: there is no such file in {DATA} (TAMIS_DATA names another folder)")
            continue
        A, X, labels = graph(name)
        N = tm.torch.normalized(A)
        sparse = X.to_torch()
        for hidden in (16,) if options.small else (16, 128):
            torch.manual_seed(0)
            ours = GCN(X.shape[1], hidden, int(labels.max()) + 1, N)
            theirs = TorchGCN(ours, N.to_torch())
            models = {"ours": ours, "torch.sparse": theirs}
            if options.pyg:
                models["PyG"] = pyg_gcn(ours, N, sparse.to_dense())
            reorder = {"PyG": lambda m: [p.grad if p.dim() == 1 else p.grad.t() for p in (m.a.lin.weight, m.a.bias, m.b.lin.weight, m.b.bias)]}
            study(f"gcn {name}, hidden {hidden}", models, (sparse,), lambda y: F.cross_entropy(y, labels), rounds, ratios, reorder)


def pyg_gcn(ours, N, features):
    """Two graph convolutions of PyG, on the normalised graph as a sparse tensor, and dense features."""
    from torch_geometric.nn import GCNConv

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            sizes = ours.first.in_channels, ours.first.out_channels, ours.second.out_channels
            self.a, self.b = GCNConv(*sizes[:2], normalize=False), GCNConv(*sizes[1:], normalize=False)
            with torch.no_grad():
                for layer, source in ((self.a, ours.first), (self.b, ours.second)):
                    layer.lin.weight.copy_(source.weight.t())
                    layer.bias.copy_(source.bias)
            self.N, self.dense = N.to_torch(), features

        def forward(self, x):
            return self.b(torch.relu(self.a(self.dense, self.N)), self.N)

    return Model()


class EdgeGATv2(torch.nn.Module):
    """GATv2 by gathers and scatters over edges, in plain PyTorch."""

    def __init__(self, ours, P):
        super().__init__()
        self.layer = copy.deepcopy(ours)
        self.layer._seen = (None, None)
        coords, _ = P.as_tensor().to_coo()
        self.rows, self.columns = (torch.from_numpy(c.astype(np.int64)) for c in coords)

    def forward(self, x):
        layer, n = self.layer, len(x)
        left, right = (f(x).reshape(n, layer.heads, -1) for f in (layer.left, layer.right))
        source = right[self.columns]
        scores = (F.leaky_relu(left[self.rows] + source, layer.negative_slope) * layer.attention).sum(-1)
        places = self.rows[:, None].expand_as(scores)
        top = scores.new_full((n, layer.heads), -torch.inf).scatter_reduce(0, places, scores.detach(), "amax")
        weights = torch.exp(scores - top[self.rows])
        total = weights.new_zeros(n, layer.heads).index_add(0, self.rows, weights)
        made = torch.zeros_like(left).index_add(0, self.rows, weights[..., None] * source) / total[..., None]
        return made.reshape(n, -1) + layer.bias


def gat(options, rounds, ratios):
    """A layer of graph attention on 64 features, with 4 heads of 16."""
    for name in GRAPHS[: 2 if options.small else None]:
        A, _, _ = graph(name)
        P = (A + tm.eye(A.shape[0])).convert("csr").pattern
        torch.manual_seed(0)
        ours = tm.torch.GATv2(64, 16, P, heads=4)
        x = torch.randn(A.shape[0], 64)
        models, compare = {"ours": ours, "by edges": EdgeGATv2(ours, P)}, {}
        if options.pyg:
            models["PyG"] = pyg_gat(ours, models["by edges"])
            compare["PyG"] = lambda m: [p.grad.reshape(q.shape) for p, q in zip(pyg_parameters(m.layer), ours.parameters())]
        study(f"gat {name}", models, (x,), lambda y: y.square().mean(), rounds, ratios, compare)


def pyg_parameters(layer):
    """The parameters of PyG's layer in the order of ours: sources are our columns, its `lin_l`."""
    return layer.att, layer.bias, layer.lin_r.weight, layer.lin_r.bias, layer.lin_l.weight, layer.lin_l.bias


def pyg_gat(ours, edges):
    """The same layer of PyG."""
    from torch_geometric.nn import GATv2Conv

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = GATv2Conv(64, ours.out_channels, heads=ours.heads, add_self_loops=False)
            self.edges = torch.stack([edges.columns, edges.rows])
            with torch.no_grad():
                for own, theirs in zip(ours.parameters(), pyg_parameters(self.layer)):
                    theirs.copy_(own.reshape(theirs.shape))

        def forward(self, x):
            return self.layer(x, self.edges)

    return Model()


class TorchSparseLinear(torch.nn.Module):
    """A linear layer whose weight is a CSR tensor of PyTorch; its values are the parameter, since Adam takes no CSR tensors."""

    def __init__(self, ours):
        super().__init__()
        weight = ours.pattern.with_values(ours.values.detach().clone()).to_torch()
        self.values, self.bias = torch.nn.Parameter(weight.values().clone()), copy.deepcopy(ours.bias)
        self.indices, self.shape = (weight.crow_indices(), weight.col_indices()), weight.shape

    def forward(self, x):
        weight = torch.sparse_csr_tensor(*self.indices, self.values, self.shape, check_invariants=False)
        return (weight @ x.t()).t() + self.bias


class MaskedLinear(torch.nn.Module):
    """A linear layer whose dense weight is masked, as torch.nn.utils.prune does it."""

    def __init__(self, ours):
        super().__init__()
        self.dense = ours.to_dense()
        self.register_buffer("mask", (self.dense.weight != 0).float())

    def forward(self, x):
        return F.linear(x, self.dense.weight * self.mask, self.dense.bias)


def autoencoder(options, rounds, ratios):
    """784-512-128-512-784, pruned to 5 %."""
    sizes = [784, 512, 128, 512, 784]
    for batch in (64,) if options.small else (16, 64, 256, 1024):
        torch.manual_seed(0)
        layers = [tm.torch.SparseLinear(a, b, density=0.05) for a, b in zip(sizes, sizes[1:])]

        def stack(kind, layers=layers):
            made = [part for layer in layers for part in (kind(layer), torch.nn.ReLU())]
            return torch.nn.Sequential(*made[:-1])

        x = torch.rand(batch, 784)
        models = {"ours": stack(copy.deepcopy), "dense": stack(MaskedLinear)}

        def stored(model):
            return [g for l in model if hasattr(l, "values") for g in (l.values.grad, l.bias.grad)]

        def masked(model):
            found = []
            for l, own in zip([l for l in model if hasattr(l, "mask")], layers):
                coords, _ = own.pattern.as_tensor().to_coo()
                found += [l.dense.weight.grad[tuple(torch.from_numpy(c.astype(np.int64)) for c in coords)], l.dense.bias.grad]
            return found

        compare = {"ours": stored, "dense": masked, "torch.sparse": stored}
        models["torch.sparse"] = stack(TorchSparseLinear)
        study(f"autoencoder batch {batch}", models, (x,), lambda y, x=x: F.mse_loss(y, x.to(y.dtype)), rounds, ratios, compare, True)


class Attend(torch.nn.Module):
    """Projections to queries, keys and values, and an attention."""

    def __init__(self, features, attend):
        super().__init__()
        self.project, self.attend = torch.nn.Linear(features, 3 * features), attend

    def forward(self, x):
        return self.attend(*self.project(x).chunk(3, -1))


class EdgeAttention(torch.nn.Module):
    """Attention over the pairs of a mask: `torch.sparse.sampled_addmm`, a softmax by scatters, and a product of torch.sparse."""

    def __init__(self, mask):
        super().__init__()
        coords, _ = mask.to_coo()
        self.rows, self.columns = (torch.from_numpy(c.astype(np.int64)) for c in coords)
        self.zeros, self.n = mask.to_torch() * 0, mask.shape[0]

    def forward(self, q, k, v):
        scores = torch.sparse.sampled_addmm(self.zeros, q / math.sqrt(q.shape[1]), k.t(), beta=0.0).values()
        top = scores.new_full((self.n,), -torch.inf).scatter_reduce(0, self.rows, scores.detach(), "amax")
        weights = torch.exp(scores - top[self.rows])
        total = weights.new_zeros(self.n).index_add(0, self.rows, weights)
        P = torch.sparse_csr_tensor(self.zeros.crow_indices(), self.zeros.col_indices(), weights / total[self.rows], (self.n, self.n))
        return P @ v


class DenseAttention(torch.nn.Module):
    """Attention by PyTorch with a dense mask."""

    def __init__(self, mask):
        super().__init__()
        self.mask = torch.from_numpy(mask.to_numpy() != 0)

    def forward(self, q, k, v):
        return F.scaled_dot_product_attention(q[None], k[None], v[None], attn_mask=self.mask)[0]


def attention(options, rounds, ratios):
    """A window of 256 positions on both sides together, and 16 global positions; 64 features."""
    for n in (1024,) if options.small else (1024, 4096):
        place = np.arange(n)
        near = np.abs(place[:, None] - place) <= 128
        near[:16], near[:, :16] = True, True
        mask = tm.tensor(near.astype("f4"), format="csr")
        torch.manual_seed(0)
        x = torch.randn(n, 64)
        attends = {"ours": tm.torch.SparseAttention(mask), "dense": DenseAttention(mask), "torch.sparse": EdgeAttention(mask)}
        project = torch.nn.Linear(64, 192)
        models = {name: Attend(64, attend) for name, attend in attends.items()}
        for model in models.values():
            model.project.load_state_dict(project.state_dict())
        study(f"attention n={n}, {mask.nnz / n:.0f} a row", models, (x,), lambda y: y.square().mean(), rounds, ratios)


STUDIES = {"gcn": gcn, "gat": gat, "autoencoder": autoencoder, "attention": attention}


class Options:
    """The options of the command line."""

    def __init__(self, arguments):
        def value(name, default):
            if name not in arguments:
                return default
            place = arguments.index(name)
            found = int(arguments[place + 1])
            del arguments[place : place + 2]
            return found

        self.rounds, self.threads = value("--rounds", 9), value("--threads", 1)
        self.small = "--small" in arguments
        self.studies = [a for a in arguments if not a.startswith("--")] or list(STUDIES)
        try:
            import torch_geometric  # noqa: F401

            self.pyg = True
        except ImportError:
            self.pyg = False


def main(arguments):
    """The studies, then geometric means of the ratios."""
    options = Options(arguments)
    torch.set_num_threads(options.threads)
    tm.config(threads=options.threads)
    print(f"PyTorch {torch.__version__}, {options.threads} thread(s), PyG {'is measured' if options.pyg else 'is NOT installed'}; milliseconds")
    ratios = {}
    for name in options.studies:
        STUDIES[name](options, options.rounds, ratios)
    print("\ngeometric means of the time of a peer over ours")
    for (name, what, peer), found in ratios.items():
        print(f"{name:12} {what:14} {peer:14} {math.exp(sum(map(math.log, found)) / len(found)):7.2f}   (least {min(found):.2f})")


if __name__ == "__main__":
    main(sys.argv[1:])
