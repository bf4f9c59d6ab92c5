"""How much of a residual network's output, and of its gradient, comes through paths of each length."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.checks import Refused, listed, near, no_such, require, seeded, whole_numbers
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import by_sample, in_mode
from skiplab.measurements.path_depth.formal import Formal, Polynomial, Rotation
from skiplab.measurements.path_depth.parts import PathFollower, split_output
from skiplab.measurements.path_depth.path_shares import PathDepth
from skiplab.measurements.path_depth.shares import Split, exact, sampled, stacked
from skiplab.measurements.result import Estimate
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of, outside_inference_mode
from skiplab.subjects.hooks import visited
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.residual_blocks import ResidualBlocks, residual_blocks
from skiplab.subjects.subject import Criterion, LossFunction, first_tensor
from skiplab.torch_private import tree_map


def path_depth(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    criterion: Criterion | None = None,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
    counted: Sequence[str] = (),
    centred: bool = True,
    angles: int | None = None,
    seed: int = 0,
) -> PathDepth:
    """Split outputs by the number of residual branches that a path takes; with a loss, its gradient too.

    Gates, attention and deviations of normalisation stay at what the forward pass makes of them; biases and shifts
    start a path where they are added, and every part loses its own mean where normalisation subtracts one. ``layers``
    names the residual blocks that count (default: all that ``residual_blocks`` finds), ``counted`` further modules
    that count although nothing passes them by. ``centred`` takes from outputs their mean over the last axis, to which
    a softmax is blind; a single output is left as it is. ``mode`` is "eval" or "batch", with the batch's statistics.
    ``angles`` samples: instead of one vector per length, so many points on the unit circle; for networks too deep for
    memory.

    >>> path_depth(model, x, counted=["0", "2"]).layers
    ('0', '1', '2')
    """
    mode = by_sample(chosen_mode(target, mode))
    counted = counted or ()
    if angles is not None:
        whole_numbers(least=3, angles=angles)
    seeded(seed)
    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn)
    whole = list(batches_of(batches))
    blocks = _chosen(subject, whole[0], layers, counted)
    branches = {block.call: block.branch for block in blocks.blocks}
    lengths = len(blocks.blocks) + len(counted) + 1
    turns = None if angles is None else _angles(angles, seed)
    splits: list[Split] = []
    gradients: list[Tensor] = []
    for member in range(subject.size):
        parts, energies = [], []
        for batch in whole:
            own = in_mode(subject, batch, mode).alone(member)
            pass_ = _Pass(own, batch, branches, counted, mode == "batch", centred)
            if turns is None:
                found, energy = pass_.polynomial(lengths - 1)
                energies.append(energy)
            else:
                found = pass_.turned(turns)
            parts.append(found)
        joined = torch.cat(parts, 1)
        if turns is None:
            splits.append(exact(joined))
        else:
            splits.append(_of_turns(joined, turns, lengths))
        if energies and energies[0] is not None:
            total = torch.stack([each for each in energies if each is not None]).sum(0)
            gradients.append(total / total.sum())
    gradient = Estimate.exact(torch.stack(gradients)) if gradients else None
    return PathDepth(
        layers=tuple(str(r) for r in range(lengths)),
        shares=stacked([split.shares for split in splits]),
        depth=stacked([split.depth for split in splits]),
        cancellation=torch.stack([split.cancellation for split in splits]),
        gradient=gradient,
        blocks=blocks,
        samples=sum(batch_size(batch) for batch in whole),
        mode=mode,
    )


@dataclass(frozen=True)
class _Pass:
    """One network on one batch."""

    subject: Subject
    batch: Batch
    branches: Mapping[int, int]
    counted: Sequence[str]
    live_means: bool
    centred: bool

    def polynomial(self, degree: int) -> tuple[Tensor, Tensor | None]:
        """Parts (lengths, samples, …), and the squared norms (lengths,) of the gradient's where there is a loss."""
        if self.subject.criterion is None and self.subject.loss_fn is None:
            with torch.no_grad():
                return self._parts(self.subject, Polynomial(degree)), None
        with outside_inference_mode(self.batch) as batch, torch.enable_grad():
            inside = dataclasses.replace(self, batch=batch)
            slope = inside._slope()
            leaves = {n: t.detach().clone().requires_grad_() for n, t in self.subject.parameters.items()}
            parts = inside._parts(
                dataclasses.replace(self.subject, parameters=leaves), Polynomial(degree), centred=False
            )
            energies = []
            for part in parts:
                found = torch.autograd.grad(
                    (part * slope).sum(), list(leaves.values()), retain_graph=True, allow_unused=True
                )
                energies.append(sum(g.double().square().sum() for g in found if g is not None))
        return self._centre(parts.detach()), torch.stack([torch.as_tensor(each) for each in energies])

    def turned(self, angles: Tensor) -> Tensor:
        """Coordinates (angles + 1, samples, 4, …) at every angle, and behind them at 0, which is the output."""
        with torch.no_grad():
            several = [self._parts(self.subject, Rotation(angle)) for angle in (*angles.tolist(), 0.0)]
        return torch.stack([each.movedim(0, 1) for each in several])

    def _parts(self, subject: Subject, formal: Formal, centred: bool | None = None) -> Tensor:
        follower = PathFollower(formal, self.branches, self.counted, live_means=self.live_means)

        def run(model: nn.Module) -> Tensor:
            value, parts = split_output(follower, model, lambda whole: subject.call(whole, self.batch))
            self._check(value, parts, formal)
            return parts

        with subject.borrowed():
            found: Tensor = subject.map_models(run)[0]
        return self._centre(found) if (self.centred if centred is None else centred) else found

    def _check(self, value: Tensor, parts: Tensor, formal: Formal) -> None:
        require(
            value.ndim > 0 and len(value) == batch_size(self.batch),
            f"the network returns {tuple(value.shape)} for {batch_size(self.batch)} samples; pass one with a row "
            "per sample.",
        )
        self.subject.refuse_unless_finite("output", value)
        if isinstance(formal, Polynomial) and bool(value.isfinite().all()):
            away = (parts.detach().sum(0) - value).abs().max()
            rounding = 1e4 * torch.finfo(value.dtype).eps * parts.detach().abs().sum(0).max()
            require(
                bool(away <= rounding),
                f"the parts differ from the output by {away.item():.3g}, so something was changed where it cannot be "
                "followed, such as a view in place; write that without in-place operations.",
            )

    def _centre(self, parts: Tensor) -> Tensor:
        several = parts.ndim > 2 and parts.shape[-1] > 1  # the mean of a single output is all of it
        return parts - parts.mean(-1, keepdim=True) if self.centred and several else parts

    def _slope(self) -> Tensor:
        """The derivative of the loss in the network's output."""
        leaves: list[Tensor] = []

        def cut(_: nn.Module, __: Any, ___: Any, output: Any) -> Any:
            first = first_tensor(output)
            require(first is not None and not leaves, "the loss must call the network once, for tensors.")
            assert first is not None
            leaves.append(first.detach().requires_grad_())
            return tree_map(lambda leaf: leaves[0] if leaf is first else leaf, output)

        def run(model: nn.Module) -> Tensor:
            with visited(after=[(model, cut)]):
                loss = self.subject.loss_of(model, self.batch)
            depends = "the loss does not depend on the network's output; look for detach or item in the loss."
            require(loss.requires_grad, depends)
            return torch.autograd.grad(loss, leaves[0], materialize_grads=True)[0]

        with self.subject.borrowed():
            slope: Tensor = self.subject.map_models(run)[0]
        return slope


