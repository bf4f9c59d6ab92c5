"""The tests behind the verdicts, each as a pair of one-sided tests that can be inverted exactly.

A test here answers two questions for every threshold t: how surprising the data would be if the quantity
were at most t (``above``), and if it were at least t (``below``). The closed interval of all t that neither
refutes at alpha/2 is the test inverted. A claim is a region of the quantity, so its test and its interval
come from one object and cannot disagree. In this file ``alpha`` is a probability of error, not of coverage.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skiplab.checks import Refused, require

Array = NDArray[np.float64]
Region = tuple[float, float]  # an open interval of the quantity; an end may be infinite
LARGEST = 1e150  # squares of larger numbers overflow, so such runs count as diverged


@dataclass(frozen=True)
class StudentTest:
    """An estimate whose error follows Student's t, or the normal law for infinite ``degrees``.

    With ``error`` 0 the estimate is taken as known: p-values are 0 or 1 and the interval is a point.
    """

    estimate: float
    error: float
    degrees: float
    bounds: Region = (-math.inf, math.inf)

    def above(self, threshold: float) -> float:
        """The p-value against "the quantity is at most the threshold"."""
        if self.error == 0.0:
            return 0.0 if self.estimate > threshold else 1.0
        return float(stats.t.sf((self.estimate - threshold) / self.error, self.degrees))

    def below(self, threshold: float) -> float:
        """The p-value against "the quantity is at least the threshold"."""
        if self.error == 0.0:
            return 0.0 if self.estimate < threshold else 1.0
        return float(stats.t.cdf((self.estimate - threshold) / self.error, self.degrees))

    def interval(self, alpha: float) -> tuple[float, float]:
        """The estimate ± the quantile times its error, cut to the quantity's bounds."""
        reach = float(stats.t.isf(alpha / 2, self.degrees)) * self.error if self.error else 0.0
        return max(self.estimate - reach, self.bounds[0]), min(self.estimate + reach, self.bounds[1])


@dataclass(frozen=True)
class RankTest:
    """Whether one more draw, which is not ours, may come from the same law as our draws.

    Its rank among ours is uniform if it does, so a value beyond all n of ours has the two-sided p-value 2/(n + 1).
    There is no evidence that it does come from that law, only that it may.
    """

    draws: Array
    error: float = math.nan  # a rank has no standard error

    @property
    def estimate(self) -> float:
        """The mean of our draws."""
        return mean_of(self.draws)

    def above(self, threshold: float) -> float:
        """The p-value against "a further draw is at most the threshold": its rank from below."""
        return float(np.count_nonzero(self.draws <= threshold) + 1) / (len(self.draws) + 1)

    def below(self, threshold: float) -> float:
        """The p-value against "a further draw is at least the threshold": its rank from above."""
        return float(np.count_nonzero(self.draws >= threshold) + 1) / (len(self.draws) + 1)

    def interval(self, alpha: float) -> tuple[float, float]:
        """The range of our draws, whatever the level."""
        return float(self.draws.min()), float(self.draws.max())


Test = StudentTest | RankTest


def numbers(sample: ArrayLike) -> Array:
    """Return a sample as a flat float64 array."""
    return np.asarray(sample, dtype=np.float64).ravel()


def mean_of(sample: ArrayLike) -> float:
    """The mean, exact for a constant sample (a rounded sum could step over a threshold), NaN if empty."""
    values = numbers(sample)
    if values.size == 0:
        return math.nan
    return float(values[0] if np.all(values == values[0]) else values.mean())


def diverged(samples: Iterable[Array]) -> int:
    """Count the runs that are NaN, infinite or too large to square."""
    # NaN fails every comparison.
    return sum(int(np.count_nonzero(~(np.abs(sample) < LARGEST))) for sample in samples)


def _variance_of_mean(values: Array) -> float:
    require(len(values) >= 2, f"A t-test needs at least 2 runs a sample, but got {len(values)}; run more.")
    return 0.0 if np.all(values == values[0]) else float(values.var(ddof=1)) / len(values)


def one_sample(sample: ArrayLike) -> StudentTest:
    """Test the mean of one sample: Student's t with n − 1 degrees of freedom."""
    values = numbers(sample)
    return StudentTest(mean_of(values), math.sqrt(_variance_of_mean(values)), len(values) - 1)


def welch(first: ArrayLike, second: ArrayLike) -> StudentTest:
    """Test the difference of two means with unequal variances: Welch's t, Satterthwaite's degrees.

    Two opposing thresholds ∓margin make it the equivalence test TOST; see ``opposing_p_values``.
    """
    one, two = numbers(first), numbers(second)
    parts = _variance_of_mean(one), _variance_of_mean(two)
    total = sum(parts)
    # Shares, not raw squares, so that tiny variances do not underflow.
    share = parts[0] / total if total else 0.5
    degrees = 1 / (share**2 / (len(one) - 1) + (1 - share) ** 2 / (len(two) - 1))
    return StudentTest(mean_of(one) - mean_of(two), math.sqrt(total), degrees)


def paired(first: ArrayLike, second: ArrayLike) -> StudentTest:
    """Test the mean difference of runs that share seeds, and so initial weights and batches: Student's t."""
    one, two = numbers(first), numbers(second)
    require(len(one) == len(two), f"Pairs need equal numbers of runs, but got {len(one)} and {len(two)}.")
    return one_sample(one - two)


def superiority(samples: Sequence[ArrayLike]) -> float:
    """P(later > earlier) + ½ P(equal) over all pairs of runs from different samples."""
    groups = [numbers(sample) for sample in samples]
    wins = pairs = 0.0
    for earlier, later in itertools.combinations(groups, 2):
        ranked = np.sort(earlier)
        smaller = np.searchsorted(ranked, later, side="left")
        not_larger = np.searchsorted(ranked, later, side="right")
        wins += float((smaller + not_larger).sum()) / 2
        pairs += len(earlier) * len(later)
    return wins / pairs if pairs else math.nan


