"""The T′ networks of yu2019 (supplement D.3): residual networks of which only the dominant paths are left.

Within a group every kernel is diagonal, T_s = I + R_s, so that channel c is computed from channel c alone. Between
groups the kernel of 2n × n is two diagonal halves, T_r = (I + R_1; I + R_2), with ones in both. The paper also tries
a dense lower half R_2; whether the ones stay in it is not said, so both can be built. Stem and output stay dense.
A control of ours has a fixed permutation P in place of I: P + R_s, P moving every channel on by ``shift``.

The weights are those of the residual network of the same seed, without those off the diagonals: "initialised by HMWI"
then means the deviation of the dense kernel.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from skiplab.architectures.convolutional import conv3x3
from skiplab.architectures.initialisers import undrawn
from skiplab.architectures.simplified import SimplifiedResidualBlock, SimplifiedResNet
from skiplab.checks import one_of, require
from skiplab.shapes import Images

LOWER = ("diagonal", "dense", "dense-with-ones")


class DiagonalBlock(nn.Module):
    """y = f(x + R x), R diagonal; a widening block has a second half f(x + R₂ x) or, for a dense R₂, f(R₂ x)."""

    def __init__(self, block: nn.Module, lower: str, shift: int = 0) -> None:
        super().__init__()
        assert isinstance(block, SimplifiedResidualBlock)
        kernel, bias = block.conv.weight.detach(), block.conv.bias
        assert bias is not None
        filters, channels = kernel.shape[:2]
        require(
            filters in (channels, 2 * channels),
            f"a block turns {channels} channels into {filters}, but T′ keeps or doubles them; "
            "choose filters that double.",
        )
        self.stride, self.lower, self.shift = block.conv.stride[0], lower, shift
        self.conv = _diagonal(kernel[:channels], bias[:channels], self.stride)
        self.second: nn.Conv2d | None = None
        if filters > channels:
            make = _diagonal if lower == "diagonal" else _dense
            self.second = make(kernel[channels:], bias[channels:], self.stride)

    def forward(self, x: Images) -> Images:
        carried = x[..., :: self.stride, :: self.stride] if self.stride > 1 else x
        if self.shift:
            carried = carried.roll(self.shift, 1)
        field = carried + self.conv(x)
        if self.second is not None:
            further = self.second(x)
            field = torch.cat((field, further if self.lower == "dense" else carried + further), 1)
        return torch.relu(field)

    def extra_repr(self) -> str:
        return f"lower={self.lower}" + (f", shift={self.shift}" if self.shift else "")


class SimplifiedDiagonalNet(SimplifiedResNet):
    """yu2019's network with T′ (Table 5); ``lower`` is what widening kernels have in their lower half."""

    def __init__(
        self,
        blocks: int,
        *,
        generator: torch.Generator,
        lower: str = "diagonal",
        shift: int = 0,
        **settings: Any,
    ) -> None:
        one_of("lower", lower, LOWER)
        super().__init__(blocks, generator=generator, **settings)
        self.blocks = nn.ModuleList(DiagonalBlock(block, lower, shift) for block in self.blocks)


def _diagonal(kernel: Tensor, bias: Tensor, stride: int) -> nn.Conv2d:
    """The convolution of every channel by itself with what stands on a kernel's diagonal."""
    count = len(kernel)
    shape = {"kernel_size": 3, "stride": stride, "padding": 1, "groups": count}
    conv = undrawn(nn.Conv2d, count, count, dtype=kernel.dtype, **shape)
    channels = torch.arange(count)
    return _filled(conv, kernel[channels, channels][:, None], bias)


def _dense(kernel: Tensor, bias: Tensor, stride: int) -> nn.Conv2d:
    return _filled(conv3x3(kernel.shape[1], len(kernel), stride, bias=True, dtype=kernel.dtype), kernel, bias)


def _filled(conv: nn.Conv2d, kernel: Tensor, bias: Tensor) -> nn.Conv2d:
    assert conv.bias is not None
    with torch.no_grad():
        conv.weight.copy_(kernel)
        conv.bias.copy_(bias)
    return conv
