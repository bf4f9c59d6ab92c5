"""Figure 5's stages and claims, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd
import pytest

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import SQRT2, Networks, Training
from skiplab.reproduction.store import published
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7
from skiplab.studies.orhan2018 import figure_3, figure_5, figure_6

SETTINGS = dataclasses.replace(
    figure_5.SMOKE, runs=6, gains=(1.0,), narrow_runs=6, at=(0, 1, 3), epochs=2, search_epochs=2
)
TRIPLE = (0.25, 0.1, 0.01)


def made(
    model: str,
    accuracy: dict[tuple[int, float], float],
    *,
    part: str = "wide",
    degenerate: Sequence[float] = (),
    name: str = "digits",
) -> pd.DataFrame:
    """The table of one model's networks from accuracies by (seed, gain); fractions by epoch rise with accuracy."""
    seeds, gains = zip(*accuracy, strict=True)
    settings = Networks(name, model, seeds, gains, Training())
    if model.startswith("bias-reg"):
        mean, sigma, strength = ((value,) * len(seeds) for value in TRIPLE)
        settings = dataclasses.replace(settings, sigmas=sigma, strengths=strength, means=mean)
    rows: list[dict[str, Any]] = []
    least = min(accuracy.values())
    for member, value in enumerate(accuracy.values()):
        common = {"member": member, "layer": 0}
        rows += [
            common | {"epoch": epoch, "quantity": "accuracy", "value": value * epoch / 2} for epoch in (1, 2)
        ]
        rows += [
            common | {"epoch": epoch, "quantity": "degenerate", "value": fraction + value - least}
            for epoch, fraction in zip(SETTINGS.at, degenerate, strict=False)
        ]
    frame = earlier.table(settings, rows, [False] * len(seeds))
    return frame if part == "wide" else frame.assign(part=part)


def study_table(accuracy: dict[str, float], degenerate: dict[str, tuple[float, ...]]) -> pd.DataFrame:
    """The study's table with small differences between runs; narrow accuracies are the other way round."""
    rows = []
    for model, mean in accuracy.items():
        for part, middle in (("wide", mean), ("narrow", 1 - mean)):
            values = {(seed, 1.0): middle + (seed % 500) / 1000 for seed in (*range(6), 500)}
            rows.append(made(model, values, part=part, degenerate=degenerate[model]))
    return figure_5.table(SETTINGS, rows)


PAPER = (
    {"plain": 0.4, "residual": 0.9, "bias-reg": 0.6},
    {"plain": (0.6, 0.6, 0.5), "residual": (0.6, 0.3, 0.2), "bias-reg": (0.6, 0.5, 0.4)},
)


def test_claims_hold_where_the_paper_is_right() -> None:
    rows = judge(figure_5.STUDY, study_table(*PAPER), SETTINGS, "quick")
    assert {row.verdict for row in rows if row.headline} == {"holds"}
    found = {(row.claim, row.condition): row for row in rows}
    row = found["bias-reg-beats-plain", "digits, best gains (1)"]
    assert row.statistic == pytest.approx(0.2, abs=1e-6)
    row = found["bias-reg-less-degenerate", "epoch 3, digits, best gains (1)"]
    assert row.statistic == pytest.approx(0.1, abs=1e-6)
    assert row.means == pytest.approx((0.5025, 0.4025), abs=1e-6)


def test_claims_fall_where_the_paper_is_wrong() -> None:
    accuracy = {"plain": 0.6, "residual": 0.9, "bias-reg": 0.4}
    degenerate = {"plain": (0.6, 0.5, 0.4), "residual": (0.6, 0.3, 0.2), "bias-reg": (0.6, 0.6, 0.5)}
    rows = judge(figure_5.STUDY, study_table(accuracy, degenerate), SETTINGS, "quick")
    assert {row.verdict for row in rows if row.headline} == {"contradicted"}


def test_untrained_networks_are_further_rows() -> None:
    rows = [
        row
        for row in judge(figure_5.STUDY, study_table(*PAPER), SETTINGS, "quick")
        if row.claim == "bias-reg-less-degenerate"
    ]
    assert {row.condition.split(",")[0] for row in rows if row.headline} == {"epoch 1", "epoch 3"}
    untrained = [row for row in rows if row.condition.startswith("epoch 0")]
    assert untrained
    assert all(row.statistic == 0 and row.verdict == "undecided" for row in untrained)


def stage_tables(settings: figure_5.Settings, sets: tuple[str, ...]) -> pd.DataFrame:
    """What the searches could have left: every model best at √2, wide and narrow."""
    values = {(500, gain): 0.9 if gain == SQRT2 else 0.1 for gain in settings.gains}
    models = (*figure_5.MODELS, "hyper-residual")
    grid = product(sets, models, ("wide", "narrow"))
    return pd.concat([made(model, values, part=part, name=name) for name, model, part in grid])


