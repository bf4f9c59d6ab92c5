"""How gradient norms change from layer to layer, and how far apart those of plain and BiasReg networks are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from skiplab.experiments.gains import PLAIN, WIDE
from skiplab.reproduction import Evidence, Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2018.bias_reg import BIAS_REG

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def epochs_with_norms(results: Results) -> list[int]:
    """The epochs at whose start gradients were measured; a training shorter than asked for has fewer."""
    return sorted(map(int, results.rows(quantity="gradient_norm")["epoch"].unique()))


def norms_apart(both: Sequence[pd.DataFrame], epoch: int) -> np.ndarray:
    """The mean over layers of |ln ratio| of two models' gradient norms at the start of an epoch, seed by seed."""
    import numpy as np

    from skiplab.experiments.gain_figures import wide

    logs = []
    for rows in both:
        norms = wide(matching(rows, quantity="gradient_norm", epoch=epoch), "layer")
        # A vanished gradient may be exactly 0; the smallest float32 stands in for it. An infinite one is no number.
        norms = np.maximum(norms, np.finfo(np.float32).tiny)
        logs.append(np.log(np.where(np.isinf(norms), np.nan, norms)))
    difference: np.ndarray = np.abs(logs[0] - logs[1])
    return difference.mean(axis=1)


def alike(results: Results) -> Iterator[Evidence]:
    """Plain against BiasReg norms, seed by seed; later epochs are further rows."""
    first, *later = epochs_with_norms(results)
    for condition in WIDE.conditions(results, [BIAS_REG, PLAIN], common=True):
        for epoch in (first, *later):
            where, headline = f"start of epoch {epoch + 1}, {condition.words}", condition.headline
            apart = norms_apart(condition.rows, epoch)
            yield condition.evidence([apart], where, headline=headline and epoch == first)
