"""φ and its approximation, and what they differ by, against the ratio of deviations."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.colours import colour_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.yu2019.figure_13.study import BARELY_VISIBLE, BEST_EXPONENT, exceeding
from skiplab.theory.dominant_flow.gaussian_ratio import EXPONENT, approximate_exceedance, exceedance

FINE = np.geomspace(1e-2, 1e2, 401)
EXACT, APPROXIMATE, DRAWN = colour_of("residual"), colour_of("plain"), "#222222"


def draw(results: Results) -> Figure:
    """Draw two panels: the function, and differences from its closed form."""
    figure, axes = new_figure(2)
    ratios = np.array(results.settings.ratios)
    runs = np.array([results.sample(exceeding, ratio=ratio) for ratio in ratios]).T
    _function(axes[0, 0], ratios, runs)
    _differences(axes[0, 1], ratios, runs)
    for ax, letter in zip(axes.flat, "ab", strict=True):
        ax.set_xscale("log")
        ax.set_xlabel(r"ratio of deviations $r = \sigma_X / \sigma_Y$")
        ax.legend(loc="upper left", fontsize=7.2)
        panel_letter(ax, letter)
    return figure


def _function(ax: Axes, ratios: np.ndarray, runs: np.ndarray) -> None:
    ax.plot((1, 1, FINE[0]), (0, 0.5, 0.5), color="#888888", linewidth=0.7)
    name = r"$(2/\pi)\,\arctan\,r$"
    ax.plot(FINE, exceedance(FINE), color=EXACT, linewidth=2.4, alpha=0.5, label=name)
    name = f"eq 15, $c$ = {EXPONENT:g}"
    ax.plot(FINE, approximate_exceedance(FINE), color=APPROXIMATE, linewidth=0.9, label=name)
    ax.plot(ratios, runs.mean(axis=0), "o", color=DRAWN, markersize=2.8, label="pairs drawn")
    ax.set(ylabel=r"$\phi(r) = P[|X| > |Y|]$", ylim=(0, 1.02))


def _differences(ax: Axes, ratios: np.ndarray, runs: np.ndarray) -> None:
    ax.axhspan(-BARELY_VISIBLE, BARELY_VISIBLE, color="#EDEDED", linewidth=0)
    for exponent, look in ((EXPONENT, "-"), (BEST_EXPONENT, "--")):
        away = approximate_exceedance(FINE, exponent) - exceedance(FINE)
        name = f"eq 15, $c$ = {exponent:g}"
        ax.plot(FINE, away, color=APPROXIMATE, linestyle=look, linewidth=1.1, label=name)
    mean, low, high = mean_interval(runs - exceedance(ratios))
    bars = [mean - low, high - mean]
    ax.errorbar(ratios, mean, bars, fmt="o", color=DRAWN, markersize=2.8, capsize=1.5, elinewidth=0.8)
    ax.set(ylabel="difference from closed form", ylim=(-0.0115, 0.0185))
