"""The thin networks of balduzzi2017 figure 6 (appendix A4), 4r + 2 layers with weights.

r modules of 8 filters, then for 16, 32 and 64 filters a module of stride 2 and r − 1 more, one more of 64 filters
and stride 2, flattening, a linear output: r = 1 has 6 layers, r = 49 has 198. Kinds:

- ``relu``: a module is a 3 × 3 convolution, batch normalisation and ReLU;
- ``crelu``: the ReLU is concatenated (CReLU), so the next convolution sees twice the filters, and there are
  1/√2 as many filters (6, 11, 23, 45: rounding is ours): 1.010 times the ReLU network's parameters at 6 layers,
  .997 at 50, .996 at 198;
- ``resnet``: the ReLU network with a skip over every two modules, in the order of He et al. (2016a),
  normalisation and ReLU before a convolution. The first convolution stands alone, the other 4r are paired in order,
  so a pair may hold a stride in either place or, at r = 1, two; the shortcut is then subsampled and padded (A).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from skiplab.architectures.activations import CReLU
from skiplab.architectures.checkpointing import checkpointed
from skiplab.architectures.convolutional import IdentityShortcut, conv3x3
from skiplab.architectures.expected import images, never_falling
from skiplab.architectures.initialisers import He, Initialiser, undrawn
from skiplab.checks import one_of, require, whole_numbers
from skiplab.shapes import Images, Rows

HE_INIT = He()
KINDS = ("relu", "crelu", "resnet")


def _norm(filters: int, batch_norm: bool, dtype: torch.dtype) -> nn.Module:
    return nn.BatchNorm2d(filters, dtype=dtype) if batch_norm else nn.Identity()


class ThinModule(nn.Module):
    """A 3 × 3 convolution, batch normalisation where asked for (else a bias), then ReLU or CReLU."""

    def __init__(
        self, channels: int, filters: int, stride: int, *, crelu: bool, batch_norm: bool, dtype: torch.dtype
    ) -> None:
        super().__init__()
        self.conv = conv3x3(channels, filters, stride, bias=not batch_norm, dtype=dtype)
        self.norm = _norm(filters, batch_norm, dtype)
        self.activation: nn.Module = CReLU() if crelu else nn.ReLU()

    def forward(self, x: Images) -> Images:
        return self.activation(self.norm(self.conv(x)))


class ThinPair(nn.Module):
    """Two modules under one skip, s(x) + conv(ρ(BN(conv(ρ(BN(x)))))), s being shortcut A."""

    def __init__(
        self,
        channels: int,
        filters: tuple[int, int],
        strides: tuple[int, int],
        *,
        batch_norm: bool,
        dtype: torch.dtype,
    ) -> None:
        super().__init__()
        bias = not batch_norm
        self.norm1 = _norm(channels, batch_norm, dtype)
        self.activation1 = nn.ReLU()
        self.conv1 = conv3x3(channels, filters[0], strides[0], bias=bias, dtype=dtype)
        self.norm2 = _norm(filters[0], batch_norm, dtype)
        self.activation2 = nn.ReLU()
        self.conv2 = conv3x3(filters[0], filters[1], strides[1], bias=bias, dtype=dtype)
        self.shortcut = IdentityShortcut(channels, filters[1], strides[0] * strides[1])

    def forward(self, x: Images) -> Images:
        inner = self.conv1(self.activation1(self.norm1(x)))
        return self.shortcut(x) + self.conv2(self.activation2(self.norm2(inner)))


def modules_of(r: int, filters: Sequence[int]) -> list[tuple[int, int]]:
    """List filters and stride of every module, in order, as appendix A4 does."""
    groups = [
        (width, 2 if group > 0 and k == 0 else 1) for group, width in enumerate(filters) for k in range(r)
    ]
    return [*groups, (filters[-1], 2)]


class ThinNet(nn.Module):
    """A thin network of 4r + 2 layers (r for each number in ``filters``, and 2), He's initial weights.

    ``filters`` are the ReLU network's, whatever the kind. ``image_size`` is the height and width of the images,
    which the flattening fixes. Biases stand only where there is no batch normalisation (ours).
    ``checkpoint_every`` = k keeps the input of every k-th block alone in a training step and computes the rest
    again, a second forward pass: results are the same and the memory of a deep network stays bounded.
    """

    def __init__(
        self,
        r: int,
        *,
        generator: torch.Generator,
        kind: str = "relu",
        batch_norm: bool = True,
        filters: Sequence[int] = (8, 16, 32, 64),
        channels: int = 3,
        outputs: int = 10,
        image_size: int = 32,
        checkpoint_every: int | None = None,
        init: Initialiser = HE_INIT,
        dtype: torch.dtype = torch.float32,
    ) -> None:
        super().__init__()
        whole_numbers(r=r, channels=channels, outputs=outputs, image_size=image_size)
        never_falling("filters", filters)
        one_of("kind", kind, KINDS)
        halvings = len(filters)
        require(
            image_size >= 2**halvings,
            f"image_size is {image_size}, but must be at least {2**halvings} to be halved {halvings} times; "
            f"pass larger images or fewer filters.",
        )
        require(
            kind != "resnet" or len(filters) * r % 2 == 0,
            f"r is {r} with {len(filters)} numbers of filters, which leaves one module without a partner under a "
            f"skip; make r even.",
        )
        if checkpoint_every is not None:
            whole_numbers(checkpoint_every=checkpoint_every)
        if kind == "crelu":
            filters = [max(1, round(width / math.sqrt(2))) for width in filters]
        self.r, self.kind, self.batch_norm, self.depth = r, kind, batch_norm, len(filters) * r + 2
        self.filters, self.channels, self.image_size = tuple(filters), channels, image_size
        self.checkpoint_every = checkpoint_every
        plan = modules_of(r, filters)
        self.stem: nn.Module = nn.Identity()
        self.last: nn.Module = nn.Identity()
        if kind == "resnet":
            self.stem = conv3x3(channels, filters[0], 1, bias=not batch_norm, dtype=dtype)
            self.blocks = self._pairs(plan, dtype)
            self.last = nn.Sequential(_norm(filters[-1], batch_norm, dtype), nn.ReLU())
        else:
            self.blocks = self._singles(plan, dtype)
        side = -(-image_size // 2**halvings)
        seen = (2 if kind == "crelu" else 1) * self.filters[-1]
        self.output = undrawn(nn.Linear, seen * side**2, outputs, dtype=dtype)
        self.block_names = tuple(f"blocks.{k}" for k in range(len(self.blocks)))
        init.apply(self, generator)

    def _singles(self, plan: list[tuple[int, int]], dtype: torch.dtype) -> nn.ModuleList:
        crelu = self.kind == "crelu"
        blocks, seen = nn.ModuleList(), self.channels
        for width, stride in plan:
            blocks.append(
                ThinModule(seen, width, stride, crelu=crelu, batch_norm=self.batch_norm, dtype=dtype)
            )
            seen = 2 * width if crelu else width
        return blocks

    def _pairs(self, plan: list[tuple[int, int]], dtype: torch.dtype) -> nn.ModuleList:
        blocks, seen = nn.ModuleList(), plan[0][0]
        for (width1, stride1), (width2, stride2) in zip(plan[1::2], plan[2::2], strict=True):
            blocks.append(
                ThinPair(seen, (width1, width2), (stride1, stride2), batch_norm=self.batch_norm, dtype=dtype)
            )
            seen = width2
        return blocks

    def _through_blocks(self, x: Images) -> Images:
        # Without a graph there is nothing to save, and measurements in evaluation mode need the whole graph.
        if self.checkpoint_every is None or not (self.training and torch.is_grad_enabled()):
            for block in self.blocks:
                x = block(x)
            return x
        for start in range(0, len(self.blocks), self.checkpoint_every):
            x = checkpointed(nn.Sequential(*self.blocks[start : start + self.checkpoint_every]), x)
        return x

    def forward(self, x: Images) -> Rows:
        x = images(x, self.channels, halvings=len(self.filters), size=self.image_size)
        x = self._through_blocks(self.stem(x))
        return self.output(self.last(x).flatten(1))
