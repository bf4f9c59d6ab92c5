"""Interlayer cushions by block after training, and of an untrained block over modes and batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval, median_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.interlayer_cushion.evidence import PRINTED, by_block, untrained
from skiplab.studies.yu2019.interlayer_cushion.trials import BATCH, CONSTANT, EVAL, SAMPLE, TRAIN
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL

MODELS = (PLAIN, RESIDUAL)
# How an untrained block is measured: mode, whose Jacobian, words, marker.
WAYS = (
    (CONSTANT, SAMPLE, "batch's statistics, constant", "s"),
    (TRAIN, SAMPLE, "training mode, per image", "o"),
    (TRAIN, BATCH, "training mode, whole batch", "^"),
)


def draw(results: Results) -> Figure:
    """Draw trained blocks on the left, the untrained middle block on the right."""
    figure, (axes,) = new_figure(2, width=PAGE_WIDTH, height=3.4)
    if results.settings.fully_fledged:
        _trained(axes[0], results)
    else:
        axes[0].text(0.5, 0.5, "not trained here", ha="center", transform=axes[0].transAxes)
    _untrained(axes[1], results)
    for ax, letter in zip(axes, "ab", strict=True):
        panel_letter(ax, letter)
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


def _untrained(ax: Axes, results: Results) -> None:
    sizes = results.settings.batch_sizes
    for model in MODELS:
        colour = colour_of(model)
        ax.axhline(
            np.median(untrained(results, model, EVAL)), color=colour, linewidth=0.9, linestyle=(0, (1, 1.2))
        )
        for mode, over, _, mark in WAYS:
            own = [size for size in sizes if size > 1 or mode != CONSTANT]
            runs = np.stack([untrained(results, model, mode, over, size) for size in own], axis=1)
            middle, low, high = median_interval(runs)
            ax.errorbar(own, middle, [middle - low, high - middle], color=colour, marker=mark, linewidth=0.9,
                        markersize=3.5, capsize=2)  # fmt: skip
        look: dict[str, Any] = {"color": colour, "marker": "*", "markersize": 8, "markeredgewidth": 0}
        ax.plot([sizes[0] * 0.8], [PRINTED[model]], clip_on=False, **look)
    keys = [Line2D([], [], color=colour_of(model), label=label_of(model)) for model in MODELS]
    grey: dict[str, Any] = {"color": "#444444", "linewidth": 0.9}
    keys += [Line2D([], [], marker=mark, markersize=3.5, label=words, **grey) for _, _, words, mark in WAYS]
    keys += [
        Line2D([], [], linestyle=(0, (1, 1.2)), label="evaluation mode", **grey),
        Line2D([], [], color="#444444", marker="*", linestyle="", markersize=8, label="paper, trained"),
    ]
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    ax.set_xticks(sizes, [str(size) for size in sizes])
    ax.set(
        xlabel="images in a batch", ylabel=r"interlayer cushion $\mu$", title="before training, middle block"
    )
    ax.legend(handles=keys, fontsize=6.5, loc="center right", bbox_to_anchor=(1.0, 0.45))
