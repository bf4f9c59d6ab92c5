"""Curves with looks of their own, and strips: every run a dot on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes

Series = tuple[np.ndarray, np.ndarray]
GUIDE: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": (0, (3, 3))}


@dataclass(frozen=True)
class Line:
    """A curve with its look; without a label it is not in the legend."""

    series: Series
    colour: str
    label: str = ""
    style: Any = "-"
    alpha: float = 1.0


@dataclass(frozen=True)
class Strip:
    """A row of dots: what stands left of it, the values, their colour, and hollow for printed equations."""

    label: str
    values: Sequence[float]
    colour: str
    hollow: bool = False


def lines_panel(ax: Axes, lines: Sequence[Line], *, legend: bool = False) -> None:
    """Draw curves into a panel."""
    for line in lines:
        label = line.label or None
        ax.plot(*line.series, color=line.colour, label=label, linestyle=line.style, alpha=line.alpha)
    if legend:
        ax.legend(fontsize=7)


def strips_panel(ax: Axes, strips: Sequence[Strip], *, floor: float = 0.0) -> None:
    """Draw every run as a dot on a logarithmic axis, one row per label; values below ``floor`` stand on it.

    Strips with the same label share a row, filled above hollow. A row whose values are all NaN says "never".
    """
    labels = list(dict.fromkeys(strip.label for strip in strips))
    ax.set_xscale("log")
    for strip in strips:
        values = np.maximum(np.asarray(strip.values, dtype=float), floor)
        alone = sum(other.label == strip.label for other in strips) == 1
        place = -labels.index(strip.label) - (0.14 if alone else 0.26 if strip.hollow else 0.02)
        if np.isnan(values).all():
            where: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "right", "va": "center"}
            ax.text(0.99, -labels.index(strip.label) - 0.12, "never", fontsize=7, **where)
            continue
        ax.plot(
            values,
            np.full(len(values), place),
            "o",
            markersize=3.4,
            markerfacecolor="white" if strip.hollow else strip.colour,
            markeredgecolor=strip.colour,
            markeredgewidth=0.7,
            alpha=0.75,
            clip_on=False,
            zorder=3,
        )
    # Names stand above their dots: beside the axis they would take a third of the panel. Lines part the rows.
    for place, label in enumerate(labels):
        ax.text(
            0.02, 0.32 - place, label, fontsize=6.8, va="center", transform=ax.get_yaxis_transform(), zorder=4
        )
        if place:
            across = ax.get_yaxis_transform()
            ax.hlines(0.55 - place, 0, 1, color="#DDDDDD", linewidth=0.6, zorder=1, transform=across)
    ax.set_yticks([])
    ax.set_ylim(0.55 - len(labels), 0.55)
    if floor:
        ax.set_xlim(left=floor)
    ax.spines["left"].set_visible(False)
    ax.grid(False, axis="y")
