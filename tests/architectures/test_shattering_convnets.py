from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from skiplab.architectures.initialisers import standard_normal
from skiplab.architectures.shattering_convnets import ShatteringConvNet
from skiplab.checks import Refused
from skiplab.randomness import torch_generator

SMALL: dict[str, Any] = {"depth": 4, "filters": 4, "outputs": 3, "dtype": torch.float64}


def build(**changes: Any) -> Any:
    return ShatteringConvNet(**(SMALL | changes), generator=torch_generator(0))


def conv(layer: nn.Conv2d, x: np.ndarray) -> np.ndarray:
    """A padded 3 × 3 convolution as nine shifted sums over channels."""
    kernel = layer.weight.detach().numpy()
    height, width = x.shape[2:]
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    total = np.zeros((len(x), len(kernel), height, width))
    for i in range(3):
        for j in range(3):
            window = padded[:, :, i : i + height, j : j + width]
            total += np.einsum("oc,bchw->bohw", kernel[:, :, i, j], window)
    return total


def normed(x: np.ndarray) -> np.ndarray:
    mean, variance = x.mean((0, 2, 3), keepdims=True), x.var((0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


@pytest.mark.parametrize(("skip", "beta"), [(True, 1.0), (True, 0.1), (False, 1.0)])
def test_the_network_follows_figure_5(skip: bool, beta: float) -> None:
    net = build(skip=skip, beta=beta)
    images = standard_normal((3, 3, 5, 6), torch_generator("images"))
    seen: list[np.ndarray] = []
    for block in net.blocks:
        block.register_forward_hook(lambda module, args, output: seen.append(output.detach().numpy()))
    output = net(images).detach().numpy()
    x = conv(net.stem, images.numpy())
    for block, found in zip(net.blocks, seen, strict=True):
        inner = conv(block.conv1, np.maximum(normed(x), 0))
        field = conv(block.conv2, np.maximum(normed(inner), 0))
        x = x + beta * field if skip else field
        np.testing.assert_allclose(found, x, rtol=1e-10, atol=1e-10)
    pooled = np.maximum(normed(x), 0).mean((2, 3))
    expected = pooled @ net.output.weight.detach().numpy().T + net.output.bias.detach().numpy()
    np.testing.assert_allclose(output, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("skip", [True, False])
@pytest.mark.parametrize("depth", [2, 4, 10, 24, 50])
def test_depth_counts_the_convolutions_of_the_modules(depth: int, skip: bool) -> None:
    net = build(depth=depth, skip=skip)
    assert sum(isinstance(part, nn.Conv2d) for part in net.blocks.modules()) == depth
    assert sum(isinstance(part, nn.Conv2d | nn.Linear) for part in net.modules()) == depth + 2
    assert len(net.block_names) == depth // 2
    rectifiers = sum(isinstance(part, nn.ReLU) for part in net.modules())
    assert rectifiers == sum(isinstance(part, nn.BatchNorm2d) for part in net.modules()) == depth + 1


def test_equal_seeds_give_both_kinds_equal_weights_with_hes_deviation() -> None:
    plain, residual = build(skip=False).state_dict(), build(beta=0.1).state_dict()
    assert all(torch.equal(tensor, residual[name]) for name, tensor in plain.items())
    generator = torch_generator(0)
    for layer in build().modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            drawn = math.sqrt(2 / layer.weight[0].numel()) * standard_normal(layer.weight.shape, generator)
            torch.testing.assert_close(layer.weight, drawn, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"depth": 3}, "depth is 3, but must be even: a module has two convolutions"),
        ({"depth": 0}, "depth is 0, but must be a whole number of at least 1"),
        ({"filters": 0}, "filters is 0, but must be a whole number of at least 1"),
        ({"beta": math.nan}, "beta is nan, but must be a finite number"),
        ({"beta": 0.1, "skip": False}, r"beta is 0\.1, but scales a skip's branch; leave it at 1 where"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Refused, match=sentence):
        build(**changes)
