"""Curves of training risk and test error: when a risk is reached, and which error a network has there."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skiplab.reproduction.results import matching

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

WINDOW = 5  # epochs over which risk and error are averaged (ours)


def curves(rows: pd.DataFrame, quantity: str) -> np.ndarray:
    """A quantity of every network (runs, epochs) from the first epoch on, in the order of seeds."""
    rows = matching(rows, quantity=quantity, layer=0)
    wide = rows[rows["epoch"] > 0].pivot_table(index="seed", columns="epoch", values="value", dropna=False)
    return wide.to_numpy(dtype=float)


def smoothed(runs: np.ndarray, window: int = WINDOW) -> np.ndarray:
    """Means (runs, epochs) over a window that ends with each epoch, shorter at the start."""
    import numpy as np

    sums = np.cumsum(np.pad(runs, ((0, 0), (1, 0))), axis=1)
    ends = np.arange(1, runs.shape[1] + 1)
    starts = np.maximum(ends - window, 0)
    return (sums[:, ends] - sums[:, starts]) / (ends - starts)


def epochs_to(risk: np.ndarray, level: float) -> np.ndarray:
    """The epoch, log-linearly between two, at which each run first reaches a risk; NaN if it never does.

    Before the first epoch's mean nothing is known, so that a risk which lies above it is reached at epoch 1.
    """
    import numpy as np

    logs = np.log(risk)
    found = np.full(len(risk), np.nan)
    for run, curve in enumerate(logs):
        reached = np.flatnonzero(curve <= np.log(level))
        if len(reached):
            after = int(reached[0])
            step = curve[after - 1] - curve[after] if after else 0.0
            part = (curve[after - 1] - np.log(level)) / step if after else 1.0
            found[run] = after + part
    return found


def at_epochs(curve: np.ndarray, epochs: np.ndarray) -> np.ndarray:
    """Each run's value (runs,) at an epoch of its own, by linear interpolation; NaN where that is NaN."""
    import numpy as np

    whole = np.arange(1, curve.shape[1] + 1)
    return np.array(
        [
            np.nan if np.isnan(at) else np.interp(at, whole, each)
            for at, each in zip(epochs, curve, strict=True)
        ]
    )


def error_at(risk: np.ndarray, error: np.ndarray, level: float) -> np.ndarray:
    """Test error of each run where it first reaches a training risk, both as means over windows of epochs."""
    return at_epochs(smoothed(error), epochs_to(smoothed(risk), level))
