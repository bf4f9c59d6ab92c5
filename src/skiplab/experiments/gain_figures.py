"""Figures of gain experiments: learning curves at best gains, accuracy against gain, gradient norms by layer."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.gains import WIDE, Gains, Model, Quantity, accuracies
from skiplab.reproduction.results import Results, matching

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

Shown = Mapping[str, Model]  # by the name that has a colour


def curves_and_gains(results: Results, shown: Shown) -> Any:
    """A column per data set: accuracy over epochs at best gains above, last accuracy by gain below."""
    from skiplab.figures.curves import learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    settings = results.settings
    width = 7.2 if len(settings.data) > 1 else 5.0
    figure, axes = new_figure(columns=len(settings.data), rows=2, sharey=True, width=width, height=6.0)
    many = len(shown) > 5  # a long legend would cover the curves and goes above the panels
    for column, data in enumerate(settings.data):
        above, below = axes[:, column]
        curves = {name: best_curves(results, data, model) for name, model in shown.items()}
        epochs = range(1, settings.epochs + 1)
        learning_curves(above, epochs, curves, labels="legend" if column == 0 and not many else "none")
        above.set(title=title_of(data), xlabel="epoch")
        gains_panel(below, results, data, shown)
        if column == 0:
            above.set_ylabel("training accuracy")
            below.set_ylabel("training accuracy, last epoch")
    if many:
        lines, names = axes[0, 0].get_legend_handles_labels()
        # Three names fit beside each other in one column of panels.
        ncols = min((len(shown) + 1) // 2, 3 * len(settings.data))
        figure.legend(lines, names, loc="outside upper center", ncols=ncols)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def gains_panel(
    ax: Any,
    results: Results,
    data: str,
    shown: Shown,
    size: Gains = WIDE,
    *,
    quantity: Quantity = accuracies,
    dots: bool = True,
) -> None:
    """Last accuracy, or another quantity, against the initial gain: mean and interval over runs, models side by side.

    ``dots``: whether every run is shown too. A gain at which a model has no runs is left empty.
    """
    from skiplab.figures.colours import colour_of
    from skiplab.figures.curves import mean_interval

    gains = results.settings.gains
    width = 0.7 / len(shown)
    for place, (name, model) in enumerate(shown.items()):
        shift = (place - (len(shown) - 1) / 2) * width
        for at, gain in enumerate(gains):
            values = quantity(size.at(results, data, model, gain))
            if not len(values):
                continue
            if dots:
                style = {"s": 6, "color": colour_of(name), "alpha": 0.4, "linewidths": 0}
                ax.scatter([at + shift] * len(values), values, **style)
            mean, low, high = (float(each) for each in mean_interval(values))
            ends = [[mean - low], [high - mean]]
            ax.errorbar(at + shift, mean, ends, fmt="o", markersize=3, capsize=2, color=colour_of(name))
    ax.set_xticks(range(len(gains)), [f"{gain:.3g}" for gain in gains])
    ax.set_xlabel("initial gain g")
    ax.grid(False, axis="x")


def norms_and_curves(results: Results, shown: Shown) -> Any:
    """A row per data set: gradient norms by layer at best gains and near Glorot's, and accuracy over epochs."""
    from skiplab.figures.curves import by_layer, learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    settings = results.settings
    glorot = nearest_glorot(settings.gains)
    figure, axes = new_figure(columns=3, rows=len(settings.data), width=7.4, height=2.9 * len(settings.data))
    for (left, middle, right), data in zip(axes, settings.data, strict=True):
        for ax, gain in ((left, None), (middle, glorot)):
            norms = {name: layer_norms(results, data, model, gain) for name, model in shown.items()}
            by_layer(ax, range(1, settings.depth + 1), norms, labels="none")
            title = "best gains" if gain is None else f"gain {gain:.3g} for all"
            ax.set(xlabel="hidden layer", title=title)
        left.set_ylabel(f"gradient norm, start of epoch {max(settings.norms_at) + 1}")
        curves = {name: best_curves(results, data, model) for name, model in shown.items()}
        learning_curves(right, range(1, settings.epochs + 1), curves)
        right.set(xlabel="epoch", ylabel="training accuracy", title=f"{title_of(data)}, best gains")
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def nearest_glorot(gains: tuple[float, ...]) -> float:
    """The gain nearest 1, Glorot's own, by ratio."""
    return min(gains, key=lambda gain: abs(math.log(gain)))


def best_curves(results: Results, data: str, model: Model, size: Gains = WIDE) -> np.ndarray:
    """Accuracy (runs, epochs) of a model at its best gain."""
    return wide(matching(size.at(results, data, model), quantity="accuracy"), "epoch")


def layer_norms(
    results: Results, data: str, model: Model, gain: float | None, epoch: int | None = None
) -> np.ndarray:
    """Gradient norms (runs, layers) at the last epoch measured or at another, at a gain or (None) at the best."""
    rows = matching(WIDE.at(results, data, model, gain), quantity="gradient_norm")
    return wide(matching(rows, epoch=rows["epoch"].max() if epoch is None else epoch), "layer")


def wide(rows: pd.DataFrame, columns: str) -> np.ndarray:
    """Values (runs, columns), one row per seed."""
    return rows.pivot(index="seed", columns=columns, values="value").to_numpy(dtype=float)
