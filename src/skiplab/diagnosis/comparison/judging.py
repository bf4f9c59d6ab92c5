"""Verdicts on pairs of networks that share seeds, and so batches: Student's paired test, Holm's levels over pairs.

A network that diverges has no loss to average, but it is worse than one that does not: where any did, the sign test
judges, with divergence as the worst outcome.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from skiplab.reproduction.numerals import number, p_value
from skiplab.reproduction.statistics import Region, holm_levels, one_sample, paired, two_sided

ALPHA = 0.05


@dataclass(frozen=True)
class Difference:
    """The mean of first minus second over seeds with Student's interval; ``p`` is Holm-adjusted, NaN if not judged.

    ``better`` is the name of the one that is better by the test, or empty.
    """

    quantity: str
    first: str
    second: str
    value: float
    low: float
    high: float
    p: float
    better: str
    seeds: int
    why: str = ""

    @property
    def interval(self) -> str:
        """The mean difference with its interval, in words."""
        return _interval(self.value, self.low, self.high)

    @property
    def verdict(self) -> str:
        """Who is better, or that nobody is shown to be, or why there is no telling."""
        return self.why or (f"{self.better} is better" if self.better else "no difference shown")

    def __str__(self) -> str:
        tested = "" if math.isnan(self.p) else f", p {_with_sign(p_value(self.p))}"
        return f"{self.first} − {self.second}: {self.interval}; {self.verdict}{tested}"


def mean_interval(
    values: np.ndarray, bounds: Region = (-math.inf, math.inf), *, geometric: bool = False
) -> tuple[float, float, float]:
    """The mean of what is finite with Student's interval, cut to the quantity's bounds; no ends for fewer than two.

    ``geometric``: of what spans decades the geometric mean, unless something is 0 or less.
    """
    known = np.asarray(values, dtype=float)
    known = known[np.isfinite(known)]
    if known.size == 0:
        return math.nan, math.nan, math.nan
    if known.size == 1:
        return float(known[0]), -math.inf, math.inf
    if geometric and known.min() > 0:
        value, low, high = (math.exp(each) for each in mean_interval(np.log(known)))
        return value, low, high
    test = replace(one_sample(known), bounds=bounds)
    return (test.estimate, *test.interval(ALPHA))


def differences(
    quantity: str, samples: Mapping[str, np.ndarray], *, lower_is_better: bool, against: str | None = None
) -> tuple[Difference, ...]:
    """Every pair, or each against one, judged as one family; samples are in the order of the seeds."""
    pairs = list(itertools.combinations(samples, 2))
    if against is not None:
        pairs = [(name, against) for name in samples if name != against]
    raw = [_compared(quantity, pair, samples, lower_is_better) for pair in pairs]
    judged = [each for each in raw if not math.isnan(each.p)]
    if not judged:
        return tuple(raw)
    levels, adjusted = holm_levels([each.p for each in judged], ALPHA)
    verdicts = {
        (each.first, each.second): (float(p), each.p <= level)
        for each, level, p in zip(judged, levels, adjusted, strict=True)
    }
    return tuple(
        _with_verdict(each, *verdicts.get((each.first, each.second), (math.nan, False))) for each in raw
    )


def _with_verdict(each: Difference, p: float, differs: bool) -> Difference:
    return replace(each, p=p, better=each.better if differs else "")


def _compared(
    quantity: str, pair: tuple[str, str], samples: Mapping[str, np.ndarray], lower_is_better: bool
) -> Difference:
    """One pair before Holm: ``better`` names the one that the sample favours."""
    one, two = (np.asarray(samples[name], dtype=float) for name in pair)
    finite = np.isfinite(one) & np.isfinite(two)
    value, low, high = mean_interval((one - two)[finite])
    seeds = len(one)

    def found(p: float, better: str = "", why: str = "") -> Difference:
        return Difference(quantity, *pair, value, low, high, p, better, seeds, why)

    if seeds < 2:
        return found(math.nan, why="one seed has no spread: take more to judge")
    if finite.all():
        difference = one - two
        if np.all(one == one[0]) and np.all(two == two[0]):
            return found(math.nan, why="all seeds gave the same run, so there is no spread to judge by")
        test = paired(one, two)
        favoured = pair[0] if (float(difference.mean()) < 0) == lower_is_better else pair[1]
        return found(two_sided(test.above(0.0), test.below(0.0)), favoured)
    worst = math.inf if lower_is_better else -math.inf
    ranked = [np.where(np.isfinite(each), each, worst) for each in (one, two)]
    wins, losses = int((ranked[0] < ranked[1]).sum()), int((ranked[0] > ranked[1]).sum())
    if not lower_is_better:
        wins, losses = losses, wins
    decided = wins + losses
    p = float(stats.binomtest(wins, decided).pvalue) if decided else 1.0
    return found(p, pair[0] if wins > losses else pair[1])


def _with_sign(p: str) -> str:
    return p if p[:1] in "<>≤≥=" else f"= {p}"


def _interval(value: float, low: float, high: float) -> str:
    if math.isnan(value):
        return "unknown"
    if not math.isfinite(high - low) or low == high:
        return number(value)
    return f"{number(value)} ({number(low)} to {number(high)})"


def mean_in_words(
    values: Sequence[float] | np.ndarray,
    bounds: Region = (-math.inf, math.inf),
    *,
    geometric: bool = False,
) -> str:
    """A mean with its interval as text."""
    return _interval(*mean_interval(np.asarray(values), bounds, geometric=geometric))
