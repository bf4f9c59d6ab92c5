"""Layers and blocks found by name."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures import ARCHITECTURES, examples
from skiplab.randomness import torch_generator
from skiplab.subjects.blocks import block_names, find_blocks, layer_names


class Block(nn.Module):
    """A composite that networks repeat."""

    def __init__(self, inner: nn.Module | None = None) -> None:
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.linear(x)


class Wide(nn.Module):
    """A composite of two weight matrices, as blocks have."""

    def __init__(self, size: int = 2) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(size, size), nn.Linear(size, size)


class Other(Wide):
    """A block of another class."""


class Stage(nn.Module):
    """A downsampling and a list of blocks."""

    def __init__(self, *blocks: nn.Module, downsample: bool = True) -> None:
        super().__init__()
        self.downsample = nn.Sequential(nn.LayerNorm(2), nn.Linear(2, 2)) if downsample else nn.Identity()
        self.blocks = nn.Sequential(*blocks)


class Network(nn.Module):
    """A stem, whatever is given, and a head."""

    def __init__(self, **parts: nn.Module) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Linear(4, 2), nn.BatchNorm1d(2))
        for name, part in parts.items():
            self.add_module(name, part)
        self.head = nn.Linear(2, 2)


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


def test_stages_are_passed_through_even_those_of_one_block() -> None:
    net = Network(stages=nn.Sequential(Stage(Wide(), downsample=False), Stage(Wide(), Wide())))
    assert block_names(net) == ("stages.0.blocks.0", "stages.1.blocks.0", "stages.1.blocks.1")
    assert block_names(
        Network(stages=nn.Sequential(*(Stage(Wide(), downsample=False) for _ in range(2))))
    ) == (
        "stages.0.blocks.0",
        "stages.1.blocks.0",
    )


def test_blocks_may_be_of_several_classes() -> None:
    lists = {f"layer{k}": nn.Sequential(kind()) for k, kind in enumerate((Wide, Wide, Other, Wide), 1)}
    assert block_names(Network(**lists)) == ("layer1.0", "layer2.0", "layer3.0", "layer4.0")


def test_stem_head_and_what_lies_between_are_named() -> None:
    found = find_blocks(Network(stages=nn.Sequential(Stage(Wide(), Wide()), Stage(Wide(), Wide()))))
    assert (found.stem, found.head) == (
        ("stem.0", "stem.1", "stages.0.downsample.0", "stages.0.downsample.1"),
        ("head",),
    )
    assert found.between == ("stages.1.downsample.0", "stages.1.downsample.1")
    assert str(found) == (
        "4 blocks (Wide): stages.0.blocks.0, stages.0.blocks.1, stages.1.blocks.0, stages.1.blocks.1; "
        "stem: stem.0, stem.1, stages.0.downsample.0, stages.0.downsample.1; "
        "between: stages.1.downsample.0, stages.1.downsample.1; head: head"
    )


def test_numbered_names_are_a_list_too() -> None:
    assert block_names(Network(block1=Wide(), block2=Other(), block3=Wide())) == (
        "block1",
        "block2",
        "block3",
    )
    assert block_names(Network(first=Wide(), second=Wide())) == ("first", "second")


def test_units_of_one_matrix_are_not_blocks_where_there_are_larger_ones() -> None:
    net = Network(units=nn.Sequential(*(Block() for _ in range(5))), blocks=nn.ModuleList([Wide(), Wide()]))
    assert block_names(net) == ("blocks.0", "blocks.1")


def test_parts_of_different_classes_in_a_list_inside_a_block_are_not_blocks() -> None:
    def block() -> nn.Module:
        part = nn.Module()
        part.layer = nn.ModuleList([Wide(), Other()])
        return part

    assert block_names(Network(block=nn.ModuleList([block(), block()]))) == ("block.0", "block.1")


def test_of_a_flat_list_stem_and_head_are_left_out() -> None:
    class Head(Wide):
        pass

    assert block_names(nn.Sequential(Other(), Wide(), Wide(), Head())) == ("1", "2")


def test_a_list_of_one_is_a_list() -> None:
    assert block_names(Network(layers=nn.ModuleList([Wide()]))) == ("layers.0",)


def test_without_blocks_the_layers_with_a_matrix_count_not_the_normalisations() -> None:
    norms = (nn.BatchNorm2d(4), nn.LayerNorm((4, 4, 4)))
    net = nn.Sequential(nn.Conv2d(3, 4, 3), *norms, nn.Flatten(), nn.Linear(64, 2))
    assert block_names(net) == ("0", "4")
    assert block_names(nn.Sequential(nn.BatchNorm1d(2), nn.ReLU())) == ("0",)


def test_a_parametrised_block_is_found() -> None:
    blocks = [Wide() for _ in range(2)]
    for block in blocks:
        nn.utils.parametrizations.weight_norm(block.first)
    assert block_names(Network(blocks=nn.Sequential(*blocks))) == ("blocks.0", "blocks.1")
