"""Rates of the mean number of minima against Λ, and what is left of them after the known corrections."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.littwin2017.spin_glass.evidence import ENOUGH, fits, pooled, rates
from skiplab.studies.littwin2017.spin_glass.trials import MODELS, derivatives_of, theta_of
from skiplab.theory.spin_glasses.kac_rice import corrections

COLOURS = dict(zip(MODELS, ("#56B4E9", "#0072B2", "#009E73", "#D55E00"), strict=True))


def draw(results: Results) -> Figure:
    """Draw three panels."""
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.7)
    sizes = np.array(results.settings.sizes, dtype=float)
    for name, colour in COLOURS.items():
        first, second = derivatives_of(name)
        theta, d = np.mean(fits(results, name), axis=0)
        fine = np.geomspace(8, 1e5, 300)
        found, known = rates(results, name), corrections(first, second, sizes)
        axes[0, 0].plot(
            fine**-0.5, theta + corrections(first, second, fine) + d / fine, color=colour, linewidth=0.9
        )
        _means(axes[0, 0], sizes**-0.5, found, colour, label=name)
        axes[0, 0].plot([0], [theta_of(name)], "D", color=colour, markersize=4.5, clip_on=False)
        axes[0, 1].plot(
            [0, 0.1], theta - theta_of(name) + d * np.array([0, 0.1]), color=colour, linewidth=0.9
        )
        _means(axes[0, 1], 1 / sizes, found - known - theta_of(name), colour)
        effective = [pooled(results, name, int(size)) for size in sizes]
        axes[0, 2].plot(sizes, effective, "o-", color=colour)
    axes[0, 0].set(
        xlabel=r"$\Lambda^{-1/2}$", ylabel=r"log(E Crt$_0$)/$\Lambda$", xlim=(0, 0.33), ylim=(0, None)
    )
    axes[0, 0].legend(title="spins", loc="upper left", fontsize=7.2)
    axes[0, 1].set(xlabel=r"$1/\Lambda$", ylabel=r"rate − corrections − $\theta$", xlim=(0, 0.105))
    axes[0, 2].axhline(ENOUGH, color="#888888", linewidth=0.8, linestyle=(0, (3, 2)))
    axes[0, 2].set(
        xscale="log", yscale="log", xlabel=r"number of spins $\Lambda$", ylabel="effective matrices"
    )
    axes[0, 2].set_xticks([10, 20, 40, 80], ["10", "20", "40", "80"])
    axes[0, 2].minorticks_off()
    for ax, letter in zip(axes.flat, "abc", strict=True):
        panel_letter(ax, letter)
    return figure


def _means(ax: Axes, at: np.ndarray, runs: np.ndarray, colour: str, **line: Any) -> None:
    mean, low, high = mean_interval(runs)
    ax.errorbar(at, mean, [mean - low, high - mean], fmt="o", color=colour, markersize=3, capsize=1.5,
                elinewidth=0.8, **line)  # fmt: skip
