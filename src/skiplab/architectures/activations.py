"""Activations that torch does not have: the concatenated rectifier."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class CReLU(nn.Module):
    """Concatenated rectifier, Shang et al. (2016): x ↦ (ρ(x), ρ(−x)), twice as many units along ``dim``.

    ρ(x) − ρ(−x) = x, so a following layer that reads the second half with mirrored weights (W, −W) makes the
    pair look linear (balduzzi2017 section 5). ρ(x)² + ρ(−x)² = x², so He's variance 2/fan_in, in which the
    following layer's fan-in is already doubled, keeps the signal's size as it does behind a ReLU.
    """

    def __init__(self, dim: int = 1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:  # named as nn.ReLU's, whose place it takes in looks_linear
        return torch.cat((torch.relu(input), torch.relu(-input)), self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
