"""What rescaling a trained network leaves of its accuracy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import final_dots, mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

INK = "#444444"

ByDistance = tuple[np.ndarray, np.ndarray, np.ndarray]  # distances, means, standard errors
Column = tuple[Mapping[str, np.ndarray], Mapping[str, Mapping[str, np.ndarray]], Mapping[str, ByDistance]]


def rescaling_panels(columns: Mapping[str, Column]) -> Figure:
    """A column a data set: ratios of runs at best gains, at every gain, and by the distance of the layers.

    Each column holds the runs of each model; for each model those at each gain; and for each model distances,
    means and standard errors.
    """
    figure, axes = new_figure(columns=len(columns), rows=3, width=PAGE_WIDTH, height=7.2, sharey=True)
    for place, (title, (best, by_gain, by_distance)) in enumerate(columns.items()):
        top, middle, low = axes[:, place]
        final_dots(top, list(best), list(best.values()))
        top.set_title(f"{title}, best gains")
        _by_gain(middle, by_gain)
        for name, (distance, mean, error) in by_distance.items():
            style = {"markersize": 2.5, "linewidth": 1.0, "elinewidth": 0.7}
            low.errorbar(
                distance, mean, error, fmt="o-", color=colour_of(name), label=label_of(name), **style
            )
        low.xaxis.set_major_locator(MaxNLocator(integer=True))
        low.set_xlabel("distance of the matrices, l − k")
        for ax in (top, middle, low):
            ax.axhline(1, color=INK, linewidth=0.7, linestyle=":")
            if place == 0:
                ax.set_ylabel("accuracy, rescaled / not")
    axes[2, 0].legend(fontsize=7)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _by_gain(ax: Axes, by_gain: Mapping[str, Mapping[str, np.ndarray]]) -> None:
    width = 0.7 / len(by_gain)
    gains: list[str] = []
    for place, (name, samples) in enumerate(by_gain.items()):
        gains = list(samples)
        shift = (place - (len(by_gain) - 1) / 2) * width
        for at, values in enumerate(samples.values()):
            if not len(values):
                continue
            ax.scatter(
                [at + shift] * len(values), values, s=6, color=colour_of(name), alpha=0.4, linewidths=0
            )
            mean, low, high = (float(each) for each in mean_interval(values))
            ends = [[mean - low], [high - mean]]
            ax.errorbar(at + shift, mean, ends, fmt="o", markersize=3, capsize=2, color=colour_of(name))
    ax.set_xticks(range(len(gains)), gains)
    ax.set_xlabel("initial gain g")
    ax.grid(False, axis="x")
