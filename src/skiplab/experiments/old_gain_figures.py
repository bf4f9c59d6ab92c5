"""How figures 7, 8 and 9 are laid out: from the study's table to plain arrays to plots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import GainSettings

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

TITLES = {"cifar10": "CIFAR-10", "cifar100-coarse": "CIFAR-100 (20 labels)", "digits": "Digits"}
Shown = Sequence[tuple[str, str, str]]  # (colour name, model, skip)


def gains_panel(ax: Any, frame: pd.DataFrame, data: str, settings: GainSettings, shown: Shown) -> None:
    """Last accuracy against the initial gain, mean and interval over runs, models side by side."""
    from skiplab.figures.colours import colour_of
    from skiplab.figures.curves import mean_interval

    width = 0.7 / len(shown)
    for place, (name, model, skip) in enumerate(shown):
        shift = (place - (len(shown) - 1) / 2) * width
        for at, gain in enumerate(settings.gains):
            values = searches.accuracies(searches.deciding(frame, data, model, gain, skip))
            mean, low, high = (float(each) for each in mean_interval(values))
            dots = {"s": 6, "color": colour_of(name), "alpha": 0.4, "linewidths": 0}
            ax.scatter([at + shift] * len(values), values, **dots)
            ends = [[mean - low], [high - mean]]
            ax.errorbar(at + shift, mean, ends, fmt="o", markersize=3, capsize=2, color=colour_of(name))
    ax.set_xticks(range(len(settings.gains)), [f"{gain:.3g}" for gain in settings.gains])
    ax.set_xlabel("initial gain g")
    ax.grid(False, axis="x")


def best_curves(frame: pd.DataFrame, data: str, model: str, skip: str) -> np.ndarray:
    """Accuracy (runs, epochs) of a model at its best gain."""
    rows = searches.deciding(frame, data, model, searches.best_gain(frame, data, model, skip), skip)
    return _wide(rows[rows["quantity"] == "accuracy"], "epoch")


def layer_norms(frame: pd.DataFrame, data: str, model: str, skip: str, gain: float | None) -> np.ndarray:
    """Gradient norms (runs, layers) at the last epoch measured, at a gain or (None) at the model's best."""
    gain = searches.best_gain(frame, data, model, skip) if gain is None else gain
    rows = searches.deciding(frame, data, model, gain, skip)
    rows = rows[rows["quantity"] == "gradient_norm"]
    return _wide(rows[rows["epoch"] == rows["epoch"].max()], "layer")


def _wide(rows: pd.DataFrame, columns: str) -> np.ndarray:
    wide = rows.pivot(index="seed", columns=columns, values="value")
    return wide.to_numpy(dtype=float)
