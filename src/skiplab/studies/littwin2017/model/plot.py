"""How often configurations of weights appear, how large ξ is, and which lengths the output is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.littwin2017.model.study import ROUNDING
from skiplab.studies.littwin2017.model.trials import (
    FIRST,
    PRESENT,
    SHUFFLED,
    UNIFORM,
    WORDS,
    shape_name,
    unrolled,
)

COLOURS = {UNIFORM: "#0072B2", FIRST: "#009E73", PRESENT: "#CC79A7", SHUFFLED: "#D55E00"}
CHECKS = {"output": "eq 9", "eq 11": "eq 11", "eq 14": "eq 14", "eq 15": "eq 15"}
FLOOR = 1e-18


def draw(results: Results) -> Figure:
    """Draw three panels."""
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.8)
    _differences(axes[0, 0], results)
    # Of the shapes with Λ < n, in which all placements differ, the deepest.
    fewer = [each for each in results.settings.shapes if each[3] < each[1]]
    shape = max(fewer or results.settings.shapes, key=lambda each: each[2])
    _by_length(
        axes[0, 1], results, shape, ("configurations",), "largest |count / ($\\psi_r/\\Lambda^r$) − 1|"
    )
    _by_length(axes[0, 2], results, shape, ("lowest", "average", "highest"), r"E[$\xi^2$] / lower bound")
    axes[0, 2].axhline(shape[0], color="#888888", linewidth=0.8, linestyle=(0, (3, 2)))
    axes[0, 2].set(ylim=(0, None))
    axes[0, 2].annotate("upper bound", (1, shape[0]), xytext=(0, 2), textcoords="offset points")
    for ax, letter in zip(axes.flat, "abc", strict=True):
        panel_letter(ax, letter)
    return figure


def _differences(ax: Axes, results: Results) -> None:
    """Every network's difference between both sides of an equation."""
    for place, quantity in enumerate(CHECKS):
        for side, placement in zip((-0.33, -0.11, 0.11, 0.33), COLOURS, strict=True):
            found = results.rows(unrolled, quantity=quantity, placement=placement)["value"].to_numpy()
            spread = np.linspace(-0.08, 0.08, len(found))
            look: dict[str, Any] = {"color": COLOURS[placement], "markersize": 2, "alpha": 0.6}
            name = WORDS[placement] if place == 0 else None
            ax.plot(place + side + spread, np.maximum(found, FLOOR), "o", label=name, **look)
    ax.axhline(ROUNDING, color="#888888", linewidth=0.8, linestyle=(0, (3, 2)))
    ax.set_xticks(range(len(CHECKS)), list(CHECKS.values()))
    ax.set(yscale="log", ylim=(FLOOR / 3, 30), ylabel="relative difference")
    ax.legend(loc="center left", bbox_to_anchor=(0, 0.5), fontsize=7.2)


def _by_length(
    ax: Axes, results: Results, shape: tuple[int, int, int, int], quantities: tuple[str, ...], label: str
) -> None:
    """Means over networks by path length; with three quantities the outer two as a band."""
    lengths = np.arange(1, shape[2] + 1)
    for placement, colour in COLOURS.items():
        own: dict[str, Any] = {"shape": shape_name(*shape), "placement": placement}
        means = [
            [results.sample(unrolled, quantity=each, length=int(r), **own).mean() for r in lengths]
            for each in quantities
        ]
        look = (0, (2, 2)) if placement == FIRST else "-"  # it may lie on another line
        ax.plot(lengths, means[len(means) // 2], color=colour, linestyle=look, marker="o")
        if len(means) == 3:
            ax.fill_between(lengths, means[0], means[2], color=colour, alpha=0.18, linewidth=0)
    ax.set_xticks(lengths)
    ax.set(xlabel="path length $r$", ylabel=label)
    ax.set_title(shape_name(*shape), fontsize=7.5)
