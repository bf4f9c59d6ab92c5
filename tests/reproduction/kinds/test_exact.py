"""Exact: every number 0 up to rounding, and nothing statistical."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.reproduction.kinds import Exact
from skiplab.reproduction.verdict import Verdict

Judge = Callable[..., Verdict]
LOW = np.arange(8.0)
MIDDLE, HIGH = LOW + 10, LOW + 20
NOISE = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("rounding", "samples", "expected"),
    [
        (0.0, [[0.0, 0.0]], "holds"),
        (0.0, [[0.0, 1e-300]], "contradicted"),
        (1e-9, [[-1e-9], [1e-10]], "holds"),
        (1e-9, [[-2e-9], [0.0]], "contradicted"),
        (1.0, [[0.0, math.nan]], "contradicted"),
        (math.inf, [[0.0, math.inf]], "contradicted"),
        (0.0, [[]], "undecided"),
    ],
)
def test_it_can_go_either_way(rounding: float, samples: Sequence[Any], expected: str, judged: Judge) -> None:
    assert judged(Exact(rounding), samples).verdict == expected


def test_the_worst_number_is_shown_without_a_test(judged: Judge) -> None:
    row = judged(Exact(1e-9), [[-2e-9, 1e-9]])
    assert (row.statistic, row.low, row.high, row.margin) == (2e-9, 2e-9, 2e-9, 1e-9)
    assert (row.p, row.p_adjusted, row.level) == (None, None, None)
    assert judged(Exact(1.0), [[0.0, math.nan, math.inf]]).detail == "2 of 3 numbers are not finite"
    assert judged(Exact(), [[]]).detail == "there are no numbers to check"


def test_region_and_rule(judged: Judge) -> None:
    row = judged(Exact(0.01), [[0.0]], unit="points")
    assert row.region == (0.0, 0.01)
    assert row.meaning.rule(row) == "Holds if no number exceeds 0.01 points."
    nought = judged(Exact(), [[0.0]], unit="points")
    assert nought.meaning.rule(nought) == "Holds if every number is 0."


def test_a_negative_rounding_is_refused(judged: Judge) -> None:
    with pytest.raises(Refused, match=r"Rounding of .* is -1\.0"):
        judged(Exact(-1.0), [LOW])
