"""Networks that train badly as they are drawn: plain and deep, or with weights too large or too small.

Each is a function of its sizes and returns a module; ``networks.SMALL`` names those in use.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from cases.small_networks import Activation, Residual
from torch import Tensor, nn

Drawing = Callable[[nn.Module], None]  # draws the weights of one layer


def as_torch_does(layer: nn.Module) -> None:
    """Leave a layer as torch draws it: for linear layers and convolutions 1/√3 of Glorot's size."""


def scaled(gain: float) -> Drawing:
    """Normal weights with standard deviation gain/√(inputs) and no biases."""

    def draw(layer: nn.Module) -> None:
        weight = layer.weight
        nn.init.normal_(weight, std=gain / weight[0].numel() ** 0.5)
        nn.init.zeros_(layer.bias)

    return draw


def of_size(std: float) -> Drawing:
    """Normal weights of one standard deviation in every layer, whatever its inputs, and no biases."""

    def draw(layer: nn.Module) -> None:
        nn.init.normal_(layer.weight, std=std)
        nn.init.zeros_(layer.bias)

    return draw


def _drawn(model: nn.Module, draw: Drawing, last: nn.Module | None = None) -> nn.Module:
    for part in model.modules():
        if isinstance(part, nn.Linear | nn.Conv2d) and part is not last:
            draw(part)
    return model


def plain_mlp(inputs: int, width: int, depth: int, outputs: int, act: Activation, draw: Drawing) -> nn.Module:
    """A plain network whose layers, the last one too, are drawn in one way."""
    parts: list[nn.Module] = []
    for layer in range(depth):
        parts += [nn.Linear(inputs if layer == 0 else width, width), act()]
    return _drawn(nn.Sequential(*parts, nn.Linear(width, outputs)), draw)


def plain_convnet(width: int, depth: int, act: Activation, draw: Drawing) -> nn.Module:
    """Convolutions 3×3 without normalisation, the first with a step of two, for images with one channel."""
    parts: list[nn.Module] = []
    for layer in range(depth):
        parts += [nn.Conv2d(width if layer else 1, width, 3, 1 if layer else 2, 1), act()]
    head = nn.Linear(4 * width, 10)
    return _drawn(nn.Sequential(*parts, nn.AdaptiveAvgPool2d(2), nn.Flatten(), head), draw, head)


def residual_without_norm(
    width: int, blocks: int, act: Activation, draw: Drawing, images: bool = False
) -> nn.Module:
    """Residual blocks of two layers each, nothing normalised: what a branch adds grows with what arrives."""

    def layer() -> nn.Module:
        return nn.Conv2d(width, width, 3, padding=1) if images else nn.Linear(width, width)

    stack = nn.Sequential(*(Residual(layer(), act(), layer()) for _ in range(blocks)))
    _drawn(stack, draw)
    if not images:
        return nn.Sequential(nn.Linear(64, width), *stack, nn.Linear(width, 10))
    first, last = nn.Conv2d(1, width, 3, 2, 1), nn.Linear(4 * width, 10)
    return nn.Sequential(first, *stack, nn.AdaptiveAvgPool2d(2), nn.Flatten(), last)


class Concatenated(nn.Module):
    """Concatenated rectifiers (CReLU): the positive and the negative part beside each other."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([x.relu(), (-x).relu()], 1)


def crelu_mlp(width: int, depth: int, draw: Drawing) -> nn.Module:
    """A plain network of concatenated rectifiers, twice as many inputs as units in every layer."""
    parts: list[nn.Module] = []
    for layer in range(depth):
        parts += [nn.Linear(2 * width if layer else 64, width), Concatenated()]
    return _drawn(nn.Sequential(*parts, nn.Linear(2 * width, 10)), draw)


class TanhLayer(nn.Module):
    """x + tanh(W x + b), or without x."""

    def __init__(self, width: int, skip: bool) -> None:
        super().__init__()
        self.linear, self.act, self.skip = nn.Linear(width, width), nn.Tanh(), skip

    def forward(self, x: Tensor) -> Tensor:
        return x + self.act(self.linear(x)) if self.skip else self.act(self.linear(x))


def tanh_pair(depth: int, width: int, *, skip: bool) -> nn.Module:
    """A tanh network of ``depth`` weight layers as torch draws them, the first and the last without a skip."""
    inner = (TanhLayer(width, skip) for _ in range(depth - 2))
    return nn.Sequential(nn.Linear(64, width), nn.Tanh(), *inner, nn.Linear(width, 10))


class ConvPair(nn.Module):
    """Two convolutions around a ReLU, with a skip around both or a ReLU behind both."""

    def __init__(self, width: int, skip: bool) -> None:
        super().__init__()
        self.first, self.act, self.second = (
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
        )
        self.skip = skip

    def forward(self, x: Tensor) -> Tensor:
        branch = self.second(self.act(self.first(x)))
        return x + branch if self.skip else self.act(branch)


def conv_pair(depth: int, width: int, *, skip: bool) -> nn.Module:
    """A convolutional network of ``depth`` weight layers without normalisation, as torch draws it."""
    inner = (ConvPair(width, skip) for _ in range((depth - 2) // 2))
    return nn.Sequential(
        *(nn.Conv2d(1, width, 3, 2, 1), nn.ReLU(), *inner, nn.AdaptiveAvgPool2d(2), nn.Flatten()),
        nn.Linear(4 * width, 10),
    )
