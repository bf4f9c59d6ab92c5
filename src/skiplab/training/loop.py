"""The training loop: many networks at once, each on its own shuffles; extended by callbacks.

Accuracy and loss of an epoch are running means over its batches, as most training scripts print them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from skiplab.checks import TimeIsUp, at_least, require
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.training.augmentation import CropAndFlip
from skiplab.training.checkpoints import Checkpoints
from skiplab.training.memory import members_at_once
from skiplab.training.optimisers import Adam, Optimiser
from skiplab.training.regularisers import Penalty
from skiplab.training.schedules import Constant, Schedule
from skiplab.training.step import Step

Rows = list[dict[str, Any]]
COMPILE_FROM = 500_000  # steps times members from which fusing the passes on a GPU saves more than it takes


@dataclass(frozen=True)
class Callback:
    """Run ``measure(ensemble, step)`` before the steps named (the last one: after training); keep its rows."""

    steps: frozenset[int]
    measure: Callable[[Ensemble, int], Rows]


@dataclass(frozen=True)
class Plan:
    """How to train: settings shared by all members, and those that each has its own of.

    ``mixed`` computes the passes through the networks in bfloat16 where torch's autocast holds that safe; parameters,
    losses and updates keep their precision. ``fused`` computes fully connected networks by a few Triton kernels: None
    in mixed precision on a GPU, True always, or refuses, False never.
    """

    epochs: int
    batch_size: int
    seeds: tuple[int, ...]
    rate: float | tuple[float, ...] = 5e-4
    optimiser: Optimiser = field(default_factory=Adam)
    schedule: Schedule = field(default_factory=Constant)
    criterion: Callable[[Tensor, Tensor], Tensor] = F.cross_entropy
    augmentation: CropAndFlip | None = None
    penalties: Sequence[Penalty] = ()
    callbacks: Sequence[Callback] = ()
    mixed: bool = False
    fused: bool | None = None

    def __post_init__(self) -> None:
        at_least("epochs", self.epochs, 0)
        at_least("batch_size", self.batch_size, 1)


@dataclass(frozen=True)
class History:
    """What training left: (epochs, E) accuracies and losses (NaN once diverged), and the callbacks' rows."""

    accuracy: Tensor
    loss: Tensor
    diverged: Tensor
    rows: Rows = field(default_factory=list)


