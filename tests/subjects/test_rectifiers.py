"""Rectifiers are recognised by their class, or by what they do."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from oracles.stock_models import stock_model
from skiplab.measurements.activation_patterns import activation_patterns
from skiplab.subjects.rectifiers import KNOWN, is_rectifier


class Function(nn.Module):
    """An activation of another library."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


@pytest.mark.parametrize("kind", KNOWN)
def test_every_rectifier_of_torch_passes_the_test_for_those_of_others(kind: type[nn.Module]) -> None:
    module = kind()
    if not any(True for _ in module.parameters()):  # a PReLU has one
        assert is_rectifier(Function(module.eval().forward))
    assert is_rectifier(module)


@pytest.mark.parametrize(
    "function",
    [
        torch.tanh,
        torch.sigmoid,
        torch.abs,
        torch.neg,
        F.hardsigmoid,
        lambda x: x,
        lambda x: x - x.mean(),
        lambda x: x.relu().sum(-1),
        lambda x: x.softmax(-1) * 8,
        lambda x: x.relu() * torch.arange(1.0, x.shape[-1] + 1),
        lambda x: F.dropout(x, 0.5),
        lambda x: x["image"],
    ],
)
def test_what_is_no_rectifier_is_not_taken_for_one(function: Callable[[Tensor], Tensor]) -> None:
    assert not is_rectifier(Function(function))


def test_dropout_is_not_taken_for_a_rectifier_whatever_is_drawn() -> None:
    """It was, once in about two hundred streams."""
    with torch.random.fork_rng(devices=[]):
        for seed in range(1000):
            torch.manual_seed(seed)
            assert not is_rectifier(Function(lambda x: F.dropout(x, 0.5))), seed


def test_the_test_leaves_mode_and_random_state_alone() -> None:
    module, state = Function(lambda x: F.relu(x + 0 * torch.randn_like(x))), torch.get_rng_state()
    assert is_rectifier(module)
    assert module.training
    assert torch.equal(torch.get_rng_state(), state)


def test_modules_with_state_are_not_called() -> None:
    def refuse(_: Tensor) -> Tensor:
        raise AssertionError("called")

    module = Function(refuse)
    module.register_buffer("count", torch.zeros(1))
    assert not is_rectifier(module)


def test_a_rectifier_of_another_library_counts_by_what_it_takes() -> None:
    # GELU's output is negative where its input is, and the tanh's approximation likewise.
    net = nn.Sequential(nn.Linear(3, 5), Function(lambda x: F.gelu(x, approximate="tanh")), nn.Linear(5, 2))
    x = torch.randn(7, 3, generator=torch.Generator().manual_seed(0))
    found = activation_patterns(net, x)
    assert found.layers == ("1",)
    assert torch.equal(found["1"][0], net[0](x) > 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("transformers:gpt2", {"NewGELUActivation"}),
        ("transformers:bert", {"GELUActivation"}),
        ("transformers:llama", {"SiLUActivation"}),
        ("transformers:t5", {"ReLU"}),
        ("timm:efficientnet_b0", {"SiLU"}),
        ("timm:mobilenetv3_large_100", {"Hardswish", "ReLU"}),
        ("timm:vit_tiny_patch16_224", {"GELU"}),
    ],
)
def test_rectifiers_of_stock_models(name: str, kinds: set[str]) -> None:
    found = {type(part).__name__ for part in stock_model(name).modules() if is_rectifier(part)}
    assert found == kinds
