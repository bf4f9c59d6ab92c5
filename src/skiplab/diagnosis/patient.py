"""A network under diagnosis: the samples it is measured on, its loss, and how its normalisation is evaluated."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, whole_numbers
from skiplab.diagnosis.factory import seeded_globally
from skiplab.diagnosis.losses import Loss, loss_for
from skiplab.measurements.batch_statistics import with_batch_statistics
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of, sliced
from skiplab.subjects.normalisation import has_fresh_statistics
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.torch_private import tree_map

SAMPLES = 32  # of the batches that are looked at where nobody asks for more; ours


@dataclass(frozen=True)
class Patient:
    """One network with a batch; ``subject`` is what instruments are given.

    Where batch normalisation has seen no batch yet, its running statistics are those it was built with, 0 and 1, and
    say nothing: the subject then holds the batch's own as constants. ``assumed`` says this and what else was decided.
    ``passed`` are the seconds and bytes of a pass, where they are known already.
    """

    module: nn.Module
    subject: Subject
    batch: Batch
    samples: int
    loss: Loss
    fresh_statistics: bool
    assumed: tuple[str, ...]
    passed: tuple[float, int] | None = None
    provisional: bool = False

    @staticmethod
    def of(
        module: nn.Module,
        batches: Batch | Iterable[Batch],
        *,
        criterion: Criterion | None = None,
        loss_fn: LossFunction | None = None,
        samples: int = SAMPLES,
        settled: bool = True,
    ) -> Patient:
        """Take samples from the batches, find a loss, and decide how normalisation is evaluated.

        Where it is not to be ``settled``, the last is left to ``settled()``, which runs the network on all samples.
        """
        whole_numbers(samples=samples)
        subject = Subject.of(module, criterion=criterion, loss_fn=loss_fn)
        batch = gathered(batches, samples, lambda batch: runs_on(subject, batch))
        return Patient.on(module, batch, loss_for(module, batch, criterion, loss_fn), settled=settled)

    @staticmethod
    def on(module: nn.Module, batch: Batch, loss: Loss, *, settled: bool = True) -> Patient:
        """The network on one batch, with a loss that is settled."""
        subject = Subject.of(module, criterion=loss.criterion, loss_fn=loss.loss_fn)
        assumed, is_fresh = [loss.words], settled and has_fresh_statistics(module)
        if is_fresh:
            try:
                subject = with_batch_statistics(subject, batch)
                assumed.append("normalisation: the batch's statistics, since the running ones are unused")
            except Refused as reason:
                is_fresh = False
                assumed.append(f"normalisation: unused running statistics all the same, since {reason}")
        frozen = [name for name, parameter in module.named_parameters() if not parameter.requires_grad]
        if frozen:
            several = sum(1 for _ in module.parameters())
            assumed.append(f"frozen: {len(frozen)} of {several} tensors of parameters are not trained")
        size = batch_size(batch)
        return Patient(module, subject, batch, size, loss, is_fresh, tuple(assumed), provisional=not settled)

    def settled(self) -> Patient:
        """The same network, with how its normalisation is evaluated decided."""
        return Patient.on(self.module, self.batch, self.loss) if self.provisional else self

    def fewer(self, samples: int) -> Patient:
        """The same network on the first of its samples, settled."""
        if samples >= self.samples:
            return self.settled()
        return Patient.on(self.module, sliced(self.batch, self.samples, slice(samples)), self.loss)


def gathered(
    batches: Batch | Iterable[Batch], samples: int, runs: Callable[[Batch], bool] | None = None
) -> Batch:
    """The first samples of one batch or several, as one batch; batches that do not fit together give the first.

    The first batch stays whole where a network ``runs`` on that alone: its rows are no samples (the nodes of a graph
    beside their adjacency matrix), or it takes batches of one size.
    """
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
    cut = sliced(whole, batch_size(whole), slice(samples))
    if runs is not None and batch_size(parts[0]) > samples and not runs(cut) and runs(parts[0]):
        return parts[0]
    return cut


def runs_on(subject: Subject, batch: Batch) -> bool:
    """Whether a network, or its loss function, can be called on a batch."""

    def run(model: nn.Module) -> Tensor:
        subject.call(model, batch)
        return torch.zeros(())

    try:
        with subject.borrowed(), torch.no_grad():
            subject.map_models(run)
    except Exception:  # whatever a user's network raises: it is called again where that is told
        return False
    return True


def _joined(*parts: Any) -> Any:
    tensors = all(isinstance(part, Tensor) and part.ndim for part in parts)
    return torch.cat(parts) if tensors else parts[0]
