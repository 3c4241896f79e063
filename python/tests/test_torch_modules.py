"""Layers of PyTorch with sparse weights, graphs and masks: beside dense ones, in state dicts, copies, types and compiled graphs."""

from __future__ import annotations

import copy
import io
import itertools
import pathlib
import runpy
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import tamis as tm

torch = pytest.importorskip("torch")
prune = pytest.importorskip("torch.nn.utils.prune")
F = torch.nn.functional


def same(made: Any, want: Any, leaves: Any, others: Any = None, tolerance: float = 1e-5) -> list[Any]:
    """Values and gradients agree; the gradients of what is made."""
    assert torch.allclose(made, want, atol=tolerance)
    above = torch.randn_like(want)
    found = torch.autograd.grad(made, leaves, above)
    if others is None:
        for g, w in zip(found, torch.autograd.grad(want, leaves, above)):
            assert torch.allclose(g, w, atol=tolerance)
        return list(found)
    return [found, torch.autograd.grad(want, others, above)]


PRUNINGS: list[dict[str, Any]] = [
    {"density": 0.3},
    {"density": 0.3, "format": "csc"},
    {"density": 0.3, "format": "coo"},
    {"density": 0.25, "block": (4, 4)},
    {"n_of_m": (2, 4)},
]


@pytest.mark.parametrize("pruning", PRUNINGS)
@pytest.mark.parametrize("bias", [True, False])
def test_sparse_linear(pruning: dict[str, Any], bias: bool) -> None:
    linear = torch.nn.Linear(12, 8, bias=bias)
    plain = {k: v for k, v in pruning.items() if k != "format"}
    mask = tm.torch.magnitude_mask(linear.weight, **plain)
    layer = tm.torch.SparseLinear.from_dense(linear, **pruning)
    x = torch.randn(2, 5, 12, requires_grad=True)
    weight = linear.weight.detach() * mask
    weight.requires_grad_()
    biases = [[layer.bias], [linear.bias]] if bias else [[], []]
    (gx, gv, *gb), (wx, ww, *wb) = same(
        layer(x), F.linear(x, weight, linear.bias), [x, layer.values, *biases[0]], [x, weight, *biases[1]]
    )
    assert all(torch.allclose(g, w, atol=1e-5) for g, w in zip(gb, wb))
    assert torch.allclose(gx, wx, atol=1e-5)
    gradient = layer.pattern.with_values(gv).to_tensor().to_numpy()
    np.testing.assert_allclose(gradient, (ww * mask).numpy(), atol=1e-4)
    assert torch.equal(layer.to_dense().weight, weight)


def test_masks() -> None:
    weight = torch.arange(1.0, 33).reshape(4, 8)
    assert tm.torch.magnitude_mask(weight, 0.25).sum() == 8
    assert tm.torch.magnitude_mask(weight, n_of_m=(1, 4)).sum(1).tolist() == [2, 2, 2, 2]
    assert tm.torch.magnitude_mask(weight, 0.5, block=(2, 2)).nonzero()[:, 0].min() == 2
    for given in ({"density": 0.0}, {"density": None}, {"n_of_m": (2, 3)}, {"density": 0.5, "block": (3, 3)}):
        with pytest.raises(tm.Error):
            tm.torch.magnitude_mask(weight, **given)
    pruned = torch.nn.Linear(8, 4)
    prune.l1_unstructured(pruned, "weight", 0.5)
    assert tm.torch.SparseLinear.from_dense(pruned).values.numel() == 16
    with pytest.raises(tm.Error):
        tm.torch.SparseLinear(3, 4, pattern=tm.eye(3, format="csr").pattern)


def graph(n: int = 20) -> Any:
    A = tm.gallery.random((n, n), 0.15, seed=1).astype("f32")
    return (A + A.T).convert("csr")


