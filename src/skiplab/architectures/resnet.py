"""The fully fledged ResNet for small images: basic blocks, batch normalisation, shortcut A.

He et al. (2016), section 4.2: a 3 × 3 convolution, three groups of n blocks with 16, 32, 64 filters, average
pooling, a linear output; 6n + 2 layers with weights (n = 3 is ResNet-20, n = 5 ResNet-32).
"""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

import torch
from torch import nn

from skiplab.architectures.convolutional import GroupedNet, IdentityShortcut, ImageSizes, conv3x3
from skiplab.architectures.initialisers import He, Initialiser
from skiplab.architectures.rectified import is_plain_relu, normalised_by_rule, normalised_convolution
from skiplab.shapes import Images

HE_INIT = He()


class BasicBlock(nn.Module):
    """y = ReLU(s(x) + BN(conv(ReLU(BN(conv(x)))))), s being shortcut A, or nothing without skips."""

    def __init__(self, channels: int, filters: int, stride: int, *, skips: bool, dtype: torch.dtype) -> None:
        super().__init__()
        self.conv1 = conv3x3(channels, filters, stride, bias=False, dtype=dtype)
        self.norm1 = nn.BatchNorm2d(filters, dtype=dtype)
        self.conv2 = conv3x3(filters, filters, 1, bias=False, dtype=dtype)
        self.norm2 = nn.BatchNorm2d(filters, dtype=dtype)
        self.shortcut = IdentityShortcut(channels, filters, stride) if skips else None

    def forward(self, x: Images) -> Images:
        inner = normalised_convolution(x, self.conv1, self.norm1)
        return normalised_convolution(inner, self.conv2, self.norm2, self.shortcut, x)


class NormalisedStem(nn.Sequential):
    """A convolution, a normalisation, then the ReLU (``normalised_stem``), or what was put in their places."""

    def forward(self, x: Images) -> Images:
        if len(self) == 3 and is_plain_relu(self[2]):
            fused = normalised_by_rule(x, self[0], self[1])
            if fused is not None:
                return fused
        return super().forward(x)


def normalised_stem(channels: int, filters: int, *, dtype: torch.dtype) -> NormalisedStem:
    """A 3 × 3 convolution, batch normalisation, then the ReLU."""
    conv = conv3x3(channels, filters, 1, bias=False, dtype=dtype)
    return NormalisedStem(conv, nn.BatchNorm2d(filters, dtype=dtype), nn.ReLU())


class ResNet(GroupedNet):
    """ResNet-(6n+2) with n = ``blocks`` basic blocks a group; ``skips=False`` is its plain counterpart."""

    def __init__(
        self,
        blocks: int,
        *,
        generator: torch.Generator,
        skips: bool = True,
        init: Initialiser = HE_INIT,
        output_init: Initialiser | None = None,
        dtype: torch.dtype = torch.float32,
        **layout: Unpack[ImageSizes],
    ) -> None:
        stem, block = partial(normalised_stem, dtype=dtype), partial(BasicBlock, skips=skips, dtype=dtype)
        draws: Any = {"generator": generator, "init": init, "output_init": output_init}
        super().__init__(stem, block, blocks, dtype=dtype, **draws, **layout)
