"""E[σ] against six parameters, and how far the formulas are from the simulation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.yu2019.figure_11.evidence import formula, sample
from skiplab.studies.yu2019.figure_11.study import COINCIDE
from skiplab.studies.yu2019.figure_11.trials import PANELS

AXES = {
    "n": "units $n$",
    "layer": "layer $l$ (of $L$ = 10)",
    "sigma_a": r"std $\sigma_A$ of weights",
    "sigma_v": r"std $\sigma_V$ of last gradients",
    "p": "probability $p$ of an open gate",
    "epsilon": r"scale $\epsilon$ of weights",
}
LINEAR = ("layer", "p")
# In the order of drawing, so that what is dotted lies above what it would hide under.
FORMS: dict[str, tuple[str, str, Any]] = {
    "powers": (r"corrected, $\Sigma p^k$", "#009E73", "-"),
    "printed": ("closing formula", "#8A8A8A", (0, (4, 2))),
    "squares": (r"eq 11, $p^\prime$", "#222222", (0, (1, 1.3))),
}
KINDS = ("residual", "plain")


def draw(results: Results) -> Figure:
    """Draw six panels in two rows, each above a lower one with the differences."""
    figure, axes = new_figure(3, rows=4, width=PAGE_WIDTH, height=6.8)
    axes[0, 0].get_gridspec().set_height_ratios([1.6, 1, 1.6, 1])
    for place, (parameter, (letter, _)) in enumerate(PANELS.items()):
        above, below = (axes[2 * (place // 3) + row, place % 3] for row in (0, 1))
        values = getattr(results.settings, parameter)
        _shares(above, results, parameter, values)
        _differences(below, results, parameter, values)
        panel_letter(above, letter)
        for ax in (above, below):
            ax.set_xscale("linear" if parameter in LINEAR else "log")
        above.set(ylim=(0, 1.03))
        above.tick_params(labelbottom=False)
        below.set(ylim=(-0.06, 0.06), xlabel=AXES[parameter])
        if place % 3 == 0:
            above.set_ylabel(r"share $E[\sigma^{(l)}]$")
            below.set_ylabel("simulated −\nformula")
    lines = [
        *(Line2D([], [], color=colour_of(kind), marker="o", markersize=3.5, linewidth=0) for kind in KINDS),
        *(Line2D([], [], color=colour, linestyle=style) for _, colour, style in FORMS.values()),
    ]
    names = [*map(label_of, KINDS), *(name for name, _, _ in FORMS.values())]
    figure.legend(lines, names, loc="outside upper center", ncols=5)
    return figure


def _shares(ax: Axes, results: Results, parameter: str, values: Sequence[float]) -> None:
    fine = _between(parameter, values)
    for form, (_, colour, style) in FORMS.items():
        ax.plot(
            fine,
            [formula(parameter, at, form) for at in fine],
            color=colour,
            linestyle=style,
            linewidth=1.2,
        )
    for kind in KINDS:
        if (kind, parameter) != ("plain", "epsilon"):
            found = [sample(results, kind, parameter, at) for at in values]
            _means(ax, values, found, colour_of(kind), 3.5, linewidth=0.9 if kind == "plain" else 0)


def _differences(ax: Axes, results: Results, parameter: str, values: Sequence[float]) -> None:
    ax.axhspan(-COINCIDE, COINCIDE, color="#EDEDED", linewidth=0)
    ax.axhline(0, color="#888888", linewidth=0.6)
    for form, (_, colour, style) in FORMS.items():
        found = [sample(results, "residual", parameter, at) - formula(parameter, at, form) for at in values]
        _means(ax, values, found, colour, 2.2, linestyle=style, linewidth=1.1)


def _means(
    ax: Axes, at: Sequence[float], found: Sequence[np.ndarray], colour: str, size: float, **line: Any
) -> None:
    """Draw means over runs with their intervals, a sample per place."""
    mean, low, high = mean_interval(np.array(found).T)
    ax.plot(at, mean, color=colour, **line)
    bars = [mean - low, high - mean]
    ax.errorbar(at, mean, bars, fmt="o", color=colour, markersize=size, capsize=1.5, elinewidth=0.8)


def _between(parameter: str, values: Sequence[float]) -> np.ndarray:
    """Places from the first to the last value at which a formula is drawn: whole numbers, or many."""
    first, last = values[0], values[-1]
    if parameter in ("n", "layer"):
        return np.arange(first, last + 1)
    return np.linspace(first, last, 101) if parameter == "p" else np.geomspace(first, last, 101)
