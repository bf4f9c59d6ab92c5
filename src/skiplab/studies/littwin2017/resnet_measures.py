"""What is measured of the networks of ``resnets`` while they train.

- ``weight`` ‖w‖ of a convolution, ``scale`` ‖γ‖ of the normalisation behind it, ``inverse`` √mean 1/(v + ε) of its
  running variances, ``absorbed`` ‖w·γ/√(v + ε)‖, all Frobenius; layer 0 is the mean over convolutions;
- ``branch_share`` by block: γ² of its last normalisation, the variance of the branch, over the variance of the skip;
- path lengths, see ``path_measures``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.architectures.resnet import BasicBlock
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.remedies.absorbed_norms import factors, normalised_layers
from skiplab.studies.littwin2017.recording import Found, at_epochs, held_out_errors, path_lengths
from skiplab.studies.littwin2017.resnets import ResNets
from skiplab.subjects.hooks import first_argument, visited
from skiplab.training.loop import Callback

SHARE_IMAGES = 512  # training images on which the variance of skips is measured
GRADIENT_IMAGES = 128  # on which gradients are split by path length


def when_training(
    settings: ResNets, ensemble: Ensemble, samples: TensorSet, unseen: TensorSet
) -> list[Callback]:
    """Callbacks for every epoch and for those at which layers are measured one by one."""
    common, count = settings.training, settings.test_images
    unseen = replace(unseen, inputs=unseen.inputs[:count], labels=unseen.labels[:count])
    steps = -(-len(samples) // common.batch_size)
    chains = normalised_layers(ensemble.skeleton)

    def every_epoch(nets: Ensemble) -> Iterator[Found]:
        for quantity, values in sizes(nets, chains).items():
            yield quantity, 0, values.mean(0)
        yield from held_out_errors(nets, unseen, mixed=common.mixed)

    def at_some(nets: Ensemble) -> Iterator[Found]:
        for quantity, values in sizes(nets, chains).items():
            for layer, own in enumerate(values, 1):
                yield quantity, layer, own
        if settings.skips:
            for block, own in enumerate(branch_shares(nets, samples.inputs[:SHARE_IMAGES]), 1):
                yield "branch_share", block, own

    return [
        at_epochs(range(common.epochs + 1), steps, every_epoch),
        at_epochs(settings.layers_at, steps, at_some),
        path_lengths(settings.paths_at, steps, samples, settings.path_images, GRADIENT_IMAGES),
    ]


def scales_of(ensemble: Ensemble) -> list[str]:
    """The names of all γ."""
    return [f"{norm}.weight" for norm in normalised_layers(ensemble.skeleton).values()]


def sizes(ensemble: Ensemble, chains: Mapping[str, str]) -> dict[str, Tensor]:
    """Sizes of weights, scales, running deviations and absorbed weights, each (convolutions, networks)."""
    state = ensemble.parameters | ensemble.fixed
    found: dict[str, list[Tensor]] = {"weight": [], "scale": [], "inverse": [], "absorbed": []}
    for layer, norm in chains.items():
        weight, scale = state[f"{layer}.weight"].double(), state[f"{norm}.weight"].double()
        variance = state[f"{norm}.running_var"].double()
        eps = ensemble.skeleton.get_submodule(norm).eps
        assert isinstance(eps, float)
        by_filter = weight.square().flatten(2).sum(2)
        found["weight"].append(by_filter.sum(1).sqrt())
        found["scale"].append(scale.norm(dim=1))
        found["inverse"].append((1 / (variance + eps)).mean(1).sqrt())
        found["absorbed"].append((by_filter * factors(scale, variance, eps).square()).sum(1).sqrt())
    return {quantity: torch.stack(layers) for quantity, layers in found.items()}


def branch_shares(ensemble: Ensemble, images: Tensor) -> Tensor:
    """γ² of the last normalisation of a block over the variance of its skip, means over channels: (blocks, networks).

    In evaluation mode the branch ends in that normalisation, so that its variance over images is about γ².
    """
    shares: list[list[float]] = []

    def note(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        assert isinstance(block, BasicBlock)
        assert block.shortcut is not None
        skip = block.shortcut(first_argument(args, kwargs))
        spread = skip.transpose(0, 1).flatten(1).var(1).mean()
        shares[-1].append(float(block.norm2.weight.square().mean() / spread))

    for net in ensemble.members():
        blocks = [part for part in net.eval().modules() if isinstance(part, BasicBlock)]
        shares.append([])
        with torch.no_grad(), visited(before=[(block, note) for block in blocks]):
            net(images)
    return torch.tensor(shares, dtype=torch.float64).T
