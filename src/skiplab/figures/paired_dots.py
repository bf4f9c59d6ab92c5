"""Networks as dots side by side, those of one seed joined, and a paper's own numbers as stars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval

STAR: dict[str, Any] = {
    "marker": "*",
    "color": "#222222",
    "markersize": 6,
    "linestyle": "",
    "markeredgewidth": 0,
}

Groups = Mapping[
    str, Mapping[str, np.ndarray]
]  # by words below the axis, then by model: a number per network
Printed = Mapping[str, Mapping[str, float]]  # the same: what the paper prints


def side_by_side(ax: Axes, groups: Groups, printed: Printed | None = None, *, legend: bool = True) -> None:
    """Draw the networks of every group as dots, one column per model, with means and 95 % intervals beside them."""
    printed = printed or {}
    models = list(dict.fromkeys(model for group in groups.values() for model in group))
    for place, (words, group) in enumerate(groups.items()):
        columns = {model: place + (0.3 if len(models) > 1 else 0) * _side(models, model) for model in group}
        if len({len(values) for values in group.values()}) == 1:
            for pair in zip(*group.values(), strict=True):
                ax.plot(list(columns.values()), pair, color="#CCCCCC", linewidth=0.5, zorder=1)
        for model, values in group.items():
            colour, x, side = colour_of(model), columns[model], _side(models, model) or 1
            ax.scatter([x] * len(values), values, s=8, color=colour, alpha=0.6, linewidths=0)
            if len(values):
                mean, low, high = (float(each) for each in mean_interval(values))
                bars = [[mean - low], [high - mean]]
                own = x + 0.1 * np.sign(side)
                ax.errorbar(own, mean, bars, fmt="o", color=colour, markersize=3, capsize=2)
            if model in printed.get(words, {}):
                ax.plot(x + 0.19 * np.sign(side), printed[words][model], **STAR)
    ax.set_xticks(range(len(groups)), list(groups))
    ax.set_xlim(-0.6, len(groups) - 0.4)
    ax.grid(False, axis="x")
    if legend:
        shown = keys(models, stars=any(words in groups for words in printed))
        # On white, since it may have to lie on the lines that join pairs.
        ax.legend(handles=shown, fontsize=7, frameon=True, framealpha=0.85, edgecolor="none")


def keys(models: list[str], *, stars: bool) -> list[Line2D]:
    """Entries of a legend: a dot per model, and the paper's star."""
    found = [
        Line2D([], [], marker="o", markersize=4, linestyle="", color=colour_of(model), label=label_of(model))
        for model in models
    ]
    return found + ([Line2D([], [], label="paper", **STAR)] if stars else [])


def _side(models: list[str], model: str) -> float:
    """Where a model's column lies within its group, from −½ to ½."""
    return models.index(model) / max(len(models) - 1, 1) - (0.5 if len(models) > 1 else 0.0)
