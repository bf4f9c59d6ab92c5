"""Linear layers joined to their ReLUs: products by Triton's kernels are those of float64 step by step."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.curvature.products import HessianProduct
from skiplab.curvature.sweeps import rectified_rule
from skiplab.curvature.sweeps.forward_mode import ForwardMode
from skiplab.ensembles import Ensemble, rectified
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="needs Triton (the extra fused)"
)
CE = nn.CrossEntropyLoss()
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
X = torch.randn(21, 7, generator=torch_generator("x"), dtype=torch.float64)
Y = torch.randint(4, (21,), generator=torch_generator("y"))


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kernels serve the CPU too, on tiles that do not divide the samples; which were launched."""
    from skiplab.curvature.sweeps import rectified_kernels

    seen: list[str] = []
    for name in ("tangent", "turned"):
        kernel = getattr(rectified_kernels, name)
        monkeypatch.setattr(
            rectified_kernels, name, lambda *args, k=kernel, n=name: (seen.append(n), k(*args))[1]
        )
    monkeypatch.setattr(rectified_kernels, "TILE", 16)
    monkeypatch.setattr(rectified_kernels, "DEPTH", 16)
    monkeypatch.setattr(rectified, "available", lambda device: True)
    monkeypatch.setattr(torch, "get_float32_matmul_precision", lambda: "high")
    return seen


def net(
    kind: type[PlainNet] | type[ResidualNet], seed: int, dtype: torch.dtype, width: int = 32
) -> nn.Module:
    draw = torch_generator("net", seed)
    return kind(7, width, 4, 4, generator=draw, init=Glorot(1.4), dtype=dtype).to(DEVICE)


def products(target: Any, vectors: Tensor, dtype: torch.dtype, **options: Any) -> Tensor:
    batch = (X.to(DEVICE, dtype), Y.to(DEVICE))
    product = HessianProduct(target, batch, criterion=CE, **options)
    assert product.route == "forward mode"
    return product(vectors.to(DEVICE, dtype)).double().cpu()


def assert_as_in_float64(ours: Tensor, exact: Tensor) -> None:
    assert float((ours - exact).norm() / exact.norm()) < (1e-5 if DEVICE == "cpu" else 5e-3)


@pytest.mark.parametrize("kind", [PlainNet, ResidualNet])
def test_one_vector_for_each_member(kind: type[PlainNet] | type[ResidualNet], launched: list[str]) -> None:
    def ensemble(dtype: torch.dtype) -> Ensemble:
        return Ensemble.of([net(kind, seed, dtype) for seed in range(3)])

    count = ensemble(torch.float64).layout.count
    vectors = torch.randn(3, 1, count, generator=torch_generator("v"), dtype=torch.float64)
    exact = products(ensemble(torch.float64), vectors, torch.float64)
    assert not launched  # float64 is left to torch
    assert_as_in_float64(products(ensemble(torch.float32), vectors, torch.float32, chunk=3), exact)
    # The first layer has inputs that do not move.
    assert sorted(launched) == ["tangent"] * 3 + ["turned"] * 3


@pytest.mark.parametrize("kind", [PlainNet, ResidualNet])
def test_many_vectors_of_one_network(kind: type[PlainNet] | type[ResidualNet], launched: list[str]) -> None:
    exact_net = net(kind, 0, torch.float64)
    count = sum(parameter.numel() for parameter in exact_net.parameters())
    vectors = torch.randn(1, 3, count, generator=torch_generator("v"), dtype=torch.float64)
    exact = products(exact_net, vectors, torch.float64)
    assert_as_in_float64(products(net(kind, 0, torch.float32), vectors, torch.float32, chunk=3), exact)
    assert len(launched) == 6


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "gauss_newton"},
        {"layers": ["hidden.1.linear.weight", "hidden.2.linear.bias", "output.weight"]},
        {"layers": ["hidden.0.linear.bias", "hidden.3.linear.weight", "hidden.3.linear.bias"]},
    ],
    ids=str,
)
def test_what_the_kernels_do_not_serve_is_done_step_by_step(
    options: dict[str, Any], launched: list[str]
) -> None:
    nets = {dtype: net(ResidualNet, 0, dtype) for dtype in (torch.float64, torch.float32)}
    batch = (X.to(DEVICE), Y.to(DEVICE))
    count = HessianProduct(nets[torch.float64], batch, criterion=CE, **options).dimension
    vectors = torch.randn(1, 2, count, generator=torch_generator("v"), dtype=torch.float64)
    exact = products(nets[torch.float64], vectors, torch.float64, **options)
    assert_as_in_float64(products(nets[torch.float32], vectors, torch.float32, **options), exact)


def test_other_widths_are_done_step_by_step(launched: list[str]) -> None:
    exact_net = net(PlainNet, 0, torch.float64, width=20)
    count = sum(parameter.numel() for parameter in exact_net.parameters())
    vectors = torch.randn(1, 2, count, generator=torch_generator("v"), dtype=torch.float64)
    exact = products(exact_net, vectors, torch.float64)
    assert_as_in_float64(products(net(PlainNet, 0, torch.float32, width=20), vectors, torch.float32), exact)
    assert not launched


def test_the_whole_matrix_is_that_of_the_recorded_steps(launched: list[str]) -> None:
    matrices = [
        HessianProduct(
            net(PlainNet, 0, dtype, width=16), (X.to(DEVICE, dtype), Y.to(DEVICE)), criterion=CE
        ).matrix()
        for dtype in (torch.float64, torch.float32)
    ]
    assert_as_in_float64(matrices[1].cpu(), matrices[0].cpu())


class Branching(nn.Module):
    """A value before a ReLU that something else reads too, a ReLU of a sum, and one of the output."""

    def __init__(self) -> None:
        super().__init__()
        draw = torch_generator("branching")
        self.a, self.b, self.c, self.d = (
            nn.Parameter(torch.randn(16, 16, generator=draw) / 4) for _ in range(4)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.a)
        z = torch.relu(y) + y
        return F.linear(torch.relu(F.linear(torch.relu(z + F.linear(z, self.b)), self.c)), self.d).relu()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("precision", ["highest", "high"])
def test_on_a_gpu_the_kernels_serve_where_products_may_be_rounded(precision: str) -> None:
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    try:
        assert rectified_rule.worth_it(torch.zeros(1, device="cuda")) is (precision == "high")
    finally:
        torch.set_float32_matmul_precision(before)


def test_only_values_that_a_relu_alone_reads_are_joined(launched: list[str]) -> None:
    x = torch.randn(5, 16, generator=torch_generator("x"))
    subject = Subject.of(Branching(), criterion=CE, loss_fn=None, train_mode=False)
    mode = ForwardMode(subject, (x, torch.arange(5)), ("a", "b", "c", "d"))
    joined = [step for step in mode._sweep if isinstance(step, rectified_rule.RectifiedStep)]
    names = {slot: name for name, slot in mode._tape.leaves.items()}
    assert [names[step.inputs[1]] for step in joined] == ["c", "d"]
    assert len(mode._sweep) == len(mode._steps) - 2
