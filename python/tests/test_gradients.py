"""Gradients that would be lost: a PyTorch tensor that requires one is differentiated or refused, wherever a tensor can enter.

Without PyTorch, a stand-in takes its place, with the part of its interface that is used here; the other half is skipped.
"""

from __future__ import annotations

import contextlib
import operator
import sys
import types
from typing import Any, Callable, Iterator

import numpy as np
import pytest
import tamis as tm

CSR = tm.tensor([[1.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 3.0]], format="csr")


class StandIn:
    """PyTorch's strided tensors, as far as they are looked at; like those, they refuse to become arrays of NumPy's."""

    __array_priority__ = 1000  # PyTorch's tensors leave operators with others to the others as well.

    def __init__(self, data: Any, requires_grad: bool = False) -> None:
        self.data, self.requires_grad = np.asarray(data, dtype=np.float64), requires_grad

    layout, is_quantized, is_nested = "strided", False, False
    device = types.SimpleNamespace(type="cpu")

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def dtype(self) -> str:
        return "torch.float64"

    def detach(self) -> StandIn:
        return StandIn(self.data)

    def resolve_conj(self) -> StandIn:
        return self

    resolve_neg = resolve_conj

    def numpy(self) -> Any:
        if self.requires_grad and sys.modules["torch"].is_grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        return self.data

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numpy().astype(dtype) if dtype else self.numpy()

    def __float__(self) -> float:
        return float(self.data)


def stand_in() -> Any:
    """A module that is called `torch`."""
    made: Any = types.ModuleType("torch")
    made.enabled = True

    @contextlib.contextmanager
    def no_grad() -> Iterator[None]:
        made.enabled = False
        try:
            yield
        finally:
            made.enabled = True

    made.Tensor, made.strided, made.sparse_coo = StandIn, "strided", "sparse_coo"
    made.is_grad_enabled, made.no_grad = (lambda: made.enabled), no_grad
    made.ones = lambda *shape, requires_grad=False, **_: StandIn(np.ones(shape), requires_grad)
    made.autograd = types.SimpleNamespace(
        forward_ad=types.SimpleNamespace(unpack_dual=lambda x: types.SimpleNamespace(primal=x, tangent=None))
    )
    return made


