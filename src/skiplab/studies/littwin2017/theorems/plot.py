"""Changes of scales after a step, found against predicted, by length of the step and by network."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.littwin2017.theorems.cross_entropy import START, TRAINED, forces
from skiplab.studies.littwin2017.theorems.evidence import BLOCKS, smallest
from skiplab.studies.littwin2017.theorems.trials import scale_steps, size_steps

INSIDE, OUTSIDE, SIZE = "#0072B2", "#D55E00", "#009E73"
DOT: dict[str, Any] = {"markersize": 2.2, "alpha": 0.45, "markeredgewidth": 0}


def draw(results: Results) -> Figure:
    """Draw four panels."""
    figure, axes = new_figure(4, width=PAGE_WIDTH, height=2.5)
    _steps(axes[0, 0], results)
    _inside(axes[0, 1], results)
    _sizes(axes[0, 2], results)
    _forces(axes[0, 3], results)
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        ax.tick_params(labelsize=7)
        panel_letter(ax, letter)
    return figure


def _steps(ax: Axes, results: Results) -> None:
    """The median and the largest difference by length of the step."""
    kinds: tuple[tuple[str, Any, dict[str, Any], str], ...] = (
        (r"$\lambda_l$, not skipped", scale_steps, {"inside": False}, OUTSIDE),
        (r"$\lambda_l$, skipped", scale_steps, {"inside": True}, INSIDE),
        ("$C$", size_steps, {}, SIZE),
    )
    steps = sorted(results.settings.steps)
    for name, trial, where, colour in kinds:
        rows = results.rows(trial, shape=BLOCKS, **where)
        apart = (rows["found"] - rows["predicted"]).abs().groupby(rows["step"])
        ax.plot(steps, apart.median().loc[steps], "o-", color=colour, label=name)
        ax.plot(steps, apart.max().loc[steps], ":", color=colour, linewidth=0.9)
    ax.set(
        xscale="log", yscale="log", xlabel=r"step $\|\mu g\| / \|w\|$", ylabel="found − predicted (relative)"
    )
    ax.set_ylim(1e-8, 1e5)
    ax.add_artist(ax.legend(loc="lower right", fontsize=6, handlelength=1.2, borderaxespad=0.1))
    looks: dict[str, dict[str, Any]] = {
        "median": {"marker": "o", "markersize": 3.5},
        "largest": {"linestyle": ":", "linewidth": 0.9},
    }
    keys = [Line2D([], [], color="#444444", label=words, **look) for words, look in looks.items()]
    ax.legend(handles=keys, loc="upper left", fontsize=6.5, borderaxespad=0.1)


def _inside(ax: Axes, results: Results) -> None:
    """Every skipped layer: which way λ_l goes against which of the two gradients is longer."""
    rows = smallest(results, scale_steps, shape=BLOCKS, inside=True)
    ratio = rows["through"] / rows["beside"]
    ax.plot(ratio, rows["found"], "o", color=INSIDE, **DOT)
    ax.axvline(1, color="#888888", linewidth=0.8, linestyle=(0, (3, 2)))
    ax.axhline(0, color="#888888", linewidth=0.8)
    ax.set(xscale="log", xlabel=r"$\|g_p\| / \|g_m\|$", ylabel=r"push on skipped $|\lambda_l|$ / largest")


def _sizes(ax: Axes, results: Results) -> None:
    """Every network: which way C goes, and between which ratios it might shrink."""
    rows = smallest(results, size_steps, shape=BLOCKS)
    most = float((rows["p"] / rows["m"]).max())
    ax.axvspan(1 / most, 1, color="#EDEDED", linewidth=0)
    ax.plot(rows["through"] / rows["beside"], rows["found"], "o", color=SIZE, **DOT)
    ax.axhline(0, color="#888888", linewidth=0.8)
    ax.set(xscale="log", xlabel=r"$\|g_p\| / \|g_m\|$", ylabel="push on $C$ / largest")


def _forces(ax: Axes, results: Results) -> None:
    """Mean push by layer with cross-entropy and real batch normalisation."""
    layers = np.arange(1, results.settings.depth + 1)
    for shift, when, colour in ((-0.12, START, "#56B4E9"), (0.12, TRAINED, "#332288")):
        runs = np.stack(
            [results.sample(forces, when=when, layer=int(each), value="push") for each in layers], 1
        )
        mean, low, high = mean_interval(runs)
        bars = [mean - low, high - mean]
        ax.errorbar(layers + shift, mean, bars, fmt="o", color=colour, markersize=3, capsize=1.5, label=when)
    ax.axhline(0, color="#888888", linewidth=0.8)
    ax.set(xlabel="layer $l$", ylabel=r"push on $\lambda_l$ / $\mu\|g\|^2$", title="cross-entropy")
    ax.legend(loc="lower right", fontsize=6.5)
