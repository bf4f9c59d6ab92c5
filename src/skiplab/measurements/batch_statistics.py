"""Networks whose normalisation layers hold one batch's statistics as constants.

Batch normalisation takes a mean and a variance from the whole batch, so in training mode every sample's output
depends on every sample's input. Where a measurement asks how the network responds to each sample, the statistics
must be the batch's and yet constants: a first pass notes the mean and the (biased) variance that each normalisation
layer sees, and the networks are evaluated with those numbers in place of the running ones, in that pass already.
Outputs are then those of training mode without dropout; a layer that holds its statistics fixed in training mode, a
frozen one, takes the batch's too.

A normalisation layer is any module with a buffer ``running_mean`` (and perhaps ``running_var``), be it torch's or a
user's; ``InstanceNorm`` is left in evaluation mode, since its statistics are a sample's own.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, one_of, require
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size
from skiplab.subjects.hooks import first_argument, visited
from skiplab.subjects.normalisation import normalisation_layers

MODES = ("eval", "batch", "train")


def by_sample(mode: str) -> str:
    """The mode if samples' answers are their own in it: "eval" or "batch"; refuse others."""
    require(
        mode != "train",
        "mode is 'train', in which every sample's answer depends on all of them; choose 'batch', with the statistics "
        "of training as constants, or 'eval'.",
    )
    return one_of("mode", mode, MODES[:2])


def evaluated(subject: Subject, batch: Batch, mode: str) -> Subject:
    """The subject in evaluation ("eval") or with the batch's statistics as constants ("batch"), sample by sample."""
    return in_mode(subject, batch, by_sample(mode))


def in_mode(subject: Subject, batch: Batch, mode: str) -> Subject:
    """The subject in evaluation ("eval"), with the batch's statistics as constants ("batch"), in training ("train").

    In training mode the statistics are functions of the samples and part of every derivative, and dropout drops.
    """
    one_of("mode", mode, MODES)
    if mode == "batch":
        return with_batch_statistics(subject, batch)
    return dataclasses.replace(subject, train_mode=mode == "train")


def with_batch_statistics(subject: Subject, batch: Batch) -> Subject:
    """A subject in evaluation mode whose normalisation layers hold the statistics of this batch, member by member.

    Nothing is written to the networks: the statistics replace the buffers in the new subject alone. A network
    without normalisation layers comes back as it is.
    """
    subject = dataclasses.replace(subject, train_mode=False)
    layers = normalisation_layers(subject.module)
    if not layers:
        return subject
    size = batch_size(batch)
    require(size > 1, f"the statistics of a batch of {size} sample have no spread; pass two or more samples.")
    found: dict[str, Tensor] = {}

    def run(model: nn.Module) -> dict[str, Tensor]:
        found.clear()
        subject.call(model, batch)
        return dict(found)

    with subject.borrowed(), _held(layers, found), torch.no_grad():
        noted = subject.map_models(run)
    # A layer that the pass does not call keeps what it has.
    fixed = {name: noted.get(name, tensor) for name, tensor in subject.fixed.items()}
    return dataclasses.replace(subject, fixed=fixed)


def _held(layers: dict[str, nn.Module], found: dict[str, Tensor]) -> AbstractContextManager[None]:
    """Have each layer use the mean and variance of what it takes, and note them under the names of the buffers."""

    def hook_for(name: str) -> Callable[[nn.Module, Any, Any], None]:
        def hook(layer: nn.Module, args: Any, kwargs: Any) -> None:
            prefix = f"{name}." if name else ""
            require(
                f"{prefix}running_mean" not in found,
                f"layer {name!r} is called more than once on this batch, with other statistics each time; "
                'give each call its own layer or use mode="eval".',
            )
            x = first_argument(args, kwargs)
            for buffer, value in _statistics(name, layer, x).items():
                found[prefix + buffer] = value
                # Into the clone that map_models has put in the buffer's place.
                getattr(layer, buffer).copy_(value)

        return hook

    return visited(before=[(layer, hook_for(name)) for name, layer in layers.items()])


def _statistics(name: str, layer: nn.Module, x: Tensor) -> dict[str, Tensor]:
    """Mean and biased variance over all axes but that of the channels, in the shape and type of the buffers."""
    mean = layer.running_mean
    assert isinstance(mean, Tensor)
    # torch's layers have channels on axis 1; a user's own may have them last.
    axis = next((axis for axis in (1, x.ndim - 1) if axis < x.ndim and x.shape[axis] == mean.numel()), None)
    if axis is None:
        raise Refused(
            f"layer {name!r} has {mean.numel()} running means but takes {tuple(x.shape)}, so its channels are "
            'unknown; use mode="eval".'
        )
    others = [other for other in range(x.ndim) if other != axis]
    variance, average = torch.var_mean(x, dim=others, correction=0)
    found = {"running_mean": average.reshape(mean.shape).to(mean.dtype)}
    spread = getattr(layer, "running_var", None)
    if isinstance(spread, Tensor):
        found["running_var"] = variance.reshape(spread.shape).to(spread.dtype)
    return found
