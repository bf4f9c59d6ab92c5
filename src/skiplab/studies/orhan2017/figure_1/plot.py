"""Figure 1's panels: what the two changes of the weights are, and how far they move the outputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from matplotlib.ticker import NullLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2017.figure_1.evidence import mean_changes
from skiplab.studies.orhan2017.figure_1.trials import NETWORKS

INK = "#444444"
_UNITS = ("#332288", "#882255", "#117733")  # units keep their colour when they move
_FLOOR = 1e-17  # where an exact zero is drawn
_WITH_SKIPS = {"permutation": "residual", "rescaling": "hyper-residual"}  # which network is drawn


def symmetry_panels(results: Results) -> Figure:
    """A column per symmetry: the change of a plain network, that of one with skips, and how far outputs move."""
    figure, axes = new_figure(columns=2, rows=3, width=PAGE_WIDTH, height=6.0, grid=False)
    axes[0, 0].get_gridspec().set_height_ratios([1, 1, 1.7])
    words = {"permutation": "units permuted", "rescaling": "layers rescaled"}
    for column, (kind, with_skips) in enumerate(_WITH_SKIPS.items()):
        draw = _swapped if kind == "permutation" else _scaled
        draw(axes[0, column], "plain")
        draw(axes[1, column], with_skips)
        found = {name: mean_changes(results, name, kind).to_numpy() for name in NETWORKS}
        _moved(axes[2, column], found, named=column == 0)
        axes[2, column].set_title(words[kind])
    for letter, ax in zip("abcdef", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure


def _moved(ax: Axes, found: Mapping[str, np.ndarray], named: bool) -> None:
    """One dot per network on a logarithmic axis; exact zeros at its left end."""
    for row, (name, values) in enumerate(found.items()):
        shown = np.maximum(np.asarray(values, dtype=float), _FLOOR)
        spread = (np.arange(len(shown)) * 0.6180339887 % 1 - 0.5) * 0.5
        colour = colour_of(name.split(",")[0])
        ax.plot(shown, row + spread, "o", markersize=2.6, color=colour, alpha=0.7)
    ax.set_xscale("log")
    ax.set_xlim(_FLOOR / 3, 1e2)
    ax.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1.0])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.axvline(np.finfo(float).eps, color=INK, linewidth=0.7, linestyle=":")
    ax.set_yticks(range(len(found)), [_words(name) for name in found] if named else [""] * len(found))
    ax.set_ylim(len(found) - 0.5, -0.5)
    ax.set_xlabel("relative change of the outputs")


def _words(name: str) -> str:
    kind, _, activation = name.partition(", ")
    return f"{label_of(kind)}, {activation}" if activation else label_of(kind)


def _swapped(ax: Axes, name: str) -> None:
    """Two hidden units that have changed places, with their connections; a skip stays where it was."""
    order = (0, 2, 1)  # which unit sits in each place
    for place, unit in enumerate(order):
        colour = _UNITS[unit] if unit != place else INK
        for other in range(3):
            _line(ax, (0, -other), (1, -place), colour)
            _line(ax, (1, -place), (2, -other), colour)
        if name != "plain":
            _line(ax, (0, -place), (1, -place), colour_of(name), 1.8, bend=-0.2)
            _line(ax, (1, -place), (2, -place), colour_of(name), 1.8, bend=-0.2)
    for layer in range(3):
        for place in range(3):
            moved = layer == 1 and order[place] != place
            colour = _UNITS[order[place]] if moved else "white"
            ax.scatter(layer, -place, s=60, facecolor=colour, edgecolor=INK, linewidths=0.8, zorder=3)
    swap = FancyArrowPatch(
        (1, -1),
        (1, -2),
        arrowstyle="<|-|>",
        connectionstyle="arc3,rad=-0.7",
        mutation_scale=8,
        color=INK,
        shrinkA=6,
        shrinkB=6,
        zorder=4,
    )
    ax.add_patch(swap)
    _dress(ax, name, right=2)


def _scaled(ax: Axes, name: str) -> None:
    """Layers as circles on a line: W_k tenfold, W_l a tenth; skips carry the unscaled and the scaled alike."""
    widths = (1.0, 3.2, 1.0, 0.3)
    words = ("", "$10\\,W_k$", "", "$W_l/10$")
    for layer, (width, text) in enumerate(zip(widths, words, strict=True)):
        _line(ax, (layer, -1.7), (layer + 1, -1.7), INK, width)
        ax.text(layer + 0.5, -1.9, text, ha="center", va="top", fontsize=7.5, color=INK)
    for start in range(4 if name != "plain" else 0):
        for end in range(start + 1, 5 if name == "hyper-residual" else start + 2):
            _line(
                ax, (start, -1.7), (end, -1.7), colour_of(name), 1.1, bend=-0.55 if end == start + 1 else -0.4
            )
    for layer in range(5):
        grown = layer in (2, 3)
        fill = "#E69F00" if grown else "white"
        ax.scatter(
            layer, -1.7, s=190 if grown else 60, facecolor=fill, edgecolor=INK, linewidths=0.8, zorder=3
        )
        if grown:
            ax.text(layer, -1.72, "×10", ha="center", va="center", fontsize=6, zorder=4)
    _dress(ax, name, right=4)


def _line(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    width: float = 0.9,
    bend: float = 0.0,
) -> None:
    connection = f"arc3,rad={bend}"
    ax.add_patch(
        FancyArrowPatch(
            start, end, arrowstyle="-", connectionstyle=connection, color=colour, linewidth=width, zorder=1
        )
    )


def _dress(ax: Axes, name: str, right: float) -> None:
    holds = "the same function" if name == "plain" else "another function"
    ax.set_title(f"{label_of(name)}: {holds}")
    ax.set(xlim=(-0.2, right + 0.2), ylim=(-2.3, 0.3))
    ax.axis("off")
