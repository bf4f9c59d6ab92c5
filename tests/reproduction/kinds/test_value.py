"""Value: a mean, or a range, at the number that the paper prints."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.reproduction.kinds import Value
from skiplab.reproduction.verdict import Verdict

Judge = Callable[..., Verdict]
LOW = np.arange(8.0)
MIDDLE, HIGH = LOW + 10, LOW + 20
NOISE = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "sample", "paper", "expected"),
    [
        (Value(0.1), 100 + LOW, 100.0, "holds"),
        (Value(0.1), 100 + LOW, -100.0, "contradicted"),
        (Value(0.1), 100 + LOW, 90.0, "contradicted"),
        (Value(0.001), 100 + LOW, 103.0, "undecided"),
        (Value(0.1, spread="range"), LOW, 3.0, "holds"),
        (Value(0.1, spread="range"), LOW, 7.7, "holds"),
        (Value(0.1, spread="range"), LOW, 7.8, "undecided"),
        (Value(0.1, spread="range"), LOW + 1, 0.9, "undecided"),
        (Value(0.1, spread="range"), np.arange(38.0), 50.0, "undecided"),
        (Value(0.1, spread="range"), np.arange(39.0), 50.0, "contradicted"),
        (Value(0.1, spread="range"), np.arange(39.0), -1.0, "contradicted"),
        (
            Value(0.0, spread="range"),
            np.arange(99.0),
            97.5,
            "contradicted",
        ),  # inside, at rank 2 of 100 from above
        (Value(0.0, spread="range"), np.arange(99.0), 96.5, "holds"),
        (Value(0.1, spread="range"), LOW + 1, 0.95, "holds"),
        # A tolerance relative to 0 is 0, and "within" includes the end.
        (Value(0.1), [0.0] * 5, 0.0, "holds"),
        (Value(0.1), [0.0, 0.0, 0.0, 0.0, 1.0], 0.0, "undecided"),
        (Value(0.0), [0.1] * 7, 0.1, "holds"),
    ],
)
def test_it_can_go_either_way(kind: Value, sample: Any, paper: float, expected: str, judged: Judge) -> None:
    assert judged(kind, [sample], paper).verdict == expected


def test_region_rule_and_mark(judged: Judge) -> None:
    row = judged(Value(0.1), [LOW], -3.0)
    assert (row.margin, row.paper_value) == (pytest.approx(0.3), -3.0)
    assert row.region == pytest.approx((-3.3, -2.7))
    assert row.meaning.rule(row) == "Holds where the mean is within the margin of the paper's value (▾)."
    assert row.meaning.marks(row) == (-3.0,)
    assert not row.meaning.shares_axis


def test_a_range_is_its_own_interval(judged: Judge) -> None:
    row = judged(Value(0.1, spread="range"), [LOW], 3.0)
    assert (row.low, row.high, row.statistic, row.spread) == (0.0, 7.0, 3.5, None)
    assert judged(Value(0.0, spread="range"), [LOW], 8.0).p == pytest.approx(2 / 9)
    assert row.detail == "the interval is the range of the runs"


@pytest.mark.parametrize(
    ("kind", "paper", "match"),
    [
        (Value(), None, "claim 'claim' of paper/item in condition 'all' has paper_value None"),
        (Value(), math.nan, "has paper_value nan, but a Value claim needs the paper's number"),
        (Value(-0.1), 1.0, "Tolerance of .* is -0.1"),
        (Value(spread="rnage"), 1.0, "'rnage' is unknown.*Did you mean range"),
    ],
)
def test_what_has_no_meaning_is_refused(kind: Value, paper: float | None, match: str, judged: Judge) -> None:
    with pytest.raises(Refused, match=match):
        judged(kind, [LOW], paper)
