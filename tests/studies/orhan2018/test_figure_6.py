"""Figure 6's claims on gradients, and what its second stage trains."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.experiments.networks import Networks, Training
from skiplab.reproduction.results import Part, Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018 import figure_6
from skiplab.studies.orhan2018.bias_reg import WITH_BN
from skiplab.studies.orhan2018.figure_6.evidence import alike, epochs_with_norms, norms_apart
from skiplab.studies.orhan2018.figure_6.study import EXPERIMENT

SETTINGS = dataclasses.replace(figure_6.STUDY.settings["smoke"], runs=6, gains=(1.0,), depth=5)
TRIPLE = (0.25, 0.1, 0.01)


def made(
    model: str,
    seeds: Sequence[int],
    accuracies: Sequence[float],
    norms: Sequence[Sequence[Sequence[float]]] = (),
    triple: tuple[float, float, float] = TRIPLE,
) -> pd.DataFrame:
    """The table of one model's networks from accuracies and gradient norms by network, epoch and layer."""
    settings = Networks("digits", model, tuple(seeds), (1.0,) * len(seeds), Training())
    if model.startswith("bias-reg"):
        mean, sigma, strength = ((value,) * len(seeds) for value in triple)
        settings = dataclasses.replace(settings, sigmas=sigma, strengths=strength, means=mean)
    rows: list[dict[str, Any]] = [
        {"member": member, "epoch": 1, "quantity": "accuracy", "layer": 0, "value": accuracy}
        for member, accuracy in enumerate(accuracies)
    ]
    rows += [
        {"member": member, "epoch": epoch, "quantity": "gradient_norm", "layer": layer + 1, "value": value}
        for member, epochs in enumerate(norms)
        for epoch, values in enumerate(epochs)
        for layer, value in enumerate(values)
    ]
    return networks.table(settings, rows, [False] * len(seeds))


def found(
    residual_slope: float,
    factor: float,
    with_bn: float,
    epochs: Sequence[int] = (0, 1, 2),
    plain_slope: float = 1.0,
) -> Results:
    """Plain nets decay; BiasReg's norms are theirs times a factor, which doubles at each later epoch."""
    accuracy = {"plain": 0.4, "residual": 0.9, "bias-reg": 0.6, "bias-reg-bn": with_bn}
    more = [seed / 1000 for seed in range(6)]
    parts = []
    for model, mean in accuracy.items():
        slope = residual_slope if model == "residual" else plain_slope
        times = [factor * 2**epoch if model == "bias-reg" else 1.0 for epoch in range(3)]
        norms = [[np.exp((slope + each) * np.arange(5)) * time for time in times] for each in more]
        table = made(model, range(6), [mean + each / 10 for each in more], norms)
        measured = (table["quantity"] != "gradient_norm") | table["epoch"].isin(epochs)
        parts.append(Part("", "search", made(model, [500], [mean])))
        parts.append(Part("", "decide", table[measured]))
    return Results(SETTINGS, parts)


@pytest.mark.parametrize(
    ("slope", "factor", "with_bn", "verdict"),
    [(0.01, 1.0, 0.901, "holds"), (0.01, 0.95, 0.899, "holds"), (1.0, 1.2, 0.55, "contradicted")],
)
def test_claims_follow_norms_and_accuracies(
    slope: float, factor: float, with_bn: float, verdict: str
) -> None:
    plain_slope = 1.0 if verdict == "holds" else -0.5
    rows = judge(figure_6.STUDY, found(slope, factor, with_bn, plain_slope=plain_slope), "quick")
    headlines = {row.claim: row for row in rows if row.headline}
    short = {"bn-approaches-residual": "undecided"} if verdict == "contradicted" else {}  # it was not tuned
    assert {claim: row.verdict for claim, row in headlines.items()} == {
        **{claim.id: verdict for claim in figure_6.STUDY.claims},
        **short,
    }
    assert headlines["bias-reg-as-plain"].statistic == pytest.approx(abs(math.log(factor)), abs=1e-6)
    # Slopes times the four steps between five layers; runs add 0 to .005.
    keeps = headlines["residual-keeps-gradients"]
    assert keeps.statistic == pytest.approx(-4 * (slope + 0.0025), abs=1e-4)


