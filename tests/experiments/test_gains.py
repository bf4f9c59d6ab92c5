"""Choosing gains, σ and λ on separate seeds, and the samples that claims compare."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import GainSettings

Make = Callable[..., pd.DataFrame]
SETTINGS = GainSettings(data=("digits",), gains=(0.3, 1.0), runs=2)


def test_a_search_trains_every_point_of_its_grid_on_search_seeds() -> None:
    settings = dataclasses.replace(SETTINGS, search_runs=3)
    gains = searches.gain_search(settings, "plain", "digits").settings
    assert list(zip(gains.gains, gains.seeds, strict=True)) == [
        (gain, seed) for gain in (0.3, 1.0) for seed in (500, 501, 502)
    ]


def test_deciding_seeds_take_no_part_in_choosing_a_gain(trained: Make) -> None:
    table = pd.concat(
        [
            trained("plain", 500, [0.5], gain=0.3),
            trained("plain", 500, [0.4], gain=1.0),
            trained("plain", 0, [0.1], gain=0.3),
            trained("plain", 0, [0.9], gain=1.0),
            trained("residual", 500, [0.9], gain=1.0, skip="folded-1"),
            trained("residual", 500, [0.8], gain=0.3, skip="folded-1"),
        ]
    )
    assert searches.best_gain(table, "digits", "plain") == 0.3
    assert searches.best_gain(table, "digits", "residual", "folded-1") == 1.0


def test_regularised_models_share_a_search(trained: Make) -> None:
    table = pd.concat(
        [
            trained("bias-symm-break", 500, [0.9], gain=0.3, sigma=0.0, strength=0.1),
            trained("bias-symm-break", 500, [0.2], gain=1.0, sigma=0.0, strength=0.1),
            trained("bias-symm-break", 500, [0.3], gain=0.3, sigma=0.5, strength=0.1),
            trained("bias-symm-break", 500, [0.6], gain=1.0, sigma=0.5, strength=0.1),
        ]
    )
    assert searches.best_gain(table, "digits", "bias-l2-reg") == 0.3
    assert searches.best_gain(table, "digits", "bias-symm-break") == 1.0


@pytest.fixture
def two_models(trained: Make) -> pd.DataFrame:
    """Plain nets are best at gain 1, residual ones at .3."""
    accuracy = {
        ("plain", 0.3): 0.2,
        ("plain", 1.0): 0.6,
        ("residual", 0.3): 0.8,
        ("residual", 1.0): 0.4,
    }
    return pd.concat(
        trained(model, seed, [value - 0.1, value + seed / 10000], gain=gain)
        for (model, gain), value in accuracy.items()
        for seed in (1, 0, 500)
    )


def test_comparisons_have_a_headline_at_best_gains_and_rows_at_each(two_models: pd.DataFrame) -> None:
    rows = searches.compare(two_models, SETTINGS, ("residual", "identity"), ("plain", "identity"))
    assert [(row.condition, row.headline) for row in rows] == [
        ("digits, best gains (0.3/1)", True),
        ("digits, gain 0.3", False),
        ("digits, gain 1", False),
    ]
    expected = [
        [[0.8, 0.8001], [0.6, 0.6001]],
        [[0.8, 0.8001], [0.2, 0.2001]],
        [[0.4, 0.4001], [0.6, 0.6001]],
    ]
    for row, samples in zip(rows, expected, strict=True):
        np.testing.assert_allclose(row.samples, samples, atol=1e-6)


def test_evidence_about_one_model(two_models: pd.DataFrame) -> None:
    rows = searches.of_one(two_models, SETTINGS, ("plain", "identity"), searches.accuracies)
    assert [len(row.samples) for row in rows] == [1, 1, 1]
    np.testing.assert_allclose(rows[0].samples[0], [0.6, 0.6001], atol=1e-6)


def test_decay_is_the_fall_along_the_fitted_line(trained: Make) -> None:
    # Norms grow by a factor e a layer from the input up: over 5 layers ln(top) − ln(bottom) is 4.
    vanishing = [np.exp(np.arange(5.0)), np.exp(np.arange(5.0)) * 7]
    flat = [[2.0] * 5, [3.0] * 5]
    mixed = [np.exp(np.arange(5.0)), [1.0] * 5]
    rows = pd.concat(
        [
            trained("plain", 2, [0.5], norms=mixed),
            trained("plain", 0, [0.5], norms=vanishing),
            trained("plain", 1, [0.5], norms=flat),
        ]
    )
    np.testing.assert_allclose(searches.log_decay(rows), [4.0, 0.0, 2.0], atol=1e-5)


def test_a_vanished_gradient_counts_and_an_infinite_one_spoils_its_own_run_only(trained: Make) -> None:
    rows = pd.concat(
        [
            trained("plain", 0, [0.5], norms=[[0.0, 0.0, 1.0]]),
            trained("plain", 1, [0.5], norms=[[1.0, np.inf, 1.0]]),
            trained("plain", 2, [0.5], norms=[[1.0, np.nan, 1.0]]),
            trained("plain", 3, [0.5], norms=[[1.0, 1.0, 1.0]]),
        ]
    )
    decay = searches.log_decay(rows)
    assert decay[0] > 80
    assert np.isnan(decay[1])
    assert np.isnan(decay[2])
    assert decay[3] == pytest.approx(0.0, abs=1e-12)
