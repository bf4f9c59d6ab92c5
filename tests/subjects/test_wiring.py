from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.architectures.skip_matrices import Orthogonal
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.wiring import signals, wiring

X = torch.randn(5, 6, generator=torch_generator("wiring"))
IMAGES = torch.randn(2, 3, 8, 8, generator=torch_generator("wiring images"))


def readers(module: nn.Module, x: Any) -> dict[str, tuple[str, ...]]:
    return dict(wiring(Subject.of(module), x).readers)


@pytest.mark.parametrize(
    "net",
    [
        PlainNet(6, 6, 3, 2, generator=torch_generator(0), batch_norm_at=2),
        ResidualNet(6, 6, 3, 2, generator=torch_generator(0)),
        ResidualNet(6, 6, 3, 2, generator=torch_generator(0), skip=Orthogonal()),
    ],
    ids=["plain", "residual", "orthogonal skips"],
)
def test_each_layer_of_ours_is_read_by_the_next(net: nn.Module) -> None:
    assert readers(net, X) == {
        "hidden.0.linear": ("hidden.1.linear",),
        "hidden.1.linear": ("hidden.2.linear",),
        "hidden.2.linear": ("output",),
        "output": (),
    }


class Functional(nn.Module):
    """Everything between the layers is functional; a frozen layer; two readers; a head that reads a transpose."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.left, self.right = nn.Linear(6, 4), nn.Linear(4, 4), nn.Linear(4, 4)
        self.head = nn.Linear(5, 2)
        self.first.requires_grad_(False)

    def forward(self, x: Tensor) -> Tensor:
        h = F.dropout(F.gelu(self.first(x)), 0.1, self.training)
        return self.head((self.left(input=h) * 2 + torch.tanh(self.right(h)) - 1).T)


def test_functional_code_is_followed_and_a_transpose_is_not() -> None:
    found = readers(Functional(), X)
    assert found == {"first": ("left", "right"), "left": (), "right": (), "head": ()}


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.one = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.BatchNorm2d(outputs)
        self.two = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.short = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        out = self.two(F.relu_(self.norm(self.one(x))))
        out += self.short(x)
        return F.relu(out)


def test_a_residual_convolutional_network() -> None:
    net = nn.Sequential(Block(3, 4), Block(4, 4), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(4 * 16, 5))
    assert readers(net, IMAGES) == {
        "0.one": ("0.two",),
        "0.two": ("1.one",),
        "0.short": ("1.one",),
        "1.one": ("1.two",),
        "1.two": ("4",),
        "4": (),
    }


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_signals_of_an_ensemble_are_those_of_its_members(backend: str) -> None:
    nets = [PlainNet(6, 4, 2, 3, generator=torch_generator(seed)) for seed in range(3)]
    taps = [("hidden.1.linear", "input"), ("hidden.1.linear", "output"), ("output", "input")]
    found = signals(Subject.of(Ensemble.of(nets, backend=backend)), X, taps)
    for index, net in enumerate(nets):
        x = net.hidden[0](X)
        torch.testing.assert_close(found["hidden.1.linear", "input"][index], x)
        torch.testing.assert_close(found["hidden.1.linear", "output"][index], net.hidden[1].linear(x))
        torch.testing.assert_close(found["output", "input"][index], net.hidden[1](x))


def test_a_layer_called_twice_counts_once() -> None:
    layer = nn.Linear(6, 6)
    net = nn.Sequential(layer, nn.ReLU(), layer, nn.Linear(6, 2))
    found = wiring(Subject.of(net), X)
    assert found.layers == ("0", "3")
