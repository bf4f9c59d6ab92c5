"""Stages, claims and panels of figures 3 and S1, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import measured_networks, networks
from skiplab.experiments.gain_experiment import deciding_call
from skiplab.experiments.gains import WIDE, Gains
from skiplab.experiments.narrow_networks import NARROW
from skiplab.experiments.networks import SQRT2, Networks, Training
from skiplab.figures.style import new_figure
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7
from skiplab.studies.orhan2017.bias_grid import GridSettings
from skiplab.studies.orhan2018 import figure_3, figure_s1
from skiplab.studies.orhan2018.spectra_over_training import Settings
from skiplab.studies.orhan2018.spectra_panels import _compared, limits_panel, panels, spectrum_panel

SMOKE = figure_3.STUDY.settings["smoke"]
# Figure S1's, which have one more than figure 3's.
SETTINGS = dataclasses.replace(
    figure_s1.Settings(**vars(SMOKE)),
    runs=6,
    gains=(0.3, SQRT2),
    narrow_runs=6,
    other_runs=5,
    at=(0, 3),
    epochs=4,
    spectrum_at=3,
)
MODELS = figure_3.THREE.models
both_studies = pytest.mark.parametrize(
    "study", [figure_3.STUDY, figure_s1.STUDY], ids=["figure-3", "figure-S1"]
)
# Model → (accuracy, degenerate, negative) at its best gain; the mean of runs that differ by a thousandth each.
Numbers = Mapping[str, tuple[float, float, float]]
AS_THE_PAPER_SAYS: Numbers = {
    "plain": (0.4, 0.6, 0.2),
    "residual": (0.8, 0.4, 0.3),
    "hyper-residual": (0.795, 0.2, 0.4),
}
THE_OTHER_WAY_ROUND: Numbers = {
    "plain": (0.9, 0.2, 0.4),
    "residual": (0.8, 0.4, 0.3),
    "hyper-residual": (0.4, 0.6, 0.2),
}


def together(
    model: str, seeds: Sequence[int], gain: float, numbers: tuple[float, float, float], stage: str
) -> Part:
    """Some networks: accuracy rises over four epochs, fractions of narrow ones are measured at two of them."""
    rows: list[dict[str, Any]] = []
    for member, seed in enumerate(seeds):
        accuracy, *fractions = (number + (seed % 500) / 1000 for number in numbers)
        common = {"member": member, "layer": 0}
        rows += [
            common | {"epoch": epoch, "quantity": "accuracy", "value": accuracy - (4 - epoch) / 100}
            for epoch in range(1, 5)
        ]
        if stage == NARROW.decide:
            rows += [
                common | {"epoch": epoch, "quantity": quantity, "value": value}
                for epoch in SETTINGS.at
                for quantity, value in zip(("degenerate", "negative"), fractions, strict=True)
            ]
    training = Training(epochs=4, width=len(stage))
    settings = Networks("digits", model, tuple(seeds), (gain,) * len(seeds), training)
    return Part("", stage, networks.table(settings, rows, [False] * len(seeds)))


def found(numbers: Numbers, *, narrower: float = 0.0, of: str = "", settings: Any = SETTINGS) -> Results:
    """Wide and narrow networks at two gains; at √2, which is not best, all numbers are .1 lower.

    ``narrower`` is how much more accurate the narrow networks ``of`` a model are than its wide ones.
    """
    parts = []
    for model, size, gain in product(numbers, (WIDE, NARROW), SETTINGS.gains):
        accuracy, degenerate, negative = (mean - (gain != 0.3) / 10 for mean in numbers[model])
        accuracy += narrower * (size is NARROW and model == of)
        runs = 6 if gain == 0.3 or size is WIDE else 5
        for stage, seeds in ((size.search, [500]), (size.decide, range(runs))):
            parts.append(together(model, seeds, gain, (accuracy, degenerate, negative), stage))
    return Results(settings, parts)


def listed(model: str, values: list[float]) -> Part:
    """The eigenvalues of one network, as its trial lists them."""
    settings = Networks("digits", model, (0,), (0.3,), Training(epochs=3))
    rows = [
        {"member": 0, "epoch": 3, "quantity": "eigenvalue", "layer": rank, "value": value}
        for rank, value in enumerate(values)
    ]
    return Part("", "spectrum", networks.table(settings, rows, [False]))


@both_studies
def test_every_claim_holds_where_the_paper_is_right(study: Study) -> None:
    rows = judge(study, found(AS_THE_PAPER_SAYS), "quick")
    assert {row.verdict for row in rows if row.headline} == {"holds"}
    headlines = {(row.claim, row.condition): row for row in rows if row.headline}
    assert {claim for claim, _ in headlines} == {claim.id for claim in study.claims}
    # Training starts after epoch 0, and the second of two epochs is 3.
    (condition,) = {condition for _, condition in headlines if condition.startswith("epoch")}
    assert condition == "epoch 3, digits, common gain 0.3"
    row = headlines["plain-more-degenerate-than-residual", condition]
    assert (row.statistic, row.runs, row.paired) == (pytest.approx(0.2, abs=1e-6), 6, True)
    row = headlines["residual-more-negative-than-plain", condition]
    assert row.statistic == pytest.approx(0.1, abs=1e-6)
    row = headlines["residual-beats-plain", "digits, best gains (0.3)"]
    assert row.statistic == pytest.approx(0.4, abs=1e-6)


@both_studies
def test_every_claim_falls_where_the_paper_is_wrong(study: Study) -> None:
    rows = judge(study, found(THE_OTHER_WAY_ROUND), "quick")
    assert {row.verdict for row in rows} == {"contradicted"}


@pytest.mark.slow
def test_a_point_decides_whether_hyper_residual_is_worse() -> None:
    worse = {**AS_THE_PAPER_SAYS, "hyper-residual": (0.78, 0.2, 0.4)}
    for numbers, verdict in ((AS_THE_PAPER_SAYS, "holds"), (worse, "contradicted")):
        rows = judge(figure_3.STUDY, found(numbers), "quick")
        (row,) = [
            row for row in rows if row.claim == "hyper-residual-not-worse-than-residual" and row.headline
        ]
        assert row.verdict == verdict


def test_other_gains_and_narrow_accuracies_are_further_rows() -> None:
    rows = judge(figure_s1.STUDY, found(AS_THE_PAPER_SAYS), "quick")
    further = {(row.claim, row.condition): row.runs for row in rows if not row.headline}
    spectra = {
        (claim, f"epoch {epoch}, digits, {gain}"): runs
        for claim in ("plain-more-degenerate-than-residual", "residual-more-negative-than-plain")
        for epoch in SETTINGS.at
        for gain, runs in (("common gain 0.3", 6), ("gain 1.41", 5), ("best gains (0.3)", 6))
        if (epoch, gain) != (3, "common gain 0.3")
    }
    beats = {
        ("residual-beats-plain", condition): 6
        for condition in ("digits, gain 0.3", "digits, gain 1.41", "3×4 networks, digits, best gains (0.3)")
    }
    assert further == spectra | beats


def test_a_difference_too_small_to_matter_contradicts() -> None:
    alike = {**AS_THE_PAPER_SAYS, "plain": (0.798, 0.402, 0.298)}
    rows = [row for row in judge(figure_s1.STUDY, found(alike), "quick") if row.headline]
    assert {(row.verdict, row.reason) for row in rows} == {("contradicted", "no difference worth having")}


def test_accuracies_and_fractions_come_from_different_networks() -> None:
    # With the narrow ones' accuracies the other way round, only the further row changes.
    rows = judge(figure_s1.STUDY, found(AS_THE_PAPER_SAYS, narrower=0.5, of="plain"), "quick")
    fallen = {row.condition for row in rows if row.verdict == "contradicted"}
    assert fallen == {"3×4 networks, digits, best gains (0.3)"}


def searched(best: Mapping[Gains, float], settings: Settings) -> Results:
    """What the searches leave: for each size the best gain of all models."""
    parts = [
        together(model.name, [500], gain, (0.5 if gain == of_size else 0.1, 0.0, 0.0), size.search)
        for size, of_size in best.items()
        for model in MODELS
        for gain in SETTINGS.gains
    ]
    return Results(settings, parts)


def test_the_second_stage_takes_each_sizes_own_best_gain() -> None:
    settings = dataclasses.replace(SETTINGS, other_runs=0)
    calls = figure_3.THREE.decide(searched({WIDE: SQRT2, NARROW: 0.3}, settings))
    measured = [call.settings for call in calls if call.trial is measured_networks.train_and_measure]
    by_part = {
        part: [one for one in measured if one.part == part] for part in ("narrow", "limits", "spectrum")
    }
    assert len(measured) == len(MODELS) * len(by_part)
    for part, gain in (("narrow", 0.3), ("limits", SQRT2), ("spectrum", 0.3)):
        assert [one.networks.model for one in by_part[part]] == [model.name for model in MODELS]
        assert {one.networks.gains for one in by_part[part]} == {
            (gain,) * len(by_part[part][0].networks.seeds)
        }
    narrow, limits, spectrum = (by_part[part][0] for part in by_part)
    assert (narrow.networks.seeds, narrow.exact, narrow.limits) == (tuple(range(6)), settings.samples, 0)
    assert (narrow.networks.training.width, limits.networks.training.width) == (
        settings.narrow,
        settings.width,
    )
    assert (limits.networks.seeds, limits.exact, limits.limits) == ((0, 1), 0, settings.wide_samples)
    assert (spectrum.networks.seeds, spectrum.at, spectrum.eigenvalues_at) == ((0,), (3,), (3,))
    assert spectrum.networks.training == dataclasses.replace(narrow.networks.training, epochs=3)


def test_with_runs_as_there_plain_and_residual_are_the_earlier_papers() -> None:
    settings = dataclasses.replace(figure_3.STUDY.settings["paper"], runs=20)
    theirs = GridSettings(data=settings.data)
    ours = figure_3.STUDY.stages[0](Results(settings))  # gain 2 is in trials of its own
    shared = set(figure_7.EXPERIMENT.search(Results(theirs))) & set(ours)
    assert {call.settings.model for call in shared} == {"plain", "residual"}
    values = {size: dict.fromkeys(settings.gains, 0.5) for size in (WIDE, NARROW)}
    tables = [
        Part("", size.search, named_table("cifar100-coarse", model.name, by_gain))
        for size, by_gain in values.items()
        for model in MODELS
    ]
    decided = figure_3.STUDY.stages[1](Results(settings, tables))
    for model in figure_s1.TWO.models:
        members = figure_7.EXPERIMENT.members(Results(theirs), "cifar100-coarse", model, range(20))
        assert deciding_call(theirs, "cifar100-coarse", model, members) in decided


def named_table(data: str, model: str, accuracy: Mapping[float, float]) -> pd.DataFrame:
    """The table of one search run per gain."""
    gains = tuple(accuracy)
    rows = [
        {"member": member, "epoch": 1, "quantity": "accuracy", "layer": 0, "value": value}
        for member, value in enumerate(accuracy.values())
    ]
    named = Networks(data, model, (500,) * len(gains), gains, Training())
    return networks.table(named, rows, [False] * len(gains))


def test_the_listed_network_is_the_first_of_the_narrow_ones() -> None:
    settings = dataclasses.replace(SMOKE, epochs=3, at=(0, 2), spectrum_at=2)
    calls = figure_s1.TWO.decide(searched({WIDE: SQRT2, NARROW: SQRT2}, settings))
    ran = {
        call.settings.part: call.trial.function(call.settings, Bench())
        for call in calls
        if call.trial is measured_networks.train_and_measure
        and call.settings.part in ("narrow", "spectrum")
        and call.settings.networks.model == "residual"
    }
    degenerate = [
        frame[(frame["quantity"] == "degenerate") & (frame["epoch"] == 2) & (frame["seed"] == 0)][
            "value"
        ].item()
        for frame in ran.values()
    ]
    assert len(degenerate) == 2
    assert degenerate[0] == pytest.approx(degenerate[1], rel=1e-6)
    eigenvalues = ran["spectrum"][ran["spectrum"]["quantity"] == "eigenvalue"]["value"]
    assert (eigenvalues.abs() < 1e-3).mean() == pytest.approx(degenerate[0], abs=1e-4)


def test_a_shorter_training_shows_its_last_epoch() -> None:
    assert Settings(epochs=100).shown_epoch == 3
    assert Settings(epochs=1).shown_epoch == 1


def drawn(results: Results) -> Any:
    figure = panels(results, MODELS)
    figure.draw_without_rendering()
    return figure


def limits(resolved: float) -> list[Part]:
    """Limits at the paper's width for two networks per model; the second may be resolved."""
    tables = [
        networks.table(
            Networks("digits", model.name, (0, 1), (0.3, 0.3), Training()),
            [
                {"member": member, "epoch": epoch, "quantity": quantity, "layer": 0, "value": value}
                for member in (0, 1)
                for epoch in SETTINGS.at
                for fraction in ("degenerate", "negative")
                for quantity, value in (
                    (f"lanczos_{fraction}_low", 0.1 + 0.2 * member),
                    (f"lanczos_{fraction}_high", 0.8),
                    (f"mixture_{fraction}", 0.99),
                    ("lanczos_resolved", member * resolved),
                )
                if quantity != "lanczos_resolved" or fraction == "negative"
            ],
            [False, False],
        )
        for model in MODELS
    ]
    return [Part("", "limits", table) for table in tables]


