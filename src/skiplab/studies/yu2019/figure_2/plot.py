"""Risk and error over training, error against risk, and how much sooner residual networks reach a risk."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.figures.ticks import decimal_ticks
from skiplab.reproduction import Results
from skiplab.studies.yu2019.equal_risk import smoothed
from skiplab.studies.yu2019.figure_2.evidence import (
    BARE,
    DROPPED,
    LONG,
    curve,
    errors_at,
    present,
    reached,
)
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL

MODELS = (PLAIN, RESIDUAL)
LOOKS: dict[str, tuple[Any, str]] = {
    LONG: ("-", "constant rate"),
    BARE: ((0, (3, 2)), "constant rate, images as they are"),
    DROPPED: ((0, (1, 1.2)), "rate lowered after 120, 160"),
}
SHADES = {LONG: "#222222", BARE: "#888888", DROPPED: "#AA4499"}  # of dots that are pairs
POINTS = 30


def draw(results: Results) -> Figure:
    """Draw the paper's two panels above, what its text says of them below."""
    figure, axes = new_figure(2, rows=2, width=PAGE_WIDTH, height=5.4)
    _over_training(axes[0, 0], results, "loss")
    axes[0, 0].set_yscale("log")
    decimal_ticks(axes[0, 0], "y")
    axes[0, 0].set(ylabel="training risk $L$", title="risk")
    _over_training(axes[0, 1], results, "test_error")
    axes[0, 1].set(ylabel="test error", title="error")
    _error_by_risk(axes[1, 0], results)
    _sooner(axes[1, 1], results)
    for ax in (axes[0, 1], axes[1, 0]):
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    keys = [Line2D([], [], color=colour_of(model), label=label_of(model)) for model in MODELS]
    here = [LOOKS[stage] for stage in present(results)]
    keys += [Line2D([], [], color="#444444", linestyle=style, label=words) for style, words in here]
    axes[0, 0].legend(handles=keys, fontsize=7)
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        panel_letter(ax, letter)
    return figure


def _over_training(ax: Axes, results: Results, quantity: str) -> None:
    for stage in present(results):
        style, _ = LOOKS[stage]
        for model in MODELS:
            runs = curve(results, model, quantity, stage)
            epochs, mean, spread = np.arange(1, runs.shape[1] + 1), runs.mean(0), runs.std(0, ddof=1)
            floor = runs.min(0)  # on a logarithmic axis a mean less a spread may be no number
            low = np.maximum(mean - spread, floor)
            ax.fill_between(epochs, low, mean + spread, color=colour_of(model), alpha=0.15, linewidth=0)
            ax.plot(epochs, mean, color=colour_of(model), linestyle=style, linewidth=1.1)
    ax.set_xlabel("epoch")
    ax.margins(x=0.02)


def _error_by_risk(ax: Axes, results: Results) -> None:
    for stage in present(results):
        style, _ = LOOKS[stage]
        ends = [smoothed(curve(results, model, "loss", stage)) for model in MODELS]
        # From where all networks have been, so that no mean is over some of them.
        high = min(each[:, 0].min() for each in ends)
        low = max(np.nanmin(each, axis=1).max() for each in ends)
        if not low < high:
            continue
        levels = np.geomspace(high, low * 1.0001, POINTS)
        for model in MODELS:
            runs = np.stack([errors_at(results, model, level, stage) for level in levels], axis=1)
            mean, below, above = mean_interval(runs)
            ax.fill_between(levels, below, above, color=colour_of(model), alpha=0.15, linewidth=0)
            ax.plot(levels, mean, color=colour_of(model), linestyle=style, linewidth=1.1)
    ax.set_xscale("log")
    decimal_ticks(ax, "x")
    ax.invert_xaxis()
    ax.set(xlabel="training risk $L$", ylabel="test error", title="error at equal risk")


def _sooner(ax: Axes, results: Results) -> None:
    """Epochs of the plain over epochs of the residual network of each pair in which both reach a risk."""
    here = present(results)
    ratios = {
        (stage, level): plain / residual
        for stage in here
        for level in sorted(results.settings.risks, reverse=True)
        for plain, residual in [reached(results, level, stage)]
    }
    levels = list(dict.fromkeys(level for (_, level), each in ratios.items() if np.isfinite(each).any()))
    for number, stage in enumerate(here):
        shift = 0.24 * (number - (len(here) - 1) / 2)
        for place, level in enumerate(levels):
            every = ratios[stage, level]
            ratio = every[np.isfinite(every)]
            ax.plot(
                np.full(len(ratio), place + shift), ratio, "o", color=SHADES[stage], markersize=3, alpha=0.6
            )
            if 0 < len(ratio) < len(every):
                at, words = (place + shift, ratio.max()), f"{len(ratio)} of {len(every)}"
                ax.annotate(words, at, (0, 4), textcoords="offset points", ha="center", fontsize=7)
    ax.axhline(1, color="#777777", linestyle=(0, (4, 3)), linewidth=0.9)
    ax.set_xticks(range(len(levels)), [f"{level:g}" for level in levels])
    ax.set_xlim(-0.6, len(levels) - 0.4)
    ax.set(xlabel="training risk $L$", ylabel="epochs, plain / residual", title="above 1: residual is first")
    dot: dict[str, Any] = {"marker": "o", "linestyle": "", "markersize": 3}
    keys = [Line2D([], [], color=SHADES[stage], label=LOOKS[stage][1], **dot) for stage in here]
    if len(here) > 1:
        ax.legend(handles=keys, fontsize=7)
