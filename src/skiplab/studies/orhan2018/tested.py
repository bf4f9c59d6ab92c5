"""Test accuracy as figures S2 and S6 judge it: at its peak, since later epochs fit the training set too well."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skiplab.experiments.epoch_figures import runs_at

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def peak_accuracies(rows: pd.DataFrame) -> np.ndarray:
    """The best test accuracy of all epochs at which it was measured, one number per run."""
    peaks: np.ndarray = runs_at(rows, "test_accuracy")[1].max(axis=1)
    return peaks
