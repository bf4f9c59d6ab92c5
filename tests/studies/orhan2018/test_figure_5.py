"""Figure 5's stages and claims, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest

from skiplab.experiments import measured_networks, networks
from skiplab.experiments.gain_experiment import deciding_call
from skiplab.experiments.gains import WIDE
from skiplab.experiments.narrow_networks import NARROW
from skiplab.experiments.networks import SQRT2, Networks, Training
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.store import published
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7, figure_8
from skiplab.studies.orhan2018 import figure_3, figure_5, figure_6

SETTINGS = dataclasses.replace(
    figure_5.STUDY.settings["smoke"],
    runs=6,
    gains=(1.0,),
    narrow_runs=6,
    at=(0, 1, 3),
    epochs=2,
    search_epochs=2,
    control_runs=0,
)
FREE = {model.name for model in figure_5.FREE}
TRIPLE = (0.25, 0.1, 0.01)


def made(
    model: str,
    accuracy: dict[tuple[int, float], float],
    stage: str,
    *,
    degenerate: Sequence[float] = (),
    name: str = "digits",
) -> Part:
    """One model's networks from accuracies by (seed, gain); fractions by epoch rise with accuracy."""
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
    return Part("", stage, networks.table(settings, rows, [False] * len(seeds)))


def found(accuracy: Mapping[str, float], degenerate: Mapping[str, Sequence[float]]) -> Results:
    """Results with small differences between runs; narrow accuracies are the other way round."""
    parts = []
    for model, mean in accuracy.items():
        for size, middle in ((WIDE, mean), (NARROW, 1 - mean)):
            for stage, seeds in ((size.search, [500]), (size.decide, range(6))):
                values = {(seed, 1.0): middle + (seed % 500) / 1000 for seed in seeds}
                parts.append(made(model, values, stage, degenerate=degenerate[model]))
    return Results(SETTINGS, parts)


PAPER = (
    {"plain": 0.4, "residual": 0.9, "bias-reg": 0.6},
    {"plain": (0.6, 0.6, 0.5), "residual": (0.6, 0.3, 0.2), "bias-reg": (0.6, 0.5, 0.4)},
)


def test_claims_hold_where_the_paper_is_right() -> None:
    rows = judge(figure_5.STUDY, found(*PAPER), "quick")
    assert {row.verdict for row in rows if row.headline and not row.ours} == {"holds"}
    by_name = {(row.claim, row.condition): row for row in rows}
    row = by_name["bias-reg-beats-plain", "digits, best gains (1)"]
    assert row.statistic == pytest.approx(0.2, abs=1e-6)
    row = by_name["bias-reg-less-degenerate", "epoch 3, digits, common gain 1"]
    assert (row.headline, row.paired) == (True, True)
    assert row.statistic == pytest.approx(0.1, abs=1e-6)
    assert row.means == pytest.approx((0.5025, 0.4025), abs=1e-6)


def test_claims_fall_where_the_paper_is_wrong() -> None:
    accuracy = {"plain": 0.6, "residual": 0.9, "bias-reg": 0.4}
    degenerate = {"plain": (0.6, 0.5, 0.4), "residual": (0.6, 0.3, 0.2), "bias-reg": (0.6, 0.6, 0.5)}
    rows = judge(figure_5.STUDY, found(accuracy, degenerate), "quick")
    headlines = {row.claim: row.verdict for row in rows if row.headline and not row.ours}
    # Targets that were searched at length might do better.
    assert headlines == {"bias-reg-beats-plain": "undecided", "bias-reg-less-degenerate": "contradicted"}


def test_untrained_networks_are_further_rows() -> None:
    rows = [
        row
        for row in judge(figure_5.STUDY, found(*PAPER), "quick")
        if row.claim == "bias-reg-less-degenerate"
    ]
    assert {row.condition.split(",")[0] for row in rows if row.headline} == {"epoch 1", "epoch 3"}
    untrained = [row for row in rows if row.condition.startswith("epoch 0")]
    assert untrained
    # The same networks: no difference, and as a further row no verdict on the claim.
    assert all(row.statistic == 0 and not row.headline for row in untrained)


def test_bias_regularisation_that_does_nothing_waits_for_a_longer_search() -> None:
    accuracy = {"plain": 0.4, "residual": 0.9, "bias-reg": 0.402}
    rows = [
        row
        for row in judge(figure_5.STUDY, found(accuracy, PAPER[1]), "quick")
        if row.claim == "bias-reg-beats-plain"
    ]
    (row,) = (row for row in rows if row.headline)
    assert (row.condition, row.verdict, row.missing) == ("digits, tuned", "undecided", "not run")
    beside = next(row for row in rows if row.condition == "digits, best gains (1)")
    assert (beside.verdict, beside.reason, beside.paired) == (
        "contradicted",
        "no difference worth having",
        True,
    )


def searched(settings: Any, sets: tuple[str, ...]) -> Results:
    """What the searches could have left: every model best at √2, wide and narrow."""
    values = {(500, gain): 0.9 if gain == SQRT2 else 0.1 for gain in settings.gains}
    models = [*(model.name for model in figure_5.MODELS), "hyper-residual"]
    grid = product(sets, models, (WIDE, NARROW))
    return Results(settings, [made(model, values, size.search, name=name) for name, model, size in grid])


