"""Equivalent: two means within a margin of each other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.reproduction.kinds import Equivalent
from skiplab.reproduction.verdict import Verdict

Judge = Callable[..., Verdict]
LOW = np.arange(8.0)
MIDDLE, HIGH = LOW + 10, LOW + 20
NOISE = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("margin", "samples", "expected"),
    [
        (5.0, [LOW, LOW + 0.1], "holds"),
        (5.0, [LOW, HIGH], "contradicted"),
        (5.0, [HIGH, LOW], "contradicted"),
        (0.2, [LOW, LOW + 0.1], "undecided"),
        (3.0, [NOISE], "holds"),
        (0.01, [[0.1] * 6, [0.1] * 5], "holds"),
    ],
)
def test_it_can_go_either_way(margin: float, samples: Sequence[Any], expected: str, judged: Judge) -> None:
    assert judged(Equivalent(margin), samples).verdict == expected


def test_region_and_rule(judged: Judge) -> None:
    row = judged(Equivalent(0.5), [LOW, LOW], unit="points")
    assert (row.margin, row.region) == (0.5, (-0.5, 0.5))
    assert row.meaning.rule(row) == "Holds where the difference of means is within ±0.5 points."


@pytest.mark.parametrize("margin", [0.0, -1.0, math.inf, math.nan])
def test_a_margin_that_leaves_no_room_is_refused(margin: float, judged: Judge) -> None:
    with pytest.raises(Refused, match=f"margin {margin}; equivalence needs a positive one"):
        judged(Equivalent(margin), [LOW])