def test_the_figure_has_the_papers_panels_and_the_common_gain() -> None:
    spectra = [listed(model.name, [-2.0, -0.1, 0.0, 1e-4, 5.0, 70.0]) for model in MODELS]
    results = found(AS_THE_PAPER_SAYS).and_then(spectra)
    six = drawn(results).axes
    assert len(six) == 6
    means = [line.get_ydata()[-1] for line in six[1].get_lines()]
    assert means == pytest.approx([0.6025, 0.4025, 0.2025], abs=1e-6)
    assert "6 eigenvalues" in six[1].get_title("left")
    # The best gain of all models is .3 here, and so is the common one.
    assert [line.get_ydata()[-1] for line in six[4].get_lines()] == pytest.approx(means)
    assert "gain 0.3 for all" in six[4].get_title("left")


def test_panels_at_a_common_gain_need_networks_of_every_model_there() -> None:
    results = found(AS_THE_PAPER_SAYS)
    elsewhere = [
        part for part in results.parts
        if part.stage != NARROW.decide
        or (part.table["gain"].iloc[0] == 0.3) == (part.table["model"].iloc[0] == "plain")
    ]  # fmt: skip
    assert not _compared(Results(results.settings, elsewhere), "digits", MODELS)
    assert _compared(results, "digits", MODELS)