def test_graph_convolution() -> None:
    N = tm.torch.normalized(graph())
    dense = torch.tensor(N.to_numpy())
    A = graph().to_numpy()
    A = A + np.diag((np.diag(A) == 0).astype("f4"))
    scale = 1 / np.sqrt(A.sum(1))
    np.testing.assert_allclose(N.to_numpy(), scale[:, None] * A * scale, rtol=1e-5)
    for sizes, bias in itertools.product([(6, 3), (3, 6)], [True, False]):
        x = torch.randn(20, sizes[0], requires_grad=True)
        layer = tm.torch.GraphConv(*sizes, N, bias=bias)
        for conv in (layer, lambda x, a=tm.torch.GraphConv(*sizes, bias=bias), b=layer: (a.load_state_dict(b.state_dict()), a(x, N))[1]):
            want = dense @ x @ layer.weight + (layer.bias if bias else 0)
            assert torch.allclose(conv(x), want, atol=1e-5)
        same(layer(x), dense @ x @ layer.weight + (layer.bias if bias else 0), [x, *layer.parameters()])
        features = x.detach().relu().to_sparse_csr()
        assert torch.allclose(layer(features), dense @ features.to_dense() @ layer.weight + (layer.bias if bias else 0), atol=1e-5)
    learned = N.pattern.with_values(torch.rand(N.nnz, requires_grad=True))
    tm.torch.GraphConv(6, 3)(torch.randn(20, 6), learned).sum().backward()
    assert learned.values.grad.shape == learned.values.shape
    with pytest.raises(tm.Error, match="no graph"):
        tm.torch.GraphConv(6, 3)(torch.randn(20, 6))


def test_the_graph_is_as_precise_as_the_features() -> None:
    A = tm.tensor([[1 / 3, 0.0], [0.1, 0.7]], format="csr")
    layer = tm.torch.GraphConv(2, 2, A).double()
    x = torch.rand(2, 2, dtype=torch.float64)
    want = torch.tensor(A.to_numpy()) @ x @ layer.weight + layer.bias
    assert torch.allclose(layer(x), want, rtol=1e-14, atol=0)
    assert layer.float()(x.float()).dtype == torch.float32


@pytest.mark.parametrize("heads, concat", [(1, True), (2, True), (3, False)])
def test_graph_attention(heads: int, concat: bool) -> None:
    P = (graph() + tm.eye(20)).convert("csr").pattern
    layer = tm.torch.GATv2(6, 4, P, heads=heads, concat=concat).double()
    x = torch.randn(20, 6, dtype=torch.float64, requires_grad=True)
    left, right = layer.left(x).reshape(20, heads, 4), layer.right(x).reshape(20, heads, 4)
    scores = (F.leaky_relu(left[:, None] + right[None], 0.2) * layer.attention).sum(-1)
    scores = scores.masked_fill(~torch.tensor(P.as_tensor().to_numpy())[..., None], -torch.inf)
    want = torch.einsum("ijh,jhf->ihf", torch.softmax(scores, 1), right)
    want = (want.reshape(20, -1) if concat else want.mean(1)) + layer.bias
    same(layer(x), want, [x, *layer.parameters()])


def test_attention() -> None:
    M = tm.asarray((np.abs(np.arange(16)[:, None] - np.arange(16)) <= 3).astype("f4")).convert("csr")
    layer = tm.torch.SparseAttention(M)
    q, k, v = (torch.randn(2, 3, 16, 8, dtype=torch.float64, requires_grad=True) for _ in range(3))
    want = F.scaled_dot_product_attention(q, k, v, attn_mask=torch.tensor(M.to_numpy() != 0))
    same(layer(q, k, v), want, [q, k, v])
    small = [t.detach()[0, 0, :, :2].requires_grad_() for t in (q, k, v)]
    assert torch.autograd.gradcheck(layer, small) and torch.autograd.gradgradcheck(layer, small)
    # Scores of any size: the greatest one of a row is subtracted.
    far = [q[0, 0] * 1000, k[0, 0] * 1000 - 5000, v[0, 0]]
    assert torch.isfinite(layer(*far)).all()
    with pytest.raises(tm.Error, match="mask is 16x16"):
        layer(q[:, :, :3], k, v)


