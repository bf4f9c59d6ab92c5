"""Shares of active and of co-active units by layer."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure
from skiplab.reproduction import Results
from skiplab.studies.balduzzi2017.activity import by_layer
from skiplab.studies.balduzzi2017.palette import network_name

QUANTITIES = {
    "activation": ("#009E73", 0.5),
    "coactivation": ("#0072B2", 0.25),
}  # colour; what coin flips give
_COIN = "#AAAAAA"
# By title, the networks without and with batch normalisation.
PANELS = {
    network_name(None): ("feedforward", "feedforward + BN"),
    f"{network_name(1.0)} (not shown in the paper)": ("resnet without BN", "resnet + BN"),
}


def draw(results: Results) -> Figure:
    """Draw activation and coactivation by layer in feedforward networks and resnets."""
    return activation_curves(
        {
            title: {
                (quantity, with_bn): by_layer(results, words, quantity).to_numpy()
                for quantity in QUANTITIES
                for with_bn, words in enumerate(pair)
            }
            for title, pair in PANELS.items()
        }
    )


def activation_curves(panels: Mapping[str, Mapping[tuple[str, int], np.ndarray]]) -> Figure:
    """Draw shares by layer with intervals over networks, solid without batch normalisation and dotted with.

    Each panel maps (quantity, 1 with batch normalisation else 0) to (runs, layers).
    """
    figure, axes = new_figure(len(panels), width=PAGE_WIDTH, height=2.8, sharey=True)
    for ax, (title, curves) in zip(axes[0], panels.items(), strict=True):
        for (quantity, normalised), runs in curves.items():
            colour, coin = QUANTITIES[quantity]
            ax.axhline(coin, color=_COIN, linewidth=0.6)
            mean, low, high = mean_interval(runs)
            layers = np.arange(1, runs.shape[1] + 1)
            ax.fill_between(layers, low, high, color=colour, alpha=0.2, linewidth=0)
            ax.plot(
                layers,
                mean,
                color=colour,
                linestyle=":" if normalised else "-",
                linewidth=1.9 if normalised else 1.3,
                label=f"{quantity}s, {'with' if normalised else 'without'} BN",
            )
        ax.set(xlabel="layer", title=title, ylim=(0.18, 0.6))
        ax.margins(x=0.02)
    axes[0, 0].set_ylabel("share of inputs, or of pairs")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    handles, labels = [*handles, Line2D([], [], color=_COIN, linewidth=0.8)], [*labels, "coin flips"]
    figure.legend(
        *(handles, labels),
        loc="outside lower center",
        ncols=len(labels),
        fontsize=7,
        handlelength=2.0,
        columnspacing=1.4,
    )
    return figure