def test_growing_gradients_have_not_vanished_and_a_better_network_has_approached() -> None:
    rows = judge(figure_6.STUDY, found(-3.0, 1.0, 0.99), "quick")
    assert {row.verdict for row in rows if row.headline} == {"holds"}


def test_that_biased_networks_lose_their_gradients_is_ours() -> None:
    for slope, verdict in ((0.3, "holds"), (0.1, "contradicted")):  # 1.2 and .4 log units over four layers
        rows = judge(figure_6.STUDY, found(0.01, 1.0, 0.9, plain_slope=slope), "quick")
        chosen = [row for row in rows if row.claim.endswith("-gradients-vanish") and row.headline]
        assert [(row.claim, row.condition, row.ours) for row in chosen] == [
            ("plain-gradients-vanish", "digits, common gain 1", False),
            ("bias-reg-gradients-vanish", "digits, common gain 1", True),
        ]
        assert {row.verdict for row in chosen} == {verdict}


def test_later_epochs_are_further_rows() -> None:
    rows = alike(found(0.01, 1.0, 0.9))
    common = {row.condition: row for row in rows if "common gain" in row.condition}
    assert [row.headline for row in common.values()] == [True, False, False]
    for epoch, row in enumerate(common.values()):
        assert row.condition == f"start of epoch {epoch + 1}, digits, common gain 1"
        np.testing.assert_allclose(row.samples[0], [math.log(2) * epoch] * 6, atol=1e-6)


def test_differences_of_opposite_signs_do_not_cancel() -> None:
    first = made("bias-reg", [0], [0.5], [[[2.0, 0.5]]])
    second = made("plain", [0], [0.5], [[[1.0, 1.0]]])
    np.testing.assert_allclose(norms_apart([first, second], 0), [math.log(2)], rtol=1e-6)


def test_vanished_gradients_are_alike_and_infinite_ones_are_no_number() -> None:
    vanished = [made(model, [0], [0.5], [[[0.0, 1.0]]]) for model in ("bias-reg", "plain")]
    np.testing.assert_array_equal(norms_apart(vanished, 0), [0.0])
    infinite = made("plain", [0], [0.5], [[[math.inf, 1.0]]])
    assert np.isnan(norms_apart([vanished[0], infinite], 0)).all()


def test_batch_normalisation_takes_the_triple_found_without_it() -> None:
    other = (-0.5, 0.3, 0.02)
    tables = [made("bias-reg", [500], [0.5]), made("bias-reg", [500], [0.7], triple=other)]
    results = Results(SETTINGS, [Part("", "search", table) for table in tables])
    calls = [call.settings for call in EXPERIMENT.decide(results) if call.settings.model == WITH_BN.name]
    assert [named.seeds for named in calls] == [tuple(range(6)), (500,)]
    for named in calls:
        assert set(zip(named.means, named.sigmas, named.strengths, strict=True)) == {other}
    assert [named.training.epochs for named in calls] == [SETTINGS.epochs, SETTINGS.search_epochs]


def test_the_figure_has_norms_at_three_epochs_and_all_accuracies() -> None:
    drawn = figure_6.STUDY.figure(found(0.01, 1.0, 0.9))
    titles = [ax.get_title(loc="left") for ax in drawn.axes]
    assert titles[:3] == [f"start of epoch {epoch}" for epoch in (1, 2, 3)]
    shown = [text.get_text() for text in drawn.axes[3].get_legend().get_texts()]
    assert shown == [f"{name}, g = 1" for name in ("Plain", "Residual", "BiasReg", "BiasReg + BN")]
    # Plain and BiasReg coincide at first and are a factor of four apart two epochs later.
    ratios = [np.divide(ax.lines[2].get_ydata(), ax.lines[0].get_ydata()) for ax in drawn.axes[:3]]
    np.testing.assert_allclose(ratios, [[1.0] * 5, [2.0] * 5, [4.0] * 5], rtol=1e-6)


def test_a_short_training_has_fewer_epochs_with_norms() -> None:
    short = found(0.01, 1.0, 0.9, epochs=(0, 2))
    assert epochs_with_norms(short) == [0, 2]
    drawn = figure_6.STUDY.figure(short)
    assert [ax.get_visible() for ax in drawn.axes] == [True, True, False, True, True, True]
