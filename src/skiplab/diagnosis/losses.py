"""A loss for a network that came without one, only where no other is meant; what was taken is said.

Two cases are safe: a network whose own output has a ``loss`` when it is given labels, as Hugging Face's do, and whole
numbers as targets beside one score per class. Anything else, such as numbers to be predicted, has several usual
losses: then there is none, and what needs one is not measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.checks import Refused, require
from skiplab.subjects import Subject
from skiplab.subjects.batches import LABEL_KEYS, Batch, target_of
from skiplab.subjects.subject import Criterion, LossFunction, call_on_input, first_tensor

IGNORED = -100  # the label that torch and transformers leave out


@dataclass(frozen=True)
class Loss:
    """A criterion or a loss function, or neither; ``words`` say which it is and why."""

    words: str
    criterion: Criterion | None = None
    loss_fn: LossFunction | None = None

    @property
    def known(self) -> bool:
        """Whether there is a loss."""
        return self.criterion is not None or self.loss_fn is not None


def loss_for(
    module: nn.Module, batch: Batch, criterion: Criterion | None, loss_fn: LossFunction | None
) -> Loss:
    """The loss that was given, else one that is safe to infer, else none with the reason."""
    if criterion is not None or loss_fn is not None:
        name = "criterion" if criterion is not None else "loss_fn"
        return Loss(f"loss: the {name} that was given", criterion, loss_fn)
    if isinstance(batch, Mapping) and set(batch) & set(LABEL_KEYS) and _has_own_loss(module, batch):
        return Loss("loss: the network's own, which its output holds beside the labels", loss_fn=own_loss)
    try:
        target = target_of(batch)
    except Refused:
        return Loss("no loss: the batch holds no target; pass (input, target), criterion=… or loss_fn=…")
    returned = _output(module, batch)
    output = first_tensor(returned)
    if output is None or not isinstance(target, Tensor):
        return Loss("no loss: output and target are no tensors; pass criterion=… or loss_fn=…")
    axis = class_axis(output, target)
    if axis is None:
        found = f"outputs {tuple(output.shape)}, targets {target.dtype} {tuple(target.shape)}"
        return Loss(f"no loss: {found} fit more than one loss; pass criterion=… or loss_fn=…")
    words = f"loss: cross entropy, inferred from whole-numbered targets and {output.shape[axis]} scores each"
    if output.ndim == 2 and isinstance(returned, Tensor) and target.dtype in (torch.int64, torch.uint8):
        return Loss(words, criterion=nn.CrossEntropyLoss())
    return Loss(words, loss_fn=cross_entropy_of_scores)


def require_trainable(module: nn.Module, batch: Batch, loss: Loss) -> None:
    """Refuse a network whose loss on a batch is no number, or does not depend on what is trained."""
    subject = Subject.of(module, criterion=loss.criterion, loss_fn=loss.loss_fn)
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in subject.parameters.items()}
    with subject.borrowed(), torch.enable_grad():
        value = subject.with_tensors(leaves).map_models(lambda model: subject.loss_of(model, batch))
    require(
        value.requires_grad,
        f"the loss of {type(module).__name__} depends on no parameter that is trained; set requires_grad on some, "
        "and look for .detach() and torch.no_grad().",
    )


def own_loss(model: nn.Module, batch: Batch) -> Tensor:
    """The loss that a network computes itself when it is called with all of a batch."""
    loss: Tensor = model(**batch).loss
    return loss


def cross_entropy_of_scores(model: nn.Module, batch: Batch) -> Tensor:
    """Cross entropy of the first tensor in a network's output, its classes on the axis that the labels lack."""
    scores, target = first_tensor(call_on_input(model, batch)), target_of(batch)
    assert scores is not None
    axis = class_axis(scores, target)
    assert axis is not None
    classes = target.flatten().long()  # torch takes no shorter whole numbers
    return F.cross_entropy(scores.movedim(axis, -1).flatten(0, -2), classes, ignore_index=IGNORED)


def class_axis(output: Tensor, target: Tensor) -> int | None:
    """Which axis of the output holds one score per class of these labels; None unless that is certain."""
    whole = target.dtype in (torch.int64, torch.int32, torch.int16, torch.uint8)
    if not whole or output.ndim != target.ndim + 1 or not output.is_floating_point():
        return None
    counted = target[target != IGNORED]
    if counted.numel() == 0 or int(counted.min()) < 0:
        return None
    fitting = [
        axis
        for axis in dict.fromkeys((1, output.ndim - 1))
        if output.movedim(axis, -1).shape[:-1] == target.shape and int(counted.max()) < output.shape[axis] > 1
    ]
    return fitting[0] if len(fitting) == 1 else None


def _output(module: nn.Module, batch: Batch) -> Any:
    """What the network returns for the batch's input, by itself."""
    subject, found = Subject.of(module), []

    def run(model: nn.Module) -> Tensor:
        found.append(call_on_input(model, batch))
        return torch.zeros(())

    with subject.borrowed(), torch.no_grad():
        subject.map_models(run)
    return found[0]


def _has_own_loss(module: nn.Module, batch: Batch) -> bool:
    """Whether the network returns a loss when it gets labels; one that does not take them has none."""
    try:
        losses = Subject.of(module, loss_fn=own_loss).losses(batch)
    except (Refused, TypeError, AttributeError, ValueError, RuntimeError, KeyError):
        return False
    return bool(losses.isfinite().all())
