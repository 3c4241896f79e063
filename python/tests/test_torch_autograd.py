"""Gradients through PyTorch: every shape of notation, format and layout by `gradcheck`, in both directions and twice."""

from __future__ import annotations

import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import tamis as tm
from tamis._elementwise import OPS, apply

torch = pytest.importorskip("torch")
warnings.filterwarnings("ignore", message="Sparse")
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck

FORMATS = ["csr", "csc", "coo", "dcsr", "bsr(2,2)", "dense, sparse_runs", "sparse, dense", "(i,j) -> (j,i): dense, dense"]
TEXTS = [
    "y[i] = A[i,j] * x[j]",
    "y[j] = A[i,j] * x[i]",
    "s = A[i,j] * x[i] * x[j]",
    "y[i] = sum[j](exp(A[i,j]) * x[j])",
    "C[i,k] = A[i,j] * A[j,k] * x[k]",
    "C[i,j] = A[i,j] * x[i] * x[j]",
    "C[i,j] = A[i,j] + x[i]",
    "s = prod[i](2 + A[i,j] * x[j])",
    "y[i] = A[i,i] * x[i]",
    "y[i] = max(x[i], coalesce(x[~(i-1)], 0))",
    "t[i] = A[i,j] * x[j]; y[i] = sin(t[i]) * t[i]",
    "y[i] = select(x[i] > 0, x[i] * x[i], 3 * x[i])",
]


def leaf(*shape: int, seed: int = 0) -> Any:
    random = np.random.default_rng(seed)
    return torch.tensor(random.uniform(0.5, 2, shape) * random.choice([-1, 1], shape), requires_grad=True)


def matrix(format: str = "csr", seed: int = 1) -> Any:
    random = np.random.default_rng(seed)
    return tm.tensor(random.uniform(0.5, 2, (6, 6)) * (random.uniform(size=(6, 6)) < 0.4), format=format)


def strided(made: Any) -> Any:
    return made.values if hasattr(made, "pattern") else made


@pytest.mark.parametrize("format", FORMATS)
def test_values_on_patterns(format: str) -> None:
    A = matrix(format)
    P, v, x = A.pattern, torch.tensor(A.values.copy(), requires_grad=True), leaf(6)
    for text in TEXTS:
        if "A" not in text:
            continue
        f = lambda v, x, text=text: strided(tm.einsum(text, A=P.with_values(v), x=x))  # noqa: E731
        assert gradcheck(f, (v, x)), text
    assert gradgradcheck(f, (v, x))


@pytest.mark.parametrize("text", TEXTS)
def test_gradients_of_gradients(text: str) -> None:
    A = matrix()
    x = leaf(6)
    f = lambda x: strided(tm.einsum(text, **({"A": A} if "A" in text else {}), x=x))  # noqa: E731
    assert gradcheck(f, (x,), check_forward_ad=True)
    assert gradgradcheck(f, (x,))


def test_the_gradient_of_a_pattern_is_its_values() -> None:
    P = tm.gallery.random((500, 400), 0.01, seed=2).pattern
    v, x = torch.randn(P.nnz, requires_grad=True), torch.randn(400, 8, requires_grad=True)
    y = tm.einsum("y[i,f] = A[i,j] * x[j,f]", A=P.with_values(v), x=x)
    assert y.dtype == torch.float32 and y.is_contiguous()
    y.square().sum().backward()
    coords, _ = P.with_values(v).detach().to_tensor().to_coo()
    want = (2 * y.detach()[coords[0]] * x.detach()[coords[1]]).sum(1)
    assert v.grad.shape == v.shape and torch.allclose(v.grad, want, atol=1e-4)


