"""Greater: one mean above another, or above 0, by a margin of either sign."""

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
NOISE = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "samples", "expected"),
    [
        (Greater(), [HIGH, LOW], "holds"),
        (Greater(), [LOW, HIGH], "contradicted"),
        (Greater(), [LOW, LOW + 0.1], "undecided"),
        (Greater(margin=5.0), [LOW, LOW + 0.1], "holds"),
        (Greater(margin=-5.0), [LOW, LOW + 0.1], "contradicted"),
        (Greater(), [HIGH], "holds"),
        (Greater(), [-HIGH], "contradicted"),
        (Greater(), [NOISE], "undecided"),
    ],
)
def test_it_can_go_either_way(kind: Greater, samples: Sequence[Any], expected: str, judged: Judge) -> None:
    assert judged(kind, samples).verdict == expected


def test_samples_without_spread_are_points(judged: Judge) -> None:
    ahead = judged(Greater(), [[0.3] * 6, [0.1] * 5])
    assert (ahead.verdict, ahead.p, ahead.low, ahead.high) == ("holds", 0.0, 0.3 - 0.1, 0.3 - 0.1)
    behind = judged(Greater(), [[0.1] * 6, [0.3] * 5])
    assert (behind.verdict, behind.p) == ("contradicted", 0.0)
    level = judged(Greater(), [[0.1] * 6, [0.1] * 5])
    assert (level.verdict, level.p, level.low, level.high) == ("undecided", 1.0, 0.0, 0.0)


def test_region_and_rule(judged: Judge) -> None:
    better = judged(Greater(margin=-2.0), [HIGH, LOW], unit="points")
    assert (better.margin, better.region) == (-2.0, (2.0, math.inf))
    assert better.meaning.rule(better) == "Holds where the difference of means is above 2 points."
    above = judged(Greater(), [HIGH])
    assert above.meaning.rule(above) == "Holds where the mean is above 0."
    assert above.meaning.marks(above) == ()


def test_a_margin_that_is_no_number_is_refused(judged: Judge) -> None:
    with pytest.raises(Refused, match="margin nan; give a finite one"):
        judged(Greater(margin=math.nan), [LOW])
