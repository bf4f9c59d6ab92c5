"""A one-layer net's gradient beside Brownian motion: paths, covariance, spectrum and eigenfunctions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

INK, GREY, RED, BLUE = "#222222", "#8A8A8A", "#D55E00", "#0072B2"


def brownian_panels(
    t: np.ndarray,
    walks: np.ndarray,
    covariances: tuple[np.ndarray, np.ndarray],
    spectrum: Mapping[str, np.ndarray],
    eigenfunctions: tuple[np.ndarray, np.ndarray],
    in_x: Mapping[float, tuple[np.ndarray, np.ndarray]],
) -> Figure:
    """Draw a one-layer net's gradient as Brownian motion, in six panels.

    ``walks`` (nets, points) over t; ``covariances`` are measured and expected, (points, points) on a coarse grid of
    [0, 1]; ``spectrum`` has ranks k, limit and walk eigenvalues, and measured variances (runs, k);
    ``eigenfunctions`` are those of the measured covariance and of the limit, (count, points) over t; ``in_x`` maps a
    bias's standard deviation to inputs and one net's gradients.
    """
    figure, axes = new_figure(3, rows=2, width=PAGE_WIDTH, height=4.9)
    for walk, shade in zip(walks, np.linspace(0.25, 1.0, len(walks)), strict=True):
        axes[0, 0].plot(t, walk, linewidth=0.6, color=BLUE, alpha=shade)
    for sign in (1, -1):
        axes[0, 0].plot(t, sign * 2 * np.sqrt(t), color=INK, linewidth=0.8, linestyle="--")
    axes[0, 0].set(xlabel="fraction $t$ of active neurons", ylabel="gradient", title="gradients")
    _legend(
        axes[0, 0],
        {
            "nets": {"color": BLUE, "linewidth": 0.8},
            r"$\pm2\sqrt{t}$": {"color": INK, "linewidth": 0.8, "linestyle": "--"},
        },
        room=0.3,
    )
    _covariances(axes[0, 1], *covariances)
    _spectrum(axes[0, 2], spectrum)
    _eigenfunctions(axes[1, 0], t, *eigenfunctions)
    for ax, (spread, (x, gradients)) in zip(axes[1, 1:], in_x.items(), strict=False):
        ax.plot(x, gradients, color=RED, linewidth=0.8)
        ax.set(xlabel="input $x$", ylabel="$df/dx$", title=f"one net, bias std {spread:.3g}")
    for ax, letter in zip(axes.flat, "abcdef", strict=True):
        panel_letter(ax, letter)
    return figure


def _legend(ax: Axes, entries: Mapping[str, Mapping[str, Any]], room: float) -> None:
    """Put a legend into the upper left, above the lines: ``room`` is the share of their height that it adds."""
    low, high = ax.get_ylim()
    ax.set_ylim(low, high + room * (high - low))
    handles = [Line2D([], [], label=name, **look) for name, look in entries.items()]
    ax.legend(handles=handles, loc="upper left", fontsize=6.8)


def _covariances(ax: Axes, measured: np.ndarray, expected: np.ndarray) -> None:
    grid = np.linspace(0, 1, len(measured) + 1)[1:]
    for row in range(0, len(grid), 2):
        ax.plot(grid, expected[row], color=GREY, linewidth=0.9)
        ax.plot(grid, measured[row], "o", color=BLUE, markersize=2.6)
        ax.annotate(
            *(f"$s$ = {grid[row]:.3g}".replace("0.", "."), (1, expected[row, -1])),
            xytext=(0, 3),
            textcoords="offset points",
            fontsize=6.8,
            ha="right",
        )
    ax.set(xlabel="$t$", ylabel="$E[f'(s)\\, f'(t)]$", title="covariance")
    nets = {"color": BLUE, "marker": "o", "markersize": 2.6, "linestyle": ""}
    _legend(ax, {"nets": nets, r"$\min(s, t)$": {"color": GREY, "linewidth": 0.9}}, room=0.1)


def _eigenfunctions(ax: Axes, t: np.ndarray, found: np.ndarray, limit: np.ndarray) -> None:
    for one, other in zip(found, limit, strict=True):
        ax.plot(t, other, color=GREY, linewidth=2.2, alpha=0.6)  # wide, to be seen below what covers it
        ax.plot(t, one, color=BLUE, linewidth=1.0, linestyle="--")
    ax.set(xlabel="$t$", ylabel="$e_k(t)$", title="eigenfunctions")
    names = ("nets", r"$\sqrt{2}\,\sin((k-\frac{1}{2})\pi t)$")
    looks = (
        {"color": BLUE, "linewidth": 1.0, "linestyle": "--"},
        {"color": GREY, "linewidth": 2.2, "alpha": 0.6},
    )
    _legend(ax, dict(zip(names, looks, strict=True)), room=0.3)


def _spectrum(ax: Axes, spectrum: Mapping[str, np.ndarray]) -> None:
    k = spectrum["k"]
    ax.plot(k, spectrum["limit"], color=GREY, linewidth=1.0, label=r"$1/((k-\frac{1}{2})^2\pi^2)$")
    ax.plot(k, spectrum["walk"], "_", color=INK, markersize=7, label="walk of $N$ neurons")
    mean, low, high = mean_interval(spectrum["measured"])
    bars = [mean - low, high - mean]
    ax.errorbar(k, mean, bars, fmt="o", color=BLUE, markersize=3, capsize=1.8, elinewidth=0.9, label="nets")
    ax.set(xscale="log", yscale="log", xlabel="$k$", ylabel=r"$\lambda_k$", title="eigenvalues")
    ticks = [int(each) for each in k if int(each) & (int(each) - 1) == 0]  # 1, 2, 4, 8 …
    ax.set_xticks(ticks, [str(each) for each in ticks])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.legend(fontsize=6.8)
