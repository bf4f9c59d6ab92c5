"""Figure 7's stages, which begin with the networks of the earlier version's figure 9, and its claims."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd
import pytest

from skiplab.experiments import measured_networks, networks
from skiplab.experiments.networks import Member
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_9
from skiplab.studies.orhan2018 import figure_7

STUDY = figure_7.STUDY
SETTINGS = dataclasses.replace(STUDY.settings["smoke"], runs=6, gains=(0.3, 1.0), folded=(4, 1))
SKIPS = ("folded-1", "folded-4", "orthogonal", "identity")


def trained(skip: str, seeds: range, accuracy: float, zero: dict[int, float] | None = None) -> pd.DataFrame:
    """Networks at both gains, the better at gain 1; with zero responses by epoch at gain 1 alone."""
    rows: list[dict[str, Any]] = []
    gains = SETTINGS.gains if zero is None else (1.0,)
    members = [Member(seed, gain) for gain in gains for seed in seeds]
    for number, member in enumerate(members):
        value = accuracy + (member.seed % 500) / 1000 - (0.2 if member.gain < 1 else 0.0)
        common = {"member": number, "layer": 0}
        rows.append(common | {"epoch": 1, "quantity": "accuracy", "value": value})
        for epoch, share in (zero or {}).items():
            share += (member.seed % 500) / 1000
            rows.append(common | {"epoch": epoch, "quantity": "zero", "value": share})
    named = networks.together(SETTINGS.training, "digits", "residual", members, skip=skip)
    return networks.table(named, rows, [False] * len(members))


def first_stage(accuracies: tuple[float, ...]) -> Results:
    """Networks with every skip matrix, searched and decided."""
    parts = [
        Part(networks.train.name, stage, trained(skip, seeds, accuracy))
        for skip, accuracy in zip(SKIPS, accuracies, strict=True)
        for stage, seeds in (("decide", range(6)), ("search", range(500, 501)))
    ]
    return Results(SETTINGS, parts)


def results_of(accuracies: tuple[float, ...], identity: float, orthogonal: float) -> Results:
    """The first stage, and networks whose zero responses were counted."""
    counted = [
        # Accuracies of the measured networks are off on purpose: no claim about accuracy may see them.
        trained(skip, range(6), 0.05, dict.fromkeys(SETTINGS.at, share))
        for skip, share in (("identity", identity), ("orthogonal", orthogonal))
    ]
    name = measured_networks.train_and_measure.name
    return first_stage(accuracies).and_then([Part(name, figure_7.ZERO, table) for table in counted])


@pytest.mark.parametrize(
    ("accuracies", "identity", "orthogonal", "verdict"),
    [((0.3, 0.5, 0.8, 0.79), 0.3, 0.1, "holds"), ((0.8, 0.5, 0.3, 0.9), 0.1, 0.3, "contradicted")],
)
def test_claims_follow_the_numbers(
    accuracies: tuple[float, ...], identity: float, orthogonal: float, verdict: str
) -> None:
    results = results_of(accuracies, identity, orthogonal)
    rows = [row for row in judge(STUDY, results, "quick") if row.headline]
    assert [(row.claim, row.condition, row.verdict) for row in rows] == [
        ("monotone-in-folding", "digits, best gains (1)", verdict),
        ("orthogonal-slightly-better", "digits, best gains (1)", verdict),
        ("orthogonal-has-fewer-zeros", "digits, epoch 1, gains of the best means (1)", verdict),
    ]
    assert rows[1].statistic == pytest.approx(accuracies[2] - accuracies[3], abs=1e-6)
    assert rows[2].statistic == pytest.approx(identity - orthogonal, abs=1e-6)
    assert [row.paired for row in rows] == [True] * 3
    assert [row.ours for row in rows] == [False, False, True]


def test_equal_accuracy_is_not_slightly_better() -> None:
    rows = judge(STUDY, results_of((0.3, 0.5, 0.792, 0.79), 0.3, 0.1), "quick")
    (row,) = (row for row in rows if row.claim == "orthogonal-slightly-better" and row.headline)
    assert (row.verdict, row.reason) == ("contradicted", "no difference worth having")


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_the_folded_networks_are_the_earlier_figures(scale: str) -> None:
    own, theirs = (set(study.stages[0](Results(study.settings[scale]))) for study in (STUDY, figure_9.STUDY))
    assert own <= theirs
    more = {(call.settings.model, call.settings.skip) for call in theirs - own}
    assert more == {("plain", "identity"), ("residual", "constant")}  # on which that figure has claims


def test_zeros_are_counted_at_each_matrixs_best_gain() -> None:
    first = first_stage((0.3, 0.5, 0.8, 0.79))
    for part in first.parts:
        worse = (part.table["skip"] == "orthogonal") & (part.table["gain"] == 1.0)
        part.table.loc[worse, "value"] -= 0.4  # gain .3 is best there
    calls = [call.settings for call in figure_7.count_zeros(first)]
    assert [(call.networks.skip, set(call.networks.gains)) for call in calls] == [
        ("identity", {1.0}),
        ("orthogonal", {0.3}),
    ]
    assert {(call.at, call.units, call.exact, call.limits) for call in calls} == {(SETTINGS.at, 40, 0, 0)}
    assert {call.networks.seeds for call in calls} == {tuple(range(6))}


def test_the_figure_shows_zero_responses_of_two_matrices() -> None:
    figure = figure_7.figure(results_of((0.3, 0.5, 0.8, 0.79), 0.3, 0.1))
    above, below = figure.axes
    assert [line.get_label() for line in above.get_lines()] == [
        "Identity, g = 1",
        "Orthogonal, g = 1",
        "Folded to 4, g = 1",
        "Folded to 1, g = 1",
    ]
    assert [line.get_label() for line in below.get_lines()] == ["Identity, g = 1", "Orthogonal, g = 1"]
    assert below.get_ylabel() == "probability of zero responses"
