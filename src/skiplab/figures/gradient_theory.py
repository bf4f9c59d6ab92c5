"""Theories of gradients beside what was measured: moments against depth, and a one-layer net's Brownian motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullLocator

from skiplab.figures.colours import colour_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

# (quantity, kind) → (L, values), and (quantity, law) → (L, samples over runs).
Curves = Mapping[tuple[str, str], tuple[Sequence[int], Sequence[float]]]
Points = Mapping[tuple[str, str], tuple[Sequence[int], Sequence[Sequence[float]]]]

INK, GREY, RED, BLUE = "#222222", "#8A8A8A", "#D55E00", "#0072B2"
COLOURS = {"β = 1": BLUE, "β = .1": "#009E73", "highway": "#882255"}
NAMES = {"resnet": "residual"}
LINES = {"exact": "-", "printed": "--", "corrected": ":"}
TITLES = ("plain and residual", "residual with BN", "highway")
LOWEST = 1e-4  # correlations below are noise in any affordable Monte Carlo


def theorem_panels(
    groups: Sequence[Sequence[str]], curves: Mapping[str, Curves], points: Mapping[str, Points]
) -> Figure:
    """Draw a column a group of models: the variance above, the correlation below."""
    figure, axes = new_figure(3, rows=2, width=PAGE_WIDTH, height=5.0, sharex=True)
    for column, group in enumerate(groups):
        for row, quantity in enumerate(("variance", "correlation")):
            ax = axes[row, column]
            for name in group:
                _model(
                    ax,
                    quantity,
                    curves[name],
                    points[name],
                    COLOURS.get(name) or colour_of(NAMES.get(name, name)),
                )
            ax.set_xscale("log")
            ax.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
            ax.minorticks_off()
            ax.set_xlim(1.8, 112)
        axes[0, column].set_title(TITLES[column])
        axes[1, column].set_xlabel("depth $L$")
        handles = [
            Line2D([], [], color=COLOURS.get(name) or colour_of(NAMES.get(name, name))) for name in group
        ]
        axes[0, column].legend(handles, group, loc="upper left")
    axes[0, 0].set(yscale="log", ylabel=r"second moment $E[\nabla_i^2]$", ylim=(1e-2, 1e32))
    axes[0, 1].set(yscale="log", ylim=(0.7, 1500))
    axes[0, 2].set(ylim=(0.7, 1.4))
    axes[1, 0].set(yscale="log", ylabel=r"correlation $R(i, j)$", ylim=(LOWEST, 1.3))
    axes[1, 1].set(yscale="log", ylim=(0.03, 1.6))
    axes[1, 1].set_yticks([0.05, 0.1, 0.2, 0.5, 1], [".05", ".1", ".2", ".5", "1"])
    axes[1, 2].set(ylim=(0.5, 0.8))
    axes[1, 2].axhline(np.exp(-0.5), color=GREY, linewidth=0.7)
    axes[1, 2].text(100, np.exp(-0.5) - 0.004, "$e^{-1/2}$", fontsize=7.5, color=INK, ha="right", va="top")
    _key(axes[1, 2])
    for ax, letter in zip(axes.flat, "abcdef", strict=True):
        panel_letter(ax, letter)
    return figure


def _model(ax: Axes, quantity: str, curves: Curves, points: Points, colour: str) -> None:
    for kind, style in LINES.items():
        depths, values = curves[quantity, kind]
        exact = curves[quantity, "exact"][1]
        # A printed curve that is the exact one would only hide it.
        if kind == "exact" or not np.allclose(values, exact):
            ax.plot(
                depths, values, style, color=colour, linewidth=1.1, alpha=1 if kind != "printed" else 0.75
            )
    for law, marker, fill, shift in (("gates", "o", colour, 0.97), ("nets", "s", "white", 1.03)):
        depths, samples = points[quantity, law]
        for depth, each in zip(depths, samples, strict=True):
            mean, low, high = (float(number) for number in mean_interval(np.asarray(each)))
            if low <= 0:
                continue  # not to be told from 0, which has no place on a logarithmic axis
            bar = [[mean - low], [high - mean]]
            ax.errorbar(
                depth * shift,
                mean,
                bar,
                fmt=marker,
                color=colour,
                markersize=4,
                markerfacecolor=fill,
                markeredgewidth=0.9,
                elinewidth=0.9,
                capsize=1.8,
                zorder=3,
            )


def _key(ax: Axes) -> None:
    handles = [
        Line2D([], [], color=INK, linestyle="-", label="exact theory"),
        Line2D([], [], color=INK, linestyle="--", label="as printed"),
        Line2D([], [], color=INK, linestyle=":", label="corrected for real nets"),
        Line2D([], [], color=INK, marker="o", markersize=4, linestyle="", label="independent gates"),
        Line2D(
            [],
            [],
            color=INK,
            marker="s",
            markersize=4,
            markerfacecolor="white",
            linestyle="",
            label="real nets",
        ),
    ]
    ax.legend(handles=handles, loc="upper right", fontsize=6.8)


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
    axes[0, 0].plot(t, 2 * np.sqrt(t), color=INK, linewidth=0.8, linestyle="--")
    axes[0, 0].plot(t, -2 * np.sqrt(t), color=INK, linewidth=0.8, linestyle="--")
    axes[0, 0].set(
        xlabel="fraction $t$ of active neurons", ylabel="gradient", title=r"gradients, $\pm2\sqrt{t}$"
    )
    measured, expected = covariances
    grid = np.linspace(0, 1, len(measured) + 1)[1:]
    for row in range(0, len(grid), 2):
        axes[0, 1].plot(grid, expected[row], color=GREY, linewidth=0.9)
        axes[0, 1].plot(grid, measured[row], "o", color=BLUE, markersize=2.6)
    axes[0, 1].set(xlabel="$t$", ylabel="$E[f'(s)\\, f'(t)]$", title=r"covariance and $\min(s, t)$")
    _spectrum(axes[0, 2], spectrum)
    found, limit = eigenfunctions
    for one, other in zip(found, limit, strict=True):
        axes[1, 0].plot(t, other, color=GREY, linewidth=0.9)
        axes[1, 0].plot(t, one, color=BLUE, linewidth=1.0, linestyle="--")
    axes[1, 0].set(xlabel="$t$", ylabel="$e_k(t)$", title="eigenfunctions")
    for ax, (spread, (x, gradients)) in zip(axes[1, 1:], in_x.items(), strict=False):
        ax.plot(x, gradients, color=RED, linewidth=0.8)
        ax.set(xlabel="input $x$", ylabel="$df/dx$", title=f"one net, bias std {spread:.3g}")
    for ax, letter in zip(axes.flat, "abcdef", strict=True):
        panel_letter(ax, letter)
    return figure


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
