"""The tests behind the verdicts, each as a pair of one-sided tests that can be inverted exactly.

A test here answers two questions for every threshold t: how surprising the data would be if the quantity
were at most t (``above``), and if it were at least t (``below``). The closed interval of all t that neither
refutes at alpha/2 is the test inverted. A claim is a region of the quantity, so its test and its interval
come from one object and cannot disagree. In this file ``alpha`` is a probability of error, not of coverage.
"""

from __future__ import annotations

import inspect
import itertools
import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats

from skiplab.checks import Refused, require

Array = NDArray[np.float64]
Region = tuple[float, float]  # an open interval of the quantity; an end may be infinite

# All relabellings are enumerated up to this many, else as many are drawn (chosen by us): the error of a
# p-value near .025 is then .001, and Holm can divide alpha by some 500 rows before draws run out.
RELABELLINGS = 20_000


class OneSidedTests(Protocol):
    """What every test offers: an estimate, two opposing p-values at any threshold, and the interval."""

    @property
    def estimate(self) -> float:
        """The quantity as the data show it."""

    @property
    def least_p(self) -> float:
        """The smallest two-sided p-value that samples of this size can give."""

    def above(self, threshold: float) -> float:
        """The p-value against "the quantity is at most the threshold"."""

    def below(self, threshold: float) -> float:
        """The p-value against "the quantity is at least the threshold"."""

    def interval(self, alpha: float) -> tuple[float, float]:
        """The thresholds that neither one-sided test refutes at alpha/2."""


@dataclass(frozen=True)
class StudentTest:
    """An estimate whose error follows Student's t, or the normal law for infinite ``degrees``.

    With ``error`` 0 the estimate is taken as known: p-values are 0 or 1 and the interval is a point.
    """

    estimate: float
    error: float
    degrees: float
    bounds: Region = (-math.inf, math.inf)
    least_p: float = 0.0

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


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """A relabelling test of a shift, written as the thresholds at which each relabelling changes sides.

    Take t off the first sample. Relabelling π, which swaps some runs between the samples, then gives a
    difference of means at least as large as the observed one exactly if

        t ≥ τ_π = mean(runs of the first sample swapped out) − mean(runs of the second swapped in).

    (For one sample of differences, τ_π is the mean of the differences whose sign is flipped.) So the
    p-value at *every* threshold is a count of τ's, and the interval runs between two of them: no search,
    and the inversion is exact. The identity swaps nothing and always counts.
    """

    estimate: float
    earliest: Array  # sorted τ, less a rounding allowance so that ties count against the claim
    latest: Array  # sorted τ, plus the same allowance

    @property
    def least_p(self) -> float:
        """Two over the number of relabellings."""
        return min(1.0, 2 / len(self.earliest))

    def above(self, threshold: float) -> float:
        """The share of relabellings with a difference at least as large as the one seen."""
        return int(np.searchsorted(self.earliest, threshold, side="right")) / len(self.earliest)

    def below(self, threshold: float) -> float:
        """The share of relabellings with a difference at least as small as the one seen."""
        count = len(self.latest)
        return (count - int(np.searchsorted(self.latest, threshold, side="left"))) / count

    def interval(self, alpha: float) -> tuple[float, float]:
        """From the first τ too common to refute to the last; infinite if there are too few τ's."""
        count = len(self.earliest)
        # The largest number k of relabellings with k/count ≤ alpha/2, in the arithmetic of the p-values.
        rare = int(np.searchsorted(np.arange(1, count + 1) / count, alpha / 2, side="right"))
        return float(self.earliest[rare]), float(self.latest[count - 1 - rare])


def numbers(sample: ArrayLike) -> Array:
    """Return a sample as a flat float64 array."""
    return np.asarray(sample, dtype=np.float64).ravel()


def mean_of(sample: ArrayLike) -> float:
    """The mean, exact for a constant sample (a rounded sum could step over a threshold), NaN if empty."""
    values = numbers(sample)
    if values.size == 0:
        return math.nan
    return float(values[0] if np.all(values == values[0]) else values.mean())


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