def train(
    ensemble: Ensemble,
    data: TensorSet,
    plan: Plan,
    *,
    checkpoints: Checkpoints | None = None,
    tell: Callable[[float, str], None] = lambda done, text: None,
    deadline: float | None = None,
) -> History:
    """Train all members in place; go on from a checkpoint if there is one, bit for bit.

    Raises TimeIsUp, after saving, when ``deadline`` (seconds since the epoch) passes.
    """
    count, size = len(data.labels), ensemble.size
    require(len(plan.seeds) == size, f"{len(plan.seeds)} seeds were given for {size} members.")
    require(
        isinstance(plan.rate, int | float) or len(plan.rate) == size,
        f"{plan.rate} was given as rate; give one number, or one for each of {size} members.",
    )
    rate = torch.tensor(plan.rate, dtype=torch.float64, device=ensemble.device).expand(size)
    at_once = members_at_once(ensemble, data, plan.batch_size, plan.criterion)
    how = (plan.optimiser, plan.criterion, plan.penalties, plan.augmentation, plan.mixed, plan.fused)
    step = Step(ensemble, data, *how, at_once=at_once)
    metrics = torch.full((2, plan.epochs, size), torch.nan, dtype=torch.float64, device=ensemble.device)
    rows: Rows = []
    start = 0
    saved = checkpoints.load() if checkpoints else None
    if saved:
        tensors, notes = saved
        step.restore(
            {name: tensor.to(ensemble.device) for name, tensor in tensors.items() if name != "metrics"}
        )
        metrics.copy_(tensors["metrics"])
        rows, start = notes["rows"], notes["epoch"]

    def call_back(number: int) -> None:
        for callback in plan.callbacks:
            if number in callback.steps:
                rows.extend(callback.measure(ensemble, number))
                ensemble.train()  # a callback may have looked at the networks in evaluation mode
                step.refresh()

    ensemble.train()
    steps = -(-count // plan.batch_size)
    if ensemble.device.type == "cuda" and step.fused is None:
        # torch computes eagerly once a function was compiled for eight shapes; without a fresh start a run's
        # numbers would depend on how many ran before it.
        torch.compiler.reset()
        # Not by the steps that are left: a resumed run must compute as the uninterrupted one, bit for bit.
        if steps * plan.epochs * size >= COMPILE_FROM:
            step.compile()
    orders = Shuffles(plan.seeds, count, ensemble.device)
    number, state_bytes = start * steps, sum(tensor.nbytes for tensor in step.tensors.values())
    for epoch in range(start, plan.epochs):
        step.rate.copy_(rate * plan.schedule.factor(epoch, metrics[1, :epoch]))
        order = orders.of(epoch)
        if plan.augmentation is not None:
            step.draws.copy_(plan.augmentation.draw(plan.seeds, epoch, count, ensemble.device))
        step.loss_sum.zero_()
        step.hits.zero_()
        for indices in order.split(plan.batch_size, dim=1):
            call_back(number)
            step(indices)
            number += 1
        if epoch + 1 < plan.epochs:
            orders.begin(epoch + 1)
        means = torch.stack([step.hits.double(), step.loss_sum]) / count
        metrics[:, epoch] = torch.where(step.alive, means, torch.nan)
        if data.labels.is_floating_point():  # a regression has no accuracy
            metrics[0, epoch] = torch.nan
        late = deadline is not None and time.time() > deadline
        if checkpoints and epoch + 1 < plan.epochs and (late or checkpoints.due(epoch + 1, state_bytes)):
            checkpoints.save(step.tensors | {"metrics": metrics}, {"epoch": epoch + 1, "rows": rows})
        if late and epoch + 1 < plan.epochs:
            raise TimeIsUp
        tell((epoch + 1) / plan.epochs, f"epoch {epoch + 1}/{plan.epochs}")
    call_back(number)
    ensemble.train(False)
    return History(metrics[0].cpu(), metrics[1].cpu(), ~step.alive.cpu(), rows)


class Shuffles:
    """Each member's own order of the samples, epoch by epoch; on a GPU the next one beside the steps of this one.

    A shuffle is a dozen kernels too small to fill a GPU, one after the other: behind the steps, on one stream, they
    took a tenth of an epoch of 50 fully connected networks (H200, .2 of 1.94 ms per network).
    """

    def __init__(self, seeds: Sequence[int], count: int, device: torch.device) -> None:
        self._draw = partial(shuffles, tuple(seeds), count=count, device=device)
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None
        self._begun: tuple[int, Tensor] | None = None

    def begin(self, epoch: int) -> None:
        """Start to draw an epoch's orders beside what the GPU has to do already; elsewhere ``of`` draws them."""
        if self._stream is not None:
            with torch.cuda.stream(self._stream):
                self._begun = epoch, self._draw(epoch=epoch)

    def of(self, epoch: int) -> Tensor:
        """The orders of an epoch, (E, N)."""
        begun, self._begun = self._begun, None
        if begun is None or begun[0] != epoch or self._stream is None:
            return self._draw(epoch=epoch)
        current, orders = torch.cuda.current_stream(self._stream.device), begun[1]
        current.wait_stream(self._stream)
        orders.record_stream(
            current
        )  # its memory is the side stream's: not to be given away before steps have read it
        return orders


def shuffles(seeds: Sequence[int], epoch: int, count: int, device: torch.device) -> Tensor:
    """Each member's own order of the samples in an epoch, (E, N)."""
    orders = [
        torch.randperm(count, generator=torch_generator(seed, "shuffle", epoch, device=device), device=device)
        for seed in seeds
    ]
    return torch.stack(orders)
