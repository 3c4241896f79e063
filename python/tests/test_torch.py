"""PyTorch's tensors, both ways, where PyTorch is installed."""

from __future__ import annotations

import numpy as np
import pytest
import tamis as tm

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "int64", "uint8", "float32", "float64", "complex64", "complex128"])
def test_dense(dtype: str) -> None:
    given = torch.tensor([[1, 0, 2], [0, 0, 3]]).to(getattr(torch, dtype))
    for make in (tm.tensor, tm.asarray):
        t = make(given)
        assert t.dtype == np.dtype(dtype) and t.format == "dense"
        np.testing.assert_array_equal(t.to_numpy(), given.numpy())
        assert torch.equal(t.to_torch(), given)
    np.testing.assert_array_equal(tm.asarray(given.T).to_numpy(), given.T.numpy())


def test_memory_is_shared() -> None:
    given = torch.zeros(3, dtype=torch.float64)
    t = tm.asarray(given)
    given[1] = 5.0
    assert t[1] == 5.0
    assert torch.from_dlpack(tm.tensor(np.arange(3.0))).tolist() == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("layout, format", [("coo", "coo"), ("csr", "csr"), ("csc", "csc"), ("bsr", "bsr(2,2)"), ("bsc", "csc")])
def test_sparse(layout: str, format: str) -> None:
    dense = torch.tensor([[1.0, 0, 0, 2], [0, 0, 3, 0], [0, 4, 0, 0], [5, 0, 0, 0]])
    convert = getattr(dense, f"to_sparse_{layout}")
    given = convert((2, 2)) if layout in ("bsr", "bsc") else convert()
    for make in (tm.tensor, tm.asarray):
        t = make(given)
        assert t.format == format
        np.testing.assert_array_equal(t.to_numpy(), dense.numpy())
        assert torch.equal(t.to_torch().to_dense(), dense)


def test_what_is_not_canonical() -> None:
    given = torch.sparse_coo_tensor([[1, 0, 1], [0, 1, 0]], [1.0, 2.0, 3.0], (2, 2))
    assert tm.asarray(given).to_numpy().tolist() == [[0.0, 2.0], [4.0, 0.0]]
    with pytest.raises(TypeError):
        tm.asarray(torch.zeros(2, dtype=torch.bfloat16))
    assert tm.asarray(torch.sparse_coo_tensor([[0]], [[1.0, 2.0]], (2, 2))).to_numpy().tolist() == [[1.0, 2.0], [0.0, 0.0]]


def hybrid_layouts() -> list[tuple[str, object, str]]:
    """Every sparse layout with batch and dense dimensions, and the format it comes in with."""
    made = torch.arange(2 * 4 * 6 * 3, dtype=torch.float64).reshape(2, 4, 6, 3)
    matrix, batch, deep = made[0, :, :, 1].clone(), made[:, :, :, 1].clone(), made[0].clone()
    for given in (matrix, batch, deep, made):
        given[given % 5 > 1] = 0
        given[..., 0] = 1  # Batches hold equally many entries.
    batch[1] = batch[0] * 2
    made[1] = made[0] * 3
    rows, columns = "dense, sparse", "(i,j,k) -> (i,k,j): dense, dense, sparse"
    return [
        ("coo, 1 dense", deep.to_sparse(2), "sparse(nonunique), singleton, dense"),
        ("coo, 2 dense", made.to_sparse(2), "sparse(nonunique), singleton, dense, dense"),
        ("coo, 3 dense", made.to_sparse(1), "sparse, dense, dense, dense"),
        ("csr, 1 dense", deep.to_sparse_csr(dense_dim=1), f"{rows}, dense"),
        ("csc, 1 dense", deep.to_sparse_csc(dense_dim=1), "(i,j,k) -> (j,i,k): dense, sparse, dense"),
        ("csr, batch", batch.to_sparse_csr(), f"dense, {rows}"),
        ("csc, batch", batch.to_sparse_csc(), columns),
        ("csr, batch, 1 dense", made.to_sparse_csr(dense_dim=1), f"dense, {rows}, dense"),
        ("bsr, batch", batch.to_sparse_bsr((2, 3)), "(i,j,k) -> (i,j/2,k/3,j%2,k%3): dense, dense, sparse, dense, dense"),
        ("bsc, batch", batch.to_sparse_bsc((2, 3)), "(i,j,k) -> (i,k/3,j/2,j%2,k%3): dense, dense, sparse, dense, dense"),
        ("bsr, 1 dense", deep.to_sparse_bsr((2, 3), dense_dim=1), "(i,j,k) -> (i/2,j/3,i%2,j%3,k): dense, sparse, dense, dense, dense"),
    ]


