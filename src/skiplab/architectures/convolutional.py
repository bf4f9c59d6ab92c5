"""The layout that image networks share: a stem, groups of blocks, average pooling, a linear output.

The first block of every group but the first halves height and width and widens to the group's filters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import torch
from torch import nn
from torch.nn import functional as F

from skiplab.architectures.expected import images, never_falling
from skiplab.architectures.initialisers import Initialiser, undrawn
from skiplab.checks import whole_numbers
from skiplab.shapes import Images, Rows

MakeStem = Callable[[int, int], nn.Module]  # from channels and filters
MakeBlock = Callable[[int, int, int], nn.Module]  # from channels, filters and stride


def conv3x3(channels: int, filters: int, stride: int, *, bias: bool, dtype: torch.dtype) -> nn.Conv2d:
    """Create an undrawn 3 × 3 convolution whose output is the input's size divided by the stride."""
    settings = {"kernel_size": 3, "stride": stride, "padding": 1, "bias": bias}
    return undrawn(nn.Conv2d, channels, filters, dtype=dtype, **settings)


class IdentityShortcut(nn.Module):
    """Shortcut A of He et al. (2016): the identity, subsampled by the stride, further channels being zero.

    It keeps pixels (stride·i, stride·j), the centres of a padded 3 × 3 convolution's windows, so that adding
    it is adding 1 to the kernel's entries (c, c, 0, 0).
    """

    def __init__(self, channels: int, filters: int, stride: int) -> None:
        super().__init__()
        self.stride, self.padding = stride, filters - channels

    def forward(self, x: Images) -> Images:
        if self.stride > 1:
            x = x[..., :: self.stride, :: self.stride]
        return F.pad(x, (0, 0, 0, 0, 0, self.padding)) if self.padding else x


class ImageSizes(TypedDict, total=False):
    """Sizes that all image networks take; GroupedNet explains them."""

    filters: Sequence[int]
    channels: int
    outputs: int


class GroupedNet(nn.Module):
    """Stem, one group of ``blocks`` blocks for each number in ``filters``, average pooling, linear output.

    ``init`` draws all weights, but for those of the output where ``output_init`` is given.
    """

    def __init__(
        self,
        stem: MakeStem,
        block: MakeBlock,
        blocks: int,
        *,
        generator: torch.Generator,
        init: Initialiser,
        output_init: Initialiser | None = None,
        filters: Sequence[int] = (16, 32, 64),
        channels: int = 3,
        outputs: int = 10,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        whole_numbers(blocks=blocks, channels=channels, outputs=outputs)
        never_falling("filters", filters)
        self.channels, self.filters = channels, tuple(filters)
        previous = self.filters[0]
        self.stem = stem(channels, previous)
        self.blocks = nn.ModuleList()
        for group, width in enumerate(self.filters):
            for number in range(blocks):
                self.blocks.append(block(previous, width, 2 if group > 0 and number == 0 else 1))
                previous = width
        self.output = undrawn(nn.Linear, previous, outputs, dtype=dtype)
        self.block_names = tuple(f"blocks.{k}" for k in range(len(self.blocks)))
        for part, own in ((self.stem, init), (self.blocks, init), (self.output, output_init or init)):
            own.apply(part, generator)

    @property
    def sizes(self) -> dict[str, Any]:
        """What the constructor was given of sizes, so that another network of the same sizes can be built."""
        groups = len(self.filters)
        shape = {"blocks": len(self.blocks) // groups, "filters": self.filters, "channels": self.channels}
        return shape | {"outputs": self.output.out_features}

    def forward(self, x: Images) -> Rows:
        x = self.stem(images(x, self.channels, halvings=len(self.filters) - 1))
        for block in self.blocks:
            x = block(x)
        # The papers pool 8 × 8 windows of 8 × 8 maps; the mean is the same and serves other image sizes.
        return self.output(x.mean((-2, -1)))
