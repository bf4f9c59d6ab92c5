"""Which networks the kernels compute, and how they are cut for them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from skiplab.architectures.fully_connected import HyperResidualNet, PathResidualNet, PlainNet, ResidualNet
from skiplab.architectures.skip_matrices import Identity, Orthogonal
from skiplab.ensembles.fused.arithmetic import Arithmetic
from skiplab.ensembles.fused.shape import Shape, padded, shape_of, skip_matrices
from skiplab.ensembles.fused.tiles import tiles_for
from skiplab.randomness import torch_generator

CPU = torch.device("cpu")
BFLOAT16, IN_PARTS = Arithmetic(torch.bfloat16, 1), Arithmetic(torch.bfloat16, 2)


def net(kind: Any = ResidualNet, width: int = 8, classes: int = 3, **options: Any) -> Any:
    return kind(6, width, 4, classes, generator=torch_generator(0), **options)


class Doubled(ResidualNet):
    """A network that computes something else."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(x)


def frozen() -> nn.Module:
    network = net()
    network.hidden[1].linear.bias.requires_grad_(False)
    return network


def with_two_kinds_of_skips() -> nn.Module:
    network = net()
    network.hidden[1].skip = net(skip=Orthogonal()).hidden[1].skip
    return network


def parametrised() -> nn.Module:
    network = net()
    torch.nn.utils.parametrizations.weight_norm(network.hidden[1].linear)
    return network


@pytest.mark.parametrize(
    ("network", "skip", "far"),
    [
        (net(PlainNet), "none", "none"),
        (net(), "identity", "none"),
        (net(skip=Orthogonal()), "matrix", "none"),
        (net(HyperResidualNet), "identity", "matrix"),
        (net(HyperResidualNet, skip=Orthogonal(), far_skip=Identity()), "matrix", "identity"),
        (net(PathResidualNet), "path", "none"),
    ],
)
def test_the_kinds_of_skips(network: nn.Module, skip: str, far: str) -> None:
    scale = 1 / 8 if skip == "path" else 1.0
    assert shape_of(network) == Shape(6, 8, 4, 3, skip, far, scale)


@pytest.mark.parametrize(
    "network",
    [
        net(batch_norm_at=2),
        net(activation="tanh"),
        net(activation="linear"),
        net(width=129),
        net(classes=200),
        net(Doubled),
        frozen(),
        with_two_kinds_of_skips(),
        parametrised(),
        nn.Linear(3, 3),
    ],
)
def test_all_others_are_left_to_torch(network: nn.Module) -> None:
    assert shape_of(network) is None


def test_sizes_are_padded_to_powers_of_two() -> None:
    assert [padded(count) for count in (1, 16, 17, 100, 128)] == [16, 16, 32, 128, 128]


def test_skip_matrices_are_padded_with_zeros() -> None:
    first, second = (torch.rand(2, 8, 8, generator=torch_generator(k)) for k in range(2))
    shape = Shape(6, 8, 4, 3, "matrix", "none", 1.0)
    found = skip_matrices(shape, {"a": first, "b": second}, ["b", "a"])
    assert found.shape == (2, 3, 16, 16)
    assert torch.equal(found[:, 0, :8, :8], second)
    assert torch.equal(found[:, 1, :8, :8], first)
    assert float(found.sum()) == pytest.approx(float(first.sum() + second.sum()), rel=1e-6)


@pytest.mark.parametrize(
    ("width", "arithmetic", "skip", "far", "stages", "back", "warps"),
    [
        (128, BFLOAT16, "identity", "none", 3, 2, 4),
        (128, BFLOAT16, "matrix", "none", 2, 2, 4),
        (128, IN_PARTS, "none", "none", 2, 2, 8),
        (128, IN_PARTS, "matrix", "matrix", 1, 1, 8),
        (16, IN_PARTS, "matrix", "matrix", 2, 2, 8),
    ],
)
def test_as_many_layers_are_on_their_way_as_shared_memory_holds(
    width: int, arithmetic: Arithmetic, skip: str, far: str, stages: int, back: int, warps: int
) -> None:
    tiles = tiles_for(Shape(3072, width, 30, 10, skip, far, 1.0), arithmetic, CPU)
    assert tiles is not None
    assert (tiles.stages, tiles.back_stages, tiles.warps) == (stages, back, warps)


def test_no_tiles_where_one_matrix_is_too_large() -> None:
    assert tiles_for(Shape(6, 256, 3, 3, "none", "none", 1.0), IN_PARTS, CPU) is None