@pytest.mark.slow
def test_limits_at_the_papers_width_are_shown_only_if_one_is_resolved() -> None:
    results = found(AS_THE_PAPER_SAYS).and_then([listed(model.name, [0.0, 5.0]) for model in MODELS])
    assert len(drawn(results.and_then(limits(0.0))).axes) == 6
    eight = drawn(results.and_then(limits(1.0))).axes
    assert len(eight) == 8
    bars = eight[6].patches
    assert len(bars) == len(MODELS) * len(SETTINGS.at)
    assert (bars[0].get_y(), bars[0].get_height()) == pytest.approx((0.2, 0.6), abs=1e-6)
    assert "6 of 12 unresolved" in eight[6].texts[0].get_text()


def test_bins_of_the_spectrum_end_at_the_threshold_and_miss_nothing() -> None:
    values = np.array([-30.0, -1.001e-3, -0.999e-3, -1e-9, 0.0, 1e-9, 0.999e-3, 1.001e-3, 200.0, 0.5])
    _, axes = new_figure()
    ax = axes[0, 0]
    spectrum_panel(
        ax, {"plain": values, "residual": np.array([])}, {"plain": "Plain", "residual": "Residual"}
    )
    (share, edges, _) = ax.patches[-1].get_data()
    assert share.sum() == pytest.approx(1)
    inside = (edges[1:] <= 1e-3 * 1.0000001) & (edges[:-1] >= -1e-3 * 1.0000001)
    assert share[inside].sum() == pytest.approx(0.5)
    assert share.max() == pytest.approx(0.3)  # three around 0 share the middle bin
    left, right = ax.get_xlim()
    assert left < -30 < 200 < right


