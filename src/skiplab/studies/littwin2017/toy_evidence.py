"""What figures 1d and 1e read from the tables of ``toys``; every condition is a stage, the first one decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skiplab.reproduction import Results
from skiplab.reproduction.results import matching
from skiplab.studies.littwin2017.toys import train

if TYPE_CHECKING:
    import numpy as np


def stages(results: Results) -> list[str]:
    """The conditions in the order in which the study names them."""
    return list(dict.fromkeys(part.stage for part in results.parts))


def over_epochs(results: Results, stage: str, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """Epochs, and a quantity as an array (networks, epochs, layers); networks that diverged are left out."""
    import numpy as np

    rows = results.rows(train, stage=stage, quantity=quantity)
    # As wide integers: tables keep epochs in 16 bits, in which iterations overflow.
    epochs, layers = (np.unique(rows[column]).astype(np.int64) for column in ("epoch", "layer"))
    kept = matching(rows, diverged=False)
    wide = kept.pivot_table(index="seed", columns=["epoch", "layer"], values="value", observed=True)
    return epochs, wide.to_numpy().reshape(-1, len(epochs), len(layers))


def learned(results: Results, stage: str, epoch: int | None = None) -> str:
    """The test error at an epoch or at the end, and how many networks diverged, in words."""
    rows = results.rows(train, stage=stage, quantity="test_error")
    last = matching(rows, epoch=rows["epoch"].max() if epoch is None else epoch)
    kept, lost = matching(last, diverged=False), matching(last, diverged=True)
    words = f"test error {kept['value'].mean():.3f}" if len(kept) else "no network left"
    return words + (f"; {len(lost)} of {len(last)} diverged" if len(lost) else "")
