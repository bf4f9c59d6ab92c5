"""Normalisation layers that keep running statistics, and whether any batch has changed these yet."""

from __future__ import annotations

import warnings
from typing import Any

from torch import Tensor, nn

from skiplab.checks import Refused, callers_line
from skiplab.subjects.subject import Subject
from skiplab.torch_private import is_batch_norm, is_instance_norm

SEES = {"batch": "the batch's own, held constant", "train": "the batch's own, as training has them"}


class UnusedStatistics(UserWarning):
    """A network is measured in evaluation mode with running statistics that no batch has changed."""


def normalisation_layers(module: nn.Module) -> dict[str, nn.Module]:
    """The modules that keep a running mean of what they see, by name."""
    found = {}
    for name, part in module.named_modules():
        if is_instance_norm(part):
            continue
        if "running_mean" in dict(part.named_buffers(recurse=False)):
            found[name] = part
        elif is_batch_norm(part):
            raise Refused(
                f"layer {name!r} keeps no running statistics, so its samples cannot be told apart; "
                "build it with track_running_stats=True."
            )
    return found


def has_fresh_statistics(module: nn.Module) -> bool:
    """Whether normalisation layers keep running statistics that no batch has changed yet."""
    try:
        layers = normalisation_layers(module)
    except Refused:
        return False
    return bool(layers) and all(_is_unused(layer) for layer in layers.values())


def chosen_mode(target: Any, mode: str | None, better: str = "batch") -> str:
    """The mode in which an instrument measures: the one that is asked for, else a Subject's own, else "eval".

    Every instrument asks this. A person whose network would be measured as it never computes, with means 0 and
    variances 1, is warned; ensembles and subjects are made by code that chooses its mode.
    """
    if mode is None:
        mode = "train" if isinstance(target, Subject) and target.train_mode else "eval"
    if mode == "eval" and isinstance(target, nn.Module) and has_fresh_statistics(target):
        warnings.warn(
            "batch normalisation has seen no batch, so that evaluation mode takes means of 0 and variances of 1; "
            f'pass mode="{better}" for {SEES[better]}, or measure after training.',
            UnusedStatistics,
            stacklevel=callers_line(),
        )
    return mode


def _is_unused(layer: nn.Module) -> bool:
    seen = getattr(layer, "num_batches_tracked", None)
    if isinstance(seen, Tensor):
        return not bool(seen.any())
    mean, variance = (getattr(layer, f"running_{name}", None) for name in ("mean", "var"))
    unused = isinstance(mean, Tensor) and not bool(mean.any())
    return unused and (variance is None or bool((variance == 1).all()))