def stages(study: Any, settings: Any, sets: tuple[str, ...]) -> list[set[Any]]:
    """What each stage names; whatever the searches are asked, they find the same."""
    before, after = study.stages
    return [set(before(Results(settings))), set(after(searched(settings, sets)))]


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_plain_and_residual_runs_are_figure_3s(scale: str) -> None:
    """On CIFAR-100 every trial of plain and residual nets, wide or narrow, is one that figure 3 names."""
    ours, theirs = figure_5.STUDY.settings[scale], figure_3.STUDY.settings[scale]
    both = (stages(figure_5.STUDY, ours, ours.data), stages(figure_3.STUDY, theirs, ours.data))
    for named, same in zip(*both, strict=True):
        shared = named & same
        for call in named - shared:
            wide = getattr(call.settings, "networks", call.settings)
            assert wide.model == "bias-reg" or wide.data == "cifar10"
        parts = {getattr(call.settings, "part", "wide") for call in shared}
        assert parts == {"wide", "narrow"}


@pytest.mark.parametrize("scale", ["quick", "paper"])
def test_plain_and_residual_runs_are_the_earlier_papers(scale: str) -> None:
    ours = figure_5.STUDY.settings[scale]
    theirs = dataclasses.replace(figure_8.STUDY.settings[scale], data=ours.data)
    ours = dataclasses.replace(ours, runs=theirs.runs)
    search, decide = (
        {call for call in calls if call.trial is networks.train and call.settings.model in FREE}
        for calls in stages(figure_5.STUDY, ours, ours.data)
    )
    search, decide = (
        {call for call in calls if set(call.settings.gains) <= set(theirs.gains)}
        for calls in (search, decide)
    )
    assert len(search) == 4
    assert search <= set(figure_7.EXPERIMENT.search(Results(theirs)))
    seeds = networks.final_seeds(0, theirs.runs)
    assert decide == {
        deciding_call(theirs, name, model, figure_7.EXPERIMENT.members(Results(theirs), name, model, seeds))
        for name in theirs.data
        for model in figure_5.FREE
    }


def test_with_twenty_runs_plain_and_residual_nets_are_published() -> None:
    """A key depends on the data's hash; that of the published run is used, so that no data set is needed."""
    store = published()
    (run,) = store.runs("orhan2017/figure-7")
    settings = dataclasses.replace(figure_5.STUDY.settings["paper"], runs=20)
    calls = set().union(*stages(figure_5.STUDY, settings, settings.data))
    free = [
        call
        for call in calls
        if call.trial is networks.train and call.settings.model in FREE and 2.0 not in call.settings.gains
    ]
    assert len(free) == 8
    assert all(store.has(call.key(run.provenance["data"].__getitem__)) for call in free)


@pytest.mark.parametrize("scale", ["smoke", "quick", "paper"])
def test_figure_6_shares_the_networks_of_the_last_set(scale: str) -> None:
    ours, theirs = figure_5.STUDY.settings[scale], figure_6.STUDY.settings[scale]
    assert theirs.data == (ours.with_spectra,)
    five, six = (
        stages(study, study.settings[scale], ours.data) for study in (figure_5.STUDY, figure_6.STUDY)
    )
    assert six[0] <= five[0]
    assert {call.settings.model for call in six[1] - five[1]} == {"bias-reg-bn"}


def test_spectra_are_of_the_last_set_alone() -> None:
    settings = dataclasses.replace(figure_5.STUDY.settings["quick"], data=("cifar10", "digits"))
    calls = set().union(*stages(figure_5.STUDY, settings, settings.data))
    narrow = {call.settings.data for call in calls if call.trial is measured_networks.train_and_measure}
    assert narrow == {"digits"}
    assert {call.settings.data for call in calls if call.trial is networks.train} == {"cifar10", "digits"}


def test_the_figure_shows_every_model_and_states_the_samples() -> None:
    drawn = figure_5.figure(found(*PAPER))
    first, spectra, _, last = drawn.axes
    assert [text.get_text() for text in first.get_legend().get_texts()] == [
        "Plain, g = 1",
        "Residual, g = 1",
        "BiasReg, g = 1",
    ]
    assert spectra.get_title(loc="left") == "3 × 4 units, 40 samples"
    assert next(text.get_text() for text in last.get_legend().get_texts()) == "Plain, g = 1"
    heights = [float(line.get_ydata()[-1]) for line in spectra.lines]
    assert heights == pytest.approx([0.5025, 0.2025, 0.4025], abs=1e-6)


def test_best_gains_come_from_the_size_they_are_for() -> None:
    results = found(*PAPER).and_then([made("plain", {(500, 0.3): 1.0}, NARROW.search)])
    assert NARROW.best_gain(results, "digits", figure_5.PLAIN) == 0.3
    row = next(iter(figure_5.STUDY.claims[0].evidence(results)))
    assert row.condition == "digits, best gains (1)"


def test_it_is_judged_at_best_gains_whatever_glorots_says() -> None:
    """At Glorot's gain BiasReg does nothing, at plain networks' best, which is BiasReg's, too, it does."""
    parts = []
    for model, (glorot, other) in {
        "plain": (0.4, 0.6),
        "residual": (0.9, 0.9),
        "bias-reg": (0.4, 0.8),
    }.items():
        for size in (WIDE, NARROW):
            for stage, seeds in ((size.search, [500]), (size.decide, range(6))):
                values = {
                    (seed, gain): mean + (seed % 500) / 1000
                    for seed in seeds
                    for gain, mean in ((1.0, glorot), (SQRT2, other))
                }
                parts.append(made(model, values, stage, degenerate=PAPER[1][model]))
    settings = dataclasses.replace(SETTINGS, gains=(1.0, SQRT2))
    rows = judge(figure_5.STUDY, Results(settings, parts), "quick")
    (row,) = (row for row in rows if row.claim == "bias-reg-beats-plain" and row.headline)
    assert (row.condition, row.verdict) == ("digits, best gains (1.41)", "holds")