def test_a_model_without_limits_leaves_a_gap() -> None:
    _, axes = new_figure()
    empty = found({"plain": (0.4, 0.6, 0.2)}).frame.iloc[:0]
    limits_panel(axes[0, 0], {"plain": empty, "residual": empty}, "degenerate")
    assert "0 of 0 unresolved" in axes[0, 0].texts[0].get_text()


@both_studies
def test_directions_that_no_caption_gives_are_ours(study: Study) -> None:
    ours = {claim.id for claim in study.claims if claim.source == "ours"}
    theirs = {claim.id for claim in study.claims} - ours
    assert theirs == {"plain-more-degenerate-than-residual", "residual-beats-plain"}


def test_models_that_learn_at_no_common_gain_are_compared_at_their_best() -> None:
    """Narrow plain networks learn at √2 alone, residual ones at .3 alone."""
    parts = []
    for model, size, gain in product(("plain", "residual"), (WIDE, NARROW), SETTINGS.gains):
        learns = (gain == 0.3) == (model == "residual")
        numbers = (0.8 if learns else 0.1, 0.6 if model == "plain" else 0.4, 0.3)
        for stage, seeds in ((size.search, [500]), (size.decide, range(6))):
            parts.append(together(model, seeds, gain, numbers, stage))
    rows = judge(figure_s1.STUDY, Results(SETTINGS, parts), "quick")
    chosen = [row for row in rows if row.claim == "plain-more-degenerate-than-residual" and row.headline]
    assert [row.condition for row in chosen] == ["epoch 3, digits, best gains (1.41/0.3)"]
