"""Figure 6's panels: four phase portraits, u(t) in the paper's window and on all scales, the race's results."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import final_dots
from skiplab.figures.flow_fields import Field, flow_field, trajectory
from skiplab.figures.strips import GUIDE, Series
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.randomness import numpy_generator
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2017.figure_6.evidence import raced
from skiplab.studies.orhan2017.figure_6.trials import NETWORKS, PRINTED_SADDLES, race
from skiplab.theory.linear_networks.single_mode import Mode

SOLUTIONS = "#555555"
TITLES = {
    "plain": "Plain",
    "residual": "Residual",
    "hyper-residual": "Hyper-residual, eq 7",
    "dense-residual": "True dense skips",
}


def mode_panels(results: Results) -> Figure:
    """Draw all nine panels."""
    settings = results.settings
    figure, axes = new_figure(3, rows=3, width=PAGE_WIDTH, height=7.2)
    for ax, network in zip(axes.flat, NETWORKS, strict=False):
        portrait_panel(ax, portrait_of(network, settings.s, settings.seed))
    _answers(axes[1, 1], axes[1, 2], results)
    for ax, quantity, title in (
        (axes[2, 0], "time", "time"),
        (axes[2, 1], "steps", "time × curvature"),
    ):
        final_dots(ax, NETWORKS, [np.log10(raced(results, quantity, network)) for network in NETWORKS])
        ax.set(ylabel=f"log₁₀({title})", title=f"Until $|u/s-1|\\leq{settings.within:g}$")
    s = np.linspace(0.2, 7, 300)
    for network in NETWORKS:
        speeds = [np.linalg.norm(Mode(network, 2, float(k)).velocity(np.zeros(2))) for k in s]
        axes[2, 2].plot(s, speeds, color=colour_of(network), label=label_of(network))
    axes[2, 2].set(xlabel="$s$", ylabel="speed at the origin", title="3 layers")
    axes[2, 2].legend(fontsize=6.5)
    for letter, ax in zip("abcdefghi", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure


def _answers(window: Axes, whole: Axes, results: Results) -> None:
    """u over time, in the paper's window and on all scales."""
    s, depth = results.settings.s, results.settings.layers
    answers = {network: _paths(results, network) for network in NETWORKS}
    last = 2.5 * max(float(t[-1]) for t, _ in answers["residual"])
    # The plain network takes 28 powers of ten longer than all others: in the panel of all scales a word does.
    skips = [runs for name, runs in answers.items() if name != "plain"]
    first = min(float(t[t > 0].min()) for runs in skips for t, _ in runs)
    latest = max(float(t[-1]) for runs in skips for t, _ in runs)
    plain = float(np.median([t[-1] for t, _ in answers["plain"]]))
    for name, runs in answers.items():
        for k, (t, u) in enumerate(runs):
            label = label_of(name) if k == 0 else None
            look: dict[str, Any] = {"color": colour_of(name), "linewidth": 1.0, "alpha": 0.8}
            window.plot(np.append(t, max(last, t[-1])), np.append(u, u[-1]), label=label, **look)
            if name != "plain":
                whole.plot(np.r_[first, t[1:], 10 * latest], np.r_[u[0], u[1:], u[-1]], **look)
    window.set(
        xlim=(-0.02 * last, last), ylim=(-0.3, 2 * s), xlabel="time", ylabel="$u$", title=f"{depth} layers"
    )
    window.legend(fontsize=6.5, loc="upper right")
    whole.set_xscale("log")
    whole.set_yscale("log")
    whole.set(xlim=(first, 10 * latest), ylim=(0.5, None), xlabel="time", ylabel="$u$", title="With skips")
    power = f"Plain: $u \\approx 0$ until $10^{{{math.log10(plain):.0f}}}$"
    whole.text(
        0.97,
        0.93,
        power,
        transform=whole.transAxes,
        ha="right",
        va="top",
        fontsize=7,
        color=colour_of("plain"),
    )
    for ax in (window, whole):
        ax.axhline(s, **GUIDE)


def _paths(results: Results, network: str) -> list[Series]:
    """Times and answers u of the runs that were kept."""
    rows = results.rows(race, quantity="answer", network=network).sort_values("x")
    return [(part["x"].to_numpy(), part["value"].to_numpy()) for _, part in rows.groupby("run")]


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


def portrait_of(network: str, s: float, seed: int) -> Portrait:
    """The phase portrait of a network's two-strength mode, with paths from four small starts."""
    mode = Mode(network, 2, s)
    at = mode.saddle()
    starts = 0.05 * numpy_generator(seed, "portrait").standard_normal((4, 2))

    def field(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        velocity = mode.velocity(np.stack([a, b], axis=-1))
        return velocity[..., 0], velocity[..., 1]

    paths = [mode.follow(start, within=1e-3).strengths.T for start in starts]
    return Portrait(
        TITLES[network],
        field,
        (float(at[0]), float(at[1])),
        PRINTED_SADDLES[network],
        s - float(mode.answer(at)),
        [(path[0], path[1]) for path in paths],
    )