@pytest.mark.parametrize("stride, submanifold", [(1, None), (1, False), (2, None), ((1, 2), False)])
@pytest.mark.parametrize("size", [3, 2])
def test_convolution(stride: Any, submanifold: bool | None, size: int) -> None:
    layer = tm.torch.SparseConv(3, 4, size, 2, stride=stride, submanifold=submanifold).double()
    image = torch.randn(1, 3, 9, 8, dtype=torch.float64) * (torch.rand(1, 1, 9, 8) < 0.3)
    x = image[0].permute(1, 2, 0).to_sparse(2).coalesce().requires_grad_()
    made = layer(x).coalesce()
    dense = image.clone().requires_grad_()
    padded = F.pad(dense, (size // 2, (size - 1) // 2) * 2)
    weight = layer.weight.reshape(size, size, 3, 4).permute(3, 2, 0, 1)
    want = F.conv2d(padded, weight, layer.bias, stride=stride)[0].permute(1, 2, 0)
    assert made.shape == want.shape
    places = tuple(made.indices())
    if submanifold is None and stride == 1:
        assert torch.equal(made.indices(), x.indices())
    else:
        outside = want.detach() - layer.bias
        outside[places] = 0
        assert outside.abs().max() < 1e-9
    found, wanted = same(made.values(), want[places], [layer.weight, layer.bias, x], [layer.weight, layer.bias, dense])
    assert torch.allclose(found[0], wanted[0]) and torch.allclose(found[1], wanted[1])
    gradient = found[2].coalesce()
    assert torch.allclose(gradient.values(), wanted[2][0].permute(1, 2, 0)[tuple(gradient.indices())])


def test_convolution_in_three_dimensions_and_mistakes() -> None:
    x = torch.sparse_coo_tensor(torch.randint(0, 5, (3, 20)), torch.randn(20, 2), (5, 5, 5, 2)).coalesce()
    layer = tm.torch.SparseConv(2, 3, dims=3)
    want = F.conv3d(x.to_dense().permute(3, 0, 1, 2)[None], layer.weight.reshape(3, 3, 3, 2, 3).permute(4, 3, 0, 1, 2), layer.bias, padding=1)
    made = layer(x).coalesce()
    assert torch.allclose(made.values(), want[0].permute(1, 2, 3, 0)[tuple(made.indices())], atol=1e-5)
    empty = torch.sparse_coo_tensor(torch.zeros(3, 0, dtype=torch.long), torch.zeros(0, 2), (5, 5, 5, 2)).coalesce()
    assert layer(empty)._nnz() == 0
    for call in (lambda: layer(x.to_dense()), lambda: tm.torch.SparseConv(2, 3, stride=2, submanifold=True), lambda: tm.torch.SparseConv(2, 3, (3, 3, 3))):
        with pytest.raises(tm.Error):
            call()


def models() -> dict[str, tuple[Any, Any]]:
    """A model of each kind, and its operand."""
    N = tm.torch.normalized(graph())
    M = tm.asarray((np.abs(np.arange(20)[:, None] - np.arange(20)) <= 3).astype("f4")).convert("csr")

    class Attention(torch.nn.Module):  # type: ignore[misc,name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.project, self.attend = torch.nn.Linear(6, 18), tm.torch.SparseAttention(M)

        def forward(self, x: Any) -> Any:
            return self.attend(*self.project(x).chunk(3, -1))

    linear = tm.torch.SparseLinear
    return {
        "GCN": torch.nn.Sequential(tm.torch.GraphConv(6, 8, N), torch.nn.ReLU(), tm.torch.GraphConv(8, 3, N)),
        "GATv2": tm.torch.GATv2(6, 4, N, heads=2),
        "autoencoder": torch.nn.Sequential(linear(6, 4, density=0.4), torch.nn.ReLU(), linear(4, 6, density=0.4)),
        "attention": Attention(),
    }


@pytest.mark.parametrize("name", ["GCN", "GATv2", "autoencoder", "attention"])
def test_compiled_graphs(name: str) -> None:
    model, x = models()[name], torch.randn(20, 6, requires_grad=True)
    torch._dynamo.reset()
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    same(compiled(x), model(x), [x, *model.parameters()])
    exported = torch.export.export(model, (x.detach(),))
    assert torch.allclose(exported.module()(x.detach()), model(x), atol=1e-5)


def test_the_operator_of_graphs() -> None:
    P = graph().pattern
    spmm = tm.torch.Notation("y[i,f] = A[i,j] * x[j,f]", patterns={"A": P})
    values, x = torch.rand(P.nnz, requires_grad=True), torch.rand(20, 3, requires_grad=True)
    torch.library.opcheck(torch.ops.tamis.notation.default, (spmm._key, [values, x]))
    assert spmm(A=values.to("meta"), x=x.to("meta")).shape == (20, 3)
    with pytest.raises(tm.Error):
        spmm(x=x)
    with pytest.raises((tm.Error, RuntimeError), match="vmap|transformations"):
        torch.vmap(lambda x: spmm(A=values.detach(), x=x))(torch.rand(2, 20, 3))


@pytest.mark.parametrize("name", ["GCN", "GATv2", "autoencoder", "attention"])
def test_states_copies_and_types(name: str) -> None:
    model, x = models()[name], torch.randn(20, 6)
    again, want = models()[name], model(x)
    if name != "autoencoder":  # The patterns of its layers are random.
        again.load_state_dict(model.state_dict())
        assert torch.equal(again(x), want)
    for twin in (copy.deepcopy(model), *([] if name == "attention" else [saved(model)])):  # Its class is local.
        assert torch.equal(twin(x), want)
        twin(x).sum().backward()
        assert all(p.grad is not None for p in twin.parameters()) and all(p.grad is None for p in model.parameters())
    if name == "autoencoder":
        half = copy.deepcopy(model).to(torch.bfloat16)
        made = half(x.bfloat16())
        made.sum().backward()
        assert made.dtype == torch.bfloat16 and all(p.grad.dtype == torch.bfloat16 for p in half.parameters())
    assert torch.allclose(copy.deepcopy(model).double()(x.double()).float(), want, atol=1e-4)


def saved(model: Any) -> Any:
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def test_training() -> None:
    torch.manual_seed(0)
    N = tm.torch.normalized(graph())
    model = torch.nn.Sequential(tm.torch.GraphConv(6, 16, N), torch.nn.ReLU(), tm.torch.GraphConv(16, 3, N))
    x, labels = torch.randn(20, 6), torch.randint(0, 3, (20,))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.5 * losses[0]


def test_the_example() -> None:
    path = pathlib.Path(__file__).parents[2] / "examples" / "torch" / "gcn_cora.py"
    assert len(path.read_text().splitlines()) <= 80
    ours, theirs, *_ = runpy.run_path(str(path))["main"]([])
    np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=1e-3)


def test_memory_is_proportional_to_the_pairs() -> None:
    code = """if True:
        import resource
        import numpy as np, tamis as tm, torch
        n = 20_000
        mask = tm.gallery.banded(n, 8).pattern
        x = torch.randn(n, 16, requires_grad=True)
        attend = tm.torch.SparseAttention(mask)
        edges = tm.torch.GATv2(16, 4, mask, heads=2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        attend(x, x, x).sum().backward()
        edges(x).sum().backward()
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    grown = int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    assert grown < 200_000  # KiB; a matrix of all pairs has 1.6 million.
