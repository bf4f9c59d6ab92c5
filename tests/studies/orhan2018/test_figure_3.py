"""Stages, claims and panels of figures 3 and S1, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments.networks import SQRT2, Networks, Training
from skiplab.figures.style import new_figure
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7
from skiplab.studies.orhan2018 import figure_3, figure_s1
from skiplab.studies.orhan2018.spectra_over_training import Settings, accuracy_runs
from skiplab.studies.orhan2018.spectra_panels import limits_panel, panels, spectrum_panel

SETTINGS = dataclasses.replace(
    figure_3.SMOKE,
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
    model: str, seeds: Sequence[int], gain: float, numbers: tuple[float, float, float], part: str
) -> pd.DataFrame:
    """The table of some networks: accuracy rises over four epochs, fractions are measured at two of them."""
    rows: list[dict[str, Any]] = []
    for member, seed in enumerate(seeds):
        accuracy, *fractions = (number + (seed % 500) / 1000 for number in numbers)
        common = {"member": member, "layer": 0}
        rows += [
            common | {"epoch": epoch, "quantity": "accuracy", "value": accuracy - (4 - epoch) / 100}
            for epoch in range(1, 5)
        ]
        if part == "narrow" and seed < 500:
            rows += [
                common | {"epoch": epoch, "quantity": quantity, "value": value}
                for epoch in SETTINGS.at
                for quantity, value in zip(("degenerate", "negative"), fractions, strict=True)
            ]
    training = Training(epochs=4, width=len(part))
    settings = Networks("digits", model, tuple(seeds), (gain,) * len(seeds), training)
    return earlier.table(settings, rows, [False] * len(seeds)).assign(part=part)


def tables(numbers: Numbers, best: float = 0.3) -> pd.DataFrame:
    """Wide and narrow networks at two gains; at the one that is not best all numbers are .1 lower."""
    frames = []
    for model, part, gain in product(numbers, ("wide", "narrow"), SETTINGS.gains):
        seeds = [*range(6 if gain == best or part == "wide" else 5), 500]
        accuracy, degenerate, negative = (mean - (gain != best) / 10 for mean in numbers[model])
        frames.append(together(model, seeds, gain, (accuracy, degenerate, negative), part))
    return pd.concat(frames, ignore_index=True)


def listed(model: str, values: list[float]) -> pd.DataFrame:
    """The eigenvalues of one network, as its trial lists them."""
    settings = Networks("digits", model, (0,), (0.3,), Training(epochs=3))
    rows = [
        {"member": 0, "epoch": 3, "quantity": "eigenvalue", "layer": rank, "value": value}
        for rank, value in enumerate(values)
    ]
    return earlier.table(settings, rows, [False]).assign(part="spectrum")


@both_studies
def test_every_claim_holds_where_the_paper_is_right(study: Study) -> None:
    rows = judge(study, tables(AS_THE_PAPER_SAYS), SETTINGS, "quick")
    assert {row.verdict for row in rows if row.headline} == {"holds"}
    found = {(row.claim, row.condition): row for row in rows if row.headline}
    assert {claim for claim, _ in found} == {claim.id for claim in study.claims}
    for epoch in SETTINGS.at:
        condition = f"epoch {epoch}, digits, best gains (0.3)"
        row = found["plain-more-degenerate-than-residual", condition]
        assert (row.statistic, row.runs) == (pytest.approx(0.2, abs=1e-6), 6)
        row = found["residual-more-negative-than-plain", condition]
        assert row.statistic == pytest.approx(0.1, abs=1e-6)
    row = found["residual-beats-plain", "digits, best gains (0.3)"]
    assert row.statistic == pytest.approx(0.4, abs=1e-6)


@both_studies
def test_every_claim_falls_where_the_paper_is_wrong(study: Study) -> None:
    rows = judge(study, tables(THE_OTHER_WAY_ROUND), SETTINGS, "quick")
    assert {row.verdict for row in rows} == {"contradicted"}


def test_a_point_decides_whether_hyper_residual_is_worse() -> None:
    worse = {**AS_THE_PAPER_SAYS, "hyper-residual": (0.78, 0.2, 0.4)}
    for numbers, verdict in ((AS_THE_PAPER_SAYS, "holds"), (worse, "contradicted")):
        rows = judge(figure_3.STUDY, tables(numbers), SETTINGS, "quick")
        (row,) = [
            row for row in rows if row.claim == "hyper-residual-not-worse-than-residual" and row.headline
        ]
        assert row.verdict == verdict


def test_other_gains_and_narrow_accuracies_are_further_rows() -> None:
    rows = judge(figure_s1.STUDY, tables(AS_THE_PAPER_SAYS), SETTINGS, "quick")
    further = {(row.claim, row.condition): row.runs for row in rows if not row.headline}
    spectra = {
        (claim, f"epoch {epoch}, digits, gain {gain}"): runs
        for claim in ("plain-more-degenerate-than-residual", "residual-more-negative-than-plain")
        for epoch in SETTINGS.at
        for gain, runs in (("0.3", 6), ("1.41", 5))
    }
    beats = {
        ("residual-beats-plain", condition): 6
        for condition in ("digits, gain 0.3", "digits, gain 1.41", "3×4 networks, digits, best gains (0.3)")
    }
    assert further == spectra | beats


def test_accuracies_and_fractions_come_from_different_networks() -> None:
    frame = tables(AS_THE_PAPER_SAYS)
    # With the narrow ones' accuracies the other way round, only the further row changes.
    narrow = (frame["part"] == "narrow") & (frame["quantity"] == "accuracy") & (frame["model"] == "plain")
    frame.loc[narrow, "value"] += 0.5
    rows = judge(figure_s1.STUDY, frame, SETTINGS, "quick")
    fallen = {row.condition for row in rows if row.verdict == "contradicted"}
    assert fallen == {"3×4 networks, digits, best gains (0.3)"}


def found_by_search(gains: Mapping[str, float]) -> pd.DataFrame:
    """What the search leaves: each part and model with its best gain."""
    numbers = (0.5, 0.0, 0.0)
    return pd.concat(
        together(model, [500], gain, numbers if gain == gains[part] else (0.1, 0.0, 0.0), part)
        for part in ("wide", "narrow")
        for model in MODELS
        for gain in SETTINGS.gains
    )


def test_the_second_stage_takes_each_parts_own_best_gain() -> None:
    settings = dataclasses.replace(SETTINGS, other_runs=0)
    found = found_by_search({"wide": SQRT2, "narrow": 0.3})
    calls = figure_3.THREE.decide(settings, [found])
    measured = [call.settings for call in calls if call.trial is networks.train_and_measure]
    by_part = {
        part: [one for one in measured if one.part == part] for part in ("narrow", "limits", "spectrum")
    }
    assert len(measured) == len(MODELS) * len(by_part)
    for part, gain in (("narrow", 0.3), ("limits", SQRT2), ("spectrum", 0.3)):
        assert [one.networks.model for one in by_part[part]] == list(MODELS)
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
    theirs = dataclasses.replace(figure_7.STUDY.settings["paper"], data=settings.data)
    shared = set(figure_7.search(theirs, [])) & set(figure_3.THREE.search(settings, []))
    assert {call.settings.model for call in shared} == {"plain", "residual"}
    biased = earlier.table(
        Networks("cifar100-coarse", "bias-symm-break", (500, 501), (0.3, 0.3), Training(), sigmas=(0.0, 0.1)),
        [{"member": one, "epoch": 1, "quantity": "accuracy", "layer": 0, "value": 0.5} for one in (0, 1)],
        [False, False],
    )
    there = figure_7.decide(theirs, [pd.concat(biased.assign(gain=gain) for gain in settings.gains)])
    for model in ("plain", "residual"):
        assert accuracy_runs(settings, "cifar100-coarse", model) in there


def test_the_listed_network_is_the_first_of_the_narrow_ones() -> None:
    settings = dataclasses.replace(figure_3.SMOKE, epochs=3, at=(0, 2), spectrum_at=2)
    found = found_by_search({"wide": SQRT2, "narrow": SQRT2})
    calls = figure_s1.TWO.decide(settings, [found])
    ran = {
        call.settings.part: call.trial.function(call.settings, Bench())
        for call in calls
        if call.trial is networks.train_and_measure
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


def drawn(frame: pd.DataFrame, settings: Settings) -> Any:
    figure = panels(frame, settings, MODELS)
    figure.draw_without_rendering()
    return figure


def test_the_figure_has_the_papers_panels_and_limits_where_they_were_measured() -> None:
    frame = pd.concat(
        [tables(AS_THE_PAPER_SAYS), *(listed(model, [-2.0, -0.1, 0.0, 1e-4, 5.0, 70.0]) for model in MODELS)]
    )
    four = drawn(frame, SETTINGS).axes
    assert len(four) == 4
    means = [line.get_ydata()[-1] for line in four[1].get_lines()]
    assert means == pytest.approx([0.6025, 0.4025, 0.2025], abs=1e-6)
    assert "6 eigenvalues" in four[1].get_title("left")
    limits = pd.concat(
        earlier.table(
            Networks("digits", model, (0, 1), (0.3, 0.3), Training()),
            [
                {"member": member, "epoch": epoch, "quantity": quantity, "layer": 0, "value": value}
                for member in (0, 1)
                for epoch in SETTINGS.at
                for fraction in ("degenerate", "negative")
                for quantity, value in (
                    (f"lanczos_{fraction}_low", 0.1 + 0.2 * member),
                    (f"lanczos_{fraction}_high", 0.8),
                    (f"mixture_{fraction}", 0.99),
                    ("lanczos_resolved", float(member)),
                )
                if quantity != "lanczos_resolved" or fraction == "negative"
            ],
            [False, False],
        ).assign(part="limits")
        for model in MODELS
    )
    six = drawn(pd.concat([frame, limits]), SETTINGS).axes
    assert len(six) == 6
    bars = six[4].patches
    assert len(bars) == len(MODELS) * len(SETTINGS.at)
    assert (bars[0].get_y(), bars[0].get_height()) == pytest.approx((0.2, 0.6), abs=1e-6)
    assert "6 of 12 unresolved" in six[4].texts[0].get_text()


def test_bins_of_the_spectrum_end_at_the_threshold_and_miss_nothing() -> None:
    values = np.array([-30.0, -1.001e-3, -0.999e-3, -1e-9, 0.0, 1e-9, 0.999e-3, 1.001e-3, 200.0, 0.5])
    _, axes = new_figure()
    ax = axes[0, 0]
    spectrum_panel(ax, {"plain": values, "residual": np.array([])})
    (share, edges, _) = ax.patches[-1].get_data()
    assert share.sum() == pytest.approx(1)
    inside = (edges[1:] <= 1e-3 * 1.0000001) & (edges[:-1] >= -1e-3 * 1.0000001)
    assert share[inside].sum() == pytest.approx(0.5)
    assert share.max() == pytest.approx(0.3)  # three around 0 share the middle bin
    left, right = ax.get_xlim()
    assert left < -30 < 200 < right


def test_a_model_without_limits_leaves_a_gap() -> None:
    _, axes = new_figure()
    empty = tables({"plain": (0.4, 0.6, 0.2)}).iloc[:0]
    limits_panel(axes[0, 0], {"plain": empty, "residual": empty}, "degenerate")
    assert "0 of 0 unresolved" in axes[0, 0].texts[0].get_text()
