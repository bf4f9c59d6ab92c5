"""Figure 2's study on made-up curves: who reaches a risk first, and the error at equal risk."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study, stage_name
from skiplab.studies.yu2019.figure_2 import STUDY, evidence
from skiplab.studies.yu2019.figure_2.evidence import BARE, DROPPED, LONG, lowest
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, train_pairs
from skiplab.studies.yu2019.table_1 import STUDY as TABLE_1

SETTINGS = dataclasses.replace(STUDY.settings["paper"], epochs=60, bare_epochs=30)


def made_up(
    *,
    runs: int = 13,
    speed: float = 1.3,
    gap: float = 0.01,
    floor: float = 1e-3,
    epochs: int = 60,
    slow: int = 0,
) -> Results:
    """Curves on which residual networks are ``speed`` times as fast and have ``gap`` less error at equal risk.

    Risks fall from 2.3 to ``floor``; ``slow`` plain networks stay at a risk of .3.
    """
    settings = dataclasses.replace(SETTINGS, epochs=epochs)
    stages: dict[str, list[Row]] = {}
    for stage, length in ((LONG, epochs), (BARE, 30)):
        rows: list[Row] = []
        for model in (PLAIN, RESIDUAL):
            for seed in range(runs):
                own = (speed if model == RESIDUAL else 1.0) * (1 + 0.02 * wiggle(seed))
                at = np.arange(length + 1)
                risk = np.maximum(2.3 * np.exp(-own * at / length * 10), floor)
                if model == PLAIN and seed < slow:
                    risk = np.maximum(risk, 0.3)
                error = 0.12 + 0.02 * np.log10(risk) - (gap if model == RESIDUAL else 0.0)
                error = error + 0.002 * wiggle(seed + (model == PLAIN))
                for quantity, curve in (("loss", risk), ("test_error", error)):
                    rows += [
                        {
                            "model": model,
                            "seed": seed,
                            "epoch": epoch,
                            "layer": 0,
                            "quantity": quantity,
                            "value": value,
                        }
                        for epoch, value in enumerate(curve.tolist())
                    ]
        stages[stage] = rows
    return results_with(settings, stages)


def test_stages_have_the_names_that_evidence_reads() -> None:
    assert [stage_name(stage) for stage in STUDY.stages] == [LONG, BARE, DROPPED]


def test_lowered_rates_are_those_of_table_1() -> None:
    calls = STUDY.stages[2](Results(STUDY.settings["paper"]))
    named = train_pairs(Results(TABLE_1.settings["paper"]))
    assert len(calls) == 2
    assert all(any(call.settings == each.settings for each in named) for call in calls)


def test_without_a_constant_rate_the_claims_stay_open() -> None:
    settings = dataclasses.replace(SETTINGS, constant=False)
    assert all(not stage(Results(settings)) for stage in STUDY.stages[:2])
    (rows,) = (part.table.to_dict("records") for part in made_up().parts if part.stage == LONG)
    results = results_with(settings, {DROPPED: rows})
    assert verdicts(STUDY, results) == dict.fromkeys([claim.id for claim in STUDY.claims], "undecided")
    found = rows_by_condition(STUDY, results, "lower-error-at-equal-risk")
    row = found["risk 0.5, the rate lowered as in table 1"]
    assert row.statistic == pytest.approx(0.01, abs=2e-3)
    assert row.headline is False
    assert len(STUDY.figure(results).axes) == 4


def test_on_curves_as_the_paper_says_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == dict.fromkeys([claim.id for claim in STUDY.claims], "holds")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"speed": 1 / 1.3}, {"residual-reaches-first": "contradicted"}),
        ({"gap": 0.0}, {"lower-error-at-equal-risk": "contradicted"}),
        ({"gap": 0.003}, {"lower-error-at-equal-risk": "contradicted"}),  # less than half a point
        ({"gap": -0.01}, {"lower-error-at-equal-risk": "contradicted"}),
        ({"floor": 4e-3}, {"both-reach": "undecided"}),  # 60 epochs are not the paper's 1,200
        ({"floor": 4e-3, "epochs": 1200}, {"both-reach": "contradicted"}),
        ({"runs": 4}, dict.fromkeys([claim.id for claim in STUDY.claims], "undecided")),
    ],
)
def test_other_curves_say_otherwise(changes: dict[str, Any], expected: dict[str, str]) -> None:
    held = dict.fromkeys([claim.id for claim in STUDY.claims], "holds")
    assert verdicts(STUDY, made_up(**changes)) == held | expected


def test_the_lowest_risk_that_all_networks_reach_decides() -> None:
    assert lowest(made_up()) == 0.002
    assert lowest(made_up(floor=0.03)) == 0.05
    results = made_up(slow=1)
    assert lowest(results) == 0.5
    rows = rows_by_condition(STUDY, results, "lower-error-at-equal-risk")
    assert [name for name, row in rows.items() if row.headline] == ["risk 0.5"]
    assert rows["risk 0.1"].runs == 12
    assert "12 of 13 pairs reach it" in rows["risk 0.1"].detail
    assert rows["risk 0.1, no crops or flips"].headline is False


def test_a_risk_that_no_network_reaches_has_no_further_row() -> None:
    results = made_up(floor=0.03)
    for claim in ("residual-reaches-first", "lower-error-at-equal-risk"):
        rows = rows_by_condition(STUDY, results, claim)
        assert {words for words in rows if "crops" not in words} == {
            "risk 0.5", "risk 0.2", "risk 0.1", "risk 0.05",
        }  # fmt: skip
    ticks = STUDY.figure(results).axes[3].get_xticklabels()
    assert [text.get_text() for text in ticks] == ["0.5", "0.2", "0.1", "0.05"]


def test_a_network_that_never_gets_there_is_later_than_all() -> None:
    (row,) = (
        each
        for each in evidence.reaches_first(made_up(slow=3, speed=1 / 1.3))
        if each.condition == "risk 0.1"
    )
    residual, plain = row.samples
    assert plain[:3].tolist() == [61.0] * 3
    assert (residual < plain).sum() == 3
    assert "residual first in 3 of 13 pairs; reached by 10 plain, 13 residual" in row.detail


def test_errors_are_those_of_the_made_up_curves() -> None:
    rows = rows_by_condition(STUDY, made_up(), "lower-error-at-equal-risk")
    for condition in ("risk 0.5", "risk 0.05", "risk 0.002"):
        assert rows[condition].statistic == pytest.approx(0.01, abs=2e-3)


def test_paper_scale_is_the_papers_at_a_constant_rate() -> None:
    long = {call.settings.model: call.settings for call in STUDY.stages[0](Results(STUDY.settings["paper"]))}
    bare = {call.settings.model: call.settings for call in STUDY.stages[1](Results(STUDY.settings["paper"]))}
    assert set(long) == set(bare) == {PLAIN, RESIDUAL}
    for model in long:
        assert long[model].training.drops == bare[model].training.drops == ()
        assert (long[model].training.padding, bare[model].training.padding) == (4, None)
        assert (long[model].rate, long[model].depth, len(long[model].seeds)) == (0.01, 20, 13)
        assert bare[model].seeds == tuple(range(6))


def test_the_figure_has_the_papers_panels(smoke_run: Callable[[Study], StudyRun]) -> None:
    risk, error, equal, sooner = STUDY.figure(results_of(STUDY, smoke_run(STUDY))).axes
    assert (risk.get_ylabel(), error.get_ylabel()) == ("training risk $L$", "test error")
    assert risk.get_yscale() == "log"
    drawn = STUDY.figure(made_up(runs=5)).axes
    assert len(drawn[2].get_lines()) == 4
    assert drawn[2].xaxis_inverted()
    assert [text.get_text() for text in risk.get_legend().get_texts()][:2] == ["Plain", "Residual"]
    assert (equal.get_title(loc="left"), sooner.get_ylabel()) == (
        "error at equal risk",
        "epochs, plain / residual",
    )