def permutation(first: ArrayLike, second: ArrayLike, generator: np.random.Generator) -> PermutationTest:
    """Test the difference of two means by swapping runs between the samples, all ways or many ways."""
    one, two = numbers(first), numbers(second)
    require(min(len(one), len(two)) >= 1, "A permutation test needs a run in each sample; run more.")
    size = len(one) + len(two)
    if math.comb(size, len(one)) <= RELABELLINGS:
        chosen = np.array(list(itertools.combinations(range(size), len(one))))
        in_first = np.zeros((len(chosen), size), dtype=bool)
        np.put_along_axis(in_first, chosen, True, axis=1)
    else:
        in_first = np.tile(np.arange(size) < len(one), (RELABELLINGS, 1))
        generator.permuted(in_first[1:], axis=1, out=in_first[1:])  # row 0 stays the identity
    swapped_out, swapped_in = ~in_first[:, : len(one)], in_first[:, len(one) :]
    return _from_swaps(
        mean_of(one) - mean_of(two), swapped_out @ one - swapped_in @ two, swapped_out, one, two
    )


def sign_flips(sample: ArrayLike, generator: np.random.Generator) -> PermutationTest:
    """Test that differences centre on a threshold by flipping their signs, all ways or many ways."""
    values = numbers(sample)
    require(len(values) >= 1, "A sign-flip test needs at least one difference; run more.")
    if len(values) <= math.log2(RELABELLINGS):
        flipped = (np.arange(2 ** len(values))[:, None] >> np.arange(len(values))) % 2 == 1
    else:
        flipped = generator.random((RELABELLINGS, len(values))) < 0.5
        flipped[0] = False  # the identity
    return _from_swaps(mean_of(values), flipped @ values, flipped, values)


def _from_swaps(estimate: float, sums: Array, swapped: NDArray[np.bool_], *samples: Array) -> PermutationTest:
    counts = swapped.sum(axis=1)
    turning = sums / np.maximum(counts, 1)
    # Sums in another order differ by rounding; without an allowance a tie would count at random.
    allowance = 1e-12 * max(float(np.abs(sample).max()) for sample in samples)
    earliest = np.where(counts == 0, -np.inf, turning - allowance)
    latest = np.where(counts == 0, np.inf, turning + allowance)
    return PermutationTest(estimate, np.sort(earliest), np.sort(latest))


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


def opposing_p_values(test: OneSidedTests, region: Region) -> tuple[float, float]:
    """Return the p-values against "outside the region" and against "inside the region".

    The first is the intersection-union test (TOST when both ends are finite).
    """
    low, high = region
    return max(test.above(low), test.below(high)), min(test.below(low), test.above(high))


def two_sided(p_holds: float, p_contradicted: float) -> float:
    """Join two opposing one-sided p-values into one: twice the smaller."""
    return min(1.0, 2 * min(p_holds, p_contradicted))


def inverted(test: OneSidedTests, region: Region, alpha: float) -> tuple[float, float]:
    """The test's interval, which leaves out an end of the region exactly if the test refutes that end.

    Quantile and distribution functions round differently; where that would put an end of the region on
    the wrong side of the interval, the interval gives way by one unit in the last place.
    """
    low, high = test.interval(alpha)
    for end in region:
        if math.isinf(end):
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


def bca_interval(
    sample: ArrayLike,
    statistic: Callable[..., Any] = np.mean,
    level: float = 0.95,
    *,
    generator: np.random.Generator,
    resamples: int = 9999,
) -> tuple[float, float]:
    """Bootstrap interval of a statistic, bias-corrected and accelerated (Efron 1987), for drawing.

    ``level`` is the coverage. A constant sample gives a point; fewer than two runs, or one that is not
    finite, give NaN; where BCa is not defined (a median with many ties) the percentile interval is given.
    """
    values = numbers(sample)
    if len(values) < 2 or not np.all(np.isfinite(values)):
        return math.nan, math.nan
    if np.all(values == values[0]):
        point = mean_of(values) if statistic is np.mean else float(statistic(values))
        return point, point
    # SciPy renamed the argument in 1.15; both names must work for the versions we allow.
    argument = "rng" if "rng" in inspect.signature(stats.bootstrap).parameters else "random_state"
    options: dict[str, Any] = {"confidence_level": level, "n_resamples": resamples, argument: generator}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a degenerate BCa warns and gives NaN, which is handled here
        result = stats.bootstrap((values,), statistic, method="BCa", **options)
        if not np.all(np.isfinite(result.confidence_interval)):
            result = stats.bootstrap(
                (values,),
                statistic,
                method="percentile",
                bootstrap_result=result,
                **{**options, "n_resamples": 0},
            )
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
