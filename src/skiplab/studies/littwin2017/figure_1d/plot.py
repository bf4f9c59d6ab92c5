"""λ by layer at some epochs, as in the paper; over training; and how far other choices move it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.colours import in_order
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, key_above, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.littwin2017.figure_1d.evidence import HEADLINE, beside, growth
from skiplab.studies.littwin2017.toy_evidence import over_epochs

FIRST, SKIPPED = "#D55E00", "#0072B2"
LINES = 6  # epochs of panel a
DECIDING = "λ = 1, rate .1"


def draw(results: Results) -> Figure:
    """Draw figure 1d, the same over epochs, and the strip of other choices."""
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=3.3)
    _by_layer(axes[0, 0], results)
    _over_training(axes[0, 1], results)
    _strip(axes[0, 2], results)
    for ax, letter in zip(axes.flat, "abc", strict=True):
        panel_letter(ax, letter)
    return figure


def _by_layer(ax: Axes, results: Results) -> None:
    epochs, found = over_epochs(results, HEADLINE, "scale")
    places = np.unique(np.linspace(0, len(epochs) - 1, LINES).round().astype(int))
    layers = np.arange(1, found.shape[2] + 1)
    for place, colour in zip(places, in_order(len(places)), strict=True):
        mean, low, high = mean_interval(found[:, place])
        ax.fill_between(layers, low, high, color=colour, alpha=0.15, linewidth=0)
        ax.plot(layers, mean, color=colour, marker="o", markersize=2.5, label=f"epoch {epochs[place]}")
    ax.set(xlabel="layer $l$ (1 has no skip)", ylabel=r"mean $|\lambda_l|$ over units", xticks=layers)
    ax.legend(fontsize=6.5)


def _over_training(ax: Axes, results: Results) -> None:
    epochs, found = over_epochs(results, HEADLINE, "scale")
    parts = {"first layer": (found[..., 0], FIRST), "skipped layers": (found[..., 1:].mean(2), SKIPPED)}
    for label, (values, colour) in parts.items():
        mean, low, high = mean_interval(values)
        ax.fill_between(epochs, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(epochs, mean, color=colour, label=label)
    ax.axhline(1.0, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.set(xlabel="epoch", ylabel=r"mean $|\lambda_l|$")
    ax.legend(fontsize=7)


def _strip(ax: Axes, results: Results) -> None:
    """What is gained after the strip's epochs and, where there are more, at the end; each dot a network."""
    short, last = results.settings.strip_epochs, results.settings.epochs
    rows = [(DECIDING, HEADLINE, short), *beside(results)]
    if last > short:
        rows[0] = (f"{DECIDING}, {short} epochs", HEADLINE, short)
        rows.insert(1, (f"{DECIDING}, {last} epochs", HEADLINE, last))
    for place, (_, stage, until) in enumerate(rows):
        moved = growth(results, stage, until=until)
        for label, values, colour, shift in (
            ("first layer", moved[:, 0], FIRST, -0.17),
            ("skipped layers", moved[:, 1:].mean(1), SKIPPED, 0.17),
        ):
            at = np.full(len(values), place + shift)
            own = "_" if place else label
            ax.plot(values, at, "o", color=colour, markersize=2.6, alpha=0.6, label=own)
    ax.axvline(0.0, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.set_yticks(range(len(rows)), [words for words, _, _ in rows], fontsize=6)
    ax.invert_yaxis()
    ax.set(xlabel=r"gain of mean $|\lambda_l|$")
    ax.grid(False, axis="y")
    key_above(ax)
