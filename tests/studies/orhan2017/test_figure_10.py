"""Figure 10's trials, which it shares, and its claims on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.experiments.skip_networks import skip_of
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench, Call
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import note_4
from skiplab.studies.orhan2017.figure_10 import STUDY
from skiplab.studies.orhan2018 import figure_8 as later

Make = Callable[..., pd.DataFrame]
TAUS = (0.0, 0.2, 0.4)
SETTINGS = dataclasses.replace(STUDY.settings["smoke"], runs=6, gains=(1.0,), taus=TAUS, width=16)


def named(study: Study, settings: Any) -> list[Call]:
    """The calls of a study's first stage."""
    return list(study.stages[0](Results(settings)))


def results_of(trained: Make, accuracy: Sequence[float]) -> Results:
    """Real matrices, and one accuracy per τ."""
    parts = [
        Part(call.trial.name, call.stage, call.trial.function(call.settings, Bench()))
        for call in named(STUDY, SETTINGS)[:3]
    ]
    for tau, value in zip(TAUS, accuracy, strict=True):
        for seed in (*range(6), 500):
            table = trained("residual", seed, [value + (seed % 500) / 10000], skip=skip_of(tau))
            parts.append(Part(networks.train.name, "search" if seed == 500 else "decide", table))
    return Results(SETTINGS, parts)


def keys(study: Study, scale: str) -> set[str]:
    calls = named(study, study.settings[scale])
    return {call.key(str) for call in calls if call.trial is networks.train}


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_the_networks_are_those_of_the_later_versions_figure_8(scale: str) -> None:
    ours = keys(STUDY, scale)
    assert ours == keys(later.STUDY, scale)
    assert len(ours) == 2 * len(STUDY.settings[scale].taus) * (1 if scale == "smoke" else 2)


def test_the_matrices_at_paper_scale_are_those_of_note_4() -> None:
    ours, theirs = (
        {call for call in named(study, study.settings["paper"]) if call.trial is note_4.matrices}
        for study in (STUDY, note_4.STUDY)
    )
    assert len(ours) == 5
    assert ours <= theirs


@pytest.mark.parametrize(
    ("accuracy", "verdict"), [((0.9, 0.7, 0.5), "holds"), ((0.5, 0.7, 0.9), "contradicted")]
)
def test_the_trend_follows_the_numbers(trained: Make, accuracy: tuple[float, ...], verdict: str) -> None:
    found = judge(STUDY, results_of(trained, accuracy), "quick")
    (trend,) = [row for row in found if row.claim == "accuracy-falls-with-tau" and row.headline]
    assert (trend.condition, trend.verdict) == ("digits, best gains (1)", verdict)
    assert trend.statistic == (1.0 if verdict == "holds" else 0.0)


def test_eigenvalues_stay_within_the_bound(trained: Make) -> None:
    found = judge(STUDY, results_of(trained, (0.9, 0.7, 0.5)), "quick")
    rows = {row.condition: row for row in found if row.claim == "unit-circle"}
    assert {condition: row.verdict for condition, row in rows.items()} == {
        "τ = 0": "holds",
        "τ = 0.2": "holds",
        "τ = 0.4": "holds",
    }
    assert "bound 3.6e-15" in rows["τ = 0"].detail  # 16 eps, as cond(T) is 1 there


def test_an_eigenvalue_off_the_circle_contradicts_the_bound(trained: Make) -> None:
    results = results_of(trained, (0.9, 0.7, 0.5))
    matrices = results.parts[2].table
    off = (matrices["quantity"] == "deviation") & (matrices["tau"] == 0.4) & (matrices["draw"] == 1)
    assert off.sum() == 1
    matrices.loc[off, "value"] = 1e-6
    found = judge(STUDY, results, "quick")
    against = {(row.claim, row.condition) for row in found if row.verdict == "contradicted"}
    assert against == {("unit-circle", "τ = 0.4")}


def test_the_figure_has_a_column_for_the_matrices_and_one_per_data_set(trained: Make) -> None:
    figure = STUDY.figure(results_of(trained, (0.9, 0.7, 0.5)))
    spectra, curves, deviations, gains = figure.axes
    assert len(spectra.get_lines()) == 2 * len(TAUS)
    assert [line.get_label() for line in curves.get_lines()] == [
        f"τ = {tau}, g = 1" for tau in ("0", "0.2", "0.4")
    ]
    assert [text.get_text() for text in deviations.get_legend().get_texts()] == [
        "n·eps·cond(T)²",
        "eps·cond(T)",
    ]
    assert gains.get_xlabel() == "initial gain g"
