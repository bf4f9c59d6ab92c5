"""How far gradient norms fall through a network, from its top hidden layer to its bottom one, in natural logarithms.

The headline is the fall from end to end once training has begun, at a common gain. Beside it stand the fall along a
fitted line, which a jump in the middle, as a batch normalisation makes, bends, and the fall before training.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from skiplab.experiments.gains import WIDE, Model, Quantity
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.results import Found, Results, matching

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def log_fall(rows: pd.DataFrame, *, before: bool = False) -> np.ndarray:
    """ln(norm at the top) − ln(norm at the bottom), one number per run, averaged over the epochs measured.

    Epoch 0 is ``before`` training: it is measured alone or left out.
    """
    logs = log_norms(rows, before=before)
    fall: np.ndarray = (logs[..., -1] - logs[..., 0]).mean(1)
    return fall


def fall_along_a_line(rows: pd.DataFrame, *, before: bool = False) -> np.ndarray:
    """The same by the slope of log norm against layer, multiplied by the number of steps between layers."""
    import numpy as np

    logs = log_norms(rows, before=before)
    layers = logs.shape[-1]
    slopes = np.polyfit(np.arange(layers), logs.reshape(-1, layers).T, 1)[0]
    fall: np.ndarray = slopes.reshape(logs.shape[:2]).mean(1) * (layers - 1)
    return fall


def log_norms(rows: pd.DataFrame, *, before: bool = False) -> np.ndarray:
    """Log gradient norms (runs, epochs, layers), runs in the order of their seeds."""
    import numpy as np

    norms = matching(rows, quantity="gradient_norm")
    norms = norms[(norms["epoch"] == 0) == before].sort_values(["seed", "epoch", "layer"])
    # A vanished gradient may be exactly 0; the smallest float32 stands in for it.
    logs = np.log(np.maximum(norms["value"].to_numpy(dtype=float), np.finfo(np.float32).tiny))
    # An infinite one would spoil the fits of all runs; NaN spoils its own, which then counts as diverged.
    logs = np.where(np.isinf(logs), np.nan, logs)
    return logs.reshape(norms["seed"].nunique(), -1, norms["layer"].nunique())


BEFORE = "before training"
BESIDE: dict[str, Quantity] = {
    "along a fitted line": fall_along_a_line,
    BEFORE: partial(log_fall, before=True),
}


def falls(*models: Model, rises: bool = False, before: bool = False) -> Found:
    """Evidence on how far norms fall in networks of these models (or how far they rise), at a common gain.

    ``before``: networks before training are a headline too, for a paper that does not say when it measures.
    """
    sign = -1 if rises else 1

    def found(results: Results) -> Iterator[Evidence]:
        for condition in WIDE.conditions(results, models, common=True):
            yield condition.evidence([sign * log_fall(rows) for rows in condition.rows])
            for words, quantity in BESIDE.items() if condition.headline else ():
                samples: Sequence[np.ndarray] = [sign * quantity(rows) for rows in condition.rows]
                headline = before and words == BEFORE
                yield condition.evidence(samples, f"{condition.words}, {words}", headline=headline)

    return found
