"""The convolutional networks of balduzzi2017 figure 5: one width, one resolution, a skip every two convolutions.

A 3 × 3 convolution, ``depth``/2 modules of two convolutions, batch normalisation, ReLU, global average pooling
and a linear output. The paper gives depths 2, 4, 10, 24 and 50, a skip every two convolutions and batch
normalisation with and without skips; the width of 16, the stem, the pooling and that depth counts the modules'
convolutions alone are ours.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from skiplab.architectures.convolutional import conv3x3
from skiplab.architectures.expected import images
from skiplab.architectures.initialisers import He, Initialiser, undrawn
from skiplab.checks import require, whole_numbers
from skiplab.shapes import Images, Rows

HE_INIT = He()


class ShatteringModule(nn.Module):
    """Two convolutions behind normalised rectifiers, x ↦ x + β · conv(ρ(BN(conv(ρ(BN(x)))))), or without x +."""

    def __init__(self, filters: int, *, skip: bool, beta: float, dtype: torch.dtype) -> None:
        super().__init__()
        self.skip, self.beta = skip, beta
        self.norm1 = nn.BatchNorm2d(filters, dtype=dtype)
        self.activation1 = nn.ReLU()
        self.conv1 = conv3x3(filters, filters, 1, bias=False, dtype=dtype)
        self.norm2 = nn.BatchNorm2d(filters, dtype=dtype)
        self.activation2 = nn.ReLU()
        self.conv2 = conv3x3(filters, filters, 1, bias=False, dtype=dtype)

    def forward(self, x: Images) -> Images:
        inner = self.conv1(self.activation1(self.norm1(x)))
        field = self.conv2(self.activation2(self.norm2(inner)))
        return x + self.beta * field if self.skip else field

    def extra_repr(self) -> str:
        return f"skip={self.skip}, beta={self.beta}"


class ShatteringConvNet(nn.Module):
    """``depth`` convolutions in modules x + β · conv(ρ(BN(conv(ρ(BN(x)))))); ``skip=False`` leaves x + and β out.

    With equal seeds the networks with and without skips have equal weights.
    """

    def __init__(
        self,
        depth: int,
        *,
        generator: torch.Generator,
        skip: bool = True,
        beta: float = 1.0,
        filters: int = 16,
        channels: int = 3,
        outputs: int = 10,
        init: Initialiser = HE_INIT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        whole_numbers(depth=depth, filters=filters, channels=channels, outputs=outputs)
        require(depth % 2 == 0, f"depth is {depth}, but must be even: a module has two convolutions.")
        require(math.isfinite(beta), f"beta is {beta}, but must be a finite number.")
        require(
            skip or beta == 1,
            f"beta is {beta}, but scales a skip's branch; leave it at 1 where skip is False.",
        )
        self.depth, self.skip, self.beta, self.channels = depth, skip, beta, channels
        self.stem = conv3x3(channels, filters, 1, bias=False, dtype=dtype)
        self.blocks = nn.ModuleList(
            ShatteringModule(filters, skip=skip, beta=beta, dtype=dtype) for _ in range(depth // 2)
        )
        self.norm = nn.BatchNorm2d(filters, dtype=dtype)
        self.activation = nn.ReLU()
        self.output = undrawn(nn.Linear, filters, outputs, dtype=dtype)
        self.block_names = tuple(f"blocks.{k}" for k in range(len(self.blocks)))
        init.apply(self, generator)

    def forward(self, x: Images) -> Rows:
        x = self.stem(images(x, self.channels, halvings=0))
        for block in self.blocks:
            x = block(x)
        return self.output(self.activation(self.norm(x)).mean((-2, -1)))
