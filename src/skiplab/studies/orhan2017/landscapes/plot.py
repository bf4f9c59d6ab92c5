"""Histograms that show how rugged a landscape is: better neighbours, walk lengths, basin sizes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results, matching
from skiplab.studies.orhan2017.landscapes.trials import ARCHITECTURES, landscape

Histograms = Mapping[str, np.ndarray]  # architecture → (targets, bins)

_LEAST = 0.7  # where a count of zero is drawn on a logarithmic axis: just below one


def landscape_panels(results: Results, paper_minima: Mapping[str, float] | None = None) -> Figure:
    """Draw the three distributions side by side: medians over targets, and bands for the middle half of them.

    The paper's numbers of minima, where it gives them, are diamonds at zero better neighbours.
    """
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.6)
    left, middle, right = axes[0]

    _curves(left, _histograms(results, "better_neighbours"))
    _counts(left)
    left.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    left.set(xlabel="better neighbours", ylabel="configurations")
    marks = {
        "marker": "D",
        "s": 34,
        "facecolor": "none",
        "linewidths": 0.9,
        "zorder": 4,
    }  # around dots, hiding none
    for name, minima in (paper_minima or {}).items():
        left.scatter(0, minima, edgecolor=colour_of(name), **marks)
    if paper_minima:
        left.scatter([], [], edgecolor="#444444", label="Paper", **marks)

    _curves(middle, _shares(_histograms(results, "walk_length")))
    middle.xaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
    middle.set(xlabel="steps of the steepest walk", ylabel="share of configurations", ylim=(0, None))

    _curves(right, _histograms(results, "basin_size_log2"), octaves=True)
    _counts(right)
    right.set_xscale("log", base=2)
    right.xaxis.set_minor_formatter(NullFormatter())
    right.set(xlabel="basin size (configurations)", ylabel="local minima")

    for ax, letter in zip(axes[0], "abc", strict=True):
        panel_letter(ax, letter)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _histograms(results: Results, quantity: str) -> dict[str, np.ndarray]:
    """Counts (targets, bins) of each architecture; a bin that a target never reaches counts 0."""
    rows = results.rows(landscape, quantity=quantity)
    return {
        name: part.pivot(index="target", columns="bin", values="value").fillna(0.0).to_numpy()
        for name in ARCHITECTURES
        if len(part := matching(rows, architecture=name))
    }


def _curves(ax: Axes, histograms: Histograms, octaves: bool = False) -> None:
    """Draw each architecture's median histogram over targets, and the middle half of them as a band."""
    for name, counts in histograms.items():
        bins = np.arange(counts.shape[1])
        # An octave stands at its geometric middle, except the first, which holds size 1 alone.
        x = np.where(bins == 0, 1.0, 2.0 ** (bins + 0.5)) if octaves else bins
        # The middle half of the targets: their whole range reaches zero, which a logarithmic axis does not have.
        low, middle, high = np.quantile(counts, (0.25, 0.5, 0.75), axis=0)
        colour = colour_of(name)
        ax.fill_between(
            x, np.maximum(low, _floor(high)), high, where=high > 0, color=colour, alpha=0.18, linewidth=0
        )
        shown = np.where(middle > 0, middle, np.nan)
        ax.plot(x, shown, color=colour, marker="o", markersize=2.2, linewidth=1.1, label=label_of(name))


def _floor(high: np.ndarray) -> float:
    return _LEAST if high.max(initial=0) > 1 else 0.0  # counts, or shares


def _counts(ax: Axes) -> None:
    """Make the vertical axis logarithmic, from one upward."""
    ax.set_yscale("log")
    ax.set_ylim(bottom=_LEAST)
    ax.yaxis.set_major_locator(LogLocator(base=10, numticks=9))
    ax.yaxis.set_minor_formatter(NullFormatter())


def _shares(histograms: Histograms) -> dict[str, np.ndarray]:
    return {name: counts / counts.sum(axis=1, keepdims=True) for name, counts in histograms.items()}
