"""When curves reach a risk, and the error there, on curves whose answers are known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skiplab.studies.yu2019.equal_risk import at_epochs, curves, epochs_to, error_at, smoothed


def test_curves_are_in_the_order_of_seeds_without_epoch_0() -> None:
    rows = [
        {"seed": seed, "epoch": epoch, "layer": 0, "quantity": "loss", "value": 10.0 * seed + epoch}
        for seed in (2, 1)
        for epoch in (0, 1, 2)
    ]
    assert curves(pd.DataFrame(rows), "loss").tolist() == [[11.0, 12.0], [21.0, 22.0]]


def test_windows_end_with_the_epoch_and_are_shorter_at_the_start() -> None:
    runs = np.array([[1.0, 3.0, 5.0, 9.0]])
    assert smoothed(runs, 2).tolist() == [[1.0, 2.0, 4.0, 7.0]]
    assert smoothed(runs, 1).tolist() == runs.tolist()


def test_a_falling_exponential_is_met_between_epochs() -> None:
    epochs = np.arange(1, 21)
    risk = np.exp(-epochs / 4)[None]
    for level in (0.5, 0.1, 0.02):
        assert epochs_to(risk, level) == pytest.approx(-4 * np.log(level))


def test_the_first_time_counts_and_never_is_no_number() -> None:
    risk = np.array([[2.0, 0.5, 2.0, 0.25], [2.0, 2.0, 2.0, 2.0], [0.1, 0.1, 0.1, 0.1]])
    found = epochs_to(risk, 1.0)
    assert found[0] == pytest.approx(1.5)  # half of the way in ln from 2 to .5
    assert np.isnan(found[1])
    assert found[2] == 1.0  # before the first mean nothing is known
    diverged = np.array([[2.0, 1.5, np.nan, np.nan]])
    assert np.isnan(epochs_to(diverged, 1.0)).all()


def test_values_are_read_between_epochs() -> None:
    curve = np.array([[0.0, 10.0, 20.0], [5.0, 5.0, 5.0]])
    assert at_epochs(curve, np.array([1.25, np.nan])).tolist() == pytest.approx([2.5, np.nan], nan_ok=True)


def test_equal_curves_that_are_trained_at_other_speeds_have_equal_errors_at_equal_risk() -> None:
    """Error as a function of risk alone, reached twice as fast: the same error, at half of the epochs."""
    epochs = np.arange(1, 401)
    slow, fast = np.exp(-epochs / 80)[None], np.exp(-epochs / 40)[None]
    errors = [0.1 + 0.2 * risk for risk in (slow, fast)]
    for level in (0.5, 0.1, 0.02):
        one, two = (error_at(risk, error, level)[0] for risk, error in zip((slow, fast), errors, strict=True))
        assert one == pytest.approx(0.1 + 0.2 * level, rel=1e-3)
        assert two == pytest.approx(one, rel=1e-3)
        assert epochs_to(fast, level)[0] == pytest.approx(epochs_to(slow, level)[0] / 2)
