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
        ([LOW, HIGH], "holds"),
    ],
)
def test_it_can_go_either_way(samples: Sequence[Any], expected: str, judged: Judge) -> None:
    assert judged(Ordered(), samples).verdict == expected


def test_steps_that_fall_are_shown(judged: Judge) -> None:
    row = judged(Ordered(), [LOW, MIDDLE, LOW])
    assert row.detail == "adjacent differences of means +10, -10"
    few = judged(Ordered(), [LOW, MIDDLE[:3]])
    assert few.detail == "adjacent differences of means +7.5; 3 runs, but a verdict needs 5"
    assert few.statistic == 1.0


def test_region_and_rule(judged: Judge) -> None:
    row = judged(Ordered(), [LOW, HIGH], unit="points")
    assert (row.margin, row.region) == (None, (0.5, math.inf))
    assert row.meaning.rule(row) == "Holds where P(later > earlier) over pairs of runs is above ½."
