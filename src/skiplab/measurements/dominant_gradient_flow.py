"""Dominant gradient flows: whether a gradient comes from the final channel of the same number (yu2019, D.2, D.4).

With a_j the last activities, one number per channel j, and a_ip entry p of channel i in layer l,

    Θ_ijp = ∂a_j/∂a_ip · ∂L/∂a_j,    r_i = mean over p of |Θ_iip| / |Σ_{j≠i} Θ_ijp|   (eq 5),

and σ is the share of channels with r_i > 1 (eq 13), for every sample. Positions with 0/0 are left out of the mean
and a channel that has no others is not dominant. The mean of such ratios has no expectation: a few small
denominators decide, the more of them the more positions a layer has. So two further shares are given, by the median
over p in place of the mean, and of all positions whose ratio exceeds 1. How Θ is found: ``gradient_flows``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from skiplab.checks import listed, no_such, require, whole_numbers
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import in_mode
from skiplab.measurements.gradient_flows import Flows, traced
from skiplab.measurements.result import Estimate, Mark, Result, number_of
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of, sliced
from skiplab.subjects.blocks import Blocks
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import Criterion, LossFunction

# Samples that go back together: few stay in a CPU's caches, many fill a GPU.
AT_ONCE = {"cpu": 8, "cuda": 128}


@dataclass(frozen=True, repr=False)
class DominantGradientFlow(Result):
    """Shares of dominant flows per sample, (E, B, layers): by the mean ratio (eq 13), the median ratio and positions.

    ``dead`` is the share of channels without any gradient, which count as not dominant.
    """

    title = "Dominant gradient flows"
    reference = "yu2019, supplement D.4.2, eq 13"

    layers: tuple[str, ...]
    by_mean: Tensor
    by_median: Tensor
    by_position: Tensor
    dead: Tensor
    channels: tuple[int, ...]
    found: str = ""  # which blocks, where no layers were named

    on_axes: ClassVar[Mapping[str, str]] = {
        "share by mean ratio": "share of channels whose flow dominates, by the mean ratio",
        "share by median ratio": "… by the median ratio",
        "share of positions": "share of positions at which it does",
    }

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Means over samples."""
        every = {
            "share by mean ratio": self.by_mean,
            "share by median ratio": self.by_median,
            "share of positions": self.by_position,
        }
        return {words: Estimate.mean(values, 1).within(0, 1) for words, values in every.items()}

    @property
    def based_on(self) -> str:
        """How many samples there were, and in how many channels flows end."""
        return (
            f"{number_of(self.by_mean.shape[1], 'sample')}, {number_of(self.channels[-1], 'final channel')}"
        )

    @property
    def yardstick(self) -> str:
        """Independent Gaussian flows dominate in (2/π) arctan(1/√(n − 1)) of all positions, n the final channels."""
        return f"flows without order dominate in {self._without_order:.3g} of the positions"

    @property
    def marks(self) -> Sequence[Mark]:
        """What the yardstick says of the share of positions."""
        return (("share of positions", self._without_order, "flows without order"),)

    @property
    def _without_order(self) -> float:
        n = self.channels[-1]
        return 2 / math.pi * math.atan(1 / max(n - 1, 1e-12) ** 0.5)


