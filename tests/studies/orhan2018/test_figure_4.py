"""Figures 4 and S7: who is measured, what correlations and groups say of tables of our choosing."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy import stats

from skiplab.experiments import networks
from skiplab.experiments.measured_networks import chosen, learned_rows
from skiplab.experiments.networks import Networks, Training
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018 import figure_4, figure_s7
from skiplab.studies.orhan2018.accuracy_evidence import correlation_with_accuracy, extremes, never_learn
from skiplab.studies.orhan2018.accuracy_trials import SMOKE, WIDE, Settings, alike, small, train

SETTINGS = Settings(**SMOKE | {"wide_runs": 30, "runs": 16, "extremes": 6, "alike_gain": None})


def made(stage: str, sign: float) -> Part:
    """Networks whose accuracy grows with the seed; with sign 1 all else goes with it as the paper says."""
    count = 30 if stage == WIDE else 16
    rows: list[dict[str, Any]] = []
    for member in range(count):
        up, wobble = sign * member / count, 0.05 * (member * 7 % 5)
        common = {"member": member, "layer": 0, "epoch": 1}
        rows.append(common | {"quantity": "accuracy", "value": 0.1 + member / 100})
        rows.append(common | {"quantity": "learned", "value": float(member >= 2)})
        if stage == WIDE:
            found = {"norm": 1 + up + wobble, "overlap": 0.2 - up + wobble, "dependence": 0.7 - up + wobble}
        elif not 2 <= member < 8 and member < 10:
            continue  # neither among the worst nor among the best of those that learn
        else:
            found = {"degenerate": 0.5 - 0.3 * up + wobble / 20}
        rows += [common | {"quantity": name, "value": value} for name, value in found.items()]
        if stage == WIDE:
            start = common | {"epoch": 0}
            rows += [start | {"quantity": name, "value": wobble} for name in found]
    settings = Networks("digits", "plain", tuple(range(count)), (1.0,) * count, Training())
    return Part("", stage, networks.table(settings, rows, [False] * count))


def found(sign: float = 1.0) -> Results:
    return Results(SETTINGS, [made(stage, sign) for stage in (WIDE, small(3), small(2))])


@pytest.mark.parametrize("study", [figure_4.STUDY, figure_s7.STUDY], ids=lambda study: study.id)
@pytest.mark.parametrize(("sign", "verdict"), [(1.0, "holds"), (-1.0, "contradicted")])
def test_claims_follow_the_networks(study: Any, sign: float, verdict: str) -> None:
    rows = [row for row in judge(study, found(sign), "quick") if row.headline]
    assert {row.claim for row in rows} == {claim.id for claim in study.claims if claim.source != "ours"}
    assert {row.verdict for row in rows} == {verdict}
    assert {row.condition for row in rows} == {"digits, 3×4", "digits, 2×4", "digits, all networks"}


@pytest.mark.parametrize(("slope", "verdict"), [(0.0, "holds"), (1.0, "contradicted")])
def test_at_a_gain_at_which_all_train_alike_groups_are_to_be_equivalent(slope: float, verdict: str) -> None:
    settings = dataclasses.replace(SETTINGS, alike_gain=2**0.5)
    groups = [dataclasses.replace(made(small(depth), slope), stage=alike(depth)) for depth in (3, 2)]
    rows = judge(figure_4.STUDY, Results(settings, [*found().parts, *groups]), "quick")
    own = {row.condition: row.verdict for row in rows if row.claim == "alike-where-all-train-alike"}
    assert own == {f"digits, {depth}×4, gain 1.41": verdict for depth in (3, 2)}


def test_the_gain_at_which_all_train_alike_has_networks_of_its_own() -> None:
    calls = train(Results(dataclasses.replace(SETTINGS, alike_gain=2**0.5)))
    without = train(Results(SETTINGS))
    assert [call for call in calls if call in without] == without
    assert len(calls) == len(without) + 2
    assert all(set(call.settings.networks.gains) == {2**0.5} for call in calls if call not in without)


def test_correlations_are_spearmans_over_epochs_after_the_start() -> None:
    results = found()
    (row,) = (
        row
        for row in correlation_with_accuracy("norm", 1)(results)
        if row.condition == "digits, all networks"
    )
    then = results.sample(stage=WIDE, data="digits", quantity="norm", epoch=1)
    rho = float(stats.spearmanr(then, np.arange(30)).statistic)
    assert row.detail == f"ρ = {rho:+.3f}; 2 of 30 networks never learn"
    # Pseudo-values have the jackknife's estimate as their mean, near the plain one.
    assert float(np.mean(row.samples[0])) == pytest.approx(np.arctanh(rho), abs=0.3)


def test_groups_are_the_measured_best_and_worst() -> None:
    best, worst, everyone = extremes(found(), "digits", 3)
    assert sorted(worst["seed"].unique()) == [2, 3, 4, 5, 6, 7]
    assert sorted(best["seed"].unique()) == [10, 11, 12, 13, 14, 15]
    assert never_learn(everyone) == "2 of 16 networks never learn"


def test_a_trial_measures_the_extremes_of_those_that_learn() -> None:
    rows = [
        {"member": member, "epoch": epoch, "quantity": "accuracy", "value": value}
        for member, curve in enumerate([(0.9, 0.1), (0.2, 0.5), (0.3, 0.6), (0.1, 0.4), (0.4, 0.7)])
        for epoch, value in enumerate(curve, 1)
    ]
    # The first forgot what it knew and is not ranked; of four, two are best and two worst, never five.
    assert chosen(rows, 5, 3, least=0.3) == [4, 2, 1, 3]
    learned = learned_rows(rows, 2, 0.3)
    assert [row["value"] for row in learned] == [0.0, 1.0, 1.0, 1.0, 1.0]


def test_the_paper_scale_is_as_declared() -> None:
    paper = figure_4.STUDY.settings["paper"]
    assert (paper.runs, paper.wide_runs, paper.extremes, paper.depth, paper.width) == (400, 100, 20, 30, 128)
    assert (paper.narrow_depths, paper.narrow, paper.narrow_components) == ((30, 10), 16, 128)
    assert (paper.gain, paper.seed) == (1.0, 1)
    calls = train(Results(paper))
    # Fresh networks: those of seed 0 chose the gain and the statistics.
    assert all(min(call.settings.networks.seeds) >= 1000 for call in calls)
    assert dataclasses.replace(figure_s7.STUDY.settings["paper"], data=paper.data) == paper


def test_the_figure_shows_every_data_set() -> None:
    drawn = figure_4.STUDY.figure(found())
    assert len(drawn.axes) == 5
    assert "ρ = +" in drawn.axes[2].get_title(loc="left")
