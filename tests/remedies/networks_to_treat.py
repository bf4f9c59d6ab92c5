"""Networks to be treated, in float64, whose weights are drawn from a named stream."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from skiplab.randomness import torch_generator


def drawn(net: nn.Module) -> nn.Module:
    """The network in float64 with uniform weights of torch's usual size, whatever drew them before."""
    net.double()
    stream = torch_generator("remedies", "weights")
    with torch.no_grad():
        for value in net.parameters():
            size = max(value[0].numel(), 1) ** -0.5
            value.copy_(size * (2 * torch.rand(value.shape, generator=stream, dtype=torch.float64) - 1))
    return net


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch_generator("inputs"), dtype=torch.float64)


def mlp(
    depth: int = 4, width: int = 6, act: type[nn.Module] = nn.Tanh, inputs: int = 5, outputs: int = 3
) -> nn.Sequential:
    """Linear layers, each but the last followed by a nonlinearity; ``depth`` of them keep the width."""
    layers: list[nn.Module] = [nn.Linear(inputs, width), act()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), act()]
    net = drawn(nn.Sequential(*layers, nn.Linear(width, outputs)))
    assert isinstance(net, nn.Sequential)
    return net


def convnet(depth: int = 5, channels: int = 4) -> nn.Sequential:
    """Convolutions with ReLUs that work in place, without normalisation; the third one strides."""
    layers: list[nn.Module] = [nn.Conv2d(2, channels, 3, padding=1), nn.ReLU(inplace=True)]
    for number in range(1, depth):
        stride = 2 if number == 2 else 1
        layers += [nn.Conv2d(channels, channels, 3, stride, padding=1), nn.ReLU(inplace=True)]
    net = drawn(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 3)))
    assert isinstance(net, nn.Sequential)
    return net


class Functional(nn.Module):
    """A forward pass of the user's own, with functional ReLUs and dropout."""

    def __init__(self, depth: int = 3, width: int = 6) -> None:
        super().__init__()
        self.first = nn.Linear(5, width)
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))
        self.head = nn.Linear(width, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.first(x))
        for layer in self.hidden:
            x = F.dropout(torch.relu(layer(x)), 0.1, training=self.training)
        return self.head(x)


class Block(nn.Module):
    """x + branch(x), or the branch alone; it ends in a linear layer, a normalisation, or a nonlinearity."""

    def __init__(self, width: int, ends: str = "linear", skip: bool = True) -> None:
        super().__init__()
        self.one, self.two, self.skip = nn.Linear(width, width), nn.Linear(width, width), skip
        tails = {
            "linear": nn.Identity,
            "norm": nn.LayerNorm,
            "bare": nn.LayerNorm,
            "tanh": nn.Tanh,
            "relu": nn.ReLU,
        }
        settings = {"norm": ((width,), {}), "bare": ((width,), {"elementwise_affine": False})}
        sizes, keywords = settings.get(ends, ((), {}))
        self.tail = tails[ends](*sizes, **keywords)

    def branch(self, x: Tensor) -> Tensor:
        """F of x + F(x)."""
        return self.tail(self.two(torch.tanh(self.one(x))))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.branch(x) if self.skip else self.branch(x)


def blocks(count: int = 4, width: int = 6, ends: str = "linear", skip: bool = True) -> nn.Sequential:
    """A linear layer, blocks, and a linear layer."""
    net = drawn(
        nn.Sequential(
            nn.Linear(5, width), *(Block(width, ends, skip) for _ in range(count)), nn.Linear(width, 3)
        )
    )
    assert isinstance(net, nn.Sequential)
    return net
