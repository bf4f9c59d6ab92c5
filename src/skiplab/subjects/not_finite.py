"""Where in a network numbers first stop being finite: the module that turns finite numbers into NaN or ∞."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from skiplab.subjects.batches import Batch
from skiplab.subjects.hooks import visited
from skiplab.subjects.subject import Subject, first_tensor

INPUT, LOSS, ITSELF = "the input", "the loss", "the network itself"  # in place of a module's name


def first_not_finite(subject: Subject, batch: Batch) -> str:
    """Name the module of a lone network whose forward pass is the first to make NaN or ∞; empty if all is finite.

    A module that is given such numbers did not make them: where the module around it computed them between two of its
    parts, that one is named. What is looked at is the first tensor that a module takes or gives, since others may be
    masks of −∞.

    >>> layers = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    >>> layers[1].bias.data[2] = torch.nan
    >>> first_not_finite(Subject.of(layers), x)
    '1'
    """
    names = {part: name for name, part in subject.module.named_modules()}
    inside: list[str] = []
    found: list[str] = []

    def enter(part: nn.Module, args: Any, kwargs: Any) -> None:
        if not found and not _is_finite((*args, *kwargs.values())):
            found.append(inside[-1] or ITSELF if inside else INPUT)
        inside.append(names[part])

    def leave(_: nn.Module, __: Any, ___: Any, output: Any) -> None:
        name = inside.pop()
        if not found and not _is_finite(output):
            found.append(name or ITSELF)

    def run(model: nn.Module) -> Tensor:
        hooks = visited(before=[(part, enter) for part in names], after=[(part, leave) for part in names])
        with hooks:
            if subject.has_loss:
                return subject.loss_of(model, batch)
            subject.call(model, batch)
            return torch.zeros(())

    with subject.borrowed(), torch.no_grad():
        loss = subject.map_models(run)
    return found[0] if found else "" if bool(loss.isfinite().all()) else LOSS


def _is_finite(values: Any) -> bool:
    tensor = first_tensor(values)
    return tensor is None or bool(tensor.isfinite().all())