@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_layouts_as_leaves(layout: str) -> None:
    dense = torch.tensor(matrix().to_numpy())
    A = getattr(dense, f"to_sparse_{layout}")().requires_grad_()
    x = leaf(6)
    y = tm.einsum("y[i] = sum[j](sin(A[i,j]) * x[j])", A=A, x=x)
    y.square().sum().backward()
    same = dense.clone().requires_grad_()
    (torch.sin(same) @ x).square().sum().backward()
    assert A.grad.layout == A.layout
    assert torch.allclose(A.grad.to_dense(), same.grad * (dense != 0))


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "bsr"])
def test_layouts_on_the_way(layout: str) -> None:
    dense = torch.tensor(matrix().to_numpy())
    example = getattr(dense, f"to_sparse_{layout}")(*([(2, 2)] if layout == "bsr" else []))
    v, x = example.coalesce().values() if layout == "coo" else example.values(), leaf(6)

    def made(v: Any) -> Any:
        if layout == "coo":
            return torch.sparse_coo_tensor(example.coalesce().indices(), v, (6, 6), is_coalesced=True)
        indices = (
            (example.crow_indices(), example.col_indices()) if layout in ("csr", "bsr") else (example.ccol_indices(), example.row_indices())
        )
        return torch.sparse_compressed_tensor(*indices, v, (6, 6), layout=example.layout)

    f = lambda v, x: tm.einsum("y[i] = sum[j](A[i,j] * A[i,j] * x[j])", A=made(v), x=x)  # noqa: E731
    assert gradcheck(f, (v.detach().requires_grad_(), x), masked=True)


def test_hybrid_layouts() -> None:
    values = leaf(3, 4)
    indices = torch.tensor([[0, 1, 2], [1, 0, 1]])
    w = leaf(4, 2)

    def f(values: Any, w: Any) -> Any:
        A = torch.sparse_coo_tensor(indices, values, (3, 2, 4), is_coalesced=True)
        return tm.einsum("y[i,f] = A[i,j,c] * w[c,f]", A=A, w=w)

    assert gradcheck(f, (values, w), masked=True)


def test_sparse_results() -> None:
    A = tm.gallery.random((300, 300), 0.005, seed=1)
    x = torch.rand(300, dtype=torch.float64, requires_grad=True)
    for format, layout in [("csr", torch.sparse_csr), ("csc", torch.sparse_csc), ("coo", torch.sparse_coo), ("dcsr", torch.sparse_csr)]:
        C = tm.einsum("C[i,j] = A[i,j] * x[i]", A=A, x=x, format=format)
        assert C.layout == layout and C.requires_grad
        (gradient,) = torch.autograd.grad(C.to_dense().sum(), x)
        assert torch.allclose(gradient, torch.tensor(A.sum(axis=1).to_numpy()))
    # A result is an operand again, and its pattern is not checked again.
    y = tm.einsum("y[i] = C[i,j] * x[j]", C=tm.einsum("C[i,j] = A[i,j] * x[i]", A=A, x=x, format="csr"), x=x)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    dense = torch.tensor(A.to_numpy())
    assert torch.allclose(gradient, dense @ x.detach() + dense.T @ x.detach())


def test_spgemm() -> None:
    A, B = matrix(), matrix("csc", seed=2)
    v, w = (torch.tensor(M.values.copy(), requires_grad=True) for M in (A, B))
    C = tm.einsum("C[i,k] = A[i,j] * B[j,k]", A=A.pattern.with_values(v), B=B.pattern.with_values(w), format="csr")
    assert isinstance(C, tm.torch.SparseTensor)
    f = lambda v, w: tm.einsum(  # noqa: E731
        "C[i,k] = A[i,j] * B[j,k]", A=A.pattern.with_values(v), B=B.pattern.with_values(w), format="csr"
    ).values
    assert gradcheck(f, (v, w)) and gradgradcheck(f, (v, w))


def test_traced_functions_and_trees() -> None:
    A, x = matrix(), leaf(6, 3)

    @tm.jit
    def layer(parameters: Any, x: Any) -> Any:
        h = tm.tanh(A @ x @ parameters["w"] + parameters["b"])
        return {"h": h, "loss": tm.sum(h * h), "same": x}

    w, b = leaf(3, 2, seed=1), leaf(2, seed=2)
    assert gradcheck(lambda w, b, x: layer({"w": w, "b": b}, x)["loss"], (w, b, x))
    made = layer({"w": w, "b": b}, x)
    assert made["h"].shape == (6, 2) and made["same"] is x
    assert gradcheck(tm.jit(lambda x: x.T[None]), (x,))