def keys(calls: list[Any]) -> set[Any]:
    return {dataclasses.replace(call, label="") for call in calls}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_plain_and_residual_runs_are_figure_3s(scale: str) -> None:
    """On CIFAR-100 every trial of plain and residual nets, wide or narrow, is one that figure 3 names."""
    ours, theirs = figure_5.STUDY.settings[scale], figure_3.STUDY.settings[scale]
    found = stage_tables(ours, ours.data)
    for number in (0, 1):
        before = [found][:number]
        named = keys(figure_5.STUDY.stages[number](ours, before))
        same = keys(figure_3.STUDY.stages[number](theirs, before))
        shared = {call for call in named if call in same}
        for call in named - shared:
            wide = getattr(call.settings, "networks", call.settings)
            assert wide.model == "bias-reg" or wide.data == "cifar10"
        parts = {getattr(call.settings, "part", "wide") for call in shared}
        assert parts == {"wide", "narrow"}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_plain_and_residual_runs_are_the_earlier_papers(scale: str) -> None:
    theirs = figure_7.STUDY.settings[scale]
    ours = dataclasses.replace(figure_5.STUDY.settings[scale], runs=theirs.runs)
    wide = [call for call in figure_5.search(ours, []) if call.trial is earlier.train]
    free = keys([call for call in wide if call.settings.model in figure_5.FREE])
    assert len(free) == 4
    assert free <= keys(figure_7.search(theirs, []))
    calls = keys(figure_5.decide(ours, [stage_tables(ours, ours.data)]))
    decided = {call for call in calls if call.trial is earlier.train and call.settings.model in figure_5.FREE}
    named = {
        earlier.call(
            theirs.training,
            name,
            model,
            figure_7.members(theirs, pd.DataFrame(), name, model, earlier.final_seeds(0, theirs.runs)),
            norms_at=theirs.norms_at,
        )
        for name in theirs.data
        for model in figure_5.FREE
    }
    assert decided == keys(list(named))


def test_with_twenty_runs_plain_and_residual_nets_are_published() -> None:
    """A key depends on the data's hash; that of the published run is used, so that no data set is needed."""
    store = published()
    (run,) = store.runs("orhan2017/figure-7")
    settings = dataclasses.replace(figure_5.STUDY.settings["paper"], runs=20)
    calls = figure_5.search(settings, []) + figure_5.decide(settings, [stage_tables(settings, settings.data)])
    free = [call for call in calls if call.trial is earlier.train and call.settings.model in figure_5.FREE]
    assert len(free) == 8
    assert all(store.has(call.key(run.provenance["data"].__getitem__)) for call in free)


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_figure_6_shares_the_networks_of_the_last_set(scale: str) -> None:
    ours, theirs = figure_5.STUDY.settings[scale], figure_6.STUDY.settings[scale]
    assert theirs.data == ours.with_spectra.data
    found = stage_tables(ours, ours.data)
    for number in (0, 1):
        before = [found][:number]
        six = keys(figure_6.STUDY.stages[number](theirs, before))
        five = keys(figure_5.STUDY.stages[number](ours, before))
        assert {call.settings.model for call in six - five} == (set() if number == 0 else {"bias-reg-bn"})


def test_spectra_are_of_the_last_set_alone() -> None:
    settings = dataclasses.replace(figure_5.QUICK, data=("cifar10", "digits"))
    calls = figure_5.search(settings, []) + figure_5.decide(settings, [stage_tables(settings, settings.data)])
    narrow = {call.settings.data for call in calls if call.trial is networks.train_and_measure}
    assert narrow == {"digits"}
    assert {call.settings.data for call in calls if call.trial is earlier.train} == {"cifar10", "digits"}


def test_the_figure_shows_every_model_and_states_the_samples() -> None:
    drawn = figure_5.figure(study_table(*PAPER), SETTINGS)
    first, spectra, _, last = drawn.axes
    assert [text.get_text() for text in first.get_legend().get_texts()] == ["Plain", "Residual", "BiasReg"]
    assert spectra.get_title(loc="left") == "3 × 4 units, 40 samples"
    assert next(text.get_text() for text in last.get_legend().get_texts()) == "Plain, g = 1"
    heights = [float(line.get_ydata()[-1]) for line in spectra.lines]
    assert heights == pytest.approx([0.5025, 0.2025, 0.4025], abs=1e-6)


def test_best_gains_come_from_the_part_they_are_for() -> None:
    frame = study_table(*PAPER)
    other = made("plain", {(seed, 0.3): 1.0 for seed in (500, 0)}, part="narrow")
    frame = networks.joined([frame, other])
    assert searches.best_gain(networks.part(frame, "narrow"), "digits", "plain") == 0.3
    (row, *_) = figure_5.better(frame, SETTINGS)
    assert row.condition == "digits, best gains (1)"
