"""Constant biases that are not trained: f(W_l x_{l−1} + b_l + a·l + b), one line over all hidden layers l.

All units of a layer get the same constant in addition to their trained biases, so units may still be
permuted (orhan2017, section 2.4.3). The constant is a buffer: an ensemble stacks it like any other, so members
with their own a and b train as one batch, and whoever rescales trained parameters leaves it alone.

With plain gradients the constant is no more than a start. f sees b_l + c_l alone, its gradient in b_l is the one in
the sum, and Adam sees gradients only; so the sum is trained exactly as biases are that start from c_l
(``start_at_profile_``). Unlike that start, a constant would differ if biases were penalised, which the paper's
are not.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from skiplab.architectures.fully_connected import PlainLayer, PlainNet
from skiplab.checks import require


class ConstantBias(nn.Module):
    """x + c with one number c for all units, which is stored and moved with the network but never trained."""

    constant: Tensor

    def __init__(self, value: float, dtype: torch.dtype = torch.float32) -> None:
        super().__init__()
        self.register_buffer("constant", torch.tensor(value, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.constant


def profile(depth: int, slope: float, offset: float) -> list[float]:
    """a·l + b for the hidden layers l = 1 … depth, the input not counted (which count is ours)."""
    return [slope * layer + offset for layer in range(1, depth + 1)]


def add_bias_profile_(network: PlainNet, slope: float, offset: float) -> None:
    """Add the constants to a network's pre-activations, in place."""
    for layer, value in zip(_layers(network), profile(network.depth, slope, offset), strict=True):
        layer.norm = ConstantBias(value, layer.linear.weight.dtype)


def start_at_profile_(network: PlainNet, slope: float, offset: float) -> None:
    """Set the trained biases to the line instead, from where they are free to go."""
    for layer, value in zip(_layers(network), profile(network.depth, slope, offset), strict=True):
        nn.init.constant_(layer.linear.bias, value)


def _layers(network: PlainNet) -> list[PlainLayer]:
    require(
        isinstance(network, PlainNet) and network.batch_norm_at is None,
        f"a bias profile belongs to a PlainNet without batch normalisation, not to this {type(network).__name__}.",
    )
    return [layer for layer in network.hidden if isinstance(layer, PlainLayer)]
