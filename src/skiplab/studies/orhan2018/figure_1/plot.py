"""How a layer becomes singular: its units drawn, the loss along null directions, Gauss–Newton eigenvalues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2018.figure_1.trials import KINDS, layers

Curves = Mapping[str, tuple[np.ndarray, np.ndarray]]  # network → x (points,), values (layers, points)

FREE, SKIP, INK, GONE = "#C1272D", "#0072B2", "#555555", "#C8C8C8"
_FLOOR = 1e-18  # eigenvalues that are rounding are drawn here, on the line marked 0


def singular_layer_panels(results: Results) -> Figure:
    """Draw a column for each kind of singularity: the layer, the loss along a null direction, the spectrum."""
    losses = {kind: _curves(results, kind, "loss") for kind in KINDS}
    figure, axes = new_figure(len(losses), rows=3, width=PAGE_WIDTH, height=5.6, grid=False)
    engine: Any = figure.get_layout_engine()
    engine.set(h_pad=0.06, hspace=0.04)
    every = np.concatenate([values.ravel() for curves in losses.values() for _, values in curves.values()])
    limits = (min(0.8, float(every.min())) - 0.03, 1.04 * float(every.max()))
    for column, kind in enumerate(losses):
        draw_layer(axes[0, column], kind)
        axes[0, column].set_title(kind[:1].upper() + kind[1:])
        _losses(axes[1, column], losses[kind], limits)
        _spectra(axes[2, column], _curves(results, kind, "eigenvalue"))
        axes[1, column].set_xlabel("step along $d$")
        axes[2, column].set_xlabel("eigenvalue number")
        if column:
            for row in (1, 2):
                axes[row, column].tick_params(labelleft=False)
    axes[1, 0].set_ylabel("loss / loss at the point")
    axes[2, 0].set_ylabel("Gauss–Newton eigenvalue\n(block, relative)")
    axes[1, 0].legend(loc="upper center")
    for row, letter in enumerate("abc"):
        panel_letter(axes[row, 0], letter)
    return figure


def _curves(results: Results, kind: str, quantity: str) -> Curves:
    """A quantity over x for every network, one curve per layer drawn."""
    rows = results.rows(layers, kind=kind, quantity=quantity)
    wide = {
        str(name): part.pivot(index="draw", columns="x", values="value")
        for name, part in rows.groupby("network")
    }
    return {name: (part.columns.to_numpy(float), part.to_numpy()) for name, part in wide.items()}


def draw_layer(ax: Axes, kind: str) -> None:
    """Draw three inputs, units and outputs: silent connections grey, free ones red, skips blue."""
    across, up = (0.0, 1.0, 2.0), (2.0, 1.0, 0.0)
    silent_in = {0} if kind == "zero incoming" else set()
    silent_out = {0} if kind == "zero outgoing" else set()
    free_out = {"zero incoming": {0}, "overlap": {0, 1}, "linear dependence": {0, 1, 2}}.get(kind, set())
    free_in = {0} if kind == "zero outgoing" else set()
    for unit in range(3):
        for other in range(3):
            _line(ax, (0, up[other]), (1, up[unit]), unit in silent_in, unit in free_in)
            _line(ax, (1, up[unit]), (2, up[other]), unit in silent_out, unit in free_out)
        for start in (0, 1):
            # Skips run below the weights they bridge, bent so that both stay visible.
            ax.annotate(
                "",
                xy=(start + 0.9, up[unit] - 0.09),
                xytext=(start + 0.1, up[unit] - 0.09),
                arrowprops={"arrowstyle": "-", "color": SKIP, "lw": 1.1, "connectionstyle": "arc3,rad=0.3"},
                zorder=2,
            )
    twins = {"overlap": (0, 1), "linear dependence": (0, 1, 2)}.get(kind, ())
    for layer, place in enumerate(across):
        for unit in range(3):
            marked = layer == 1 and (unit in twins or unit in silent_in | silent_out)
            face = "#F6D5D6" if marked else "white"
            ax.scatter(place, up[unit], s=90, facecolor=face, edgecolor=INK, linewidths=0.8, zorder=3)
    note = {
        "zero incoming": "$J_a=0$",
        "zero outgoing": "$w_a=0$",
        "overlap": "$J_a=J_b$",
        "linear dependence": r"$h_c=\alpha h_a+\beta h_b$",
    }.get(kind, "")
    ax.text(1, 2.42, note, ha="center", va="bottom", fontsize=8)
    for place, text in zip(across, ("$x$", "$h$", "$y$"), strict=True):
        ax.text(place, -0.62, text, ha="center", va="center", fontsize=8, color=INK)
    ax.set(xlim=(-0.3, 2.3), ylim=(-0.85, 2.8))
    ax.axis("off")


def _line(ax: Axes, start: tuple[float, float], end: tuple[float, float], silent: bool, free: bool) -> None:
    colour = FREE if free else GONE if silent else INK
    style = (0, (1.5, 1.5)) if silent else "-"
    width = 1.2 if free else 0.6
    ax.plot(*zip(start, end, strict=True), color=colour, linestyle=style, linewidth=width, zorder=1 + free)


def _losses(ax: Axes, curves: Curves, limits: tuple[float, float]) -> None:
    ax.grid(True)
    for name in sorted(curves, reverse=True):  # residual first, so that the flat lines lie on top
        x, values = curves[name]
        for number, line in enumerate(values):
            label = label_of(name) if number == 0 else None
            ax.plot(
                x,
                line,
                color=colour_of(name),
                linewidth=0.7,
                alpha=0.55 if name != "plain" else 1,
                label=label,
            )
    ax.set_ylim(limits)
    ax.margins(x=0)


def _spectra(ax: Axes, curves: Curves) -> None:
    ax.grid(True)
    for name, (x, values) in curves.items():
        shown = np.maximum(values, _FLOOR)
        middle = np.median(shown, axis=0)
        ax.fill_between(
            x, shown.min(0), shown.max(0), color=colour_of(name), alpha=0.18, linewidth=0, step="mid"
        )
        zero = middle <= 1e-16
        ax.plot(x[~zero], middle[~zero], "o", markersize=2.2, color=colour_of(name))
        ax.plot(x[zero], np.full(zero.sum(), _FLOOR), "x", markersize=3.6, color=colour_of(name))
    ax.set_yscale("log")
    ax.set_ylim(_FLOOR / 20, 5)
    ax.yaxis.set_major_locator(LogLocator(numticks=12))
    ax.set_yticks([_FLOOR, 1e-12, 1e-6, 1.0], ["0", "$10^{-12}$", "$10^{-6}$", "1"])
    ax.yaxis.set_minor_locator(NullLocator())
