"""Networks of the five papers, one equation a class, each describing one network.

Constructors draw from the generator they are given, never from torch's global one. Every network has
``block_names``, its repeated blocks as submodule names in order of depth, and runs under
``torch.func.functional_call`` and ``torch.vmap``. ``ARCHITECTURES`` holds a small example of each.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import nn

from skiplab.architectures.diagonal import SimplifiedDiagonalNet
from skiplab.architectures.fully_connected import (
    HyperResidualNet,
    InputResidualNet,
    PathResidualNet,
    PlainNet,
    ResidualNet,
)
from skiplab.architectures.highway import HighwayNet, ScalarHighwayNet
from skiplab.architectures.linear import (
    DenseResidualLinearNet,
    HyperResidualLinearNet,
    PlainLinearNet,
    ResidualLinearNet,
)
from skiplab.architectures.path_toys import BlockToy
from skiplab.architectures.rescaled import RescaledNet
from skiplab.architectures.resnet import ResNet
from skiplab.architectures.shattering_convnets import ShatteringConvNet
from skiplab.architectures.simplified import (
    SimplifiedPlnMLP,
    SimplifiedPlnNet,
    SimplifiedResMLP,
    SimplifiedResNet,
)
from skiplab.architectures.skip_matrices import Folded, Orthogonal, Shared, Tau
from skiplab.architectures.thin import ThinNet
from skiplab.architectures.toy import TOY_NETS, ToyPlainNet


@dataclass(frozen=True)
class Example:
    """A small network of one kind: ``build(generator=…, dtype=…)``, and the shape of one of its inputs."""

    build: Callable[..., nn.Module]
    input_shape: tuple[int, ...]


def _toy(kind: type[ToyPlainNet], *, generator: torch.Generator, dtype: torch.dtype) -> nn.Module:
    net = kind(biases=0.1 * torch.ones(5, 2), dtype=dtype)
    net.set_signs(2 * torch.randint(2, (net.weight_count,), generator=generator) - 1)
    return net


_FC: dict[str, Any] = {"inputs": 6, "width": 8, "depth": 5, "outputs": 3}
_IMAGES: dict[str, Any] = {"blocks": 2, "filters": (4, 8), "outputs": 3}
_MLP: dict[str, Any] = {"inputs": 6, "widths": (8, 8, 4, 6), "outputs": 3}
_SHATTERING: dict[str, Any] = {"depth": 4, "filters": 4, "outputs": 3}
_TOY: dict[str, Any] = {"inputs": 6, "width": 5, "blocks": 4, "classes": 3}
_THIN: dict[str, Any] = {"r": 2, "filters": (4, 6), "outputs": 3, "image_size": 8}

ARCHITECTURES: dict[str, Example] = {
    "plain": Example(partial(PlainNet, **_FC), (6,)),
    "plain-tanh": Example(partial(PlainNet, **_FC, activation="tanh"), (6,)),
    "plain-bn": Example(partial(PlainNet, **_FC, batch_norm_at=2), (6,)),
    "residual": Example(partial(ResidualNet, **_FC), (6,)),
    "residual-bn": Example(partial(ResidualNet, **_FC, batch_norm_at=2), (6,)),
    "residual-orthogonal": Example(partial(ResidualNet, **_FC, skip=Orthogonal()), (6,)),
    "residual-folded": Example(partial(ResidualNet, **_FC, skip=Folded(distinct=2)), (6,)),
    "residual-tau": Example(partial(ResidualNet, **_FC, skip=Shared(Tau(tau=0.1))), (6,)),
    "residual-from-input": Example(partial(InputResidualNet, **_FC | {"inputs": 8}), (8,)),
    "hyper-residual": Example(partial(HyperResidualNet, **_FC), (6,)),
    "hyper-residual-sums": Example(partial(HyperResidualNet, **_FC, normalised=False), (6,)),
    "path-residual": Example(partial(PathResidualNet, **_FC), (6,)),
    "linear-plain": Example(partial(PlainLinearNet, (4, 3, 5)), (4,)),
    "linear-residual": Example(partial(ResidualLinearNet, (4, 3, 5)), (4,)),
    "linear-hyper-residual": Example(partial(HyperResidualLinearNet, (4, 3, 5)), (4,)),
    "linear-dense-residual": Example(partial(DenseResidualLinearNet, (4, 4, 4)), (4,)),
    **{f"toy-{name}": Example(partial(_toy, kind), (2,)) for name, kind in TOY_NETS.items()},
    "block-toy": Example(partial(BlockToy, **_TOY), (6,)),
    "block-toy-bn": Example(partial(BlockToy, **_TOY, norm="after", extra=True), (6,)),
    "block-toy-scalar": Example(partial(BlockToy, **_TOY, norm="after", scalar_scale=True), (6,)),
    "simplified-plain": Example(partial(SimplifiedPlnNet, **_IMAGES), (3, 8, 8)),
    "simplified-residual": Example(partial(SimplifiedResNet, **_IMAGES), (3, 8, 8)),
    "simplified-diagonal": Example(partial(SimplifiedDiagonalNet, **_IMAGES), (3, 8, 8)),
    "simplified-dense-half": Example(
        partial(SimplifiedDiagonalNet, **_IMAGES, lower="dense-with-ones"), (3, 8, 8)
    ),
    "simplified-plain-fc": Example(partial(SimplifiedPlnMLP, **_MLP), (6,)),
    "simplified-residual-fc": Example(partial(SimplifiedResMLP, **_MLP), (6,)),
    "resnet": Example(partial(ResNet, **_IMAGES), (3, 8, 8)),
    "resnet-plain": Example(partial(ResNet, **_IMAGES, skips=False), (3, 8, 8)),
    "rescaled-plain": Example(partial(RescaledNet, **_FC, skip=False, bias_std=1.0), (6,)),
    "rescaled-residual-bn": Example(partial(RescaledNet, **_FC, beta=0.5, normalisation="batch"), (6,)),
    "rescaled-centred": Example(partial(RescaledNet, **_FC, alpha=0.7, normalisation="centre"), (6,)),
    "highway": Example(partial(HighwayNet, **_FC), (6,)),
    "highway-scalar": Example(partial(ScalarHighwayNet, **_FC), (6,)),
    "shattering-conv": Example(partial(ShatteringConvNet, **_SHATTERING, beta=0.5), (3, 8, 8)),
    "shattering-conv-plain": Example(partial(ShatteringConvNet, **_SHATTERING, skip=False), (3, 8, 8)),
    "thin-relu": Example(partial(ThinNet, **_THIN), (3, 8, 8)),
    "thin-crelu": Example(partial(ThinNet, **_THIN, kind="crelu"), (3, 8, 8)),
    "thin-resnet": Example(partial(ThinNet, **_THIN, kind="resnet"), (3, 8, 8)),
}


def examples(dtype: torch.dtype = torch.float32) -> dict[str, Callable[[torch.Generator], nn.Module]]:
    """Return the small example of every architecture, as a function of its generator."""

    def maker(example: Example) -> Callable[[torch.Generator], nn.Module]:
        return lambda generator: example.build(generator=generator, dtype=dtype)

    return {name: maker(example) for name, example in ARCHITECTURES.items()}
