"""Cushions in the tenth layer as distributions over images, and of all layers as medians."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import median_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.figures.ticks import decimal_ticks
from skiplab.reproduction import Results
from skiplab.studies.yu2019.figure_3.evidence import larger
from skiplab.studies.yu2019.measured import SHARES, TENTH
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, values

BINS = 40
# Which cushions are drawn by layer: of whom, which, and how.
LINES = (
    (PLAIN, "cushion", "-"),
    (RESIDUAL, "cushion", "-"),
    (RESIDUAL, "cushion_kept", (0, (3, 2))),
)


def draw(results: Results) -> Figure:
    """Draw a column per depth: the paper's histogram above, all layers below."""
    depths = results.settings.depths
    figure, axes = new_figure(len(depths), rows=2, width=PAGE_WIDTH, height=5.4)
    for column, depth in enumerate(depths):
        _histogram(axes[0, column], results, depth)
        _layers(axes[1, column], results, depth, legend=column == 0)
    for ax, letter in zip(axes.flat, "abcdefgh", strict=False):
        panel_letter(ax, letter)
    return figure


def over_images(results: Results, model: str, depth: int) -> np.ndarray:
    """Cushions in the tenth layer at the shares of ``SHARES``, (networks, shares); each stands for as many images."""
    found = [values(results, model, depth, "cushion_quantile", layer=place) for place in range(len(SHARES))]
    return np.stack(found, axis=1)


def _histogram(ax: Axes, results: Results, depth: int) -> None:
    every = {model: over_images(results, model, depth) for model in (PLAIN, RESIDUAL)}
    known = np.concatenate([each[np.isfinite(each)] for each in every.values()])
    edges = np.geomspace(known.min() * 0.98, known.max() * 1.02, BINS + 1).tolist()
    for model, each in every.items():
        own = each[np.isfinite(each)]
        look: dict[str, Any] = {"color": colour_of(model), "label": label_of(model), "linewidth": 0}
        ax.hist(own, edges, weights=np.full(own.size, 1 / own.size), alpha=0.6, **look)
    ax.set_xscale("log")
    decimal_ticks(ax, "x")
    layer = min(TENTH, depth)
    ax.set(xlabel=r"cushion $\|Ax\| / (\|A\|_F \|x\|)$ of an image", ylabel="share of images")
    ax.set_title(f"{depth} layers, layer {layer}")
    ax.legend()


def _layers(ax: Axes, results: Results, depth: int, *, legend: bool) -> None:
    layers = np.arange(1, depth + 1)
    for model, quantity, style in LINES:
        found = np.stack(
            [values(results, model, depth, quantity, layer=int(each)) for each in layers], axis=1
        )
        middle, low, high = median_interval(found)
        ax.fill_between(layers, low, high, color=colour_of(model), alpha=0.18, linewidth=0)
        ax.plot(layers, middle, color=colour_of(model), linestyle=style, linewidth=1.2)
    usual = (~larger(results, depth)).mean(0) > 0.5
    ax.set_yscale("log")
    decimal_ticks(ax, "y")
    keys = [
        Line2D([], [], color=colour_of(PLAIN), label=label_of(PLAIN)),
        Line2D([], [], color=colour_of(RESIDUAL), label=f"{label_of(RESIDUAL)}, 1 not in $\\|A\\|_F$"),
        Line2D([], [], color=colour_of(RESIDUAL), linestyle=(0, (3, 2)), label="1 in both"),
    ]
    if usual.any():
        look: dict[str, Any] = {"color": "#222222", "marker": "^", "linestyle": "", "markersize": 3}
        ax.plot(layers[usual], np.full(usual.sum(), 0.03), transform=ax.get_xaxis_transform(), **look)
        keys.append(Line2D([], [], label="plain larger in most pairs", **look))
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set(xlabel=r"layer $\ell$ (1: stem)", ylabel="median cushion")
    if legend:
        ax.figure.legend(handles=keys, fontsize=7.5, loc="outside lower center", ncols=len(keys))
