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
from skiplab.architectures.rectified import normalised_convolution
from skiplab.shapes import Images
from skiplab.torch_private import has_hooks

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
    """A 3 × 3 convolution, batch normalisation, then the ReLU."""

    def __init__(self, channels: int, filters: int, *, dtype: torch.dtype) -> None:
        conv = conv3x3(channels, filters, 1, bias=False, dtype=dtype)
        super().__init__(conv, nn.BatchNorm2d(filters, dtype=dtype), nn.ReLU())

    def forward(self, x: Images) -> Images:
        # Whoever put something else in its place gets that.
        if [type(part) for part in self] != [nn.Conv2d, nn.BatchNorm2d, nn.ReLU] or has_hooks(self[2]):
            return super().forward(x)
        conv, norm, _ = self
        assert isinstance(conv, nn.Conv2d)
        return normalised_convolution(x, conv, norm)


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
        stem, block = partial(NormalisedStem, dtype=dtype), partial(BasicBlock, skips=skips, dtype=dtype)
        draws: Any = {"generator": generator, "init": init, "output_init": output_init}
        super().__init__(stem, block, blocks, dtype=dtype, **draws, **layout)
