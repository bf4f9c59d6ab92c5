"""How far gradient norms fall through a network, and when."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from skiplab.experiments import networks
from skiplab.experiments.gains import PLAIN
from skiplab.experiments.gradient_falls import fall_along_a_line, falls, log_fall, log_norms
from skiplab.experiments.networks import GainSettings, Networks, Training
from skiplab.reproduction.results import Part, Results

GROWING = np.exp(
    np.arange(5.0)
)  # by a factor e a layer from the input up: over 5 layers ln(top) − ln(bottom) is 4


def with_norms(seed: int, norms: Iterable[Sequence[float]]) -> pd.DataFrame:
    """The table of one network's accuracy and gradient norms, by epoch and layer."""
    rows: list[dict[str, Any]] = [
        {"member": 0, "epoch": epoch, "quantity": "gradient_norm", "layer": layer, "value": value}
        for epoch, values in enumerate(norms)
        for layer, value in enumerate(values, 1)
    ]
    rows.append({"member": 0, "epoch": 1, "quantity": "accuracy", "layer": 0, "value": 0.9})
    return networks.table(Networks("digits", "plain", (seed,), (1.0,), Training()), rows, [False])


def test_the_fall_is_over_the_epochs_of_training_alone() -> None:
    flat = [1.0] * 5
    rows = pd.concat(
        [
            with_norms(2, [GROWING, flat, flat]),
            with_norms(0, [flat, GROWING, GROWING * 7]),
            with_norms(1, [flat, [2.0] * 5, GROWING]),
        ]
    )
    for quantity in (log_fall, fall_along_a_line):
        np.testing.assert_allclose(quantity(rows), [4.0, 2.0, 0.0], atol=1e-5)
        np.testing.assert_allclose(quantity(rows, before=True), [0.0, 0.0, 4.0], atol=1e-5)


def test_a_jump_in_the_middle_bends_a_line_and_not_the_fall_from_end_to_end() -> None:
    """Norms fall threefold in either half and jump back between them, as at a batch normalisation."""
    sawtooth = [1.0, 3.0, 1.0, 3.0]
    rows = with_norms(0, [[1.0] * 4, sawtooth])
    assert log_fall(rows) == pytest.approx(np.log(3), abs=1e-6)
    assert fall_along_a_line(rows) == pytest.approx(0.6 * np.log(3), abs=1e-6)


def test_a_vanished_gradient_counts_and_an_infinite_one_spoils_its_own_run_only() -> None:
    norms = ([0.0, 0.0, 1.0], [1.0, np.inf, 1.0], [1.0, np.nan, 1.0], [1.0, 1.0, 1.0])
    tables = pd.concat(with_norms(seed, [values, values]) for seed, values in enumerate(norms))
    found = fall_along_a_line(tables)
    assert found[0] > 80
    assert np.isnan(found[1])
    assert np.isnan(found[2])
    assert found[3] == pytest.approx(0.0, abs=1e-12)
    assert log_norms(tables).shape == (4, 1, 3)


def test_beside_the_fall_stand_the_line_and_the_start() -> None:
    settings = GainSettings(data=("digits",), gains=(1.0,), runs=2, search_runs=1)
    seeds = {"decide": (0, 1), "search": (500,)}
    parts = [
        Part("", stage, pd.concat(with_norms(seed, [[1.0] * 5, GROWING]) for seed in each))
        for stage, each in seeds.items()
    ]
    rows = {row.condition: row for row in falls(PLAIN)(Results(settings, parts))}
    assert [(words, row.headline, row.other_scale) for words, row in rows.items()] == [
        ("digits, common gain 1", True, False),
        ("digits, common gain 1, along a fitted line", False, False),
        ("digits, common gain 1, before training", False, False),
    ]
    np.testing.assert_allclose([row.samples[0][0] for row in rows.values()], [4.0, 4.0, 0.0], atol=1e-5)
    rising = next(iter(falls(PLAIN, rises=True)(Results(settings, parts))))
    np.testing.assert_allclose(rising.samples, [[-4.0, -4.0]], atol=1e-5)
    judged = [row.condition for row in falls(PLAIN, before=True)(Results(settings, parts)) if row.headline]
    assert judged == ["digits, common gain 1", "digits, common gain 1, before training"]
