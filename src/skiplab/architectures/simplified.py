"""The simplified networks of yu2019 (section 2 and supplement A): one convolution a block, no normalisation.

L = 3N + 2 layers with weights: a 3 × 3 convolution and ReLU, three groups of N blocks with 16, 32, 64
filters, average pooling, a linear output. Adding 1 to the entries (c, c, 0, 0) of every block's kernel turns
the residual network's weights into those of a plain network with the same function (eq 1).
"""

from __future__ import annotations

from functools import partial
from typing import Unpack

import torch
from torch import nn

from skiplab.architectures.convolutional import GroupedNet, IdentityShortcut, ImageSizes, conv3x3
from skiplab.architectures.initialisers import HMWI, KWI, Initialiser
from skiplab.architectures.rectified import rectified_convolution
from skiplab.shapes import Images
from skiplab.torch_private import has_hooks

KWI_INIT, HMWI_INIT = KWI(), HMWI()


class SimplifiedPlainBlock(nn.Module):
    """y = f(p(x)), p a 3 × 3 convolution with bias and f the ReLU."""

    def __init__(self, channels: int, filters: int, stride: int, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.conv = conv3x3(channels, filters, stride, bias=True, dtype=dtype)

    def forward(self, x: Images) -> Images:
        return rectified_convolution(x, self.conv)


class SimplifiedResidualBlock(SimplifiedPlainBlock):
    """y = f(x + p(x)); a strided block subsamples x and pads its channels with zeros."""

    def __init__(self, channels: int, filters: int, stride: int, *, dtype: torch.dtype) -> None:
        super().__init__(channels, filters, stride, dtype=dtype)
        self.shortcut = IdentityShortcut(channels, filters, stride)

    def forward(self, x: Images) -> Images:
        return rectified_convolution(x, self.conv, self.shortcut)


class SimplifiedStem(nn.Sequential):
    """A 3 × 3 convolution with bias, then the ReLU."""

    def __init__(self, channels: int, filters: int, *, dtype: torch.dtype) -> None:
        super().__init__(conv3x3(channels, filters, 1, bias=True, dtype=dtype), nn.ReLU())

    def forward(self, x: Images) -> Images:
        conv, relu = self
        if has_hooks(relu):
            return relu(conv(x))
        assert isinstance(conv, nn.Conv2d)
        return rectified_convolution(x, conv)


class SimplifiedPlnNet(GroupedNet):
    """yu2019's PlnNet: plain blocks f(p(x)), N = ``blocks`` in each group, KWI unless told otherwise."""

    def __init__(
        self,
        blocks: int,
        *,
        generator: torch.Generator,
        init: Initialiser = KWI_INIT,
        dtype: torch.dtype = torch.float32,
        **layout: Unpack[ImageSizes],
    ) -> None:
        stem, block = partial(SimplifiedStem, dtype=dtype), partial(SimplifiedPlainBlock, dtype=dtype)
        super().__init__(stem, block, blocks, generator=generator, init=init, dtype=dtype, **layout)


class SimplifiedResNet(GroupedNet):
    """yu2019's ResNet: residual blocks f(x + p(x)), N = ``blocks`` in each group, HMWI unless told otherwise.

    The initialiser also draws the stem and the output, which have no skip (ours; the paper does not say).
    """

    def __init__(
        self,
        blocks: int,
        *,
        generator: torch.Generator,
        init: Initialiser = HMWI_INIT,
        dtype: torch.dtype = torch.float32,
        **layout: Unpack[ImageSizes],
    ) -> None:
        stem, block = partial(SimplifiedStem, dtype=dtype), partial(SimplifiedResidualBlock, dtype=dtype)
        super().__init__(stem, block, blocks, generator=generator, init=init, dtype=dtype, **layout)
