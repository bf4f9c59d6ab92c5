"""ε_r by length for three β, and how peak and band go with β and depth."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.littwin2017.figure_1abc.trials import by_depth
from skiplab.theory.path_ensembles.multipliers import log_multipliers, multipliers

SHOWN = 100  # the figure's depth
COLOURS = ("#56B4E9", "#0072B2", "#332288")  # of β, the darker the larger
SHADES = ("#BBBBBB", "#777777", "#111111")  # of p, the darker the deeper
TINY = 1e-20


def draw(results: Results) -> Figure:
    """Draw three panels as in the paper, and three on theorems 1 and 2."""
    figure, axes = new_figure(3, rows=2, width=PAGE_WIDTH, height=4.4)
    betas = results.settings.betas
    for ax, beta, colour in zip(axes[0], betas, COLOURS, strict=False):
        _lengths(ax, beta, colour)
    top = max(ax.get_ylim()[1] for ax in axes[0])
    for ax in axes[0]:
        ax.set_ylim(0, 1.08 * top)
    axes[0, 0].set_ylabel(r"multiplier $\epsilon_r$")
    _peaks(axes[1, 0], betas)
    _outside(axes[1, 1], results)
    _narrowing(axes[1, 2], betas[len(betas) // 2])
    for ax, letter in zip(axes.flat, "abcdef", strict=True):
        panel_letter(ax, letter)
    return figure


def _lengths(ax: Axes, beta: float, colour: str) -> None:
    found = multipliers(SHOWN, beta)
    ax.bar(np.arange(1, SHOWN + 1), found, width=1.0, color=colour, linewidth=0)
    peak = int(found.argmax()) + 1
    ax.axvline(SHOWN / 2, color="#888888", linewidth=0.8, linestyle=(0, (3, 2)))
    ax.set(xlim=(0, SHOWN + 1), xlabel=f"path length $r$ (of $p$ = {SHOWN})", title=rf"$\beta$ = {beta:g}")
    ax.annotate(f"{peak}", (peak, found[peak - 1]), xytext=(0, 2), textcoords="offset points", ha="center")


def _peaks(ax: Axes, betas: tuple[float, ...]) -> None:
    fine = np.geomspace(0.02, 50, 241)
    for p, shade in zip((5, 20, 100), SHADES, strict=True):
        at = [(1 + int(multipliers(p, beta).argmax())) / p for beta in fine]
        ax.step(fine, at, color=shade, linewidth=1.0, label=f"$p$ = {p}")
    ax.plot(fine, fine / (1 + fine), color="#D55E00", linewidth=1.2, label=r"$\beta/(1+\beta)$")
    for beta, colour in zip(betas, COLOURS, strict=False):
        ax.plot([beta], [beta / (1 + beta)], "o", color=colour, markersize=4.5)
    ax.set(xscale="log", xlabel=r"$\beta$", ylabel="peak / depth $p$", ylim=(0, 1.04))
    ax.legend(loc="lower right", fontsize=7.2)


def _outside(ax: Axes, results: Results) -> None:
    delta = max(results.settings.deltas)
    # β and 1/β have mirrored weights: the second is dashed, so that the first is seen under it.
    for beta, colour, look in zip(results.settings.betas, COLOURS, ("-", "-", (0, (2, 2))), strict=False):
        rows = results.rows(by_depth, beta=beta, delta=delta, quantity=("below", "above"))
        found = rows.groupby("p")["value"].sum().clip(lower=TINY)
        ax.plot(found.index, found, color=colour, linestyle=look, marker="o", label=rf"$\beta$ = {beta:g}")
    ax.set(xscale="log", yscale="log", xlabel="depth $p$", ylim=(TINY / 5, 5))
    ax.set_ylabel(rf"$\Sigma\epsilon_r^2$ beyond $\pm${delta:g}$\,p$")
    ax.set_yticks(
        [1, 1e-5, 1e-10, 1e-15, TINY], ["1", "$10^{-5}$", "$10^{-10}$", "$10^{-15}$", r"$\leq 10^{-20}$"]
    )
    ax.legend(loc="upper right", fontsize=7.2)


def _narrowing(ax: Axes, beta: float) -> None:
    for p, shade in zip((100, 1000, 10_000), SHADES, strict=True):
        density = p * np.exp(2 * log_multipliers(p, beta))
        ax.plot(np.arange(1, p + 1) / p, density, color=shade, linewidth=1.2, label=f"$p$ = {p:,}")
    ax.set(xlim=(0.1, 0.6), xlabel="share of depth, $r/p$", ylim=(0, None))
    ax.set_ylabel(rf"density $p\,\epsilon_r^2$ at $\beta$ = {beta:g}")
    ax.legend(loc="upper right", fontsize=7.2)
