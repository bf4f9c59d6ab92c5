"""θ of eq 33 against β for several depths, and beside a model with one interaction of the mean depth."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.style import new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.littwin2017.figure_1f.evidence import VALUES, along, grid
from skiplab.theory.spin_glasses.mixtures import complexity, complexity_at, pure, shares_of

COLOURS = {10: "#56B4E9", 30: "#009E73", 100: "#0072B2", 1000: "#332288"}
CONVENTIONAL = "#D55E00"


def draw(results: Results) -> Figure:
    """Draw two panels."""
    figure, axes = new_figure(2)
    depths = sorted(results.settings.depths)
    _by_beta(axes[0, 0], depths)
    _above_mean_depth(axes[0, 1], depths)
    for ax, letter in zip(axes.flat, "ab", strict=True):
        panel_letter(ax, letter)
    return figure


def _by_beta(ax: Axes, depths: list[int]) -> None:
    for p in depths:
        first, second = along(p)
        most, colour = float(complexity(pure(p))), COLOURS.get(p, "#777777")
        ax.plot(grid(), complexity_at(second / first), color=colour)
        ax.axhline(most, color=colour, linewidth=0.8, linestyle=(0, (3, 2)))
        look: dict[str, Any] = {
            "xytext": (0, 2),
            "textcoords": "offset points",
            "ha": "right",
            "color": colour,
        }
        ax.annotate(f"$p$ = {p}", (grid()[-1], most), **look)
    ax.plot(list(VALUES), [float(complexity(shares_of(100, b))) for b in VALUES], "o", color=COLOURS[100])
    ax.set(xscale="log", xlabel=r"$\beta$", ylim=(0, 1.12 * float(complexity(pure(max(depths))))))
    ax.set_ylabel(r"$\theta$, log of mean number of" + "\ncritical points per spin")


def _above_mean_depth(ax: Axes, depths: list[int]) -> None:
    for p in depths:
        first, second = along(p)
        above = complexity_at(second / first) - complexity_at(np.maximum(first - 1, 1))
        ax.plot(grid(), above, color=COLOURS.get(p, "#777777"), label=f"$p$ = {p}")
    ax.axhline(0, color=CONVENTIONAL, linewidth=1.0)
    ax.set(xscale="log", xlabel=r"$\beta$")
    ax.set_ylabel(r"$\theta$ above the pure model" + "\nof the same mean depth")
    ax.legend(loc="upper right")