def dominant_gradient_flow(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    final: str | None = None,
    samples_at_once: int | None = None,
) -> DominantGradientFlow:
    """Measure the shares of dominant flows in the outputs of the named layers (default: all blocks but the last).

    ``final`` names the layer whose input is the last activities, (samples, channels); left out, the last linear
    layer. Channels are on axis 1. In "train" mode statistics of batch normalisation follow the samples, a flow is
    the sum over the samples that it ends in, and a batch goes as a whole; else ``samples_at_once`` bounds memory.

    >>> found = dominant_gradient_flow(model, (x, y), criterion=torch.nn.CrossEntropyLoss())
    >>> found.layers, found.by_mean.shape  # (networks, samples, layers)
    (('0', '2'), torch.Size([1, 16, 2]))
    """
    mode = chosen_mode(target, mode)
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn)
    at_once = samples_at_once or AT_ONCE.get(subject.device.type, AT_ONCE["cuda"])
    whole_numbers(samples_at_once=at_once)
    end = _final(subject, final)
    chosen = _chosen(subject, layers)
    parts: list[Tensor] = []
    seen: dict[str, int] = {}  # channels by layer, in the order of calls, and of the end

    def use(flows: Flows) -> dict[str, Tensor]:
        subject.refuse_unless_finite("loss", flows.loss.detach())
        counts = {name: activity.shape[1] for name, activity in flows.activities.items()}
        counts[end] = flows.last.shape[1]
        require(not seen or seen == counts, "the batches run different layers; name common ones in layers.")
        seen.update(counts)
        return {"shares": _shares(flows)}

    for batch in batches_of(batches):
        size = batch_size(batch)
        own = in_mode(subject, batch, mode)
        step = size if mode == "train" else at_once
        for first in range(0, size, step):
            group = sliced(batch, size, slice(first, first + step))
            members = [own.alone(member) for member in range(own.size)]
            found = [traced(one, group, chosen, end, layers is not None, use)["shares"] for one in members]
            parts.append(torch.cat(found))
    by_mean, by_median, by_position, dead = torch.cat(parts, 2).unbind(1)
    names = tuple(name for name in seen if name != end)
    blocks = _told(subject.structure, names) if layers is None else ""
    return DominantGradientFlow(names, by_mean, by_median, by_position, dead, tuple(seen.values()), blocks)


def flow_matrix(
    target: nn.Module | Ensemble | Subject,
    batch: Batch,
    layer: str,
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    final: str | None = None,
    mode: str | None = None,
) -> Tensor:
    """Θ itself for one layer, (E, B, i, j, p); mind its size, i · j · p numbers per sample."""
    mode = chosen_mode(target, mode)
    subject = in_mode(Subject.of(target, criterion=criterion, loss_fn=loss_fn), batch, mode)
    end, chosen = _final(subject, final), _chosen(subject, [layer])

    def use(flows: Flows) -> dict[str, Tensor]:
        (found,) = flows.theta()
        return {"theta": found.reshape(*found.shape[:3], -1)}

    members = [subject.alone(member) for member in range(subject.size)]
    found = torch.cat([traced(one, batch, chosen, end, True, use)["theta"] for one in members])
    return found.permute(0, 2, 3, 1, 4)  # from (E, j, B, i, p)


def _shares(flows: Flows) -> Tensor:
    """The four shares of every layer, (4, B, layers)."""
    layers = []
    for own, total in flows.diagonals():
        size, rest = own.abs(), (total - own).abs()
        known = (size > 0) | (rest > 0)
        positions, larger = known.sum(2), (size > rest).sum(2)
        ratios = torch.where(known, size / rest, 0.0).sum(2) / positions
        found = torch.stack(
            [
                (ratios > 1).double().mean(0),
                # The median exceeds 1 if more than half of the ratios do.
                (2 * larger > positions).double().mean(0),
                larger.sum(0).double() / positions.sum(0).clamp_min(1),
                (positions == 0).double().mean(0),
            ]
        )
        layers.append(found.masked_fill(~total.isfinite().all(), torch.nan))
    return torch.stack(layers, 2)


def _told(blocks: Blocks, measured: Sequence[str]) -> str:
    """Which blocks were found, and which of them were not measured."""
    rest = [name for name in blocks.names if name not in measured]
    return f"{blocks}; left out: {', '.join(rest)}, where flows end" if rest else str(blocks)


def _final(subject: Subject, final: str | None) -> str:
    known = dict(subject.module.named_modules())
    if final is None:
        linear = [name for name, part in known.items() if isinstance(part, nn.Linear)]
        require(
            len(linear) > 0,
            "the network has no linear layer; name in final the layer that takes its channels.",
        )
        return linear[-1]
    if not isinstance(final, str) or final not in known:
        raise no_such("layer", final, known)
    return final


def _chosen(subject: Subject, layers: Sequence[str] | None) -> tuple[str, ...]:
    listed("layers", layers)
    known = dict(subject.module.named_modules())
    names = tuple(dict.fromkeys(layers)) if layers is not None else subject.blocks[:-1] or subject.blocks
    for name in names:
        if name not in known:
            raise no_such("layer", name, known)
    require(len(names) > 0, "layers is empty; name a layer, or leave it out for all blocks but the last.")
    return names
