"""Dominant gradient flows: whether a channel's gradient comes from the final channel of the same number (yu2019,
D.4).

With a_j the last activities, one number per channel j, and a_ip entry p of channel i in layer l,

    Θ_ijp = ∂a_j/∂a_ip · ∂L/∂a_j,    r_i = mean over p of |Θ_iip| / |Σ_{j≠i} Θ_ijp|   (eq 5),

and σ is the share of channels with r_i > 1 (eq 13), for every sample. Positions with 0/0 are left out of the mean
and a channel that has no others is not dominant. The mean of such ratios has no expectation: a few small
denominators decide, the more of them the more positions a layer has. So two further shares are given, by the median
over p in place of the mean, and of all positions whose ratio exceeds 1.

All flows end in ∂L/∂a_ip = Σ_j Θ_ijp, so that Θ_iip and one ordinary backward pass are enough. Θ_iip for all i comes
from one batched backward pass, layer by layer: what is pulled back from layer l + 1 to layer l are the rows j of
which layer l has a channel, 16 instead of 64 in the first group of the paper's networks. That needs a chain, in
which all of layer l's influence passes layer l + 1; it is tested with the sum of all flows, and where it does not
hold all flows are pulled back from the end to every layer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, listed, near, require, whole_numbers
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import in_mode
from skiplab.measurements.jacobians import pulled_back
from skiplab.measurements.result import Estimate, Result
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of, outside_inference_mode, sliced
from skiplab.subjects.subject import Criterion, LossFunction
from skiplab.torch_private import saved_tensors_are_hooked

# Samples that go back together: on a CPU what stays in its caches, on a GPU what fills it in some 100 MB per layer.
AT_ONCE = {"cpu": 8, "cuda": 128}
CHAIN = 1e-3  # of the largest gradient in a layer, what rounding may make of the same sum taken in two ways


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

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Means over samples."""
        every = {
            "share by mean ratio": self.by_mean,
            "share by median ratio": self.by_median,
            "share of positions": self.by_position,
        }
        return {words: Estimate.mean(values, 1) for words, values in every.items()}

    @property
    def based_on(self) -> str:
        """How many samples there were, and in how many channels flows end."""
        return f"{self.by_mean.shape[1]} samples, {self.channels[-1]} final channels"

    @property
    def yardstick(self) -> str:
        """Independent Gaussian flows dominate in (2/π) arctan(1/√(n − 1)) of all positions, n the final channels."""
        n = self.channels[-1]
        share = 2 / torch.pi * torch.atan(torch.tensor(1 / max(n - 1, 1e-12) ** 0.5)).item()
        return f"flows without order dominate in {share:.3g} of the positions"


