"""Figure 7's histograms of weights before and after training, and Table 3's masses beside ours."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.colours import colour_of
from skiplab.figures.paired_dots import side_by_side
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, is_papers
from skiplab.studies.yu2019.table_3.evidence import (
    AFTER,
    BEFORE,
    MASSES,
    TRAINED,
    UNTRAINED,
    depth_of,
    end_of,
    histogram,
    is_papers_size,
    start_of,
    untrained_depth,
)

MODELS = (PLAIN, RESIDUAL)
SHORT = ("all", "≥ .25", "ID")  # of MASSES


def draw(results: Results) -> Figure:
    """Draw all weights, ID entries and masses, before training alone or in two columns before and after it."""
    columns = (False, True) if len(end_of(results, PLAIN, "mass")) else (False,)
    if len(columns) > 1:
        figure, axes = new_figure(2, rows=3, width=PAGE_WIDTH, height=7.0)
    else:
        figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.6)
        axes = axes.T
    for column, after in enumerate(columns):
        depth = depth_of(results) if after else untrained_depth(results)
        _weights(axes[0, column], results, after)
        axes[0, column].set(title=f"{'after' if after else 'before'} training, {depth} layers")
        _id_entries(axes[1, column], results, after)
        _masses(axes[2, column], results, after)
    for ax, letter in zip(axes.flat, "abcdef", strict=False):
        panel_letter(ax, letter)
    return figure


def _weights(ax: Axes, results: Results, after: bool) -> None:
    """All weights of p and t; the axis ends where the ID entries are still seen, as in the paper."""
    heights = []
    for model in MODELS:
        counts, edges = histogram(results, model, "histogram", TRAINED if after else UNTRAINED)
        mean = counts.mean(0)
        heights.append(mean)
        ax.stairs(mean, edges, color=colour_of(model), label=_name(model), linewidth=1.0)
    far = np.concatenate(heights)
    ax.set_ylim(0, 1.5 * far[np.tile(np.abs(edges[:-1]) > 0.3, 2)].max())
    ax.set(xlabel="weight", ylabel="weights per bin of .025", xlim=(-1, 2))
    ax.legend(fontsize=7, loc="upper right")


def _id_entries(ax: Axes, results: Results, after: bool) -> None:
    for model in MODELS:
        counts, edges = histogram(results, model, "histogram_id", TRAINED if after else UNTRAINED)
        low, high = counts.min(0), counts.max(0)
        ax.stairs(counts.mean(0), edges, color=colour_of(model), linewidth=1.0)
        ax.stairs(high, edges, baseline=low, color=colour_of(model), alpha=0.2, fill=True, linewidth=0)
    ax.set(xlabel="weight of ID entries", ylabel="ID entries per bin", xlim=(-1, 2))


def _masses(ax: Axes, results: Results, after: bool) -> None:
    numbers = end_of if after else start_of
    groups = {
        words: {model: numbers(results, model, quantity) for model in MODELS}
        for quantity, words in zip(MASSES, SHORT, strict=True)
    }
    stars = is_papers(results.settings) if after else is_papers_size(results.settings)
    print_of = AFTER if after else BEFORE
    printed = {
        words: {model: float(print_of[model][place]) for model in MODELS} for place, words in enumerate(SHORT)
    }
    side_by_side(ax, groups, printed if stars else None, legend=not after)
    ax.set_yscale("log")
    ax.set(xlabel="which weights", ylabel=r"mass $\|w\|_1$")


def _name(model: str) -> str:
    return {PLAIN: "p (plain)", RESIDUAL: "t (residual)"}[model]
