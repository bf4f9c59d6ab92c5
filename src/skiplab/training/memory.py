"""How much memory training takes, said beforehand, and how many members compute at once so that it fits.

What autograd keeps for the backward pass rules: it is counted on one network without computing anything, on torch's
"meta" device, and grows with the batch and the members. Members are split inside a step, one part after the other,
so that a trial's members, its settings and its key stay what the study says.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.checks import Refused
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.linear_algebra.memory import in_words, total_bytes
from skiplab.torch_private import storage_id

SHARE = 0.8  # of a device: the rest is for callbacks, libraries and fragments
# Rows of parameters per member: the parameters, Adam's two moments and a copy of these three while a graph is
# captured; the gradient, once in parts and once as a row, and the update.
ROWS = 9
# A GPU keeps what the steps before a capture used beside what the captured step uses, which is its own.
COPIES = {"cuda": 2, "cpu": 1}
# The backward pass holds gradients beside what was kept: in all .7 times (fully connected networks) to 1.13 times
# (convolutional ones) what was kept, as torch's profiler saw on a CPU with 3 to 6 members.
BACKWARD = 1.25
Criterion = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Footprint:
    """Bytes that training takes: of the samples, of each member's parameters, and of a member while it computes."""

    samples: int
    state: int
    passes: int

    def total(self, members: int, at_once: int | None = None) -> int:
        """Bytes of so many members, of which so many compute at once (default: all)."""
        computing = members if at_once is None else at_once
        return self.samples + members * self.state + computing * self.passes

    def at_once(self, members: int, room: int) -> int:
        """How many members may compute at once within so many bytes, in even parts; refused where not one may."""
        least = self.total(members, 1)
        if least > room:
            raise Refused(
                f"{members} networks take at least {in_words(least)}, but {in_words(room)} are to be had; take a "
                "smaller batch, or fewer networks per trial."
            )
        most = members if self.passes == 0 else min(members, (room - self.total(members, 0)) // self.passes)
        return -(-members // -(-members // most))


def footprint(
    network: nn.Module,
    samples: TensorSet,
    *,
    batch_size: int,
    criterion: Criterion = F.cross_entropy,
    device: str | torch.device = "cpu",
) -> Footprint:
    """The footprint of networks like this one on these samples, which may be on the "meta" device."""
    kind = torch.device(device).type
    batch = min(batch_size, len(samples))
    kept = kept_bytes(network, _meta(samples.inputs, batch), _meta(samples.labels, batch), criterion)
    row = sum(each.nbytes for each in network.parameters() if each.requires_grad)
    given = samples.inputs.nbytes + samples.labels.nbytes
    return Footprint(given, ROWS * row, int(COPIES[kind] * BACKWARD * kept))


def training_bytes(network: nn.Module, samples: TensorSet, members: int, batch_size: int, device: str) -> int:
    """Bytes that training so many networks like this one takes on a device, in as many parts as it then has."""
    size = footprint(network, samples, batch_size=batch_size, device=device)
    if Ensemble.of([network], device="meta" if device.startswith("cuda") else device).backend == "loop":
        return size.total(members, 1)
    return size.total(members, size.at_once(members, room_on(device)))


def members_at_once(ensemble: Ensemble, samples: TensorSet, batch_size: int, criterion: Criterion) -> int:
    """How many members of an ensemble may compute a step at once on its device.

    By the device's whole memory, not by what is free: a run's sums must not depend on who else uses the device.
    """
    if ensemble.backend == "loop" or ensemble.size == 1:
        return ensemble.size  # one after the other already
    device = ensemble.device
    try:
        size = footprint(
            ensemble.skeleton, samples, batch_size=batch_size, criterion=criterion, device=device
        )
    except Refused:
        raise
    except (RuntimeError, NotImplementedError, ValueError):
        return ensemble.size  # a network that looks at its numbers cannot be counted; it may still fit
    return size.at_once(ensemble.size, room_on(device))


def parts_of(ensemble: Ensemble, at_once: int) -> list[tuple[slice, Ensemble]]:
    """An ensemble as smaller ones that share its memory, or itself where all its members compute at once."""
    if at_once >= ensemble.size:
        return [(slice(0, ensemble.size), ensemble)]
    parts = [slice(start, start + at_once) for start in range(0, ensemble.size, at_once)]
    return [(members, _view(ensemble, members)) for members in parts]


def _view(ensemble: Ensemble, members: slice) -> Ensemble:
    fixed = {name: tensor[members] for name, tensor in ensemble.fixed.items()}
    return Ensemble(ensemble.skeleton, ensemble.rows[members], fixed, ensemble.backend)


def room_on(device: str | torch.device) -> int:
    """Bytes that a trial may take on a device; on a CPU every core may have a trial of its own."""
    trials = 1 if torch.device(device).type == "cuda" else os.cpu_count() or 1
    return int(SHARE * total_bytes(device)) // trials


def kept_bytes(
    network: nn.Module, inputs: Tensor, labels: Tensor, criterion: Criterion = F.cross_entropy
) -> int:
    """Bytes that autograd keeps for a backward pass through a network, its parameters apart; nothing is computed."""
    network = on_meta(network)
    known = {storage_id(tensor) for tensor in (*network.parameters(), *network.buffers())}
    kept: dict[int, int] = {}
    alive = []  # a storage that was freed could lend its number to another

    def pack(tensor: Tensor) -> Tensor:
        alive.append(tensor)
        if storage_id(tensor) not in known:
            kept[storage_id(tensor)] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        criterion(network(inputs.to("meta")), labels.to("meta"))
    return sum(kept.values())


def on_meta(network: nn.Module) -> nn.Module:
    """A copy of a network on torch's "meta" device, where tensors have shapes and no numbers, in training mode."""
    return copy.deepcopy(network).to("meta").train()


def _meta(samples: Tensor, count: int) -> Tensor:
    return torch.empty((count, *samples.shape[1:]), dtype=samples.dtype, device="meta")
