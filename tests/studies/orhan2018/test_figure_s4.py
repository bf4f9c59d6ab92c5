"""Figures S4 and S5: the earlier version's studies, judged only by what these captions say."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies import CATALOGUE

S4, S5 = (CATALOGUE[f"orhan2018/figure-{item}"] for item in ("S4", "S5"))


def steps(plain: float, residual: float) -> Results:
    """Steps from small random weights, with other starts and dynamics beside that no claim may see."""
    rows = [
        {"run": run, "network": network, "start": start, "dynamics": dynamics, "value": value * factor}
        for run, factor in enumerate((0.9, 0.95, 1.0, 1.05, 1.1))
        for network, value in (("plain", plain), ("residual", residual))
        for start, dynamics in (("small", "corrected"), ("small", "printed"), ("orthonormal", "corrected"))
        if (start, dynamics) == ("small", "corrected") or network == "plain"
    ]
    frame = pd.DataFrame(rows).assign(quantity="steps")
    frame.loc[(frame["dynamics"] == "printed") | (frame["start"] != "small"), "value"] = 1.0
    return Results(SimpleNamespace(), [Part("orhan2017/linear-descents", "flows", frame)])


def times(plain: float, residual: float, hyper: float) -> Results:
    """Times of a race of ten layers, and of another race that no claim may see."""
    settings = SimpleNamespace(layers=10, spreads=(1e-4, 1e-2), s=3.0)
    named = {"plain": plain, "residual": residual, "hyper-residual": hyper}
    rows = [
        {"run": run, "network": network, "layers": 9, "spread": spread, "s": 3.0, "value": value * factor}
        for run, factor in enumerate((0.9, 0.95, 1.0, 1.05, 1.1))
        for network, value in named.items()
        for spread in settings.spreads
    ]
    frame = pd.DataFrame(rows).assign(quantity="time")
    frame.loc[frame["spread"] == 1e-2, "value"] = 1.0
    return Results(settings, [Part("orhan2017/mode-race", "flows", frame)])


def judged(study: Any, results: Results) -> list[Verdict]:
    return judge(study, results, "quick")


def test_each_caption_makes_one_claim_of_its_own() -> None:
    found = {(claim.id, claim.source) for study in (S4, S5) for claim in study.claims}
    assert found == {("residual-faster", "figure S4"), ("plain-does-not-converge", "figure S5")}
    assert S4.stages == CATALOGUE["orhan2017/figure-5"].stages
    assert S5.figure is CATALOGUE["orhan2017/figure-6"].figure


@pytest.mark.parametrize(
    ("plain", "verdict"), [(100.0, "holds"), (20.5, "contradicted"), (10.0, "contradicted")]
)
def test_faster_is_by_a_tenth_of_the_steps_or_more(plain: float, verdict: str) -> None:
    rows = judged(S4, steps(plain, 20.0))
    assert [row.verdict for row in rows if row.headline] == [verdict]
    assert [row.condition.partition(",")[0] for row in rows if not row.headline] == ["equal norms"] * 2


@pytest.mark.parametrize(
    ("residual", "verdicts"), [(1.0, ["holds", "holds"]), (200.0, ["contradicted", "holds"])]
)
def test_the_plain_network_is_left_behind_by_both_others(residual: float, verdicts: list[str]) -> None:
    rows = judged(S5, times(1e3, residual, 1e-3))
    assert [row.condition for row in rows] == ["plain and residual", "plain and hyper-residual"]
    assert [row.verdict for row in rows] == verdicts


def test_the_rows_are_those_of_the_studies_that_are_repeated(smoke_run: Any) -> None:
    for study in (S4, S5):
        rows = smoke_run(study).verdicts
        assert {row.claim for row in rows} == {claim.id for claim in study.claims}
        assert all(row.statistic is not None and row.statistic > 0 for row in rows if row.headline)
