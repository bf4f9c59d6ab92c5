"""Weight decay before and after training beside Table 4's, and loss over the decay that acts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.paired_dots import side_by_side
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.pairs import values
from skiplab.studies.yu2019.table_4.evidence import (
    ACTING,
    DECAY_AFTER,
    DECAY_BEFORE,
    LOGGED,
    MODELS,
    is_papers_size,
    is_whole,
)
from skiplab.studies.yu2019.untrained import untrained

Numbers = Callable[[Results, str, int, str], np.ndarray]


def draw(results: Results) -> Figure:
    """Draw the logged terms before and after training, then the ratio of loss to the term that acts."""
    settings = results.settings
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.9)
    before, after = settings.untrained_depths, settings.depths if settings.trained else ()
    _decay(axes[0, 0], results, untrained, before, DECAY_BEFORE, is_papers_size(settings))
    axes[0, 0].set(ylabel=r"logged decay $\frac{1}{2}\lambda\|w\|^2/128$", title="before training")
    if after:
        _decay(axes[0, 1], results, values, after, DECAY_AFTER, is_whole(results))
        axes[0, 1].set(title="after training")
    else:
        axes[0, 1].text(0.5, 0.5, "not trained in this run", ha="center", color="#666666")
        axes[0, 1].set_axis_off()
    _ratios(axes[0, 2], results, before, after)
    for ax, letter in zip(axes.flat, "abc", strict=True):
        panel_letter(ax, letter)
    return figure


def _decay(
    ax: Axes,
    results: Results,
    numbers: Numbers,
    depths: Sequence[int],
    table: dict[str, dict[int, float]],
    stars: bool,
) -> None:
    groups = {
        str(depth): {model: LOGGED * numbers(results, model, depth, "squares") for model in MODELS}
        for depth in depths
    }
    printed = {str(depth): {model: table[model][depth] for model in MODELS} for depth in depths if stars}
    side_by_side(ax, groups, printed, legend=numbers is untrained)
    ax.set_yscale("log")
    ax.set(xlabel="depth (layers with weights)")


def _ratios(ax: Axes, results: Results, before: Sequence[int], after: Sequence[int]) -> None:
    groups = {}
    for when, depths, numbers, loss in (
        ("start", before, untrained, "clean_loss"),
        ("end", after, values, "loss"),
    ):
        for depth in depths:
            groups[f"{depth}\n{when}"] = {
                model: numbers(results, model, depth, loss)
                / (ACTING * numbers(results, model, depth, "squares"))
                for model in MODELS
            }
    side_by_side(ax, groups, legend=False)
    ax.axhline(10, color="#888888", linewidth=0.7, zorder=0)
    ax.set_yscale("log")
    ax.set(
        xlabel="depth, time",
        ylabel=r"$L$ over $\frac{1}{2}\lambda\|w\|^2$",
        title="loss beside decay",
    )