def _of_turns(coordinates: Tensor, angles: Tensor, lengths: int) -> Split:
    real, imaginary, real_slope, imaginary_slope = coordinates[:-1].unbind(2)
    values, slopes = torch.complex(real, imaginary), torch.complex(real_slope, imaginary_slope)
    return sampled(values, slopes, angles.to(values.device), lengths, coordinates[-1][:, 0])


def _angles(count: int, seed: int) -> Tensor:
    return (
        2 * torch.pi * torch.rand(count, generator=torch_generator(seed, "path depth"), dtype=torch.float64)
    )


def _chosen(
    subject: Subject, batch: Batch, layers: Sequence[str] | None, counted: Sequence[str]
) -> ResidualBlocks:
    """The residual blocks that count, by name; modules that do not exist are refused before the network runs."""
    listed("layers", layers)
    listed("counted", counted)
    known = dict(subject.module.named_modules())
    for name in (*(layers or ()), *counted):
        if name.split("#")[0] not in known:
            raise no_such("layer", name, known)
    found = residual_blocks(subject, batch)
    for name in layers or ():
        if name not in found.names:
            hint = near(name, found.names)
            raise Refused(
                f"layer {name!r} adds no branch to what it began with; name a residual block.{hint}"
            )
    if layers is not None:
        kept = tuple(block for block in found.blocks if block.name in layers)
        found = dataclasses.replace(found, blocks=kept)
    require(
        len(found.blocks) + len(counted) > 0,
        f"no residual addition was found in {found.network}, so all its paths are equally long; pass a network with "
        "skips, or name in counted the modules that count.",
    )
    return found
