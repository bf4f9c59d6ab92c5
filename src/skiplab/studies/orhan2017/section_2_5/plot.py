"""Symmetries of recurrent networks: outputs over time, how much changes of the weights move them, class counts."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.randomness import run_seeds
from skiplab.reproduction.results import Results, sample_of
from skiplab.studies.orhan2017.section_2_5.evidence import changes
from skiplab.studies.orhan2017.section_2_5.trials import ACTIVATIONS, CHANGES, MATRICES, classes, recurrent

INK = "#222222"
_COLOURS = {"tanh": "#009E73", "ReLU": "#0072B2", "linear": "#D55E00"}
_TRACES = {
    "as it is": (INK, "-", 2.6),
    "units permuted": ("#56B4E9", "--", 1.4),
    "ends rescaled": ("#E69F00", ":", 1.6),
    "rows permuted": ("#CC79A7", "-", 1.1),
    "recurrence rescaled": ("#882255", "-", 1.1),
}
_FLOOR = 1e-17
_SHOWN = 2.5  # how many times the true output's size a trace may be, or it leaves the panel


def recurrent_panels(results: Results) -> Figure:
    """Draw an output over time, log₁₀ of the share of permutations left, and the changes of the outputs."""
    figure, axes = new_figure(2, rows=2, width=PAGE_WIDTH, height=5.4)
    grid = axes[0, 0].get_gridspec()
    _traces(axes[0, 0], results)
    _shares(axes[0, 1], results)
    axes[1, 1].remove()
    wide = axes[1, 0]
    wide.set_subplotspec(grid[1, :])
    _changes(wide, results)
    for ax, letter in ((axes[0, 0], "a"), (axes[0, 1], "b"), (wide, "c")):
        panel_letter(ax, letter)
    return figure


def _traces(ax: Axes, results: Results) -> None:
    """The first output of the first ReLU network, as it is and changed."""
    seed = run_seeds(results.settings.seed, results.settings.runs)[0]
    where: dict[str, Any] = {"quantity": "trace", "draw": seed, "activation": "ReLU", "matrix": MATRICES[0]}
    ways = results.rows(recurrent, **where).groupby("way", sort=False)
    traces = {str(way): sample_of(rows, by="x") for way, rows in ways}
    size = np.abs(traces["as it is"]).max()
    for name, (colour, line, width) in _TRACES.items():
        if name in traces:
            steps = np.arange(1, len(traces[name]) + 1)
            ax.plot(steps, traces[name], color=colour, linestyle=line, linewidth=width, label=name)
    ax.set_ylim(-_SHOWN * size, _SHOWN * size)
    ax.set(xlabel="step", ylabel="output $y_1$")
    ax.legend(fontsize=7, loc="upper right", ncols=2)


def _changes(ax: Axes, results: Results) -> None:
    kinds = list(product(ACTIVATIONS, MATRICES))
    for row, way in enumerate(CHANGES):
        for place, (activation, matrix) in enumerate(kinds):
            shown = np.maximum(changes(results, way, activation, matrix).to_numpy(), _FLOOR)
            spread = (np.arange(len(shown)) * 0.6180339887 % 1 - 0.5) * 0.09
            height = row + (place - (len(kinds) - 1) / 2) * 0.13
            colour = _COLOURS[activation]
            filled = not matrix.startswith("symmetric")
            ax.plot(
                shown,
                height + spread,
                "o",
                markersize=2.4,
                color=colour,
                markerfacecolor=colour if filled else "white",
                markeredgewidth=0.6,
                label=activation if filled and row == 0 else None,
            )
        if row:
            ax.axhline(row - 0.5, color="#DDDDDD", linewidth=0.6)
    ax.set_xscale("log")
    ax.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1.0, 1e4, 1e8, 1e12])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlim(left=_FLOOR / 3)
    ax.set_yticks(range(len(CHANGES)), [f"{name}\n{words}" for name, words in CHANGES.items()], fontsize=7)
    ax.set_ylim(len(CHANGES) - 0.5, -0.5)
    ax.grid(False, axis="y")
    ax.set_xlabel("largest change of the outputs, relative")
    ax.legend(loc="upper right", markerscale=1.5)


def _shares(ax: Axes, results: Results) -> None:
    rows = results.rows(classes, quantity="log10 share")
    neurons, number, log_shares = (rows[column].to_numpy() for column in ("draw", "x", "value"))
    most = neurons.max()
    for count, colour in ((2, "#332288"), (3, "#44AA99"), (4, "#999933"), (5, "#CC6677")):
        chosen = number == count
        if chosen.any():
            ax.plot(neurons[chosen], log_shares[chosen], color=colour, linewidth=1.2, label=f"K = {count}")
    others = number > 5
    ax.plot(neurons[others], log_shares[others], "o", markersize=1.6, color="#AAAAAA", label="other K")
    ax.axhline(0, color=INK, linewidth=0.8)
    ax.text(most, 0, "$n!$ ", ha="right", va="bottom", fontsize=7.5)
    ax.margins(y=0.08)
    ax.set(xlabel="neurons $n$", ylabel=r"$\log_{10}\,[K!\,(d!)^K/n!]$")
    ax.legend(fontsize=7, loc="lower left")
