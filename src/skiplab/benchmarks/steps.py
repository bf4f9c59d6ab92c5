"""What the training benchmarks share: noise to train on, ours as a trial trains, and plain PyTorch one by one."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

from skiplab.benchmarks.ceilings import wait_for

if TYPE_CHECKING:
    from torch import Tensor, nn

    from skiplab.data import TensorSet
    from skiplab.ensembles import Ensemble
    from skiplab.training.step import Step

RATE = 5e-4
CLASSES = 10


def noise(samples: int, *shape: int, device: str) -> TensorSet:
    """Samples of noise with random labels, which take as long as images."""
    import torch

    from skiplab.data import TensorSet
    from skiplab.randomness import torch_generator

    draw = torch_generator("benchmark", "noise", device=device)
    inputs = torch.randn(samples, *shape, generator=draw, device=device)
    labels = torch.randint(CLASSES, (samples,), generator=draw, device=device)
    return TensorSet(inputs=inputs, labels=labels, classes=CLASSES, name="noise", fingerprint="noise")


def our_step(
    ensemble: Ensemble,
    data: TensorSet,
    *,
    mixed: bool = False,
    fused: bool | None = None,
    joined: bool = False,
) -> Step:
    """The step that training takes, with Adam on the cross-entropy."""
    import torch.nn.functional as F

    from skiplab.training.optimisers import Adam
    from skiplab.training.step import Step

    step = Step(ensemble.train(), data, Adam(), F.cross_entropy, (), None, mixed, fused, joined=joined)
    step.rate.fill_(RATE)
    return step


def own_batches(step: Step, batch: int) -> Tensor:
    """The samples (E, batch) of an epoch's first step: every member's own, as in training.

    Members that read the same samples would find them in a GPU's cache, which those of a trial do not.
    """
    from skiplab.training.loop import shuffles

    return shuffles(range(step.ensemble.size), 0, len(step.data), step.ensemble.device)[:, :batch]


def our_epoch(step: Step, batch: int, device: str) -> Callable[[], None]:
    """The next epoch as the training loop goes through it: every member on its own shuffle."""
    from skiplab.training.loop import Shuffles

    orders, epochs = Shuffles(range(step.ensemble.size), len(step.data), step.ensemble.device), count()

    def run() -> None:
        epoch = next(epochs)
        for indices in orders.of(epoch).split(batch, dim=1):
            step(indices)
        orders.begin(epoch + 1)
        wait_for(device)

    return run


def plain_steps(
    network: nn.Module, data: TensorSet, batch: int, steps: int, device: str, *, mixed: bool = False
) -> Callable[[], None]:
    """Steps of one network as a PyTorch tutorial writes them, with the data on the device."""
    import torch
    import torch.nn.functional as F

    from skiplab.randomness import torch_generator

    network = network.to(device).train()
    optimiser = torch.optim.Adam(network.parameters(), lr=RATE)
    kind = torch.device(device).type
    precision = torch.autocast(kind, torch.bfloat16) if mixed else contextlib.nullcontext()

    def run() -> None:
        order = torch.randperm(len(data), generator=torch_generator(0)).to(device)
        for indices in order.split(batch)[:steps]:
            optimiser.zero_grad()
            with precision:
                outputs = network(data.inputs[indices])
            F.cross_entropy(outputs.float(), data.labels[indices]).backward()
            optimiser.step()
        wait_for(device)

    return run
