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
from skiplab.subjects.batches import LABEL_KEYS, Batch, batch_size, sliced, target_of
from skiplab.subjects.subject import Criterion, LossFunction, call_on_input, first_tensor

NO_DERIVATIVE = (
    "the loss has no derivative in any of the network's parameters, so that nothing can be learnt from it; leave out "
    "argmax, .item(), .detach() and no_grad, and call the model that is given."
)
REMEDY = "pass criterion=… or loss_fn=…; on the command line a file's function may return (module, batch, criterion)"
FEW = 4  # samples that tell what a network returns: a pass on all may take seconds
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
    few = sliced(batch, batch_size(batch), slice(FEW))
    labelled = isinstance(batch, Mapping) and bool(set(batch) & set(LABEL_KEYS))
    if labelled and (_has_own_loss(module, few) or _has_own_loss(module, batch)):
        return Loss("loss: the network's own, which its output holds beside the labels", loss_fn=own_loss)
    try:
        target = target_of(batch)
    except Refused:
        return Loss("no loss: the batch holds no target; pass (input, target), criterion=… or loss_fn=…")
    try:
        answer = _output(module, few)
    except Refused:  # such as a network that takes batches of one size
        few, answer = batch, _output(module, batch)
    output = first_tensor(answer)
    if output is None or not isinstance(target, Tensor):
        return Loss(f"no loss: output and target are no tensors; {REMEDY}")
    some = target_of(few)
    if output.ndim and some.ndim and len(output) == len(some):  # as it would be for all samples
        output = output[:1].expand(len(target), *output.shape[1:])
    axis = class_axis(output, target)
    if axis is None and (misfit := _misfit(output, target)):
        return Loss(f"no loss: {misfit}")
    if axis is None:
        found = f"outputs {tuple(output.shape)}, targets {target.dtype} {tuple(target.shape)}"
        return Loss(f"no loss: {found} fit more than one loss; {REMEDY}")
    words = f"loss: cross entropy, inferred from whole-numbered targets and {output.shape[axis]} scores each"
    taken = target.dtype in (torch.int64, torch.uint8)  # by torch's cross entropy
    if taken and output.ndim == 2 and isinstance(answer, Tensor):
        return Loss(words, criterion=nn.CrossEntropyLoss())
    return Loss(words, loss_fn=cross_entropy_of_scores)


def require_trainable(module: nn.Module, batch: Batch, loss: Loss) -> None:
    """Refuse a network whose loss on a batch is no number, or does not depend on what is trained."""
    subject = Subject.of(module, criterion=loss.criterion, loss_fn=loss.loss_fn)
    leaves = {name: tensor.detach().requires_grad_() for name, tensor in subject.parameters.items()}
    with subject.borrowed(), torch.enable_grad():
        value = subject.with_tensors(leaves).map_models(lambda model: subject.loss_of(model, batch))
    require(value.requires_grad, NO_DERIVATIVE)


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
    if not whole or output.ndim < 2 or output.ndim != target.ndim + 1 or not output.is_floating_point():
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


def _misfit(output: Tensor, target: Tensor) -> str:
    """What is wrong with whole-numbered labels beside scores of one sample each, or nothing."""
    if output.ndim != 2 or target.ndim != 1 or target.is_floating_point() or target.is_complex():
        return ""
    counted = target[target != IGNORED]
    if counted.numel() and not 0 <= int(counted.min()) <= int(counted.max()) < output.shape[1]:
        span = f"labels run from {int(counted.min())} to {int(counted.max())}"
        return f"{span}, but there are {output.shape[1]} scores per sample; number classes from 0"
    return ""


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
    except Exception:  # it is called without its labels next, where what is wrong with the inputs is told
        return False
    return bool(losses.isfinite().all())
