"""Figure 9's order of skip matrices, its claims, and what it shares with figure 7."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import PLAIN
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.trial import Call
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7, figure_8, figure_9

Make = Callable[..., pd.DataFrame]
STUDY = figure_9.STUDY
SETTINGS = dataclasses.replace(
    STUDY.settings["smoke"], runs=6, gains=(1.0,), depth=5, folded=(4, 1), constant=True
)


def results_of(trained: Make, accuracy: dict[str, float], slopes: dict[str, float]) -> Results:
    parts = []
    for skip, value in accuracy.items():
        for seed in (*range(6), 500):
            norms = np.exp((slopes[skip] + (seed % 500) / 1000) * np.arange(5))
            result = [value + (seed % 500) / 10000]
            model, matrix = ("plain", "identity") if skip == "plain" else ("residual", skip)
            table = trained(model, seed, result, skip=matrix, norms=[norms] * 3)
            parts.append(Part(networks.train.name, "search" if seed == 500 else "decide", table))
    return Results(SETTINGS, parts)


def named(settings: Any) -> list[Call]:
    """The calls of the one stage."""
    return list(STUDY.stages[0](Results(settings)))


def test_skips_go_from_the_least_to_the_most_orthogonal() -> None:
    assert [model.skip for model in SETTINGS.skips] == ["folded-1", "folded-4", "orthogonal"]
    paper = [model.skip for model in STUDY.settings["paper"].skips]
    assert paper == [*(f"folded-{count}" for count in (1, 2, 4, 8, 16, 32, 64)), "orthogonal"]


@pytest.mark.parametrize(
    ("accuracy", "slopes", "verdict"),
    [
        ((0.3, 0.3, 0.5, 0.8, 0.79, 0.4), (0.0, 1.0, 0.5, 0.0, 0.0, 0.0), "holds"),
        ((0.8, 0.8, 0.5, 0.3, 0.9, 0.7), (0.0, 0.0, 0.2, 1.0, 0.0, 0.0), "contradicted"),
    ],
)
def test_claims_follow_the_numbers(
    trained: Make, accuracy: tuple[float, ...], slopes: tuple[float, ...], verdict: str
) -> None:
    skips = ("constant", "folded-1", "folded-4", "orthogonal", "identity", "plain")
    results = results_of(
        trained, dict(zip(skips, accuracy, strict=True)), dict(zip(skips, slopes, strict=True))
    )
    rows = [row for row in judge(STUDY, results, "quick") if row.headline]
    assert {row.verdict for row in rows} == {verdict}
    assert [(row.claim, row.condition) for row in rows] == [
        ("monotone-in-folding", "digits, best gains (1)"),
        ("orthogonal-not-worse", "digits, best gains (1)"),
        ("orthogonal-slightly-better", "digits, best gains (1)"),
        ("no-help-without-breaking", "constant, digits, best gains (1)"),
        ("folded-gradients-decay", "digits, common gain 1"),
    ]
    for row in (rows[0], rows[-1]):
        assert row.statistic == (1.0 if verdict == "holds" else 0.0)


def test_every_skip_matrix_is_searched_and_decided() -> None:
    calls = named(SETTINGS)
    skips = ["folded-1", "folded-4", "orthogonal", "identity", "constant"]
    models = [*(("residual", skip) for skip in skips), ("plain", "identity")]
    assert [
        (call.settings.model, call.settings.skip, call.stage, call.settings.seeds[0]) for call in calls
    ] == [(*model, *stage) for model in models for stage in (("decide", 0), ("search", 500))]


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_plain_networks_are_those_of_figures_5_and_8(scale: str) -> None:
    """Whatever the number of runs with skips, so that plain networks are trained once."""
    theirs = Results(dataclasses.replace(figure_8.STUDY.settings[scale], data=STUDY.settings[scale].data))
    ours = {call for call in named(STUDY.settings[scale]) if call.settings.model == "plain"}
    experiment = GainExperiment(PLAIN)
    assert ours == set(experiment.train(theirs))
    searched = figure_8.STUDY.stages[0](theirs)
    assert {call for call in searched if call.settings.model == "plain"} <= ours


def test_identity_skips_are_figure_7s_residual_networks() -> None:
    """With as many runs the search and the deciding runs of identity skips are the very same trials."""
    quick = figure_7.STUDY.settings["quick"]
    quick_calls = named(STUDY.settings["quick"])
    shared = {
        call for call in quick_calls if (call.settings.model, call.settings.skip) == ("residual", "identity")
    }
    searched = {
        call for call in figure_7.STUDY.stages[0](Results(quick)) if call.settings.model == "residual"
    }
    assert searched <= shared
    assert len(shared) == 4


def test_claims_wait_for_the_runs_they_speak_of(trained: Make) -> None:
    """Only equal skips break no symmetry, and one data set is not both."""
    skips = ("folded-1", "folded-4", "orthogonal", "identity", "plain")
    values = dict.fromkeys(skips, 0.5)
    parts = [
        dataclasses.replace(part, table=part.table.assign(data="cifar10"))
        for part in results_of(trained, values, values).parts
    ]
    reduced = dataclasses.replace(SETTINGS, data=("cifar10",), constant=False)
    rows = {(row.claim, row.condition): row for row in judge(STUDY, Results(reduced, parts), "quick")}
    for key in (
        ("no-help-without-breaking", "constant, cifar10, best gains"),
        ("orthogonal-not-worse", "cifar100-coarse, best gains"),
        ("orthogonal-slightly-better", "cifar100-coarse, best gains"),
    ):
        assert (rows[key].verdict, rows[key].headline) == ("undecided", True)
        assert rows[key].detail.startswith("not run yet")
    assert {row.condition for row in rows.values() if row.claim == "no-help-without-breaking"} == {
        "constant, cifar10, best gains"
    }


def test_gradients_are_judged_where_all_matrices_learn(trained: Make) -> None:
    """Glorot's gain, at which they do not, says nothing against the common one."""
    skips = ("folded-1", "folded-4", "orthogonal", "identity", "plain")
    steep = dict(zip(skips, (1.0, 0.5, 0.0, 0.0, 0.0), strict=True))
    flat = dict(zip(skips, (0.0, 0.5, 1.0, 0.0, 0.0), strict=True))

    def verdict(at_glorot: dict[str, float], there: float) -> str:
        parts = []
        for gain, slopes, accuracy in ((0.3, steep, 0.9), (1.0, at_glorot, there)):
            made = results_of(trained, dict.fromkeys(skips, accuracy), slopes).parts
            parts += [dataclasses.replace(part, table=part.table.assign(gain=gain)) for part in made]
        results = Results(dataclasses.replace(SETTINGS, gains=(0.3, 1.0), constant=False), parts)
        rows = judge(STUDY, results, "quick")
        (row,) = (row for row in rows if row.claim == "folded-gradients-decay" and row.headline)
        return f"{row.condition}: {row.verdict}"

    assert verdict(flat, 0.05) == "digits, common gain 0.3: holds"
    assert verdict(flat, 0.5) == "digits, common gain 1: contradicted"


