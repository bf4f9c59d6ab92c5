"""Absorbed norms by layer and over epochs, as in the paper, with controls, and what their growth consists of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.colours import colour_of, in_order
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.littwin2017.resnet_evidence import LABELS, Curves, kept, layers, means
from skiplab.studies.littwin2017.resnet_settings import FROZEN, NETWORKS, NO_DECAY, PLAIN
from skiplab.studies.littwin2017.resnets import MAIN, RATE_KEPT, SCALES_SPARED

# Stage, branch, label and colour of what is drawn over epochs.
LINES = (
    (NETWORKS, MAIN, "networks", colour_of("residual")),
    (NETWORKS, RATE_KEPT, "rate kept", "#E69F00"),
    (NETWORKS, SCALES_SPARED, "γ spared from decay", "#009E73"),
    (FROZEN, MAIN, "γ frozen", "#CC79A7"),
    (PLAIN, MAIN, "no skips", colour_of("plain")),
    (NO_DECAY, MAIN, "no decay", "#56B4E9"),
)
MOST_LINES = 8  # epochs of a panel by layers, beyond which every second is left out
PARTS = {
    "absorbed": ("absorbed", "#111111"),
    "weight": (r"$\Vert w\Vert$", "#882255"),
    "scale": (r"$\Vert\gamma\Vert$", "#0072B2"),
    "inverse": (r"$1/\sigma$", "#999933"),
}


def draw(results: Results) -> Figure:
    """Draw figure 2, a row per data set, and the parts of its growth beside."""
    names = results.settings.data
    figure, axes = new_figure(3, rows=len(names), width=PAGE_WIDTH, height=2.5 * len(names))
    for row, data in enumerate(names):
        by_layer(axes[row, 0], results, data, "absorbed")
        axes[row, 0].set(
            ylabel=r"$\Vert w\gamma/\sqrt{v+\epsilon}\Vert$",
            title=LABELS.get(data, data),
            xlabel="convolution",
        )
        over_epochs(axes[row, 1], results, data, "absorbed")
        axes[row, 1].set(ylabel="mean absorbed norm")
        _parts(axes[row, 2], results, data)
    for ax, letter in zip(axes.flat, "abcdef", strict=False):
        panel_letter(ax, letter)
    return figure


def by_layer(ax: Axes, results: Results, data: str, quantity: str) -> None:
    """A quantity of every layer, a line per epoch, means over networks with intervals."""
    epochs, found = layers(results, data, quantity)
    # From the end, so that the last epoch is always drawn.
    shown = slice(None, None, -(-len(epochs) // MOST_LINES))
    epochs, found = epochs[::-1][shown][::-1], found[:, ::-1][:, shown][:, ::-1]
    places = np.arange(1, found.shape[2] + 1)
    for epoch, values, colour in zip(epochs, found.transpose(1, 0, 2), in_order(len(epochs)), strict=True):
        mean, low, high = mean_interval(values)
        ax.fill_between(places, low, high, color=colour, alpha=0.12, linewidth=0)
        ax.plot(places, mean, color=colour, linewidth=1.0, marker="o", markersize=1.6, label=str(epoch))
    ax.legend(title="epoch", title_fontsize=6, fontsize=5.5, ncols=2, handlelength=0.9, columnspacing=0.8)


def over_epochs(ax: Axes, results: Results, data: str, quantity: str) -> None:
    """The mean over convolutions at every epoch after the first, of networks and controls."""
    for stage, branch, label, colour in LINES:
        if not kept(results, stage):
            continue
        found = means(results, data, quantity, stage, branch)
        if found.seeds:
            _line(ax, found.since(max(1, found.epochs[0])), colour, label)
    _drops(ax, results)
    ax.set(xlabel="epoch")
    ax.legend(fontsize=6)


def _line(ax: Axes, found: Curves, colour: str, label: str) -> None:
    mean, low, high = mean_interval(found.values)
    ax.fill_between(found.epochs, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(found.epochs, mean, color=colour, linewidth=1.1, label=label)


def _drops(ax: Axes, results: Results) -> None:
    for drop in results.settings.drops:
        ax.axvline(drop + 0.5, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))


def _parts(ax: Axes, results: Results, data: str) -> None:
    """ln of mean ‖w‖, ‖γ‖, 1/σ and absorbed norms, less their values after one epoch."""
    for quantity, (label, colour) in PARTS.items():
        found = means(results, data, quantity).since(1).log()
        _line(ax, replace(found, values=found.values - found.values[:, :1]), colour, label)
    _drops(ax, results)
    ax.set(xlabel="epoch", ylabel="change of ln since epoch 1")
    ax.legend(fontsize=6)
