"""Power against simulation and statsmodels, and the runs that settle an undecided row."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.power import TTestPower

from skiplab.randomness import numpy_generator
from skiplab.reproduction.claim import Claim, Equivalent, Evidence, Greater, Kind, Ordered, Value
from skiplab.reproduction.power import effect_of, foreseen, power, runs_to_settle, smallest_seen
from skiplab.reproduction.results import Results
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict, judge

NOISE = np.array([-2.0, -1.0, -0.5, 0.5, 1.0, 2.0])


def judged(kind: Kind, *samples: Any, paper: float | None = None) -> list[Verdict]:
    """One claim with a row per sample."""
    rows = [Evidence(f"{k}", [sample], paper_value=paper) for k, sample in enumerate(samples)]
    claim = Claim("claim", "text", lambda results: rows, kind, unit="points")
    return judge(Study("p/figure-1", __file__, {}, [], lambda *_: None, [claim], {}), Results(None), "quick")


@pytest.mark.parametrize(("effect", "runs"), [(0.5, 10), (1.0, 20), (0.1, 50)])
def test_one_sided_power_agrees_with_statsmodels(effect: float, runs: int) -> None:
    expected = TTestPower().power(effect / 2.0, runs, 0.025, alternative="larger")
    assert power(effect, 2.0, runs, 0.05) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("kind", "paper", "mean"),
    [
        (Greater(worth=0.8), None, 0.8),
        (Greater(margin=0.8), None, 0.0),
        (Equivalent(0.8), None, 0.0),
        (Value(0.2), 4.0, 4.0),
    ],
)
def test_power_is_how_often_a_true_claim_holds(kind: Kind, paper: float | None, mean: float) -> None:
    generator = numpy_generator("power", kind.name())
    runs, studies = 14, 1500
    held = 0
    for sample in generator.normal(mean, 1.0, size=(studies, runs)):
        (row,) = judged(kind, sample, paper=paper)
        held += row.verdict == "holds"
    effect = effect_of(row)
    assert effect == pytest.approx(0.8)
    both = all(map(math.isfinite, row.region))
    expected = power(effect, 1.0, runs, 0.05, two_sided=both)
    # The two-sided formula leaves out the chance that both sides fail at once; a sample that holds may be too small
    # to be worth having only where both thresholds are passed, which is as rare.
    assert held / studies == pytest.approx(expected, abs=4 * math.sqrt(0.25 / studies) + 0.01)


def test_without_spread_or_runs() -> None:
    assert power(0.1, 0.0, 5, 0.05) == 1.0
    assert power(5.0, 1.0, 1, 0.05) == 0.0
    assert smallest_seen(1) == math.inf
    assert power(smallest_seen(12), 1.0, 12, 0.05) == pytest.approx(0.8)


def test_a_claim_is_as_strong_as_its_weakest_row() -> None:
    rows = judged(Greater(worth=1.0), NOISE, 3 * NOISE)
    (found,) = foreseen(rows)
    assert (found.claim, found.condition, found.effect, found.unit, found.runs) == (
        "claim",
        "1",
        1.0,
        "points",
        6,
    )
    spread = float((3 * NOISE).std(ddof=1))
    assert found.power == pytest.approx(power(1.0, spread, 6, 0.05))
    (more,) = foreseen(rows, declared=6, planned=60)
    assert more.runs == 60
    assert more.power > found.power
    (same,) = foreseen(
        rows, declared=7, planned=60
    )  # rows whose number of runs is not the one that is changed
    assert same.runs == 6
    assert foreseen([dataclasses.replace(row, headline=False) for row in rows]) == []


@pytest.mark.parametrize(
    ("kind", "sample", "paper"),
    [
        (Greater(worth=1.0), NOISE + 0.3, None),
        (Greater(worth=1.0), NOISE + 0.9, None),
        (Greater(margin=1.0), NOISE - 0.4, None),
        (Equivalent(0.5), NOISE, None),
        (Value(0.1), NOISE + 10.3, 10.0),
    ],
)
def test_so_many_runs_do_settle_it(kind: Kind, sample: np.ndarray, paper: float | None) -> None:
    (row,) = judged(kind, sample, paper=paper)
    assert row.verdict == "undecided"
    needs = runs_to_settle(row)
    assert row.needs == needs
    assert needs is not None
    assert row.statistic is not None

    def of_size(runs: int) -> np.ndarray:
        # Another sample with the same mean and the same spread.
        grid = np.linspace(-1, 1, runs)
        return row.statistic + grid * sample.std(ddof=1) / grid.std(ddof=1)

    assert judged(kind, of_size(needs), paper=paper)[0].verdict != "undecided"
    assert judged(kind, of_size(needs - 1), paper=paper)[0].verdict == "undecided"


def test_where_no_runs_would_settle_it() -> None:
    (edge,) = judged(Greater(margin=1.0), NOISE - 1.0)
    assert (edge.verdict, edge.needs) == ("undecided", None)
    (few,) = judged(Greater(worth=1.0), NOISE[:3])
    assert (few.verdict, few.needs) == ("undecided", None)
    (holds,) = judged(Greater(worth=1.0), NOISE + 30)
    assert (holds.verdict, holds.needs) == ("holds", None)
    assert effect_of(judged(Greater(margin=-1.0), NOISE)[0]) is None


def test_an_order_has_a_power_too() -> None:
    rows = [Evidence("all", [NOISE, NOISE + 1])]
    claim = Claim("claim", "text", lambda results: rows, Ordered())
    (row,) = judge(
        Study("p/figure-1", __file__, {}, [], lambda *_: None, [claim], {}), Results(None), "quick"
    )
    assert effect_of(row) == 0.056
    assert row.needs is not None
    assert row.needs > 6
