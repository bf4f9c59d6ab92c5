"""The simplified networks of yu2019 (section 2 and supplement A): one layer with weights per block, no normalisation.

L = 3N + 2 layers with weights: a 3 × 3 convolution and ReLU, three groups of N blocks with 16, 32, 64
filters, average pooling, a linear output. The fully connected pair has the same blocks with matrices for kernels,
the supplement's trivial case D.4.1. Adding 1 to the ID entries of every block's weights turns the residual
network's weights into those of a plain network with the same function (eq 1; ``transfer``).

The stem is drawn as the blocks are and the output as torch draws it (ours; Tables 3 and 4 agree with both). With
equal seeds a plain and a residual network share their Gaussian draws, each scaled by its own deviation.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar, Unpack

import torch
from torch import nn
from torch.nn import functional as F

from skiplab.architectures.convolutional import GroupedNet, IdentityShortcut, ImageSizes, conv3x3
from skiplab.architectures.expected import rows
from skiplab.architectures.initialisers import HMWI, KWI, Initialiser, UniformByFanIn, undrawn
from skiplab.architectures.rectified import is_plain_relu, rectified_by_rule, rectified_convolution
from skiplab.checks import require, whole_numbers
from skiplab.shapes import Images, Rows

KWI_INIT, HMWI_INIT, OUTPUT_INIT = KWI(), HMWI(), UniformByFanIn()


def blocks_of_depth(depth: int) -> int:
    """N, the blocks per group, of a network with L = 3N + 2 layers with weights; 6, 10, 14 for 20, 32, 44."""
    whole_numbers(depth=depth)
    require(
        depth > 2 and depth % 3 == 2,
        f"depth is {depth}, but three groups of N blocks have 3N + 2 layers; choose 20, 32 or 44, say.",
    )
    return (depth - 2) // 3


class SimplifiedPlainBlock(nn.Module):
    """y = f(p(x)), p a 3 × 3 convolution with bias and f the ReLU."""

    weighted: ClassVar[str] = "conv"  # the part whose ID entries an identity connection is added to

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
    """A convolution, then the ReLU (``simplified_stem``), or what was put in their places."""

    def forward(self, x: Images) -> Images:
        if len(self) == 2 and is_plain_relu(self[1]):
            fused = rectified_by_rule(x, self[0])
            if fused is not None:
                return fused
        return super().forward(x)


def simplified_stem(channels: int, filters: int, *, dtype: torch.dtype) -> SimplifiedStem:
    """A 3 × 3 convolution with bias, then the ReLU."""
    return SimplifiedStem(conv3x3(channels, filters, 1, bias=True, dtype=dtype), nn.ReLU())


class SimplifiedPlnNet(GroupedNet):
    """yu2019's PlnNet: plain blocks f(p(x)), N = ``blocks`` in each group, KWI unless told otherwise."""

    def __init__(
        self,
        blocks: int,
        *,
        generator: torch.Generator,
        init: Initialiser = KWI_INIT,
        output_init: Initialiser = OUTPUT_INIT,
        dtype: torch.dtype = torch.float32,
        **layout: Unpack[ImageSizes],
    ) -> None:
        stem, block = partial(simplified_stem, dtype=dtype), partial(SimplifiedPlainBlock, dtype=dtype)
        inits: dict[str, Any] = {"init": init, "output_init": output_init}
        super().__init__(stem, block, blocks, generator=generator, dtype=dtype, **inits, **layout)


class SimplifiedResNet(GroupedNet):
    """yu2019's ResNet: residual blocks f(x + p(x)), N = ``blocks`` in each group, HMWI unless told otherwise."""

    def __init__(
        self,
        blocks: int,
        *,
        generator: torch.Generator,
        init: Initialiser = HMWI_INIT,
        output_init: Initialiser = OUTPUT_INIT,
        dtype: torch.dtype = torch.float32,
        **layout: Unpack[ImageSizes],
    ) -> None:
        stem, block = partial(simplified_stem, dtype=dtype), partial(SimplifiedResidualBlock, dtype=dtype)
        inits: dict[str, Any] = {"init": init, "output_init": output_init}
        super().__init__(stem, block, blocks, generator=generator, dtype=dtype, **inits, **layout)


# Fully connected ------------------------------------------------------------------------------------------------


class SimplifiedPlainLayer(nn.Module):
    """y = f(W x + b), f the ReLU."""

    weighted: ClassVar[str] = "linear"

    def __init__(self, inputs: int, width: int, *, dtype: torch.dtype) -> None:
        super().__init__()
        self.linear = undrawn(nn.Linear, inputs, width, dtype=dtype)

    def forward(self, x: Rows) -> Rows:
        return torch.relu(self.linear(x))


class SimplifiedResidualLayer(SimplifiedPlainLayer):
    """y = f(x + W x + b); where widths differ, x loses its last entries or gains zeros behind them."""

    def forward(self, x: Rows) -> Rows:
        further = self.linear.out_features - self.linear.in_features
        return torch.relu((F.pad(x, (0, further)) if further else x) + self.linear(x))


class SimplifiedPlnMLP(nn.Module):
    """Layers f(W x + b) of the given ``widths`` behind a first one, and a linear output."""

    layer: ClassVar[type[SimplifiedPlainLayer]] = SimplifiedPlainLayer

    def __init__(
        self,
        inputs: int,
        widths: Sequence[int],
        outputs: int,
        *,
        generator: torch.Generator,
        init: Initialiser = KWI_INIT,
        output_init: Initialiser = OUTPUT_INIT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        whole_numbers(inputs=inputs, outputs=outputs)
        require(
            len(widths) > 1, f"widths are {tuple(widths)}, but a block lies between two; give at least 2."
        )
        for width in widths:
            whole_numbers(widths=width)
        self.inputs, self.widths, self.outputs = inputs, tuple(widths), outputs
        self.stem = SimplifiedPlainLayer(inputs, widths[0], dtype=dtype)
        self.blocks = nn.ModuleList(self.layer(*pair, dtype=dtype) for pair in itertools.pairwise(widths))
        self.output = undrawn(nn.Linear, widths[-1], outputs, dtype=dtype)
        self.block_names = tuple(f"blocks.{k}" for k in range(len(self.blocks)))
        for part, own in ((self.stem, init), (self.blocks, init), (self.output, output_init)):
            own.apply(part, generator)

    @property
    def sizes(self) -> dict[str, Any]:
        """What the constructor was given of sizes, so that another network of the same sizes can be built."""
        return {"inputs": self.inputs, "widths": self.widths, "outputs": self.outputs}

    def forward(self, x: Rows) -> Rows:
        x = self.stem(rows(x, self.inputs))
        for block in self.blocks:
            x = block(x)
        return self.output(x)


class SimplifiedResMLP(SimplifiedPlnMLP):
    """Layers f(x + W x + b) of the given ``widths`` behind a first one without skip, and a linear output."""

    layer = SimplifiedResidualLayer

    def __init__(
        self,
        inputs: int,
        widths: Sequence[int],
        outputs: int,
        *,
        generator: torch.Generator,
        init: Initialiser = HMWI_INIT,
        output_init: Initialiser = OUTPUT_INIT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        own: dict[str, Any] = {"generator": generator, "init": init, "output_init": output_init}
        super().__init__(inputs, widths, outputs, dtype=dtype, **own)