@tm.kernel
def product(A, x):  # type: ignore[no-untyped-def] # noqa
    y = tensor("dense")  # noqa: F821
    for i in _:  # noqa: F821
        s = scalar(0.0)  # noqa: F821
        for j in _:  # noqa: F821
            if j <= i:
                s += A[i, j] * x[j]
        y[i] = exp(s)  # noqa: F821
    return y


@tm.kernel
def running(x):  # type: ignore[no-untyped-def] # noqa
    y = tensor("dense")  # noqa: F821
    s = scalar(0.0)  # noqa: F821
    for i in _:  # noqa: F821
        s += x[i]
        y[i] = s
    return y


def test_loop_programs() -> None:
    A, x = matrix(), leaf(6)
    v = torch.tensor(A.values.copy() / 10, requires_grad=True)
    assert gradcheck(lambda v, x: product(A.pattern.with_values(v), x), (v, x))
    assert torch.allclose(running(x.detach()), x.detach().cumsum(0))
    with pytest.raises(tm.Error) as error:
        running(x)
    assert error.value.code == "E0118" and "y[i] = s" in str(error.value)


def test_eager_functions() -> None:
    A, x = matrix(), leaf(6)
    functions = [
        *(lambda x: A @ x, lambda x: x @ A, lambda x: A * x, lambda x: x - A, lambda x: torch.matmul(A, x), lambda x: tm.sum(A @ x)),
        *(tm.exp, lambda x: tm.where(x > 0, x, 2 * x), lambda x: tm.max(x * x), lambda x: tm.mean(x * 3), lambda x: tm.outer(x, x)),
        *(lambda x: tm.einsum("ij,j->i", A, x), lambda x: tm.einsum("...j,j", A, x), lambda x: tm.tensordot(A, x, axes=1)),
        lambda x: torch.nn.functional.linear(x, A, x),
    ]
    for k, f in enumerate(functions):
        assert gradcheck(lambda x, f=f: f(x).to_dense(), (x,)), k
    assert isinstance(torch.relu(-A), tm.Tensor) and torch.sum(A) == A.sum()
    with pytest.raises(tm.Error, match="fft"):
        torch.fft.fft(A)


def test_changed_in_place_after_the_call() -> None:
    x = leaf(6)
    h = x * 2
    y = tm.einsum("s = h[i] * h[i]", h=h)
    h.add_(1)
    with pytest.raises(RuntimeError, match="inplace"):
        y.backward()


@pytest.mark.parametrize("entrance", ["einsum", "jit", "program", "operator", "sparse", "Notation"])
def test_constants_changed_in_place_after_the_call(entrance: str) -> None:
    # A product's gradient reads its other operand, whether that one has a gradient or not.
    x, c = leaf(6), torch.arange(1.0, 7.0, dtype=torch.float64)
    if entrance == "sparse":
        c = torch.tensor(matrix().to_numpy()).to_sparse_csr()
        y = tm.einsum("s = C[i,j] * x[j]", C=c, x=x)
        c.values().mul_(2)
    else:
        y = {
            "einsum": lambda: tm.einsum("s = c[i] * x[i]", c=c, x=x),
            "jit": lambda: tm.jit(lambda c, x: tm.sum(c * x))(c, x),
            "program": lambda: tm.program("def f(c, x):\n    s = scalar(0.0)\n    for i in _:\n        s += c[i] * x[i]\n    return s")(c, x),
            "operator": lambda: tm.vecdot(c, x),
            "Notation": lambda: tm.torch.Notation("s = c[i] * x[i]")(c=c, x=x),
        }[entrance]()
        c.mul_(2)
    with pytest.raises(RuntimeError, match="inplace"):
        y.backward()


