"""A network under diagnosis: the samples it is measured on, its loss, and how its normalisation is evaluated."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, whole_numbers
from skiplab.diagnosis.factory import seeded_globally
from skiplab.diagnosis.losses import Loss, loss_for
from skiplab.measurements.batch_statistics import normalisation_layers, with_batch_statistics
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of, sliced
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.torch_private import tree_map

SAMPLES = 32  # of the batches that are looked at where nobody asks for more; ours


@dataclass(frozen=True)
class Patient:
    """One network with a batch; ``subject`` is what instruments are given.

    Where batch normalisation has seen no batch yet, its running statistics are those it was built with, 0 and 1, and
    say nothing: the subject then holds the batch's own as constants. ``assumed`` says this and what else was decided.
    """

    module: nn.Module
    subject: Subject
    batch: Batch
    samples: int
    loss: Loss
    fresh_statistics: bool
    assumed: tuple[str, ...]

    @staticmethod
    def of(
        module: nn.Module,
        batches: Batch | Iterable[Batch],
        *,
        criterion: Criterion | None = None,
        loss_fn: LossFunction | None = None,
        samples: int = SAMPLES,
    ) -> Patient:
        """Take samples from the batches, find a loss, and decide how normalisation is evaluated."""
        whole_numbers(samples=samples)
        Subject.of(module, criterion=criterion, loss_fn=loss_fn)  # refuses what cannot be measured at all
        batch = gathered(batches, samples)
        return Patient.on(module, batch, loss_for(module, batch, criterion, loss_fn))

    @staticmethod
    def on(module: nn.Module, batch: Batch, loss: Loss) -> Patient:
        """The network on one batch, with a loss that is settled."""
        subject = Subject.of(module, criterion=loss.criterion, loss_fn=loss.loss_fn)
        assumed, is_fresh = [loss.words], has_fresh_statistics(module)
        if is_fresh:
            try:
                subject = with_batch_statistics(subject, batch)
                assumed.append("normalisation: the batch's statistics, since the running ones are unused")
            except Refused as reason:
                is_fresh = False
                assumed.append(f"normalisation: unused running statistics all the same, since {reason}")
        size = batch_size(batch)
        return Patient(module, subject, batch, size, loss, is_fresh, tuple(assumed))

    def fewer(self, samples: int) -> Patient:
        """The same network on the first of its samples."""
        if samples >= self.samples:
            return self
        return Patient.on(self.module, sliced(self.batch, self.samples, slice(samples)), self.loss)


def gathered(batches: Batch | Iterable[Batch], samples: int) -> Batch:
    """The first samples of one batch or several, as one batch; batches that do not fit together give the first."""
    parts: list[Batch] = []
    count = 0
    # A loader that shuffles draws from the global streams: training afterwards has the batches it would have had.
    with seeded_globally(0):
        for batch in batches_of(batches):
            parts.append(batch)
            count += batch_size(batch)
            if count >= samples:
                break
    whole = parts[0]
    if len(parts) > 1:
        try:
            whole = tree_map(_joined, *parts)
        except (RuntimeError, ValueError, TypeError, KeyError):
            whole = parts[0]
    return sliced(whole, batch_size(whole), slice(samples))


def has_fresh_statistics(module: nn.Module) -> bool:
    """Whether normalisation layers keep running statistics that no batch has changed yet."""
    try:
        layers = normalisation_layers(module)
    except Refused:
        return False
    return bool(layers) and all(_is_unused(layer) for layer in layers.values())


def _is_unused(layer: nn.Module) -> bool:
    seen = getattr(layer, "num_batches_tracked", None)
    if isinstance(seen, Tensor):
        return not bool(seen.any())
    mean, variance = (getattr(layer, f"running_{name}", None) for name in ("mean", "var"))
    unused = isinstance(mean, Tensor) and not bool(mean.any())
    return unused and (variance is None or bool((variance == 1).all()))


def _joined(*parts: Any) -> Any:
    tensors = all(isinstance(part, Tensor) and part.ndim for part in parts)
    return torch.cat(parts) if tensors else parts[0]