@pytest.fixture(params=["stand-in", "torch"])
def torch(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    if request.param == "torch":
        return pytest.importorskip("torch")
    made = stand_in()
    monkeypatch.setitem(sys.modules, "torch", made)
    return made


@tm.kernel
def total(x):  # type: ignore[no-untyped-def] # noqa
    s = scalar(0.0)  # noqa: F821
    for i in _:  # noqa: F821
        s += x[i]
    return s


PROGRAM = tm.program("def total(x):\n    s = scalar(0.0)\n    for i in _:\n        s += x[i]\n    return s\n")

ENTRANCES: dict[str, Callable[[Any], Any]] = {
    "asarray": tm.asarray,
    "tensor": tm.tensor,
    "tensor, sparse": lambda x: tm.tensor(x, format="sparse"),
    "a list of them": lambda x: tm.tensor([x, x]),
    "a nested list": lambda x: tm.tensor([[x], [x]]),
    "values at coordinates": lambda x: tm.tensor(([[0, 1, 2]], x, (3,))),
    "einsum by name": lambda x: tm.einsum("s = x[i]", x=x),
    "einsum by position": lambda x: tm.einsum("i->", x),
    "einsum, beside a tensor": lambda x: tm.einsum("y[i] = A[i,j] * x[j]", A=CSR, x=x),
    "explain": lambda x: tm.explain("s = x[i]", x=x),
    "jit": tm.jit(lambda x: x * 2),
    "jit, in a list": lambda x: tm.jit(lambda parts: parts[0] + parts[1])([np.ones(3), x]),
    "jit, in a dictionary": lambda x: tm.jit(lambda parts: parts["w"] * 2)({"w": x}),
    "jit, captured": lambda x: tm.jit(lambda y: y * x)(np.ones(3)),
    "jit, product": lambda x: tm.jit(lambda A: A @ x)(CSR),
    "jit, text": lambda x: tm.jit(lambda x: x * 2).text(x),
    "kernel": total,
    "kernel by name": lambda x: total(x=x),
    "program": PROGRAM,
    "function": tm.exp,
    "function of two": lambda x: tm.add(np.ones(3), x),
    "where": lambda x: tm.where([True, False, True], x, 0),
    "reduction": tm.sum,
    "matmul": lambda x: tm.matmul(CSR, x),
    "tensordot": lambda x: tm.tensordot(CSR, x, axes=1),
    "shape": lambda x: tm.reshape(x, (3, 1)),
    "concat": lambda x: tm.concat([np.ones(3), x]),
    "sort": tm.sort,
    "take": lambda x: tm.take(x, [0, 1], axis=0),
    "like": tm.zeros_like,
    "dlpack": tm.from_dlpack,
    "full": lambda x: tm.full((2,), x),
    "write": lambda x: tm.write("/nowhere/x.tns", x),
    "advise": tm.advise,
    **{
        f"{name}, {side}": (lambda x, f=f: f(CSR, x)) if side == "right" else (lambda x, f=f: f(x, CSR))
        for name in "add sub mul truediv pow matmul lt eq floordiv mod".split()
        for f in [getattr(operator, name)]
        for side in ("left", "right")
    },
}


#: Entrances whose results are recorded by PyTorch; comparisons have no gradient.
DIFFERENTIABLE = {
    *("einsum by name", "einsum by position", "einsum, beside a tensor", "jit", "jit, in a list", "jit, in a dictionary"),
    *("kernel", "kernel by name", "program", "function", "function of two", "where", "reduction", "matmul", "tensordot"),
    *(name for name in ENTRANCES if name.endswith(("left", "right"))),
}


@pytest.mark.parametrize("entrance", ENTRANCES)
def test_differentiated_or_refused_wherever_tensors_enter(entrance: str, torch: Any) -> None:
    if entrance.endswith("left") and torch.Tensor is StandIn:
        pytest.skip("what PyTorch's own operators do is not stood in for")
    if entrance in DIFFERENTIABLE and torch.Tensor is not StandIn:
        x = torch.ones(3, requires_grad=True, dtype=torch.float64)
        made = ENTRANCES[entrance](x)
        assert isinstance(made, torch.Tensor)
        assert made.requires_grad or made.dtype == torch.bool
        return
    with pytest.raises(tm.Error) as caught:
        ENTRANCES[entrance](torch.ones(3, requires_grad=True, dtype=None))
    error = caught.value
    assert error.code == "E0710" and isinstance(error, TypeError) and any(".detach()" in help for help in error.help)


def test_fills_and_single_numbers(torch: Any) -> None:
    one = torch.ones(requires_grad=True) if torch.Tensor is StandIn else torch.ones((), requires_grad=True)
    recorded = [lambda: CSR * one, lambda: tm.einsum("y[i] = s * x[i]", s=one, x=np.ones(3))]
    if torch.Tensor is not StandIn:
        assert all(call().requires_grad for call in recorded)
        recorded = []
    for call in (
        *recorded,
        lambda: tm.tensor(np.ones(3), format="sparse", fill=one),
        lambda: tm.full((3,), one),
        lambda: tm.linspace(0, one, 3),
        lambda: tm.tensor([1.0, one]),
    ):
        with pytest.raises(tm.Error) as caught:
            call()
        assert caught.value.code == "E0710"


def test_what_is_detached_or_not_recorded_is_taken(torch: Any) -> None:
    x = torch.ones(3, requires_grad=True)
    assert tm.einsum("s = x[i]", x=x.detach()).item() == 3.0
    assert tm.matmul(CSR, x.detach()).tolist() == [1.0, 2.0, 3.0]
    with torch.no_grad():
        assert tm.einsum("s = x[i]", x=x).item() == 3.0
    assert tm.einsum("s = x[i]", x=torch.ones(3)).item() == 3.0