def dominant_gradient_flow(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    final: str | None = None,
    mode: str = "eval",
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
            found = [_traced(one, group, chosen, end, layers is not None, use)["shares"] for one in members]
            parts.append(torch.cat(found))
    by_mean, by_median, by_position, dead = torch.cat(parts, 2).unbind(1)
    names = tuple(name for name in seen if name != end)
    return DominantGradientFlow(names, by_mean, by_median, by_position, dead, tuple(seen.values()))


def flow_matrix(
    target: nn.Module | Ensemble | Subject,
    batch: Batch,
    layer: str,
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    final: str | None = None,
    mode: str = "eval",
) -> Tensor:
    """Θ itself for one layer, (E, B, i, j, p); mind its size, i · j · p numbers per sample."""
    subject = in_mode(Subject.of(target, criterion=criterion, loss_fn=loss_fn), batch, mode)
    end, chosen = _final(subject, final), _chosen(subject, [layer])

    def use(flows: Flows) -> dict[str, Tensor]:
        (found,) = flows.from_the_end(flows.last.shape[1])
        return {"theta": found.reshape(*found.shape[:3], -1)}

    members = [subject.alone(member) for member in range(subject.size)]
    found = torch.cat([_traced(one, batch, chosen, end, True, use)["theta"] for one in members])
    return found.permute(0, 2, 3, 1, 4)  # from (E, j, B, i, p)


@dataclass(frozen=True)
class Flows:
    """One network's loss, its last activities (B, J) and those of layers (B, C, …), in the order of calls."""

    loss: Tensor
    last: Tensor
    activities: Mapping[str, Tensor]

    def diagonals(self) -> list[tuple[Tensor, Tensor]]:
        """Θ_iip and Σ_j Θ_ijp of each layer, both (i, B, p), for the i that the layer and the end both have."""
        activities = list(self.activities.values())
        last, *totals = torch.autograd.grad(
            self.loss, [self.last, *activities], retain_graph=True, materialize_grads=True
        )
        counts = [min(each.shape[1], last.shape[1]) for each in activities]
        found = self._along_the_chain(last, totals, counts)
        if found is None:
            every = self.from_the_end(max(counts))
            found = [_diagonal(theta, count) for theta, count in zip(every, counts, strict=True)]
        sums = [
            total[:, :count].transpose(0, 1).flatten(2) if total.ndim > 2 else total[:, :count].T[..., None]
            for total, count in zip(totals, counts, strict=True)
        ]
        return list(zip(found, sums, strict=True))

    def from_the_end(self, count: int) -> tuple[Tensor, ...]:
        """Θ of the first ``count`` flows j for every layer, (j, B, i, …), pulled back to all layers at once."""
        (last,) = torch.autograd.grad(self.loss, self.last, retain_graph=True)
        return pulled_back(self.last, list(self.activities.values()), _rows(last, count))

    def _along_the_chain(
        self, last: Tensor, totals: Sequence[Tensor], counts: Sequence[int]
    ) -> list[Tensor] | None:
        """Θ_iip of each layer from the layer above it, or None where the layers are no chain."""
        activities = list(self.activities.values())
        # The last row is the sum of all flows.
        theta, above = torch.cat((_rows(last, max(counts)), last[None])), self.last
        found: list[Tensor] = []
        for place in reversed(range(len(activities))):
            # Flows that this layer or one below it has a channel for.
            kept = max(counts[: place + 1])
            (theta,) = pulled_back(above, [activities[place]], torch.cat((theta[:kept], theta[-1:])))
            away = (theta[-1] - totals[place]).abs().max()
            if not bool(away <= CHAIN * totals[place].abs().max()):
                return None
            found.append(_diagonal(theta, counts[place]))
            above = activities[place]
        return found[::-1]


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


def _traced(
    subject: Subject,
    batch: Batch,
    names: Sequence[str],
    end: str,
    asked: bool,
    use: Callable[[Flows], dict[str, Tensor]],
) -> dict[str, Tensor]:
    """Call a lone network and have a function look at its flows; layers that were ``asked`` for must be called."""
    found: dict[str, Tensor] = {}
    last: list[Tensor] = []

    def visit(name: str, tensor: Tensor) -> Tensor:
        if name == end:
            last.append(tensor)
        if name == end or name not in names:  # a further call
            return tensor
        if saved_tensors_are_hooked():
            raise Refused(
                f"layer {name!r} runs inside gradient checkpointing, which hides activities from gradients; "
                "switch it off to measure them."
            )
        found[name] = tensor if tensor.requires_grad else tensor.detach().requires_grad_()
        return found[name].clone()  # which the network may change in place

    def run(model: nn.Module) -> dict[str, Tensor]:
        found.clear()
        last.clear()
        restart()
        with torch.enable_grad():
            loss = subject.loss_of(model, batch)
            missing = next((name for name in (*names, end) if name not in found and name != end), None)
            if missing is not None and (asked or not found):
                raise Refused(f"layer {missing!r} is not called on this batch; choose one that is.")
            _check(found, last, end, batch_size(batch))
            return use(Flows(loss, last[0], found))

    with (
        outside_inference_mode(batch) as batch,
        subject.borrowed([*names, end], visit, inputs_of=[end]) as restart,
    ):
        return dict(subject.map_models(run))


def _check(found: Mapping[str, Tensor], last: Sequence[Tensor], end: str, size: int) -> None:
    require(len(last) > 0, f"layer {end!r} is not called on this batch; name another in final.")
    shape = tuple(last[0].shape)
    require(
        len(shape) == 2 and shape[0] == size,
        f"layer {end!r} takes {shape} for {size} samples, but flows end in one number per sample and channel; "
        "name in final the layer that takes (samples, channels).",
    )
    require(last[0].requires_grad, f"what {end!r} takes depends on none of the layers; name earlier ones.")
    for name, activity in found.items():
        require(
            activity.ndim > 1 and len(activity) == size,
            f"layer {name!r} returns {tuple(activity.shape)} for {size} samples; "
            "choose one with (samples, channels, …).",
        )


def _rows(last: Tensor, count: int) -> Tensor:
    """∂L/∂a_j in row j and 0 elsewhere, (count, B, J)."""
    found = last.new_zeros(count, *last.shape)
    places = torch.arange(count, device=last.device)
    found[places, :, places] = last.T[:count]
    return found


def _diagonal(theta: Tensor, count: int) -> Tensor:
    """Θ_iip, (i, B, p), of Θ (j, B, i, …)."""
    places = torch.arange(count, device=theta.device)
    return theta[places, :, places].reshape(count, theta.shape[1], -1)


def _final(subject: Subject, final: str | None) -> str:
    known = dict(subject.module.named_modules())
    if final is None:
        linear = [name for name, part in known.items() if isinstance(part, nn.Linear)]
        require(
            len(linear) > 0,
            "the network has no linear layer; name in final the layer that takes its channels.",
        )
        return linear[-1]
    if final not in known:
        raise Refused(f"layer {final!r} does not exist in the network.{near(final, known)}")
    return final


def _chosen(subject: Subject, layers: Sequence[str] | None) -> tuple[str, ...]:
    listed("layers", layers)
    known = dict(subject.module.named_modules())
    names = tuple(dict.fromkeys(layers)) if layers is not None else subject.blocks[:-1] or subject.blocks
    for name in names:
        if name not in known:
            raise Refused(f"layer {name!r} does not exist in the network.{near(name, known)}")
    require(len(names) > 0, "layers is empty; name a layer, or leave it out for all blocks but the last.")
    return names
