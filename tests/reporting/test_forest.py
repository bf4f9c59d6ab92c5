"""The small drawings: inside the region, outside it, or across its edge, as the verdict says."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from skiplab.reporting import forest
from skiplab.reproduction.verdict import Verdict

Maker = Callable[..., Verdict]


def _places(drawing: str) -> tuple[float, float, list[float], float]:
    """Return the region's ends, the interval's closed ends and the estimate, in drawing units."""
    left, width = map(
        float, re.search(r'class="region" x="([\d.]+)" y="3" width="([\d.]+)"', drawing).groups()
    )
    caps = [float(x) for x in re.findall(r'class="interval" d="M([\d.]+) 10 V18"', drawing)]
    return left, left + width, caps, float(re.search(r'cx="([\d.]+)"', drawing)[1])


def test_a_claim_that_holds_is_drawn_inside_its_region(make_verdict: Maker) -> None:
    row = make_verdict(kind="equivalent", margin=1.0, statistic=0.1, low=-0.5, high=0.7)
    left, right, (low, high), estimate = _places(forest.draw(row, forest.domain_of([row])))
    assert left < low < estimate < high < right
    # The domain is [−1, 1] and 12 % of its width at each end.
    assert left == pytest.approx(forest.WIDTH * 0.12 / 1.24, abs=0.01)
    assert estimate == pytest.approx(forest.WIDTH * (0.1 + 1.24) / 2.48, abs=0.01)


def test_a_contradicted_claim_is_drawn_outside(make_verdict: Maker) -> None:
    row = make_verdict(statistic=-3.3, low=-5.0, high=-1.6, verdict="contradicted")
    left, _, (_, high), _ = _places(forest.draw(row, forest.domain_of([row])))
    assert high < left


def test_an_open_end_is_an_arrow_and_too_few_runs_have_no_bar(make_verdict: Maker) -> None:
    row = make_verdict(low=None)
    assert len(_places(forest.draw(row, forest.domain_of([row])))[2]) == 1
    few = make_verdict(low=None, high=None, p=None)
    drawing = forest.draw(few, forest.domain_of([few]))
    assert "estimate" in drawing
    assert "interval" not in drawing.replace("interval not known", "")


def test_nothing_to_draw_without_a_number(make_verdict: Maker) -> None:
    row = make_verdict(statistic=None, low=None, high=None)
    assert forest.domain_of([row]) is None
    assert forest.draw(row, (0.0, 1.0)) == ""
    zero = make_verdict(kind="exact", margin=0.0, statistic=0.0, low=0.0, high=0.0)
    assert forest.domain_of([zero]) is None


def test_the_drawing_speaks(make_verdict: Maker) -> None:
    row = make_verdict(kind="value", paper_value=10.0, margin=1.0, statistic=10.4, low=9.9, high=10.9)
    assert forest.spoken(row) == "Ours 10.4, interval 9.9 to 10.9; the claim holds between 9 and 11."
    assert 'aria-label="Ours 10.4' in forest.draw(row, forest.domain_of([row]))
