"""The autocorrelation of gradients along a line, by depth, beside that of noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.legend_handler import HandlerTuple
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.balduzzi2017.line_gradients import NOISES, curves
from skiplab.studies.balduzzi2017.line_networks import Network
from skiplab.studies.balduzzi2017.noise_bands import band_at_lag
from skiplab.studies.balduzzi2017.palette import NOISE, network_colour, network_name

_STRIP = 0.28  # how opaque noise's strips are
_DASHES = (0, (3, 1.5))  # of the deepest networks


def draw(results: Results, shown: Mapping[float | None, Sequence[Network]]) -> Figure:
    """Draw a panel per β with its networks, the shallowest first, and one with the noises."""
    panels = {
        beta: {network.depth: curves(results, network).to_numpy() for network in networks}
        for beta, networks in shown.items()
    }
    noises = {kind: curves(results, kind).to_numpy() for kind in NOISES}
    count = results.settings.runs
    bands = {kind: _ends(results, kind, count) for kind in NOISES}
    return autocorrelation_panels(panels, noises, bands, count)


def _ends(results: Results, kind: str, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Both ends of the band of the ACF averaged over ``count`` noise series, lag by lag."""
    lags = range(1, results.settings.lags + 1)
    low, high = np.array([band_at_lag(results, kind, lag, count) for lag in lags]).T
    return low, high


def autocorrelation_panels(
    panels: Mapping[float | None, Mapping[int, np.ndarray]],
    noises: Mapping[str, np.ndarray],
    bands: Mapping[str, tuple[np.ndarray, np.ndarray]],
    count: int,
) -> Figure:
    """Draw the mean ACF with its interval for every depth, a panel per network (its β), and noise in the last.

    ``panels`` maps β to depth → (runs, lags from 0); ``noises`` are (runs, lags from 0), ``bands`` the ends (lags
    from 1) of where the mean of ``count`` noise series lies. The darker a line, the deeper the networks; the
    deepest are dashed.
    """
    figure, axes = new_figure(len(panels) + 1, width=PAGE_WIDTH, height=3.0, sharey=True)
    for ax, letter in zip(axes[0], "abcdefgh", strict=False):
        for kind, (low, high) in bands.items():
            lags = np.arange(1, len(low) + 1)
            ax.fill_between(lags, low, high, color=NOISE[kind], alpha=_STRIP, linewidth=0)
        ax.set_xlabel("lag (grid points)")
        panel_letter(ax, letter)
    # A depth is one shade of each panel's colour; its entry in the legend shows them side by side.
    shown: dict[int, list[Line2D]] = {}
    for ax, (beta, by_depth) in zip(axes[0], panels.items(), strict=False):
        shades = _shades(network_colour(beta), len(by_depth))
        for shade, (depth, runs) in zip(shades, by_depth.items(), strict=True):
            # Curves that are both white lie on each other; dashes let the one below be seen.
            style = _DASHES if depth == max(by_depth) else "-"
            _curve(ax, runs, shade, style=style)
            shown.setdefault(depth, []).append(Line2D([], [], color=shade, linewidth=2.0, linestyle=style))
        ax.set_title(network_name(beta), fontsize=8.5)
    last = axes[0, -1]
    for kind, runs in noises.items():
        _curve(last, runs, NOISE[kind], f"{kind} noise")
    last.set_title("Noise", fontsize=8.5)
    last.legend(fontsize=7, loc="center right", bbox_to_anchor=(1.0, 0.42))
    axes[0, 0].set_ylabel("autocorrelation")
    axes[0, 0].set_ylim(-0.12, 1.04)
    handles: list[Any] = [tuple(lines) for lines in shown.values()]
    handles += [Patch(color=NOISE[kind], alpha=_STRIP, linewidth=0) for kind in bands]
    words = [f"{depth} layers" if place == 0 else str(depth) for place, depth in enumerate(shown)]
    words += [f"mean of {count} {kind} series, 95 %" for kind in bands]
    figure.legend(
        *(handles, words),
        loc="outside lower center",
        ncols=len(words),
        fontsize=7,
        handlelength=2.4,
        columnspacing=1.2,
        handler_map={tuple: HandlerTuple(ndivide=None, pad=0.2)},
    )
    return figure


def _curve(ax: Axes, runs: np.ndarray, colour: str, label: str = "", style: Any = "-") -> None:
    mean, low, high = mean_interval(runs)
    lags = np.arange(runs.shape[1])
    ax.fill_between(lags, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(lags, mean, color=colour, linewidth=1.2, label=label, linestyle=style)


def _shades(colour: str, count: int) -> list[str]:
    """From a light tint of the colour to a dark shade of it, evenly spaced."""
    base = np.array(colors.to_rgb(colour))
    light, dark = 0.45 * base + 0.55, 0.35 * base
    places = np.linspace(0, 1, count)
    # Through the colour itself half way, so that the hue stays what the condition's name stands for.
    mixed = [
        light + 2 * t * (base - light) if t <= 0.5 else base + (2 * t - 1) * (dark - base) for t in places
    ]
    return [colors.to_hex(tuple(rgb)) for rgb in mixed]
