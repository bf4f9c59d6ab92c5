"""Panels that orhan2018's figures share: from the study's table to plain arrays to plots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.results import matching

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def runs_at(rows: pd.DataFrame, quantity: str, layer: int = 0) -> tuple[list[int], np.ndarray]:
    """Epochs at which a quantity was measured, and its values (runs, epochs)."""
    chosen = matching(rows, quantity=quantity, layer=layer)
    wide = chosen.pivot(index="seed", columns="epoch", values="value")
    return [int(epoch) for epoch in wide.columns], wide.to_numpy(dtype=float)


def over_epochs(
    ax: Any,
    rows_by_name: Mapping[str, pd.DataFrame],
    quantity: str,
    ylabel: str,
    *,
    layer: int = 0,
    labels: str = "none",
) -> None:
    """A quantity over training, mean and 95 % interval over runs; epochs are spaced by log(1 + epoch).

    The legend names the gain of each, and the number of runs where it differs.
    """
    from skiplab.experiments.gain_figures import in_legend
    from skiplab.figures.curves import learning_curves

    epochs: list[int] = []
    measured = {name: matching(rows, quantity=quantity, layer=layer) for name, rows in rows_by_name.items()}
    words = in_legend(measured) if labels == "legend" else {}
    for name, rows in rows_by_name.items():
        epochs, runs = runs_at(rows, quantity, layer)
        learning_curves(ax, epochs, {name: runs}, labels="none", words=words)
    epoch_axis(ax, epochs)
    ax.set_ylabel(ylabel)
    if labels == "legend":
        ax.legend()


def epoch_axis(ax: Any, epochs: list[int]) -> None:
    """Epochs on an axis linear in log(1 + epoch), with ticks at the measured ones."""
    import numpy as np

    ax.set_xscale("function", functions=(np.log1p, np.expm1))
    # Limits of our own: matplotlib may put one below −1, where the logarithm ends and the panel goes blank.
    first, last = np.log1p(min(epochs)), np.log1p(max(epochs))
    margin = 0.03 * (last - first) or 0.1
    ax.set_xlim(np.expm1(first - margin), np.expm1(last + margin))
    ax.set_xticks(epochs, [str(epoch) for epoch in epochs])
    ax.minorticks_off()
    ax.set_xlabel("epoch")
