"""Greater: one mean above another, or above 0, by an effect worth having or by a margin of either sign."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.reproduction.kinds import Greater
from skiplab.reproduction.verdict import Verdict

Judge = Callable[..., Verdict]
LOW = np.arange(8.0)
MIDDLE, HIGH = LOW + 10, LOW + 20
NOISE = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])
SEEN = Greater(worth=1.0)


@pytest.mark.parametrize(
    ("kind", "samples", "expected"),
    [
        (SEEN, [HIGH, LOW], "holds"),
        (SEEN, [LOW, HIGH], "contradicted"),
        (SEEN, [LOW, LOW + 0.1], "undecided"),
        (Greater(margin=5.0), [LOW, LOW + 0.1], "holds"),
        (Greater(margin=-5.0), [LOW, LOW + 0.1], "contradicted"),
        (SEEN, [HIGH], "holds"),
        (SEEN, [-HIGH], "contradicted"),
        (SEEN, [NOISE], "undecided"),
    ],
)
def test_it_can_go_either_way(kind: Greater, samples: Sequence[Any], expected: str, judged: Judge) -> None:
    assert judged(kind, samples).verdict == expected


@pytest.mark.parametrize(
    ("sample", "expected", "reason"),
    [
        (0.1 * NOISE, "contradicted", "no difference worth having"),  # an interval around 0, inside ±1
        (0.1 * NOISE + 0.5, "contradicted", "no difference worth having"),  # above 0, and still too small
        (0.1 * NOISE + 1.0, "holds", ""),  # above 0, and reaches what is worth having
        (0.1 * NOISE - 0.5, "contradicted", ""),  # the other way
        (NOISE + 0.5, "undecided", ""),
    ],
)
def test_no_difference_worth_having_can_come_out(
    sample: np.ndarray, expected: str, reason: str, judged: Judge
) -> None:
    row = judged(SEEN, [sample])
    assert (row.verdict, row.reason) == (expected, reason)
    assert row.low is not None
    assert row.high is not None
    by_interval = "contradicted" if row.high < 1 else "holds" if row.low > 0 else "undecided"
    assert row.verdict == by_interval


def test_runs_that_share_seeds_are_paired(judged: Judge) -> None:
    seeds = np.array([0.0, 10.0, -7.0, 4.0, 22.0, -3.0])  # what a seed does to both models
    first, second = seeds + 1 + 0.1 * NOISE, seeds
    apart, paired = judged(SEEN, [first, second]), judged(SEEN, [first, second], paired=True)
    assert (apart.verdict, paired.verdict) == ("undecided", "holds")
    assert apart.statistic == pytest.approx(paired.statistic)
    alone = judged(SEEN, [first - second])
    assert (paired.low, paired.high, paired.p) == (alone.low, alone.high, alone.p)
    assert (apart.paired, paired.paired, alone.paired) == (False, True, False)
    with pytest.raises(Refused, match=r"pairs samples of \[5, 6\] runs"):
        judged(SEEN, [first, second[1:]], paired=True)


def test_samples_without_spread_are_points(judged: Judge) -> None:
    ahead = judged(Greater(worth=0.1), [[0.3] * 6, [0.1] * 5])
    assert (ahead.verdict, ahead.p, ahead.low, ahead.high) == ("holds", 0.0, 0.3 - 0.1, 0.3 - 0.1)
    behind = judged(Greater(worth=0.1), [[0.1] * 6, [0.3] * 5])
    assert (behind.verdict, behind.p) == ("contradicted", 0.0)
    level = judged(Greater(worth=0.1), [[0.1] * 6, [0.1] * 5])
    assert (level.verdict, level.p, level.low, level.high) == ("contradicted", 0.0, 0.0, 0.0)
    at_least = judged(Greater(margin=-0.25), [[0.5] * 6, [0.25] * 5])
    assert (at_least.verdict, at_least.p) == ("undecided", 1.0)


def test_region_and_rule(judged: Judge) -> None:
    better = judged(Greater(margin=-2.0), [HIGH, LOW], unit="points")
    assert (better.margin, better.worth, better.region) == (-2.0, None, (2.0, math.inf))
    assert better.meaning.rule(better) == "Holds where the difference of means is above 2 points."
    above = judged(SEEN, [HIGH], unit="%")
    assert (above.worth, above.refuted_below) == (1.0, 1.0)
    assert above.meaning.rule(above) == (
        "Holds where all of the interval is above 0 % and some of it above 1 %, the smallest effect worth having; "
        "contradicted where all of it is below that."
    )
    assert above.meaning.marks(above) == ()


@pytest.mark.parametrize(
    ("kind", "match"),
    [
        (Greater(margin=math.nan), "margin nan; give a finite one"),
        (Greater(), "has worth 0.0 and margin 0.0; give one of them"),
        (Greater(worth=1.0, margin=1.0), "has worth 1.0 and margin 1.0; give one of them"),
        (Greater(worth=-1.0), "has worth -1.0; give a finite effect above 0"),
    ],
)
def test_a_claim_that_does_not_say_what_matters_is_refused(kind: Greater, match: str, judged: Judge) -> None:
    with pytest.raises(Refused, match=match):
        judged(kind, [LOW])
