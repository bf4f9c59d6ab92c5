"""Where a layer's gradient comes from: Θ_ijp = ∂a_j/∂a_ip · ∂L/∂a_j for all final channels j at once (yu2019, D.2).

All that passes the last activities is Σ_j Θ_ijp, so that Θ_iip and one ordinary backward pass are enough. Θ_iip for
all i comes from one batched backward pass, layer by layer: what is pulled back from layer l + 1 to layer l are the
rows j of which layer l has a channel, 16 instead of 64 in the first group of the paper's networks. That needs a
chain, in which all of layer l's influence passes layer l + 1; it is tested with the sum of all flows, and where it
does not hold all flows are pulled back from the end to every layer at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from skiplab.checks import Refused, require
from skiplab.measurements.jacobians import pulled_back
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, outside_inference_mode
from skiplab.torch_private import saved_tensors_are_hooked

# Numbers that go back together, in the largest layer or, without a chain, in all of them.
NUMBERS = {"cpu": 2**26, "cuda": 2**28}
# Machine epsilons, of the largest gradient in a layer, by which a sum may differ if it is taken in two ways.
ROUNDING = 2**13


@dataclass(frozen=True)
class Flows:
    """One network's loss, its last activities (B, J) and those of layers (B, C, …), in the order of calls."""

    loss: Tensor
    last: Tensor
    activities: Mapping[str, Tensor]

    def diagonals(self) -> list[tuple[Tensor, Tensor]]:
        """Θ_iip and Σ_j Θ_ijp of each layer, both (i, B, p), for the i that the layer and the end both have."""
        activities = list(self.activities.values())
        last = self._last_gradient()
        # From the last activities, not from the loss, which further heads may reach by other ways.
        totals = torch.autograd.grad(self.last, activities, last, retain_graph=True, materialize_grads=True)
        counts = [min(each.shape[1], last.shape[1]) for each in activities]
        most = NUMBERS.get(last.device.type, NUMBERS["cuda"])
        sizes = [each.numel() for each in activities]
        pieces: list[list[Tensor]] = [[] for _ in activities]
        start, chain = 0, True
        while start < max(counts):
            length = max(1, most // (max(sizes) if chain else sum(sizes)))
            rows = _rows(last, range(start, min(start + length, max(counts))))
            found = self._along_the_chain(last, rows, start, totals, counts) if chain else None
            if found is None and chain:
                chain = False
                continue
            if found is None:
                every = pulled_back(self.last, activities, rows)
                found = [_diagonal(theta, start, count) for theta, count in zip(every, counts, strict=True)]
            for kept, piece in zip(pieces, found, strict=True):
                kept.append(piece)
            start += len(rows)
        sums = [
            total[:, :count].transpose(0, 1).reshape(count, len(total), -1)
            for total, count in zip(totals, counts, strict=True)
        ]
        return [(torch.cat(kept), total) for kept, total in zip(pieces, sums, strict=True)]

    def _last_gradient(self) -> Tensor:
        """∂loss/∂x of the last activities x, (B, J)."""
        require(
            self.loss.requires_grad,
            "the loss does not depend on what the final layer takes; look for detach or item in the network or the "
            "loss, or name another layer in final.",
        )
        return torch.autograd.grad(self.loss, self.last, retain_graph=True, materialize_grads=True)[0]

    def theta(self) -> tuple[Tensor, ...]:
        """Θ of every layer, (j, B, i, …)."""
        last = self._last_gradient()
        return pulled_back(self.last, list(self.activities.values()), _rows(last, range(last.shape[1])))

    def _along_the_chain(
        self, last: Tensor, rows: Tensor, start: int, totals: Sequence[Tensor], counts: Sequence[int]
    ) -> list[Tensor] | None:
        """Θ_iip of each layer for some flows, each from the layer above, or None where the layers are no chain."""
        activities = list(self.activities.values())
        rounding = ROUNDING * torch.finfo(last.dtype).eps
        theta, above = torch.cat((rows, last[None])), self.last  # the last row is the sum of all flows
        found: list[Tensor] = []
        for place in reversed(range(len(activities))):
            # Flows that this layer or one below it has a channel for.
            kept = max(0, max(counts[: place + 1]) - start)
            theta = torch.cat((theta[:-1][:kept], theta[-1:]))
            (theta,) = pulled_back(above, [activities[place]], theta)
            away = (theta[-1] - totals[place]).abs().max()
            if rounding >= 1 or not bool(away <= rounding * totals[place].abs().max()):
                return None
            found.append(_diagonal(theta[:-1], start, counts[place]))
            above = activities[place]
        return found[::-1]


def traced(
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
        sdpa_kernel(SDPBackend.MATH),  # many backward passes at once go through no other attention kernel
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


def _rows(last: Tensor, flows: range) -> Tensor:
    """∂L/∂a_j for each flow j, in its column and 0 elsewhere, (flows, B, J)."""
    found = last.new_zeros(len(flows), *last.shape)
    columns = torch.tensor(flows, device=last.device)
    found[torch.arange(len(flows), device=last.device), :, columns] = last.T[columns]
    return found


def _diagonal(theta: Tensor, start: int, count: int) -> Tensor:
    """Θ_iip, (i, B, p), of the flows j = start, … in Θ (j, B, i, …), for i < count."""
    channels = torch.arange(start, max(start, min(start + len(theta), count)), device=theta.device)
    # Perhaps no channel at all, so that torch could not find out the number of positions.
    return theta[channels - start, :, channels].reshape(
        len(channels), theta.shape[1], math.prod(theta.shape[3:])
    )
