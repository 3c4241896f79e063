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
    with pytest.raises(tm.Error):
        tm.asarray(torch.sparse_coo_tensor([[0]], [[1.0, 2.0]], (2, 2)))


def test_gradients_are_left_behind() -> None:
    x = torch.ones(3, requires_grad=True)
    assert tm.einsum("s = x[i]", x=x).item() == 3.0
