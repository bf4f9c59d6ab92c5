"""What figure 8 says besides accuracy: how large gradients are, and where the eigenvalues of Σ lie."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from skiplab.experiments.gains import compare
from skiplab.experiments.skip_networks import skip_of
from skiplab.reproduction import Evidence, Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2018.skip_spectra import skip_spectra

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

RESOLVED = 2.0**-24  # by which a float32 near 1 may be off: half of the distance to the next


def mean_log_norm(rows: pd.DataFrame) -> np.ndarray:
    """The log gradient norm averaged over layers and the epochs measured, one number per run."""
    import numpy as np

    norms = matching(rows, quantity="gradient_norm")
    # A vanished gradient may be exactly 0; the smallest float32 stands in for it.
    logs = np.log(np.maximum(norms["value"].to_numpy(dtype=float), np.finfo(np.float32).tiny))
    return norms.assign(value=logs).groupby("seed")["value"].mean().to_numpy(dtype=float)


def larger_norms(results: Results) -> Iterator[Evidence]:
    """Log gradient norms with each less orthogonal matrix, and with the orthogonal one."""
    *others, orthogonal = results.settings.skips
    for model in reversed(others):
        for row in compare(model, orthogonal, mean_log_norm)(results):
            yield replace(row, condition=f"{model.skip}, {row.condition}")


def on_the_circle(results: Results) -> Iterator[Evidence]:
    """How far the moduli of the eigenvalues of Σ are from 1, at most, one number per eigenvalue and draw."""
    for tau in results.settings.taus:
        moduli = results.rows(skip_spectra, quantity="modulus", skip=skip_of(tau))["value"]
        off = abs(moduli.to_numpy(dtype=float) - 1) + RESOLVED
        detail = "at most: the table keeps float32 (orhan2017/figure-10 has float64)"
        yield Evidence(f"τ = {tau:g}", [off], detail=detail)
