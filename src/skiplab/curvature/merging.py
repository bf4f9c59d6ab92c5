"""Small batches put together: one pass over many samples is faster than many passes over few.

Only where it changes nothing: the criterion is one of torch's whose mean over a union is known from the means over
its parts (``output_loss.mass``), batches are alike in shape, and samples do not see each other, as they do in
BatchNorm's training mode. That a network does not mix samples in some other way is tried on two of the batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size

ADDITIVE = (
    nn.CrossEntropyLoss,
    nn.NLLLoss,
    nn.MSELoss,
    nn.L1Loss,
    nn.SmoothL1Loss,
    nn.HuberLoss,
    nn.BCELoss,
    nn.BCEWithLogitsLoss,
    nn.PoissonNLLLoss,
)


def can_be_merged(subject: Subject, batches: Sequence[Batch]) -> bool:
    """Whether the loss of several batches put together is known to be the mean of their losses."""
    return (
        len(batches) > 1
        and type(subject.criterion) in ADDITIVE
        and not subject.train_mode
        and len({_form(batch) for batch in batches}) == 1
        and _form(batches[0]) is not None
    )


def merged(batches: Sequence[Batch], samples: int) -> list[Batch]:
    """Put consecutive batches together, up to this many samples each; a larger one stays as it is."""
    groups: list[list[Batch]] = []
    size = 0
    for batch in batches:
        size += batch_size(batch)
        if not groups or size > samples:
            groups.append([])
            size = batch_size(batch)
        groups[-1].append(batch)
    return [joined(group) for group in groups]


def joined(batches: Sequence[Batch]) -> Batch:
    """One batch of all samples, in the form of the first."""
    first = batches[0]
    if len(batches) == 1:
        return first
    if isinstance(first, dict):
        return {name: torch.cat([batch[name] for batch in batches]) for name in first}
    return tuple(torch.cat(parts) for parts in zip(*batches, strict=True))


def _form(batch: Batch) -> Any:
    """What must be alike: keys, types and the shape of a sample; None for what is not made of tensors."""
    if isinstance(batch, dict):
        parts: dict[Any, Any] = dict(batch)
    elif isinstance(batch, tuple | list):
        parts = dict(enumerate(batch))
    else:
        return None
    lengths = {len(part) if isinstance(part, Tensor) and part.ndim else None for part in parts.values()}
    if len(lengths) != 1 or None in lengths:
        return None
    return tuple((name, part.dtype, part.device, part.shape[1:]) for name, part in parts.items())