def test_operands_are_freed_after_the_backward_pass() -> None:
    import gc
    import weakref

    x, w = torch.ones(1000, requires_grad=True), torch.ones(1000)
    h = x * 2
    loss = tm.einsum("s = h[i] * h[i] * w[i]", h=h, w=w)
    operands = weakref.ref(h), weakref.ref(w)
    del h, w
    loss.backward()
    gc.collect()
    assert [o() for o in operands] == [None, None], "the result keeps its operands alive"


def test_results_do_not_alias_operands() -> None:
    x = torch.ones(4)
    y = tm.einsum("y[i] = x[i]", x=x)
    y += 1
    assert x.tolist() == [1.0] * 4


def test_memory_is_shared_and_freed() -> None:
    x = torch.ones(1000, requires_grad=True)
    y = tm.einsum("y[i] = x[i] * x[i]", x=x)
    with torch.no_grad():
        y += 1  # The result belongs to its owner.
    assert float(x.sum()) == 1000
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_types() -> None:
    A = matrix().astype("f32")
    for dtype in (torch.float16, torch.bfloat16):
        x = leaf(6).detach().to(dtype).requires_grad_()
        y = tm.einsum("y[i] = A[i,j] * x[j]", A=A.pattern.with_values(torch.ones(A.nnz, dtype=dtype)), x=x)
        y.sum().backward()
        assert y.dtype == dtype and x.grad.dtype == dtype
    x = leaf(6).detach().to(torch.float32).requires_grad_()
    y = tm.einsum("y[i] = A[i,j] * x[j]", A=matrix(), x=x)
    y.sum().backward()
    assert y.dtype == torch.float64 and x.grad.dtype == torch.float32
    z = torch.randn(6, dtype=torch.complex128, requires_grad=True)
    assert gradcheck(lambda z, x: tm.einsum("y[i] = A[i,j] * z[j] * x[i]", A=matrix(), z=z, x=x), (z, leaf(6)))
    assert gradcheck(lambda z: tm.einsum("s = sum[i](abs(z[i]) ** 2)", z=z), (z,))


def test_results_without_a_derivative() -> None:
    x = leaf(6)
    assert not tm.einsum("y[i] = x[i] > 0", x=x).requires_grad
    y, z = tm.einsum("y[i] = x[i] > 0; z[i] = x[i] * 2", x=x)
    assert not y.requires_grad and z.requires_grad
    floor = tm.einsum("y[i] = floor(x[i])", x=x)
    assert torch.autograd.grad(floor.sum(), x, allow_unused=True)[0] in (None, 0)


def test_detached_operands_give_torch_tensors() -> None:
    x = torch.ones(6)
    with torch.no_grad():
        assert not tm.einsum("y[i] = x[i] * 2", x=leaf(6)).requires_grad
    assert isinstance(tm.einsum("y[i] = x[i] * 2", x=x), torch.Tensor)
    assert isinstance(tm.jit(lambda x: x * 2)(x), torch.Tensor)
    with tm.config(returns="tensors"):
        assert isinstance(tm.einsum("y[i] = x[i] * 2", x=x), tm.Tensor)
        with pytest.raises(tm.Error):
            tm.einsum("y[i] = x[i] * 2", x=leaf(6))


def test_unsorted_indices_are_refused_with_gradients() -> None:
    A = torch.sparse_csr_tensor(torch.tensor([0, 2]), torch.tensor([1, 0]), torch.ones(2), (1, 2), check_invariants=False)
    assert tm.einsum("s = A[i,j]", A=A) == 2
    with pytest.raises(tm.Error, match="not sorted"):
        tm.einsum("s = A[i,j]", A=A.requires_grad_())


def test_schedules_are_kept() -> None:
    A, x = matrix(), leaf(6)
    assert gradcheck(lambda x: tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=x, order="j,i"), (x,))