def jonckheere(samples: Sequence[ArrayLike]) -> StudentTest:
    """Test that samples rise in the order given: Jonckheere–Terpstra, variance corrected for ties.

    The quantity is ``superiority``; ½ means no trend. The interval inverts the score test, so it uses the
    variance under "no trend" (Hollander & Wolfe, Nonparametric Statistical Methods, section 6.2) and is a
    statement about ½, less so about values far from it. For two samples this is the Mann–Whitney test.
    """
    groups = [numbers(sample) for sample in samples]
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    total = float(sizes.sum())
    require(total >= 3 and len(groups) >= 2, f"A trend needs 2 samples and 3 runs, but got {sizes.tolist()}.")
    ties = np.unique(np.concatenate(groups), return_counts=True)[1].astype(np.float64)

    def cubic(count: Any) -> Any:
        return count * (count - 1) * (2 * count + 5)

    def triples(count: Any) -> Any:
        return count * (count - 1) * (count - 2)

    def doubles(count: Any) -> Any:
        return count * (count - 1)

    variance = (
        (cubic(total) - cubic(sizes).sum() - cubic(ties).sum()) / 72
        + triples(sizes).sum() * triples(ties).sum() / (36 * triples(total))
        + doubles(sizes).sum() * doubles(ties).sum() / (8 * doubles(total))
    )
    pairs = (total**2 - (sizes**2).sum()) / 2
    # When every run is equal the variance is 0 but for rounding.
    error = 0.0 if len(ties) == 1 else math.sqrt(variance) / pairs
    return StudentTest(superiority(groups), error, math.inf, bounds=(0.0, 1.0))


def blocked_order(samples: Sequence[ArrayLike]) -> StudentTest:
    """Test that samples rise in the order given where run i of each shares a seed: pairs are counted within seeds.

    The quantity is the share of pairs of samples in which the later one's run is larger (½ for ties), averaged over
    seeds. Its variance is that of Kendall's count under "no order" (ties make it smaller, so the test is cautious);
    for two samples this is the sign test's normal approximation.
    """
    groups = np.stack([numbers(sample) for sample in samples])
    kinds, seeds = groups.shape
    pairs = kinds * (kinds - 1) / 2
    wins = sum(
        np.where(later == earlier, 0.5, later > earlier)
        for earlier, later in itertools.combinations(groups, 2)
    )
    error = math.sqrt(kinds * (kinds - 1) * (2 * kinds + 5) / 72 / seeds) / pairs
    return StudentTest(float(np.mean(wins)) / pairs, error, math.inf, bounds=(0.0, 1.0))


def share_interval(count: int, total: int, alpha: float = 0.05) -> tuple[float, float]:
    """Wilson's interval of a share: how many of all networks do something."""
    found = stats.binomtest(count, total).proportion_ci(confidence_level=1 - alpha, method="wilson")
    return float(found.low), float(found.high)


def opposing_p_values(test: Test, region: Region, refuted: Region | None = None) -> tuple[float, float]:
    """Return the p-values against "the claim does not hold" and against "the claim is not refuted".

    A claim holds inside ``region``: the intersection-union test (TOST when both ends are finite). It is refuted
    below the lower or above the upper end of ``refuted``, which is the region itself unless an effect must have
    some size to be worth having.
    """
    (low, high), (least, most) = region, refuted or region
    return max(test.above(low), test.below(high)), min(test.below(least), test.above(most))


def two_sided(p_holds: float, p_contradicted: float) -> float:
    """Join two opposing one-sided p-values into one: twice the smaller."""
    return min(1.0, 2 * min(p_holds, p_contradicted))


def inverted(test: Test, ends: Iterable[float], alpha: float) -> tuple[float, float]:
    """The test's interval, which leaves out an end of a claim's regions exactly if the test refutes that end.

    Quantile and distribution functions round differently; where that would put an end on the wrong side of the
    interval, the interval gives way by one unit in the last place.
    """
    low, high = test.interval(alpha)
    for end in ends:
        if math.isinf(end) or isinstance(test, RankTest):
            continue
        if test.above(end) <= alpha / 2:
            low = max(low, math.nextafter(end, math.inf))
        elif low > end:
            low = end
        if test.below(end) <= alpha / 2:
            high = min(high, math.nextafter(end, -math.inf))
        elif high < end:
            high = end
    return low, high


def holm_levels(p_values: ArrayLike, alpha: float = 0.05) -> tuple[Array, Array]:
    """Return the level at which Holm's procedure tests each p-value, and the adjusted p-values.

    The i-th smallest of m p-values (from 0) is tested at alpha/(m − i); from the first failure on, every
    later one is tested at the level of that failure and fails as well. So "p ≤ its level" is Holm's decision.
    """
    values = numbers(p_values)
    if not 0 < alpha < 1:
        raise Refused(f"alpha is {alpha}, but must lie between 0 and 1; .05 is usual.")
    # As statsmodels' multipletests, to which the tests compare it; that one gives no levels, and collects
    # garbage on every call, which costs 70 ms a study.
    order = np.argsort(values, kind="stable")
    ranked, remaining = values[order], np.arange(len(values), 0, -1)
    levels, adjusted = alpha / remaining, np.minimum(np.maximum.accumulate(ranked * remaining), 1.0)
    failures = np.flatnonzero(ranked > levels)
    if failures.size:
        levels[failures[0] :] = levels[failures[0]]
    back = np.argsort(order)
    return levels[back], adjusted[back]
