"""The tests against SciPy, statsmodels, brute force and their own promises (coverage, inversion)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.weightstats import ttost_ind

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.reproduction.statistics import (
    RankTest,
    StudentTest,
    blocked_order,
    holm_levels,
    inverted,
    jonckheere,
    one_sample,
    opposing_p_values,
    paired,
    share_interval,
    superiority,
    two_sided,
    welch,
)

INFINITE = math.inf


def samples(*sizes: int, seed: int = 0) -> list[np.ndarray]:
    """Normal samples with unequal means and spreads."""
    generator = numpy_generator("test statistics", seed)
    return [generator.normal(0.3 * i, 1 + i, size) for i, size in enumerate(sizes)]


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 0.7])
def test_welch_agrees_with_scipy(threshold: float) -> None:
    first, second = samples(7, 12)
    test = welch(first, second)
    for side, ours in [("greater", test.above(threshold)), ("less", test.below(threshold))]:
        theirs = stats.ttest_ind(first - threshold, second, equal_var=False, alternative=side)
        assert ours == pytest.approx(theirs.pvalue, rel=1e-10)
    theirs = stats.ttest_ind(first, second, equal_var=False).confidence_interval(0.99)
    assert test.interval(0.01) == pytest.approx(tuple(theirs), rel=1e-10)


def test_one_sample_agrees_with_scipy() -> None:
    (sample,) = samples(9)
    test = one_sample(sample)
    assert test.above(0.2) == pytest.approx(stats.ttest_1samp(sample, 0.2, alternative="greater").pvalue)
    assert test.below(0.2) == pytest.approx(stats.ttest_1samp(sample, 0.2, alternative="less").pvalue)
    assert test.interval(0.05) == pytest.approx(tuple(stats.ttest_1samp(sample, 0).confidence_interval(0.95)))


@pytest.mark.parametrize("margin", [0.1, 0.8, 3.0])
def test_equivalence_agrees_with_statsmodels_tost(margin: float) -> None:
    first, second = samples(8, 15)
    p_holds, p_contradicted = opposing_p_values(welch(first, second), (-margin, margin))
    assert p_holds == pytest.approx(ttost_ind(first, second, -margin, margin, usevar="unequal")[0], rel=1e-9)
    # The opposing test is the better of two one-sided ones against the near end of the region.
    sides = [
        stats.ttest_ind(first + margin, second, equal_var=False, alternative="less").pvalue,
        stats.ttest_ind(first - margin, second, equal_var=False, alternative="greater").pvalue,
    ]
    assert p_contradicted == pytest.approx(min(sides), rel=1e-10)


def test_welch_survives_tiny_and_vanishing_spread() -> None:
    tiny = welch(1e-150 * np.arange(5.0), 1e-150 * np.arange(6.0))
    assert tiny.degrees == pytest.approx(welch(np.arange(5.0), np.arange(6.0)).degrees)
    known = welch([0.1] * 7, [0.1] * 5)
    assert (known.above(0.0), known.below(0.0), known.interval(0.05)) == (1.0, 1.0, (0.0, 0.0))
    apart = welch([0.3] * 7, [0.1] * 5)
    assert (apart.above(0.0), apart.below(0.0)) == (0.0, 1.0)
    assert apart.interval(0.05) == (0.3 - 0.1, 0.3 - 0.1)
    with pytest.raises(Refused, match="at least 2 runs a sample, but got 1"):
        one_sample([1.0])


def test_jonckheere_of_two_samples_is_mann_whitney_with_ties() -> None:
    generator = numpy_generator("ties")
    first, second = generator.integers(0, 5, 9), generator.integers(1, 6, 11)
    test = jonckheere([first, second])
    theirs = stats.mannwhitneyu(
        second, first, method="asymptotic", use_continuity=False, alternative="greater"
    )
    assert test.estimate == pytest.approx(theirs.statistic / 99)
    assert test.above(0.5) == pytest.approx(theirs.pvalue, rel=1e-10)


@pytest.mark.parametrize("pooled", [[1, 2, 3, 4, 5, 6, 7], [1, 1, 2, 2, 2, 3, 4], [0, 0, 0, 0, 0, 0, 1]])
def test_jonckheere_variance_is_that_of_every_assignment(pooled: list[float]) -> None:
    values = np.array(pooled, dtype=float)
    found = []
    for order in itertools.permutations(range(7)):
        # one representative per assignment to groups of 2, 2 and 3
        if order[0] < order[1] and order[2] < order[3] and order[4] < order[5] < order[6]:
            part = values[list(order)]
            found.append(superiority([part[:2], part[2:4], part[4:]]))
    assert len(found) == 210
    assert np.mean(found) == pytest.approx(0.5, abs=1e-12)
    test = jonckheere([values[:2], values[2:4], values[4:]])
    assert test.error == pytest.approx(np.std(found), rel=1e-12)


def test_superiority_by_hand_and_its_limits() -> None:
    assert superiority([[1, 2], [2, 3], [0, 9]]) == pytest.approx((3.5 + 2 + 2) / 12)
    rising = jonckheere([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]])
    assert rising.estimate == 1.0
    assert rising.interval(0.05)[1] == 1.0  # a probability
    flat = jonckheere([[2.0] * 5, [2.0] * 5, [2.0] * 5])
    assert (flat.above(0.5), flat.below(0.5), flat.interval(0.05)) == (1.0, 1.0, (0.5, 0.5))
    with pytest.raises(Refused, match="2 samples and 3 runs"):
        jonckheere([[1.0], [2.0]])


def test_an_interval_and_its_test_agree_even_where_rounding_decides() -> None:
    generator = numpy_generator("rounding")
    disagreed = 0
    for _ in range(300):
        test = welch(generator.normal(size=5), generator.normal(size=6))
        alpha = 0.05 / int(generator.integers(1, 9))
        for end in test.interval(alpha):  # the threshold sits where p equals alpha up to rounding
            region = (end, INFINITE)
            p_holds, p_contradicted = opposing_p_values(test, region)
            plain_low, plain_high = test.interval(alpha)
            low, high = inverted(test, region, alpha)
            disagreed += (p_holds <= alpha / 2) != (plain_low > end)
            assert (p_holds <= alpha / 2) == (low > end)
            assert (p_contradicted <= alpha / 2) == (high < end)
            assert (low, high) == pytest.approx((plain_low, plain_high), rel=1e-12)
    assert disagreed  # else this test shows nothing


def test_two_sided_joins_opposing_tests() -> None:
    assert two_sided(0.01, 0.99) == 0.02
    assert two_sided(0.99, 0.01) == 0.02
    assert two_sided(0.7, 0.6) == 1.0


def test_holm_by_hand() -> None:
    levels, adjusted = holm_levels([0.04, 0.001, 0.02, 0.9], alpha=0.05)
    # 0.001 ≤ .05/4 passes; 0.02 > .05/3 fails, and with it all that follow, at its level.
    assert levels == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert adjusted == pytest.approx([0.08, 0.004, 0.06, 0.9])
    levels, _ = holm_levels([0.001, 0.002, 0.003])
    assert levels == pytest.approx([0.05 / 3, 0.05 / 2, 0.05])
    assert [part.size for part in holm_levels([])] == [0, 0]
    with pytest.raises(Refused, match=r"alpha is 5, but must lie between 0 and 1"):
        holm_levels([0.1], alpha=5)


@pytest.mark.usefixtures("no_collection")
def test_holm_decides_as_statsmodels() -> None:
    generator = numpy_generator("holm")
    for _ in range(30):
        p_values = generator.beta(0.3, 3, int(generator.integers(1, 9)))
        if generator.random() < 0.3:
            p_values = np.round(p_values, 2)  # ties and exact zeros
        levels, adjusted = holm_levels(p_values, 0.05)
        reject, theirs, *_ = multipletests(p_values, 0.05, method="holm")
        assert np.array_equal(p_values <= levels, reject)
        assert np.allclose(adjusted, theirs)
        assert np.array_equal(adjusted <= 0.05, reject)


def test_holm_keeps_the_familywise_error() -> None:
    generator = numpy_generator("familywise")
    families = 3000
    # 4 true nulls beside 2 strong effects, which let Holm spend more on the nulls than Bonferroni would.
    p_values = generator.uniform(size=(families, 6))
    p_values[:, 4:] *= 1e-6
    wrong = sum(bool(np.any(p[:4] <= holm_levels(p)[0][:4])) for p in p_values)
    expected = 1 - (1 - 0.05 / 4) ** 4  # exactly, once the effects are rejected
    assert wrong / families == pytest.approx(expected, abs=4 * math.sqrt(0.05 * 0.95 / families))
    assert expected <= 0.05


def within_binomial_error(hits: int, trials: int, chance: float) -> bool:
    return abs(hits / trials - chance) <= 4 * math.sqrt(chance * (1 - chance) / trials)


def test_welch_interval_covers_as_promised() -> None:
    generator = numpy_generator("welch coverage")
    trials = 2000
    first, second = generator.normal(1.0, 1.0, (trials, 8)), generator.normal(0.0, 3.0, (trials, 12))
    hits = 0
    for one, two in zip(first, second, strict=True):
        low, high = welch(one, two).interval(0.05)
        hits += low <= 1.0 <= high
    assert within_binomial_error(hits, trials, 0.95)


def test_jonckheere_errs_as_often_as_promised() -> None:
    generator = numpy_generator("jonckheere error")
    trials = 2000
    wrong = 0
    for data in generator.normal(size=(trials, 4, 8)):
        low, high = jonckheere(list(data)).interval(0.05)
        wrong += not low <= 0.5 <= high
    assert within_binomial_error(wrong, trials, 0.05)


def test_a_known_estimate_sits_on_its_own_threshold() -> None:
    known = StudentTest(2.0, 0.0, 4.0)
    assert two_sided(*opposing_p_values(known, (2.0, INFINITE))) == 1.0
    assert two_sided(*opposing_p_values(known, (1.0, 3.0))) == 0.0
    assert inverted(known, (2.0, INFINITE), 0.05) == (2.0, 2.0)


def test_pairs_agree_with_scipy() -> None:
    first, second = samples(9, 9)
    found = paired(first, second)
    expected = stats.ttest_rel(first, second)
    assert 2 * min(found.above(0.0), found.below(0.0)) == pytest.approx(expected.pvalue, rel=1e-12)
    assert found.interval(0.1) == pytest.approx(tuple(expected.confidence_interval(0.9)), rel=1e-12)
    with pytest.raises(Refused, match="Pairs need equal numbers of runs, but got 9 and 8"):
        paired(first, second[:8])


def test_an_order_within_seeds_has_kendalls_variance() -> None:
    generator = numpy_generator("blocked order")
    found = [blocked_order(generator.normal(size=(4, 6))) for _ in range(4000)]
    estimates = np.array([each.estimate for each in found])
    assert estimates.mean() == pytest.approx(0.5, abs=4 * estimates.std() / math.sqrt(len(found)))
    assert found[0].error == pytest.approx(estimates.std(), rel=0.05)
    # For two samples it is the sign test's normal approximation.
    wins = blocked_order([np.zeros(10), np.array([1.0] * 8 + [-1.0] * 2)])
    assert (wins.estimate, wins.error) == (0.8, pytest.approx(math.sqrt(0.25 / 10)))
    assert blocked_order([np.zeros(10), np.zeros(10)]).estimate == 0.5


def test_a_rank_is_uniform_under_the_null() -> None:
    generator = numpy_generator("ranks")
    hits = 0
    for draws in generator.normal(size=(4000, 20)):
        test = RankTest(draws[1:])
        hits += two_sided(0.5, min(test.below(draws[0]), test.above(draws[0]))) <= 0.1
    assert hits / 4000 == pytest.approx(0.1, abs=4 * math.sqrt(0.09 / 4000))
    test = RankTest(np.arange(19.0))
    assert (test.below(100.0), test.above(-1.0)) == (1 / 20, 1 / 20)
    assert (test.above(100.0), test.below(-1.0)) == (1.0, 1.0)
    assert test.interval(0.01) == (0.0, 18.0)


def test_a_shares_interval_is_wilsons() -> None:
    assert share_interval(12, 50) == pytest.approx((0.1430, 0.3741), abs=1e-4)
    assert share_interval(0, 50)[0] == 0.0


def test_an_effect_must_be_worth_having() -> None:
    test = StudentTest(0.4, 0.1, INFINITE)
    p_holds, p_refuted = opposing_p_values(test, (0.0, INFINITE), (1.0, INFINITE))
    assert p_holds == pytest.approx(float(stats.norm.sf(4)))
    assert p_refuted == pytest.approx(float(stats.norm.cdf(-6)))