@pytest.mark.parametrize("name", sorted(OPS))
def test_every_function(name: str) -> None:
    for low, high in ((0.3, 0.9), (1.3, 2.5), (-0.8, -0.2)):
        operands = [torch.tensor(np.random.default_rng(k).uniform(low, high, 5), requires_grad=True) for k in range(OPS[name].operands)]
        try:
            made = apply(name, *operands)
        except tm.Error as error:
            assert error.code == "E0301" and name.startswith("bitwise")
            continue
        if made.dtype == torch.bool or not made.isfinite().all():
            continue
        assert made.requires_grad
        assert gradcheck(lambda *operands: apply(name, *operands), operands)


def statement(random: np.random.Generator) -> str:
    """A random statement over a sparse matrix, two vectors and a matrix."""
    factors = ["A[i,j]", "x[i]", "x[j]", "v[j]", "D[i,j]", "D[j,i]", "sin(x[i])", "exp(D[i,j])", "(x[i] + v[j])", "(A[i,j] - D[i,j])", "tanh(A[i,j])"]
    product = " * ".join(random.choice(factors, random.integers(1, 4)))
    other = " * ".join(random.choice(factors, random.integers(1, 3)))
    body = random.choice([product, f"({product} + {other})", f"({product} - {other})"])
    if "i" not in body.replace("sin", "") or "j" not in body:
        body += " * D[i,j]"
    return str(random.choice(["y[i] = sum[j]({})", "y[j] = sum[i]({})", "y = sum[i,j]({})", "Y[i,j] = {}", "Y[j,i] = {}"]).format(body))


def dense_of(text: str, A: Any, x: Any, v: Any, D: Any) -> Any:
    """The same by PyTorch on dense tensors."""
    import re

    target, body = text.split(" = ")
    body = re.sub(r"^sum\[[ij,]+\]", "", body)
    for name, value in {"A[i,j]": "A", "D[i,j]": "D", "D[j,i]": "D.T", "x[i]": "x[:, None]", "x[j]": "x[None]", "v[j]": "v[None]"}.items():
        body = body.replace(name, value)
    made = eval(body, {"A": A, "x": x, "v": v, "D": D, "sin": torch.sin, "exp": torch.exp, "tanh": torch.tanh}) + torch.zeros_like(D)  # noqa: S307
    return {"y[i]": made.sum(1), "y[j]": made.sum(0), "y": made.sum(), "Y[i,j]": made, "Y[j,i]": made.T}[target]


@pytest.mark.parametrize("seed", range(60))
def test_random_statements_beside_dense_autograd(seed: int) -> None:
    random = np.random.default_rng(seed)
    text = statement(random)
    M = matrix(str(random.choice(FORMATS[:4])), seed)
    dense = torch.tensor(M.to_numpy(), requires_grad=True)
    values, x, v, D = torch.tensor(M.values.copy(), requires_grad=True), leaf(6, seed=1), leaf(6, seed=2), leaf(6, 6, seed=3)
    given = {name: t for name, t in {"A": M.pattern.with_values(values), "x": x, "v": v, "D": D}.items() if f"{name}[" in text}
    formats = {} if text.startswith("y =") else {"format": "dense" if text.startswith("y[") else "dense, dense"}
    made, want = tm.einsum(text, **given, **formats), dense_of(text, dense, x, v, D)
    assert torch.allclose(made, want), text
    above = torch.tensor(random.normal(size=want.shape))
    leaves = [t for name, t in {"A": values, "x": x, "v": v, "D": D}.items() if name in given]
    others = [t for name, t in {"A": dense, "x": x, "v": v, "D": D}.items() if name in given]
    found = torch.autograd.grad(made, leaves, above)
    for name, g, w in zip(given, found, torch.autograd.grad(want, others, above)):
        if name == "A":
            coords, places = M.pattern.with_values(np.arange(1.0, len(values) + 1)).to_coo()
            g, w = g[torch.tensor(places).long() - 1], w[tuple(coords)]
        assert torch.allclose(g, w), (text, name)


def test_importing_the_package_imports_no_torch() -> None:
    code = "import sys, tamis as tm; tm.einsum('s = x[i]', x=[1.0]); tm.jit(lambda x: x + 1)([1.0]); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
