"""Interlayer cushions by block after training, and of an untrained block over modes and batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval, median_interval
from skiplab.figures.style import PAGE_WIDTH, HouseAxes, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.interlayer_cushion.evidence import PRINTED, by_block, untrained
from skiplab.studies.yu2019.interlayer_cushion.trials import BATCH, CONSTANT, EVAL, SAMPLE, TRAIN
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL

MODELS = (PLAIN, RESIDUAL)
VANISHING = 1e-4  # below, cushions are drawn on a scale of their own
# How an untrained block is measured: mode, whose Jacobian, words, marker.
WAYS = (
    (CONSTANT, SAMPLE, "batch's statistics, constant", "s"),
    (TRAIN, SAMPLE, "training mode, per image", "o"),
    (TRAIN, BATCH, "training mode, whole batch", "^"),
)


def draw(results: Results) -> Figure:
    """Draw the untrained middle block and, where full networks are trained, their blocks to its right."""
    both = results.settings.fully_fledged
    figure, axes = new_figure(2 if both else 1, rows=2, width=PAGE_WIDTH if both else 5.0, height=4.0)
    axes[0, 0].get_gridspec().set_height_ratios([1.6, 1])
    _untrained(list(axes[:, 0]), results)
    panel_letter(axes[0, 0], "a")
    if both:
        grid = axes[0, 1].get_gridspec()
        for ax in axes[:, 1]:
            ax.remove()
        trained = figure.add_subplot(grid[:, 1], axes_class=HouseAxes)
        trained.grid(True)
        _trained(trained, results)
        panel_letter(trained, "b")
    return figure


def _trained(ax: Axes, results: Results) -> None:
    start, end = results.settings.cushions_between_at[0], results.settings.cushions_between_at[-1]
    blocks = np.arange(1, results.settings.full_blocks + 1)
    for model in MODELS:
        for epoch, style in ((start, (0, (3, 2))), (end, "-")):
            mean, low, high = mean_interval(by_block(results, model, epoch))
            ax.fill_between(blocks, low, high, color=colour_of(model), alpha=0.15, linewidth=0)
            look: dict[str, Any] = {"color": colour_of(model), "linestyle": style, "linewidth": 1.2}
            ax.plot(blocks, mean, marker="o", markersize=2.5, **look)
    keys = [Line2D([], [], color=colour_of(model), label=label_of(model)) for model in MODELS]
    keys += [
        Line2D([], [], color="#444444", linestyle=style, label=f"epoch {epoch}")
        for epoch, style in ((start, (0, (3, 2))), (end, "-"))
    ]
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_ylim(bottom=0)
    ax.set(xlabel="block", ylabel=r"interlayer cushion $\mu$", title="evaluation mode, per image")
    ax.legend(handles=keys, fontsize=7)


def _untrained(axes: Sequence[Axes], results: Results) -> None:
    """The upper part of the axis has what is of the order of 1, the lower one, after a break, what vanishes."""
    upper, lower = axes
    sizes = results.settings.batch_sizes
    # Each way of measuring beside the others, so that none hides another.
    lines = [(model, *way) for way in WAYS for model in MODELS]
    for place, (model, mode, over, _, mark) in enumerate(lines):
        own = [size for size in sizes if size > 1 or mode != CONSTANT]
        runs = np.stack([untrained(results, model, mode, over, size) for size in own], axis=1)
        middle, low, high = median_interval(runs)
        at = np.array(own) * 2 ** (0.09 * (place - (len(lines) - 1) / 2))
        look: dict[str, Any] = {"color": colour_of(model), "marker": mark, "markersize": 3.5, "capsize": 2}
        for ax, shown in ((upper, middle > VANISHING), (lower, middle <= VANISHING)):
            bars = np.stack([middle - low, high - middle])[:, shown]
            ax.errorbar(at[shown], middle[shown], bars, linewidth=0.8, linestyle="", **look)
    for model in MODELS:
        look = {"color": colour_of(model), "linewidth": 0.9, "linestyle": (0, (1, 1.2))}
        upper.axhline(np.median(untrained(results, model, EVAL)), **look)
        look = {"color": colour_of(model), "marker": "*", "markersize": 8, "markeredgewidth": 0}
        (upper if PRINTED[model] > VANISHING else lower).plot([sizes[0] * 0.7], [PRINTED[model]], **look)
    keys = [Line2D([], [], color=colour_of(model), label=label_of(model)) for model in MODELS]
    grey: dict[str, Any] = {"color": "#444444", "linewidth": 0.9}
    dot: dict[str, Any] = {"color": "#444444", "linestyle": ""}
    keys += [Line2D([], [], marker=mark, markersize=3.5, label=words, **dot) for _, _, words, mark in WAYS]
    keys += [
        Line2D([], [], linestyle=(0, (1, 1.2)), label="evaluation mode", **grey),
        Line2D([], [], marker="*", markersize=8, label="paper, trained", **dot),
    ]
    for ax in axes:
        ax.set_xscale("log", base=2)
        ax.set_xlim(0.6 * sizes[0], 1.3 * sizes[-1])
        ax.set_xticks(sizes, [str(size) for size in sizes])
        ax.minorticks_off()
    upper.set_ylim(bottom=0)
    upper.set(ylabel=r"cushion $\mu$", title="before training, middle block")
    upper.tick_params(labelbottom=False, bottom=False)
    lower.set_yscale("log")
    lower.set_ylim(1e-7, VANISHING)
    lower.set(xlabel="images in a batch", ylabel=r"cushion $\mu$")
    _broken(upper, lower)
    upper.legend(handles=keys, fontsize=6.5, loc="lower right")


def _broken(upper: Axes, lower: Axes) -> None:
    """Mark the break between two parts of one axis."""
    upper.spines["bottom"].set_visible(False)
    slash: dict[str, Any] = {
        "marker": [(-1, -0.5), (1, 0.5)],
        "markersize": 8,
        "linestyle": "",
        "clip_on": False,
    }
    for ax, end in ((upper, 0), (lower, 1)):
        ax.plot([0], [end], transform=ax.transAxes, color="#444444", markeredgewidth=0.6, **slash)