def test_a_trend_that_turns_when_training_begins_is_open(trained: Make) -> None:
    """The paper does not say when it measures gradients."""
    skips = ("folded-1", "folded-4", "orthogonal", "identity", "plain")
    steep = dict(zip(skips, (1.0, 0.5, 0.0, 0.0, 0.0), strict=True))
    flat = dict(zip(skips, (0.0, 0.5, 1.0, 0.0, 0.0), strict=True))
    accuracy = dict.fromkeys(skips, 0.9)
    parts = []
    for begun, start in zip(
        results_of(trained, accuracy, steep).parts, results_of(trained, accuracy, flat).parts, strict=True
    ):
        first = (begun.table["quantity"] == "gradient_norm") & (begun.table["epoch"] == 0)
        value = begun.table["value"].where(~first, start.table["value"])
        parts.append(dataclasses.replace(begun, table=begun.table.assign(value=value)))
    results = Results(dataclasses.replace(SETTINGS, constant=False), parts)
    rows = [row for row in judge(STUDY, results, "quick") if row.claim == "folded-gradients-decay"]
    assert [(row.condition, row.headline, row.verdict) for row in rows[:2]] == [
        ("digits, when the paper measures", True, "undecided"),
        ("digits, common gain 1", False, "holds"),
    ]
    assert rows[0].missing == "not said"
    assert "P is 1 at common gain 1 once training has begun, 0 before it" in rows[0].detail
