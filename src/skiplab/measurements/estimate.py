"""A value and the interval that holds it, for many networks and layers at once; see ``result``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LEVEL = 0.95
ENDS = ("value", "low", "high")
MOST_DIGITS = 7  # of a number as text: what single precision has


@dataclass(frozen=True, eq=False)
class Estimate:
    """Values with intervals of a level, tensors of one shape; where all three are equal the value is exact.

    NaN stands for what is not known: a diverged network's value, or the value of an open question, of which the
    interval may still say something. ``unresolved`` marks values that are no more than the middles of limits which
    hold the true one: an interval, not a point, is the answer there.

    >>> Estimate(torch.tensor(0.2), torch.tensor(0.0), torch.tensor(0.4), unresolved=torch.tensor(True))
    0 to 0.4, unresolved
    """

    value: Tensor
    low: Tensor
    high: Tensor
    level: float = LEVEL
    unresolved: Tensor | None = None

    @staticmethod
    def exact(value: Tensor) -> Estimate:
        """A value without error."""
        return Estimate(value, value, value)

    @staticmethod
    def mean(samples: Tensor, dim: int = -1, parts: int = 1) -> Estimate:
        """The mean along an axis with Student's interval, mean ± t·s/√n; of one sample the interval has no ends.

        Samples in ``parts`` of equal size, one after the other, of which each is sampled by itself, say nothing by
        how parts differ: the error is that within them, with Welch's degrees of freedom, (Σv)² / Σ(v²/(n + 1)) − 2 by
        the variances v of n samples each (Biometrika 34, 1947).
        """
        count = samples.shape[dim]
        if parts == 1:
            spread = samples.std(dim) if count > 1 else torch.zeros_like(samples.mean(dim))
            return Estimate.of_stderr(samples.mean(dim), spread / math.sqrt(count), count)
        from scipy import stats

        within = samples.movedim(dim, -1).unflatten(-1, (parts, -1))
        variances = within.var(-1) / (within.shape[-1] * parts**2)  # of each part's share in the mean
        variance = variances.sum(-1)
        freedom = (within.shape[-1] + 1) * variance.square() / variances.square().sum(-1) - 2
        freedom = freedom.nan_to_num(float(parts)).clamp_min(1)  # 0 / 0 where nothing varies
        t = torch.as_tensor(stats.t.ppf(0.5 + LEVEL / 2, freedom.cpu().numpy())).to(variance)
        value, half = samples.mean(dim), t * variance.sqrt()
        return Estimate(value, value - half, value + half)

    @staticmethod
    def of_stderr(value: Tensor, stderr: Tensor, count: int) -> Estimate:
        """A mean of ``count`` samples with its standard error, which makes Student's interval."""
        if count < 2:
            return Estimate(value, value - torch.inf, value + torch.inf)
        from scipy import stats

        half = float(stats.t.ppf(0.5 + LEVEL / 2, count - 1)) * stderr
        return Estimate(value, value - half, value + half)

    @staticmethod
    def median(samples: Tensor, dim: int = -1) -> Estimate:
        """The median along an axis between two order statistics, which assumes nothing about the samples' law.

        Fewer than 6 samples have no two such order statistics: the interval has no ends. NaN among the samples, which
        have no value, are left out.
        """
        from scipy import stats

        ordered = samples.movedim(dim, -1).sort(-1).values  # NaN come last
        count = (~ordered.isnan()).sum(-1)
        cut = stats.binom.ppf((1 - LEVEL) / 2, count.clamp_min(1).cpu().numpy(), 0.5)
        left_out = torch.as_tensor(cut, device=count.device).long()

        def at(place: Tensor) -> Tensor:
            return ordered.gather(-1, place.clamp(0, ordered.shape[-1] - 1)[..., None])[..., 0]

        # torch's own median of an even number is the lower of the two in the middle.
        value = at((count - 1) // 2).lerp(at(count // 2), 0.5).where(count > 0, torch.nan)
        low, high = at(left_out - 1), at(count - left_out)
        enough = left_out >= 1
        return Estimate(value, low.where(enough, value - torch.inf), high.where(enough, value + torch.inf))

    @staticmethod
    def between(low: Tensor, high: Tensor, level: float = LEVEL) -> Estimate:
        """What is known to lie between limits and no more: the value is their middle, and unresolved."""
        return Estimate((low + high) / 2, low, high, level, torch.ones_like(low, dtype=torch.bool))

    def within(self, least: float, most: float = torch.inf) -> Estimate:
        """The estimate with its interval cut where the quantity ends: a share lies between 0 and 1."""
        low, high = (end.clamp(least, most) for end in (self.low, self.high))
        # A value may lie beyond by rounding.
        low, high = torch.minimum(low, self.value), torch.maximum(high, self.value)
        return Estimate(self.value, low, high, self.level, self.unresolved)

    @property
    def settled(self) -> Tensor:
        """Where there is a value that its interval, which has two ends, is an error bar of."""
        finite = self.value.isfinite() & self.low.isfinite() & self.high.isfinite()
        finite |= (self.low == self.high) & (self.value == self.low)  # ∞ where that is exact
        return finite if self.unresolved is None else finite & ~self.unresolved

    @property
    def stderr(self) -> Tensor:
        """The standard error of a normal law with this interval, which so includes all that the interval does."""
        from scipy import stats

        return (self.high - self.low) / (2 * float(stats.norm.ppf(0.5 + self.level / 2)))

    def __getitem__(self, index: Any) -> Estimate:
        marked = None if self.unresolved is None else self.unresolved[index]
        return Estimate(self.value[index], self.low[index], self.high[index], self.level, marked)

    def __str__(self) -> str:
        if self.value.ndim and self.value.numel() != 1:
            return f"{tuple(self.value.shape)} estimates"
        value, low, high = self.value.item(), self.low.item(), self.high.item()
        if not bool(self.settled):
            known = not math.isnan(low) and math.isfinite(high - low)
            return f"{' to '.join(_told_apart(low, high))}, unresolved" if known else "unknown"
        if low == high:
            return f"{value:.3g}"
        middle, least, most = _told_apart(value, low, high)
        return middle if least == most else f"{middle} ({least} to {most})"

    __repr__ = __str__


def over_networks(estimate: Estimate) -> Estimate:
    """The mean over networks, whose spread is what a further one would differ by; the diverged ones are left out.

    Where the value of some network is open, so is the mean: it lies between the means of the limits, each with its
    own spread, but not beyond the limits of all networks.
    """
    known = ~(estimate.value.isnan() & estimate.low.isnan()).all(1)
    if not bool(known.any()):
        return estimate[0]
    found = estimate[known]
    mean = Estimate.mean(found.value, 0)
    limited = ~found.settled & found.low.isfinite() & found.high.isfinite()
    open_ = limited.any(0)
    if not bool(open_.any()):
        return mean
    ends = []
    for end, side in ((found.low, "low"), (found.high, "high")):
        spread = getattr(Estimate.mean(end, 0), side)
        ends.append(spread.clamp(found.low.amin(0), found.high.amax(0)))
    low, high = (torch.where(open_, *pair) for pair in zip(ends, (mean.low, mean.high), strict=True))
    return Estimate(torch.where(open_, (low + high) / 2, mean.value), low, high, mean.level, open_)


def _told_apart(*numbers: float) -> list[str]:
    """The numbers with three digits, or with as many more as tell the last two apart, which are the ends."""
    told: list[str] = []
    for digits in range(3, MOST_DIGITS + 1):
        told = [f"{number:.{digits}g}" for number in numbers]
        if told[-2] != told[-1]:
            break
    return told


def joined(estimates: Sequence[Estimate], dim: int) -> Estimate:
    """Estimates of one level as one, along a new axis."""
    parts = [torch.stack([getattr(each, end) for each in estimates], dim) for end in ENDS]
    marks = [~each.settled & each.low.isfinite() & each.high.isfinite() for each in estimates]
    return Estimate(parts[0], parts[1], parts[2], estimates[0].level, torch.stack(marks, dim))
