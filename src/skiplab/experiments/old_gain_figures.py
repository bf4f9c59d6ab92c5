"""How figures 7, 8 and 9 are laid out: from the study's table to plain arrays to plots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import GainSettings

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

TITLES = {"cifar10": "CIFAR-10", "cifar100-coarse": "CIFAR-100 (20 labels)", "digits": "Digits"}
Shown = Sequence[tuple[str, str, str]]  # (colour name, model, skip)


def curves_and_gains(frame: pd.DataFrame, settings: GainSettings, shown: Shown) -> Any:
    """A column a data set: accuracy over epochs at best gains above, last accuracy by gain below."""
    from skiplab.figures.curves import learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    figure, axes = new_figure(columns=len(settings.data), rows=2, sharey=True, width=7.2, height=6.0)
    many = len(shown) > 5  # a long legend would cover the curves and goes above the panels
    for column, data in enumerate(settings.data):
        above, below = axes[:, column]
        curves = {name: best_curves(frame, data, model, skip) for name, model, skip in shown}
        epochs = range(1, settings.epochs + 1)
        learning_curves(above, epochs, curves, labels="legend" if column == 0 and not many else "none")
        above.set(title=TITLES.get(data, data), xlabel="epoch")
        gains_panel(below, frame, data, settings, shown)
        if column == 0:
            above.set_ylabel("training accuracy")
            below.set_ylabel("training accuracy, last epoch")
    if many:
        lines, names = axes[0, 0].get_legend_handles_labels()
        figure.legend(lines, names, loc="outside upper center", ncols=(len(shown) + 1) // 2)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


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


def norms_and_curves(frame: pd.DataFrame, settings: GainSettings, shown: Shown) -> Any:
    """A row a data set: gradient norms by layer at best gains and near Glorot's, and accuracy over epochs."""
    from skiplab.figures.curves import by_layer, learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    glorot = min(settings.gains, key=lambda gain: abs(math.log(gain)))
    figure, axes = new_figure(columns=3, rows=len(settings.data), width=7.4, height=2.9 * len(settings.data))
    for (left, middle, right), data in zip(axes, settings.data, strict=True):
        for ax, gain in ((left, None), (middle, glorot)):
            norms = {name: layer_norms(frame, data, model, skip, gain) for name, model, skip in shown}
            by_layer(ax, range(1, settings.depth + 1), norms, labels="none")
            title = "best gains" if gain is None else f"gain {gain:.3g} for all"
            ax.set(xlabel="hidden layer", title=title)
        left.set_ylabel(f"gradient norm, start of epoch {max(settings.norms_at) + 1}")
        curves = {name: best_curves(frame, data, model, skip) for name, model, skip in shown}
        learning_curves(right, range(1, settings.epochs + 1), curves)
        right.set(xlabel="epoch", ylabel="training accuracy", title=f"{TITLES.get(data, data)}, best gains")
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


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
