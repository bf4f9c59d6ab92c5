"""σ by layer at the start and the end of training, its two readings, and σ over training."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.figure_12.evidence import (
    FIRST,
    FULL,
    LAST,
    MODELS,
    SIMPLIFIED,
    first_and_last,
    layers,
    shares,
)

CHANNELS = r"$\sigma^{(\ell)}$, share of channels"
STYLES = {FIRST: "-", LAST: (0, (1, 1.2))}
KINDS = {SIMPLIFIED: "-", FULL: (0, (3, 2))}


def draw(results: Results) -> Figure:
    """Draw σ by layer, the share of positions, σ over training and, where they are trained, full networks."""
    settings = results.settings
    if settings.fully_fledged:
        figure, axes = new_figure(2, rows=2, width=PAGE_WIDTH, height=5.4)
    else:
        figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.9)
    panels = list(axes.flat)
    _by_layer(panels[0], results, SIMPLIFIED, "flow")
    panels[0].set(ylabel=CHANNELS, title=f"simplified, {settings.first_depth} layers")
    _by_layer(panels[1], results, SIMPLIFIED, "flow_positions")
    panels[1].set(ylabel="share of positions", title="simplified, positions")
    _over_training(panels[2], results)
    if settings.fully_fledged:
        _by_layer(panels[3], results, FULL, "flow")
        panels[3].set(ylabel=CHANNELS, title=f"full, {settings.full_depth} layers")
    for ax, letter in zip(panels, "abcd", strict=False):
        panel_letter(ax, letter)
    models = [Line2D([], [], color=colour_of(model), label=label_of(model)) for model in MODELS]
    times = [Line2D([], [], color="#444444", linestyle=style, label=when) for when, style in STYLES.items()]
    panels[0].legend(handles=[*models, *times], fontsize=7)
    kinds = [Line2D([], [], color="#444444", linestyle=style, label=kind) for kind, style in KINDS.items()]
    panels[2].legend(handles=[*models, *(kinds if settings.fully_fledged else ())], fontsize=7)
    return figure


def _band(ax: Axes, x: np.ndarray, runs: np.ndarray, model: str, style: object) -> None:
    mean, low, high = mean_interval(runs)
    ax.fill_between(x, np.maximum(low, 0), high, color=colour_of(model), alpha=0.15, linewidth=0)
    ax.plot(x, mean, color=colour_of(model), linestyle=style, linewidth=1.2, marker="o", markersize=2)


def _by_layer(ax: Axes, results: Results, kind: str, quantity: str) -> None:
    for model in MODELS:
        for when, runs in first_and_last(results, kind, model, quantity).items():
            _band(ax, layers(results, kind), runs, model, STYLES[when])
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel(r"layer $\ell$ (stem: 1)")
    ax.set_ylim(bottom=0)


def _over_training(ax: Axes, results: Results) -> None:
    for kind, style in KINDS.items():
        for model in MODELS if kind == SIMPLIFIED or results.settings.fully_fledged else ():
            found = shares(results, kind, model)
            runs = np.stack([found[epoch].mean(1) for epoch in sorted(found)], axis=1)
            _band(ax, np.array(sorted(found)), runs, model, style)
    ax.set_xscale("symlog", linthresh=1)
    ticks = [tick for tick in (0, 1, 4, 15, 50, 200) if tick <= results.settings.epochs]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set(
        xlabel="epoch (0: first iteration)",
        ylabel=r"mean of $\sigma^{(\ell)}$ over layers",
        title="over training",
    )
    ax.set_ylim(bottom=0)
