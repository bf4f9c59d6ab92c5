"""What networks answer before and after a change of their weights, and how far the answers differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, target_of
from skiplab.subjects.failures import described
from skiplab.subjects.hooks import visited
from skiplab.subjects.subject import call_on_input, first_tensor

Answers = dict[str, Tensor]  # "output" (E, B, …) and "loss" (E,), as far as there are any


def answers(subject: Subject, batch: Batch) -> Answers:
    """The networks' output and, where they have one, their loss on a batch."""
    has_loss = subject.has_loss

    def run(model: nn.Module) -> Answers:
        seen: Answers = {}

        def note(_: nn.Module, __: Any, ___: Any, output: Any) -> None:
            tensor = first_tensor(output)
            if "output" not in seen and tensor is not None:
                seen["output"] = tensor.clone()

        # On the borrowed module for this call alone: a loss of the user's own does not hand the output over.
        with visited(after=[(model, note)]):
            loss = subject.loss_of(model, batch) if has_loss else call_on_input(model, batch)
        if has_loss:
            return {**seen, "loss": loss}
        if not seen:
            raise Refused(f"the network returns {described(loss)}, without a tensor; wrap it to return one.")
        return seen

    with subject.borrowed(), torch.no_grad():
        return dict(subject.map_models(run))


@dataclass
class Tally:
    """Sums over batches of how answers compare with earlier ones and with the labels; see ``add``."""

    samples: int = 0
    _decided: int = 0
    _sums: dict[str, Tensor] = field(default_factory=dict)

    def add(self, new: Answers, old: Answers, batch: Batch) -> None:
        """Take in the answers to a batch; what is compared with itself is unchanged, whatever its numbers.

        A member whose outputs hold NaN or ∞ chooses nothing: its shares are NaN. An output of −∞ is one of no
        probability, and a choice like others.
        """
        size, labels = batch_size(batch), _labels(batch)
        self.samples += size
        if "loss" in new:
            self._count("loss", new["loss"].double() * size)
        if "output" not in new or "output" not in old:
            return
        before, after = old["output"].double(), new["output"].double()
        # An output of no probability before and after has not changed, and has no size.
        never, still = before == -torch.inf, after == -torch.inf
        sizes, steps = before.masked_fill(never, 0.0), (after - before).masked_fill(never & still, 0.0)
        self._count("norm", sizes.abs().square().flatten(1).sum(1))
        self._count("away", steps.abs().square().flatten(1).sum(1))
        axis = _class_axis(before, labels)
        if axis is None or _are_numbers(batch, axis - 1):
            return
        chosen = after.argmax(axis)
        self._decided += chosen[0].numel()
        lost = ~decides(after) | ~decides(before)
        same = (chosen == before.argmax(axis)).flatten(1).sum(1).double()
        self._count("same", same.masked_fill(lost, torch.nan))
        if labels is not None and labels.shape == chosen.shape[1:]:
            right = (chosen == labels.to(chosen.device)).flatten(1).sum(1).double()
            self._count("right", right.masked_fill(lost, torch.nan))

    def _count(self, name: str, values: Tensor) -> None:
        self._sums[name] = self._sums.get(name, 0.0) + values

    def _share(self, name: str, count: int) -> Tensor:
        known = self._sums.get(name)
        return torch.full_like(next(iter(self._sums.values())), torch.nan) if known is None else known / count

    @property
    def accuracy(self) -> Tensor:
        """Share of right answers, (E,); NaN without labels."""
        return self._share("right", self._decided)

    @property
    def agreement(self) -> Tensor:
        """Share of answers that are the same as before, (E,)."""
        return self._share("same", self._decided)

    @property
    def loss(self) -> Tensor:
        """Mean loss, (E,), batches counting by their samples."""
        return self._share("loss", self.samples)

    @property
    def change(self) -> Tensor:
        """‖y′ − y‖ / ‖y‖, (E,); what did not change at all has 0, even where y is 0."""
        away = self._share("away", 1)
        return torch.where(away == 0, 0.0, (away / self._share("norm", 1)).sqrt())


def decides(outputs: Tensor) -> Tensor:
    """Which members' outputs (E, …) hold neither NaN nor ∞, (E,)."""
    return (outputs < torch.inf).flatten(1).all(1)


def _class_axis(output: Tensor, labels: Tensor | None) -> int | None:
    """Which axis of (E, B, …) holds the classes: the one the labels lack, else torch's custom for the shape."""
    if output.ndim < 3:
        return None
    last = output.ndim - 1
    if labels is not None and labels.shape == output.shape[1:-1]:
        axis = last
    elif labels is not None and labels.shape == (output.shape[1], *output.shape[3:]):
        axis = 2
    else:
        axis = 2 if output.ndim > 4 else last  # maps have classes as channels, sequences as features
    return axis if output.shape[axis] > 1 else None


def _are_numbers(batch: Batch, axis: int) -> bool:
    """Whether targets are numbers to be met, of which the largest is no answer; probabilities of classes are not."""
    try:
        target = target_of(batch)
    except Refused:
        return False
    if not isinstance(target, Tensor) or not target.is_floating_point():
        return False
    if target.ndim <= axis or bool((target < 0).any()):
        return True
    sums = target.double().sum(axis)
    return not bool(torch.isclose(sums, torch.ones_like(sums), atol=1e-3).all())


def _labels(batch: Batch) -> Tensor | None:
    """Whole-numbered labels of a batch, if it has any."""
    try:
        found = target_of(batch)
    except Refused:
        return None
    whole = isinstance(found, Tensor) and not found.is_floating_point() and not found.is_complex()
    return found if whole else None
