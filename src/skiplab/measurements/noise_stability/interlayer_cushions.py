"""Interlayer cushions: how much of a sample's activity reaches a later layer (yu2019, section 5).

With J the Jacobian of layer j's output in the input x of layer i, n the size of x,

    μ_ij(x) = √n ‖J x‖ / (‖J‖_F ‖x‖),

which is 1 for a direction like any other and large where the activity itself passes better than noise beside it. With
batch normalisation it depends on what is held fixed, so that has to be chosen (``mode``, ``over``):

- "eval" and "batch": statistics are constants, running ones or those of the batch, and a sample has a Jacobian of
  its own;
- "train": statistics follow the samples. ``over="sample"`` is the derivative of a sample's output in its own input,
  the others held fixed; ``over="batch"`` that of all outputs in all inputs, with x the whole batch. There, and in a
  batch of one, a plain block whose layers are normalised is homogeneous of degree 0, and J x = 0 but for its ε.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from skiplab.checks import no_such, one_of, require, seeded, whole_numbers
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import in_mode
from skiplab.measurements.jacobians import Part, on_part, product, refuse_mixing, squared_norms
from skiplab.measurements.result import Estimate, Result, number_of
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch, batch_size, batches_of
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.subject import LossFunction
from skiplab.telling import Counted, Tell

OVER = ("sample", "batch")
LARGEST_EXACT = 1024  # numbers out of a part, up to which its norm is exact unless told otherwise
PROBES = 256  # beyond; ‖J‖_F is then known to a few percent for a sample, μ likewise


@dataclass(frozen=True, repr=False)
class InterlayerCushions(Result):
    """μ per sample or batch, (E, samples, parts), and the standard error that probes leave in each, 0 where exact."""

    title = "Interlayer cushion"
    reference = "yu2019, section 5; Arora et al. (2018)"
    yardstick = "a random direction has 1"
    marks = (("mean", 1.0, "random direction"), ("median", 1.0, "random direction"))
    on_axes: ClassVar[Mapping[str, str]] = {"mean": "mean over samples", "median": "median over samples"}

    layers: tuple[str, ...]
    cushions: Tensor
    stderr: Tensor
    mode: str
    over: str
    found: str = ""  # which blocks, where no layers were named

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """Mean and median over samples, whose spread holds the probes' noise: each sample has its own."""
        return {"mean": Estimate.mean(self.cushions, 1), "median": Estimate.median(self.cushions, 1)}

    @property
    def based_on(self) -> str:
        """How many samples there were, and what was held fixed."""
        return f"{number_of(self.cushions.shape[1], self.over)}, {self.mode} mode"


def interlayer_cushions(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str | tuple[str, str]] | None = None,
    mode: str | None = None,
    over: str = "sample",
    probes: int | None = None,
    seed: int = 0,
    tell: Tell | None = None,
) -> InterlayerCushions:
    """Measure the cushion of each named layer or block (default: the blocks), or between the two of a pair.

    A part begins with what its first layer takes and ends with what its last returns, each at its first call.
    ``probes`` estimates ‖J‖_F from so many random vectors, 0 computes it exactly; left out, it is exact up to 1,024
    numbers out. ``loss_fn`` is needed only if batches are such that it alone can call the network with them.
    ``tell`` hears how far it is.

    >>> found = interlayer_cushions(model, x, layers=["0", ("1", "4")])
    >>> found.layers, found.cushions.shape  # (networks, samples, parts)
    (('0', '1 → 4'), torch.Size([1, 16, 2]))
    """
    one_of("over", over, OVER)
    mode = chosen_mode(target, mode)
    require(
        over == "sample" or mode == "train",
        f"over is {over!r} but mode {mode!r}, in which samples do not depend on each other; choose mode='train'.",
    )
    if probes is not None:
        whole_numbers(least=0, probes=probes)
    seeded(seed)
    subject = Subject.of(target) if loss_fn is None else Subject.of(target, loss_fn=loss_fn)
    spans = _spans(subject, layers)
    stream = torch_generator(seed, "interlayer cushions")
    parts: list[Tensor] = []
    for batch in batches_of(batches):
        own = in_mode(subject, batch, mode)
        size = batch_size(batch)

        def use(part: Part, size: int = size) -> dict[str, Tensor]:
            for what, seen in (("takes", part.x), ("returns", part.y)):
                require(
                    seen.ndim > 0 and len(seen) == size,
                    f"a layer {what} {tuple(seen.shape)} for {size} samples; choose ones with a sample per row.",
                )
            subject.refuse_unless_finite("activity", part.y)
            if mode != "train":
                refuse_mixing(part)
            alone = mode == "train" and over == "sample"
            rows = [slice(b, b + 1) for b in range(size)] if alone else [slice(None)]
            found = [_cushions(part, each, over == "batch", probes, stream) for each in rows]
            return {"found": torch.cat(found, 1)}

        members = [own.alone(member) for member in range(own.size)]
        count = Counted(tell, len(spans), f"layers, batch {len(parts) + 1}")
        found = []
        for span in spans:
            found.append(torch.cat([on_part(one, batch, *span, use)["found"] for one in members]))
            count.add()
        parts.append(torch.stack(found, -1))  # (E, 2, samples, spans)
    cushions, stderr = torch.cat(parts, 2).unbind(1)
    names = tuple(first if first == last else f"{first} → {last}" for first, last in spans)
    blocks = str(subject.structure) if layers is None else ""
    return InterlayerCushions(names, cushions, stderr, mode, over, blocks)


def _cushions(part: Part, rows: slice, joint: bool, probes: int | None, stream: torch.Generator) -> Tensor:
    """μ and its standard error (2, samples) of some samples, or (2, 1) of them as one."""
    tangent = torch.zeros_like(part.x)
    tangent[rows] = part.x.detach()[rows]
    along, x = product(part, tangent)[rows], part.x.detach()[rows]
    if joint:
        along, x = along.reshape(1, -1), x.reshape(1, -1)
    count = part.y[rows].numel() if joint else part.y[0].numel()
    used = (0 if count <= LARGEST_EXACT else PROBES) if probes is None else probes
    norm, error = squared_norms(part, rows=rows, joint=joint, probes=used, generator=stream)
    cushion = x[0].numel() ** 0.5 * _lengths(along) / norm.sqrt() / _lengths(x)
    # The error of ‖J‖ is half that of its square, relatively.
    return torch.stack([cushion, cushion * error / norm / 2])


def _lengths(rows: Tensor) -> Tensor:
    return torch.linalg.vector_norm(rows.reshape(len(rows), -1), dim=1, dtype=torch.float64)


def _is_pair(each: Any) -> bool:
    return isinstance(each, tuple | list) and len(each) == 2 and all(isinstance(name, str) for name in each)


def _spans(subject: Subject, layers: Sequence[str | tuple[str, str]] | None) -> list[tuple[str, str]]:
    named: Any = subject.blocks if layers is None else layers
    pairs = f"layers is {layers!r}, but must be a list of names or of pairs of names, such as [('0', '4')]."
    require(isinstance(named, Sequence | Set) and not isinstance(named, str), pairs)
    require(all(isinstance(each, str) or _is_pair(each) for each in named), pairs)
    known = dict(subject.module.named_modules())
    spans = []
    for each in named:
        first, last = (each, each) if isinstance(each, str) else each
        for name in (first, last):
            if name not in known:
                raise no_such("layer", name, known)
        spans.append((first, last))
    require(len(spans) > 0, "layers is empty; name a layer, or leave it out for all blocks.")
    return spans
