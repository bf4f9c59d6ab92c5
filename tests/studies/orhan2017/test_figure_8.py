"""Figure 8's claims on gradients, and that it shares figure 7's networks."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017 import figure_7, figure_8

Make = Callable[..., pd.DataFrame]
AsResults = Callable[[Any, pd.DataFrame], Results]
SMOKE = figure_7.STUDY.settings["smoke"]
SETTINGS = dataclasses.replace(SMOKE, runs=6, gains=(1.0,), depth=5)


def frame_of(trained: Make, slopes: dict[str, float], accuracy: dict[str, float]) -> pd.DataFrame:
    """Networks whose log norms rise by a slope a layer, with small differences between runs."""
    rows = []
    for model, slope in slopes.items():
        for seed in (*range(6), 500):
            norms = np.exp((slope + (seed % 500) / 1000) * np.arange(5))
            sigma = 0.1 if model == "bias-symm-break" else 0.0
            value = accuracy[model] + (seed % 500) / 10000
            rows.append(trained(model, seed, [value], sigma=sigma, norms=[norms, norms, norms]))
    return pd.concat(rows)


@pytest.mark.parametrize(
    ("slopes", "accuracy", "verdict"),
    [
        ((1.0, 0.01, 1.0), (0.5, 0.9, 0.6, 0.901), "holds"),
        ((1.0, -1.0, 1.0), (0.5, 0.6, 0.6, 0.9), "holds"),  # growing gradients, and BatchNorm far better
        ((0.1, 1.0, 0.1), (0.5, 0.9, 0.6, 0.7), "contradicted"),
    ],
)
def test_claims_follow_the_slopes(
    trained: Make,
    by_stage: AsResults,
    slopes: tuple[float, ...],
    accuracy: tuple[float, ...],
    verdict: str,
) -> None:
    models = [model.name for model in figure_8.EXPERIMENT.models]
    frame = frame_of(
        trained,
        dict(zip(models, (*slopes, 0.1), strict=True)),
        dict(zip(models, accuracy, strict=True)),
    )
    rows = judge(figure_8.STUDY, by_stage(SETTINGS, frame), "quick")
    found = {row.claim: row for row in rows if row.headline}
    short = {"bn-approaches-residual": "undecided"} if verdict == "contradicted" else {}  # it was not tuned
    assert {claim: row.verdict for claim, row in found.items()} == {
        **{claim.id: verdict for claim in figure_8.STUDY.claims},
        **short,
    }
    # Slopes times the four steps between five layers; runs add 0 to .005.
    assert found["plain-decays"].statistic == pytest.approx(4 * (slopes[0] + 0.0025), abs=1e-4)


def test_figure_7s_networks_are_shared(trained: Make, by_stage: AsResults) -> None:
    """At the same settings all trials of the searches and of three models are figure 7's."""
    found = pd.concat(
        trained("bias-symm-break", 500, [0.5], sigma=sigma, strength=0.01, gain=networks.SQRT2)
        for sigma in (0.0, 0.1)
    )
    results, nothing = by_stage(SMOKE, found), Results(SMOKE)
    first, second = (set(figure.EXPERIMENT.decide(results)) for figure in (figure_7, figure_8))
    assert set(figure_8.EXPERIMENT.search(nothing)) == set(figure_7.EXPERIMENT.search(nothing))
    assert {call.settings.model for call in second & first} == {"plain", "residual", "bias-symm-break"}
    assert {call.settings.model for call in second - first} == {"bias-symm-break-bn"}


def test_its_quick_search_is_figure_7s_on_one_set() -> None:
    ours, theirs = (
        set(figure.EXPERIMENT.search(Results(figure.STUDY.settings["quick"])))
        for figure in (figure_8, figure_7)
    )
    assert ours < theirs


def test_batch_normalisation_takes_the_strengths_found_without_it(trained: Make, by_stage: AsResults) -> None:
    found = pd.concat(
        trained("bias-symm-break", 500, [accuracy], sigma=sigma, strength=0.01, gain=networks.SQRT2)
        for sigma, accuracy in ((0.0, 0.9), (0.1, 0.5), (0.7, 0.6))
    )
    named = figure_8.EXPERIMENT.decide(by_stage(SMOKE, found))
    calls = [call for call in named if call.settings.model.endswith("-bn")]
    assert len(calls) == 2
    assert {sigma for call in calls for sigma in call.settings.sigmas} == {0.7}
