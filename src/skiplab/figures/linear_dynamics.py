"""How linear networks learn: weights over time, steps from every start, phase portraits and times by network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import final_dots
from skiplab.figures.phase_portraits import Field, flow_field, trajectory
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

Series = tuple[np.ndarray, np.ndarray]
SOLUTIONS = "#555555"
_GUIDE: dict[str, Any] = {"color": "#888888", "linewidth": 0.7, "linestyle": (0, (3, 3))}


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
    """Draw every run as a dot on a logarithmic axis, a row a label; values below ``floor`` stand on it.

    Strips with the same label share a row, filled above hollow. A row whose values are all NaN says "never".
    """
    labels = list(dict.fromkeys(strip.label for strip in strips))
    ax.set_xscale("log")
    for strip in strips:
        values = np.maximum(np.asarray(strip.values, dtype=float), floor)
        alone = sum(other.label == strip.label for other in strips) == 1
        place = -labels.index(strip.label) - (0.12 if alone else 0.27 if strip.hollow else 0.0)
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
    # Names stand above their dots: beside the axis they would take a third of the panel.
    for place, label in enumerate(labels):
        ax.text(
            0.02, 0.38 - place, label, fontsize=6.8, va="center", transform=ax.get_yaxis_transform(), zorder=4
        )
    ax.set_yticks([])
    ax.set_ylim(0.45 - len(labels), 0.7)
    if floor:
        ax.set_xlim(left=floor)
    ax.spines["left"].set_visible(False)
    ax.grid(False, axis="y")


def three_layer_panels(
    *,
    paths: Mapping[str, Sequence[Sequence[Line]]],
    steps: Mapping[str, Sequence[Strip]],
    losses: Sequence[Line],
    agreement: Sequence[Strip],
    zeros: Sequence[Strip],
    rounding: float,
) -> Figure:
    """Draw figure 5: a¹ and a² and steps to learn for panels (a) and (b), then losses and checks.

    ``paths`` and ``steps`` have keys "a" and "b"; a path is the lines of a¹ and those of a². ``zeros`` are quantities
    that are 0 if the statement of their row is true.
    """
    figure, axes = new_figure(3, rows=3, width=PAGE_WIDTH, height=6.9)
    for row, key in enumerate("ab"):
        for mode, lines in enumerate(paths[key]):
            ax = axes[row, mode]
            lines_panel(ax, lines, legend=(key, mode) in {("a", 1), ("b", 0)})
            ax.set(
                xlabel="step",
                title=f"$a^{mode + 1}$, {'small random start' if key == 'a' else 'equal norms'}",
            )
        strips_panel(axes[row, 2], steps[key])
        axes[row, 2].set(xlabel="steps until learned", title="Filled corrected, hollow printed")
    for ax in axes[1, :2]:
        ax.set(xscale="log", xlim=(1, None))
    lines_panel(axes[2, 0], losses, legend=True)
    axes[2, 0].axhline(1.125, **_GUIDE)
    axes[2, 0].set(xscale="log", xlim=(1, None), xlabel="step", ylabel="loss", title="Loss, equal norms")
    strips_panel(axes[2, 1], agreement)
    axes[2, 1].axvline(rounding, **_GUIDE)
    axes[2, 1].set(xlabel="|ODE − descent on $W_1, W_2$|", title="Filled corrected, hollow printed")
    strips_panel(axes[2, 2], zeros, floor=1e-17)
    axes[2, 2].set(xlabel="|cosine| or distance", title="Zero if true")
    for letter, ax in zip("abcdefghi", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure


@dataclass(frozen=True)
class Portrait:
    """One phase portrait: the field, its saddle, where the paper prints it, and paths from small starts.

    Solutions are (a + c)(b + d) = product with the saddle at (−c, −d).
    """

    title: str
    field: Field
    saddle: tuple[float, float]
    printed: tuple[float, float]
    product: float
    paths: Sequence[Series]


def portrait_panel(ax: Axes, portrait: Portrait, *, reach: tuple[float, float] = (-3.6, 3.2)) -> Any:
    """Draw a phase portrait with its saddle (cross), its printed place if another (ring), and the solutions."""
    ax.grid(False)
    arrows = flow_field(ax, portrait.field, reach, reach, arrows=13)
    for side in (-1, 1):
        x = side * np.geomspace(portrait.product / 10, 10, 200)
        ax.plot(x + portrait.saddle[0], portrait.product / x + portrait.saddle[1], color=SOLUTIONS, zorder=3)
    for path in portrait.paths:
        trajectory(ax, *path, dot=False)
    ax.plot(0, 0, "o", color="black", markersize=3, zorder=5)
    ax.plot(*portrait.saddle, "X", color="#D55E00", markersize=8, markeredgecolor="white", zorder=6)
    if portrait.printed != portrait.saddle:
        ax.plot(
            *portrait.printed, "o", markersize=8, markerfacecolor="none", markeredgecolor="#D55E00", zorder=6
        )
    ax.set(xlim=reach, ylim=reach, xlabel="$a$", ylabel="$b$", title=portrait.title)
    ax.set_aspect("equal")
    return arrows


def mode_panels(
    *,
    portraits: Sequence[Portrait],
    answers: Mapping[str, Sequence[Series]],
    s: float,
    within: float,
    times: Mapping[str, Sequence[float]],
    steps: Mapping[str, Sequence[float]],
    speeds: Mapping[str, Series],
    depth: int,
) -> Figure:
    """Draw figure 6: four phase portraits, u(t) in the paper's window and on all scales, and the race's results.

    ``answers`` maps a network to (times, u) of some runs; ``times`` and ``steps`` are log₁₀ of each run's.
    """
    figure, axes = new_figure(3, rows=3, width=PAGE_WIDTH, height=7.2)
    for ax, portrait in zip(axes.flat, portraits, strict=False):
        portrait_panel(ax, portrait)
    window, whole = axes[1, 1], axes[1, 2]
    last = 2.5 * max(float(t[-1]) for t, _ in answers["residual"])
    first = min(float(t[t > 0].min()) for runs in answers.values() for t, _ in runs)
    latest = max(float(t[-1]) for runs in answers.values() for t, _ in runs)
    for name, runs in answers.items():
        for k, (t, u) in enumerate(runs):
            label = label_of(name) if k == 0 else None
            look: dict[str, Any] = {"color": colour_of(name), "linewidth": 1.0, "alpha": 0.8}
            window.plot(np.append(t, max(last, t[-1])), np.append(u, u[-1]), label=label, **look)
            whole.plot(np.r_[first, t[1:], 10 * latest], np.r_[u[0], u[1:], u[-1]], **look)
    window.set(
        xlim=(-0.02 * last, last), ylim=(-0.3, 2 * s), xlabel="time", ylabel="$u$", title=f"{depth} layers"
    )
    window.legend(fontsize=6.5, loc="upper right")
    whole.set_xscale("log")
    whole.set_yscale("symlog", linthresh=0.1)
    whole.set(xlim=(first, 10 * latest), ylim=(-0.1, None), xlabel="time", ylabel="$u$", title="All scales")
    for ax in (window, whole):
        ax.axhline(s, **_GUIDE)
    for ax, values, title in (
        (axes[2, 0], times, f"Time to $|u/s-1|\\leq{within:g}$"),
        (axes[2, 1], steps, "Time × sharpest curvature"),
    ):
        final_dots(ax, list(values), list(values.values()))
        ax.set(ylabel="powers of ten", title=title)
    for name, series in speeds.items():
        axes[2, 2].plot(*series, color=colour_of(name), label=label_of(name))
    axes[2, 2].set(xlabel="$s$", ylabel="speed at the origin", title="3 layers")
    axes[2, 2].legend(fontsize=6.5)
    for letter, ax in zip("abcdefghi", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure
