"""Layers and blocks found by name."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.randomness import torch_generator
from skiplab.subjects.blocks import block_names, layer_names


class Block(nn.Module):
    """A composite that networks repeat."""

    def __init__(self, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(x)


def test_layers_own_parameters_in_the_order_of_registration() -> None:
    net = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Sequential(nn.BatchNorm2d(4), nn.Flatten()), Block()
    )
    assert layer_names(net) == ("0", "2.0", "3.linear")


def test_blocks_are_the_repeated_composites() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(Block(), Block()), Block(), nn.Linear(2, 2))
    assert block_names(net) == ("1.0", "1.1", "2")


def test_of_nested_blocks_the_outermost_count() -> None:
    net = nn.Sequential(Block(Block()), Block(Block()))
    assert block_names(net) == ("0", "1")


def test_of_equally_frequent_classes_the_outer_is_the_block() -> None:
    with torch.random.fork_rng(devices=[]):
        layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)
        net = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    assert block_names(net) == ("layers.0", "layers.1", "layers.2")


def test_without_a_repeated_composite_the_layers_are_the_blocks() -> None:
    assert block_names(nn.Sequential(nn.Linear(2, 2), nn.ReLU(), Block())) == ("0", "2.linear")
    assert block_names(nn.ReLU()) == ()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_network_may_name_its_blocks_itself(name: str) -> None:
    net = examples()[name](torch_generator(0))
    assert block_names(net) == net.block_names


def test_a_method_of_that_name_is_not_taken_for_names() -> None:
    class Own(nn.Sequential):
        def block_names(self) -> list[str]:
            raise AssertionError("not ours to call")

    assert block_names(Own(Block(), Block())) == ("0", "1")
