"""How large each residual branch is beside its shortcut: one row per residual addition.

Of an addition x + f(x), over all samples and all numbers of an activity:

- *ratio*: RMS(f(x)) / RMS(x), the β with which a branch of the shortcut's own size would have to be multiplied. Far
  above 1 the branch drowns the shortcut, so that the skip carries nothing; at 0 the block does nothing;
- *growth*: RMS(x + f(x)) / RMS(x), how much larger the block makes what it is given. √2 in every block doubles the
  mean square each time, which is why balduzzi2017 scales branches down with depth.

Additions are found as ``residual_blocks`` finds them, in the pass that measures them. Where the shortcut is a
projection, or is resized or gated, it is what is added that counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from torch import Tensor, nn

from skiplab.checks import Refused, near, require
from skiplab.ensembles import Ensemble
from skiplab.measurements.estimate import Estimate
from skiplab.measurements.result import Result, number_of
from skiplab.measurements.tallies import check_names, square_sum, tallied, told
from skiplab.subjects import Subject
from skiplab.subjects.batches import Batch
from skiplab.subjects.following import Call
from skiplab.subjects.normalisation import chosen_mode
from skiplab.subjects.residual_blocks import ADDITIONS, PassGraph, ResidualBlock, ResidualBlocks
from skiplab.subjects.subject import LossFunction


@dataclass(frozen=True, repr=False)
class BranchRatios(Result):
    """Ratio and growth of each residual addition, (E, additions), in the order of calls.

    ``blocks`` says of each what its shortcut is and which layers its branch has. ``first_not_finite`` names, per
    network, the module that made the first number that is not finite; empty where all numbers are.
    """

    title = "Size of residual branches"
    reference = "balduzzi2017 eq 2 and littwin2017 on the scale of branches; the row per addition is ours"
    yardstick = "branches as large as their shortcuts, and without correlation, have ratio 1 and growth 1.41"
    place = "addition"
    by_decades = True
    marks = (("ratio", 1.0, "as large as the shortcut"), ("growth", 2**0.5, "as large, without correlation"))
    on_axes: ClassVar[Mapping[str, str]] = {"ratio": "branch / shortcut", "growth": "sum / shortcut"}

    blocks: ResidualBlocks
    ratio: Tensor
    growth: Tensor
    samples: int
    first_not_finite: tuple[str, ...]

    @property
    def layers(self) -> tuple[str, ...]:
        """Names of the additions, as ``residual_blocks`` has them."""
        return self.blocks.names

    @property
    def estimates(self) -> Mapping[str, Estimate]:
        """What was measured at these very samples, so without an error."""
        return {"ratio": Estimate.exact(self.ratio), "growth": Estimate.exact(self.growth)}

    @property
    def based_on(self) -> str:
        """How many samples there were."""
        return number_of(self.samples, "sample")

    @property
    def remarks(self) -> Sequence[str]:
        """Where numbers are not finite, and which additions are not residual."""
        others = len(self.blocks.others)
        one = f"{others} other addition{'s' * (others != 1)}: see .blocks"
        return (*told(self.first_not_finite), *([f"left out: {one}"] if others else []))


def branch_ratios(
    target: nn.Module | Ensemble | Subject,
    batches: Batch | Iterable[Batch],
    *,
    loss_fn: LossFunction | None = None,
    layers: Sequence[str] | None = None,
    mode: str | None = None,
) -> BranchRatios:
    """Compare every residual branch with its shortcut, in one forward pass per batch.

    ``layers`` names additions as ``residual_blocks`` does (default: all). ``mode`` is "eval", "train", or "batch":
    with each batch's own statistics. ``loss_fn`` serves only to call networks that take more than one input. Numbers
    that are not finite are answered with NaN or ∞, and ``first_not_finite`` says where they began.

    >>> class Skip(torch.nn.Sequential):
    ...     def forward(self, x):
    ...         return x + super().forward(x)
    >>> half = torch.nn.Linear(4, 4, bias=False)
    >>> torch.nn.init.eye_(half.weight).data.mul_(0.5).diagonal()
    tensor([0.5000, 0.5000, 0.5000, 0.5000])
    >>> print(branch_ratios(torch.nn.Sequential(Skip(half)), x).frame().round(3))
      addition  ratio  growth
    0        0    0.5     1.5
    """
    mode = chosen_mode(target, mode)
    subject = Subject.of(target, loss_fn=loss_fn, train_mode=mode == "train")
    check_names(subject.module, layers)
    known: dict[str, ResidualBlock] = {}
    structures: list[ResidualBlocks] = []

    def observe(own: Subject, batch: Batch, rows: dict[str, _Sums]) -> bool:
        graph = _Sized()
        structures.append(graph.blocks(own, batch))
        finite = True
        for block in structures[-1].blocks:
            known.setdefault(block.name, block)
            new = graph.sums[block.call].ordered(block.branch)
            rows[block.name] = rows[block.name] + new if block.name in rows else new
            finite &= bool(new.total.isfinite())
        return finite

    found = tallied(subject, batches, mode, observe)
    names = _chosen(structures[0].network, found.places, layers)
    kept = [found.places.index(name) for name in names]
    return BranchRatios(
        blocks=replace(structures[0], blocks=tuple(known[name] for name in names)),
        ratio=found.table(lambda sums: sums.ratio)[:, kept],
        growth=found.table(lambda sums: sums.growth)[:, kept],
        samples=found.samples,
        first_not_finite=tuple(found.first_not_finite),
    )


@dataclass(frozen=True)
class _Sums:
    """Mean squares, times numbers of samples and positions, of two operands and their sum."""

    branch: Tensor
    shortcut: Tensor
    total: Tensor

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(self.branch + other.branch, self.shortcut + other.shortcut, self.total + other.total)

    def ordered(self, branch: int) -> _Sums:
        """The sums if the branch is this operand, 0 or 1; as they are measured it is 0."""
        return _Sums(self.shortcut, self.branch, self.total) if branch else self

    @property
    def ratio(self) -> Tensor:
        return (self.branch / self.shortcut).sqrt()

    @property
    def growth(self) -> Tensor:
        return (self.total / self.shortcut).sqrt()


class _Sized(PassGraph):
    """Measures the operands of additions while they are at hand, by the number of the call."""

    def __init__(self) -> None:
        super().__init__()
        self.sums: dict[int, _Sums] = {}

    def follow(self, call: Call) -> Any:
        if call.name in ADDITIONS and len(call.followed) == 2:
            count = call.outcome.numel()
            one, other = (_squares(each, count) for each in call.taken)
            scale = float(call.kwargs.get("alpha", 1))  # x + alpha y
            self.sums[call.number] = _Sums(one, scale**2 * other, _squares(call.outcome, count))
        return super().follow(call)


def _squares(values: Tensor, count: int) -> Tensor:
    """The sum of squares as if the values were spread over so many numbers, as a broadcast spreads them."""
    return square_sum(values) * (count / max(values.numel(), 1))


def _chosen(network: str, places: Sequence[str], layers: Sequence[str] | None) -> list[str]:
    require(
        len(places) > 0,
        f"no residual addition was found in {network}, so there is no branch to compare; pass a network with skips.",
    )
    for name in layers or ():
        if name not in places:
            hint = near(name, places)
            raise Refused(
                f"layer {name!r} adds no branch to what it began with; name a residual block.{hint}"
            )
    return list(places) if layers is None else list(dict.fromkeys(layers))