def test_hybrid_and_batched_layouts() -> None:
    for name, given, format in hybrid_layouts():
        for make in (tm.tensor, tm.asarray):
            t = make(given)
            assert t.format == format, name
            np.testing.assert_array_equal(t.to_numpy(), given.to_dense().numpy(), err_msg=name)  # type: ignore[attr-defined]
            assert torch.equal(t.to_torch().to_dense(), given.to_dense()), name  # type: ignore[attr-defined]
        assert tm.tensor(given, format="csf").format == "csf"
        assert tm.asarray(given, dtype="f32").dtype == np.float32


def test_batches_that_are_not_sorted() -> None:
    pos = torch.tensor([[0, 2, 3], [0, 1, 3]])
    crd = torch.tensor([[2, 0, 1], [1, 2, 0]])
    values = torch.arange(1.0, 13.0).reshape(2, 3, 2)
    for make, shape in ((torch.sparse_csr_tensor, (2, 2, 3, 2)), (torch.sparse_csc_tensor, (2, 3, 2, 2))):
        given = make(pos, crd, values, shape, check_invariants=False)
        want = np.zeros(shape)
        for b, k in np.ndindex(2, 3):
            major = int(np.searchsorted(pos[b].numpy(), k, "right")) - 1
            minor = int(crd[b, k])
            want[(b, major, minor) if make is torch.sparse_csr_tensor else (b, minor, major)] = values[b, k].numpy()
        np.testing.assert_array_equal(tm.asarray(given).to_numpy(), want)


def test_one_block_of_everything() -> None:
    given = torch.sparse_coo_tensor(torch.zeros(0, 1, dtype=torch.int64), torch.ones(1, 2, 3), (2, 3))
    np.testing.assert_array_equal(tm.asarray(given).to_numpy(), np.ones((2, 3)))


def test_tensors_without_values() -> None:
    x = torch.ones(3)
    for given in (torch.empty(3, device="meta"), torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]),
                  torch.quantize_per_tensor(x, 0.1, 0, torch.qint8)):
        for call in (tm.asarray, tm.tensor, tm.jit(lambda v: v + 1), lambda v: tm.ones(3) * v, lambda v: tm.einsum("s = x[i]", x=v)):
            with pytest.raises(tm.Error) as caught:
                call(given)
            assert caught.value.help
    with pytest.raises(tm.Error):
        torch.vmap(lambda v: tm.asarray(v).to_torch())(torch.ones(2, 3))


def test_forward_gradients() -> None:
    import torch.autograd.forward_ad as forward

    with forward.dual_level():
        dual = forward.make_dual(torch.ones(3), torch.arange(3.0))
        assert forward.unpack_dual(tm.einsum("s = x[i] * x[i]", x=dual)).tangent == 6.0


def test_transformations_of_functions_are_refused() -> None:
    for call in (torch.func.grad(lambda x: tm.einsum("s = x[i]", x=x)), torch.vmap(lambda x: tm.einsum("s = x[i] * 2", x=x))):
        with pytest.raises(tm.Error) as caught:
            call(torch.ones(3, 2))
        assert any("transformations" in help for help in caught.value.help)


def test_a_function_with_a_derivative_of_its_own() -> None:
    A = tm.tensor([[1.0, 0.0], [2.0, 3.0]], format="csr")

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def]
            return tm.einsum("y[i] = A[i,j] * x[j]", A=A, x=x)

        @staticmethod
        def backward(ctx, above):  # type: ignore[no-untyped-def]
            return tm.einsum("g[j] = A[i,j] * y[i]", A=A, y=above)

    x = torch.tensor([1.0, 1.0], dtype=torch.float64, requires_grad=True)
    Product.apply(x).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
