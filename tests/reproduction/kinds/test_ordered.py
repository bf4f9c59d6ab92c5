"""Ordered: samples that rise, by the probability that a later run is larger."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from skiplab.reproduction.kinds import Ordered
from skiplab.reproduction.verdict import Verdict

Judge = Callable[..., Verdict]
LOW = np.arange(8.0)
MIDDLE, HIGH = LOW + 10, LOW + 20
NOISE = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([LOW, MIDDLE, HIGH], "holds"),
        ([HIGH, MIDDLE, LOW], "contradicted"),
        ([LOW, LOW, LOW], "undecided"),
        ([LOW, LOW], "undecided"),
        ([LOW, HIGH], "holds"),
    ],
)
def test_it_can_go_either_way(samples: Sequence[Any], expected: str, judged: Judge) -> None:
    assert judged(Ordered(), samples).verdict == expected


def test_pairs_are_counted_within_seeds(judged: Judge) -> None:
    seeds = 10.0 * np.arange(8.0)
    samples = [seeds, seeds + 1, seeds + 2]  # a seed matters more than the order
    apart, paired = judged(Ordered(), samples), judged(Ordered(), samples, paired=True)
    assert (apart.verdict, paired.verdict) == ("undecided", "holds")
    assert paired.statistic == 1.0
    assert judged(Ordered(), samples[::-1], paired=True).verdict == "contradicted"


def test_an_order_too_weak_to_matter_is_contradicted(judged: Judge) -> None:
    equal = np.zeros(2000)
    row = judged(Ordered(), [equal, equal], paired=True)
    assert (row.statistic, row.verdict) == (0.5, "contradicted")
    assert row.refuted_below == pytest.approx(0.556)


def test_steps_that_fall_are_shown(judged: Judge) -> None:
    row = judged(Ordered(), [LOW, MIDDLE, LOW])
    assert row.detail == "adjacent differences of means +10, -10"
    few = judged(Ordered(), [LOW, MIDDLE[:3]])
    assert few.detail == "adjacent differences of means +7.5; 3 runs, but a verdict needs 5"
    assert few.statistic == 1.0


def test_region_and_rule(judged: Judge) -> None:
    row = judged(Ordered(), [LOW, HIGH], unit="points")
    assert (row.margin, row.region) == (None, (0.5, math.inf))
    assert (row.unit, row.statistic_unit) == ("points", "P(later > earlier)")
    assert judged(Ordered(), [LOW, HIGH], unit="P(more minima)").statistic_unit == "P(more minima)"
    assert row.meaning.rule(row) == (
        "Holds where all of the interval of P(later > earlier), the chance that of two runs the one later in the "
        "order has more, is above ½ and some of it above 0.556, the smallest effect worth having; contradicted where "
        "all of it is below that."
    )
