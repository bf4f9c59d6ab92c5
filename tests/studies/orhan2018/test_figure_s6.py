"""Figure S6's stages, claims and panels, on tables with numbers of our choosing."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest

from skiplab.experiments import measured_networks, networks
from skiplab.experiments.gains import WIDE
from skiplab.experiments.narrow_networks import NARROW
from skiplab.experiments.networks import SQRT2, Networks, Training
from skiplab.reproduction.results import Part, Results, matching
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018 import figure_s6
from skiplab.studies.orhan2018.figure_s6.study import MODELS, decide

SETTINGS = dataclasses.replace(
    figure_s6.STUDY.settings["smoke"],
    runs=6,
    gains=(0.3, SQRT2),
    narrow_runs=6,
    other_runs=0,
    at=(0, 2),
    norms_at=(0, 2),
    epochs=2,
)


def together(
    model: str, stage: str, gain: float, seeds: Sequence[int], accuracy: float, degenerate: float
) -> Part:
    """Some networks; test accuracy is half the training accuracy at first, and then less."""
    rows: list[dict[str, Any]] = []
    for member, seed in enumerate(seeds):
        value = accuracy + (seed % 500) / 1000
        found = [(1, "accuracy", 0, value / 2), (2, "accuracy", 0, value)]
        if seed < 500:
            found += [
                (epoch, "test_accuracy", 0, value * share)
                for epoch, share in zip(SETTINGS.at, (0.5, 0.4), strict=True)
            ]
        if stage == NARROW.decide:
            for epoch in SETTINGS.at:
                other = 0.7 - degenerate - seed / 1000
                found += [(epoch, "degenerate", 0, degenerate + seed / 1000), (epoch, "negative", 0, other)]
                found += [(epoch, "gradient_norm", layer, 0.1 * layer * other) for layer in (1, 2)]
                found += [(epoch, "overlap", layer, degenerate * layer + seed / 1000) for layer in (0, 1, 2)]
        rows += [
            {"member": member, "epoch": epoch, "quantity": quantity, "layer": layer, "value": number}
            for epoch, quantity, layer, number in found
        ]
    training = Training(epochs=2, width=len(stage))
    settings = Networks("digits", model, tuple(seeds), (gain,) * len(seeds), training)
    return Part("", stage, networks.table(settings, rows, [False] * len(seeds)))


def found(accuracy: Mapping[str, float], degenerate: Mapping[str, float]) -> Results:
    """Both models, wide at two gains, narrow ones decided at .3, which the searches find best."""
    parts = []
    for model, size, gain in product(accuracy, (WIDE, NARROW), SETTINGS.gains):
        lower = accuracy[model] - (gain != 0.3) / 10
        parts.append(together(model, size.search, gain, [500], lower, degenerate[model]))
        if gain == 0.3 or size is WIDE:
            parts.append(together(model, size.decide, gain, range(6), lower, degenerate[model]))
    return Results(SETTINGS, parts)


AS_THE_PAPER_SAYS = found({"plain": 0.5, "residual": 0.52}, {"plain": 0.4, "residual": 0.3})


def test_every_claim_holds_where_the_paper_is_right() -> None:
    rows = judge(figure_s6.STUDY, AS_THE_PAPER_SAYS, "quick")
    assert {row.verdict for row in rows if row.headline} == {"holds"}
    headlines = {(row.claim, row.condition): row for row in rows if row.headline}
    assert headlines["residual-better", "training, digits, best gains (0.3)"].statistic == pytest.approx(
        0.02, abs=1e-6
    )
    # The test accuracy is the best of the epochs measured.
    assert headlines["residual-better", "test, digits, best gains (0.3)"].means[1] == pytest.approx(
        0.25125, abs=1e-6
    )
    assert {condition for claim, condition in headlines if claim == "plain-more-degenerate"} == {
        "epoch 2, digits, common gain 0.3"
    }
    row = headlines["plain-more-degenerate", "epoch 2, digits, common gain 0.3"]
    assert row.statistic == pytest.approx(0.1, abs=1e-6)
    assert all(row.paired for row in headlines.values())
    further = {row.condition for row in rows if row.claim == "residual-better" and not row.headline}
    narrow = "2×4 networks on 128 components, digits"
    conditions = (
        "digits, gain 0.3",
        "digits, gain 1.41",
        f"{narrow}, best gains (0.3)",
        f"{narrow}, gain 0.3",
    )
    assert further == {f"{name}, {where}" for name in ("training", "test") for where in conditions}


def test_every_claim_falls_where_the_paper_is_wrong() -> None:
    results = found({"plain": 0.54, "residual": 0.5}, {"plain": 0.3, "residual": 0.4})
    rows = judge(figure_s6.STUDY, results, "quick")
    assert {row.verdict for row in rows if row.headline} == {"contradicted"}


def test_the_second_stage_measures_everything_on_the_narrow_networks() -> None:
    calls = decide(AS_THE_PAPER_SAYS)
    assert {call.trial for call in calls} == {measured_networks.train_and_measure}
    narrow = [call.settings for call in calls if call.settings.part == "narrow"]
    wide = [call.settings for call in calls if call.settings.part == "wide"]
    assert [one.networks.model for one in narrow] == ["plain", "residual"]
    for one in narrow:
        assert one.networks.gains == (0.3,) * 6
        assert (one.exact, one.units, one.by_layer, one.test) == (
            SETTINGS.samples,
            SETTINGS.samples,
            True,
            True,
        )
        assert one.networks.norms_at == SETTINGS.norms_at
        assert (one.networks.training.depth, one.networks.training.width) == (2, SETTINGS.narrow)
    expected = {(model.name, gain) for model in MODELS for gain in SETTINGS.gains}
    assert {(one.networks.model, one.networks.gains[0]) for one in wide} == expected
    assert all(one.test and not one.exact and one.networks.training.width == SETTINGS.width for one in wide)


def test_the_trial_leaves_norms_and_overlaps_of_two_layers() -> None:
    call = decide(AS_THE_PAPER_SAYS)[0]
    frame = call.trial.function(call.settings, Bench())
    counts = frame.groupby(["quantity", "layer"], observed=True).size()
    for layer in (1, 2):
        assert counts["gradient_norm", layer] == 2 * 6
        assert counts["overlap", layer] == 2 * 6
    assert ("overlap", 3) not in counts
    both = matching(frame, quantity="overlap", epoch=2, seed=0)
    by_layer = both.set_index("layer")["value"]
    assert by_layer[0] == pytest.approx((by_layer[1] + by_layer[2]) / 2, rel=1e-5)


def test_exact_spectra_are_of_5844_parameters() -> None:
    settings = figure_s6.STUDY.settings["paper"]
    width = settings.narrow
    assert width * (settings.narrow_components + 1) + width * (width + 1) + 20 * (width + 1) == 5844
    assert (settings.runs, settings.narrow_runs, settings.depth, settings.narrow_depth) == (16, 16, 2, 2)


def test_the_figure_shows_the_second_layers_overlap_and_both_layers_gradients() -> None:
    figure = figure_s6.STUDY.figure(AS_THE_PAPER_SAYS)
    figure.draw_without_rendering()
    training, test, _, degenerate, norms, overlap = figure.axes
    assert [line.get_ydata()[-1] for line in overlap.get_lines()] == pytest.approx([0.8025, 0.6025], abs=1e-6)
    assert [line.get_ydata()[-1] for line in degenerate.get_lines()] == pytest.approx(
        [0.4025, 0.3025], abs=1e-6
    )
    ends = [line.get_ydata()[-1] for line in norms.get_lines() if len(line.get_ydata())]
    assert ends == pytest.approx([0.02975, 0.03975, 0.0595, 0.0795], abs=1e-6)
    for ax in (training, test):
        styles = [line.get_linestyle() for line in ax.get_lines() if len(line.get_ydata())]
        assert styles == ["-", "-", "--", "--"]
