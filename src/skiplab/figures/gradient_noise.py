"""Gradients along a line beside noise: the series, their covariances and their autocorrelations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colors
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skiplab.figures.colours import colour_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

NOISE = {"brown": "#7F6000", "white": "#8A8A8A"}
_NOISE_INK = "#444444"
_BRIGHTEST = 3.0  # covariances in units of the variance; the few beyond are drawn as this


def gradient_panels(columns: Mapping[str, tuple[np.ndarray, np.ndarray]], kinds: Sequence[str]) -> Figure:
    """Draw each column's gradient against its inputs, (x, g), over the image of |(g − ḡ)(g − ḡ)ᵀ| / σ².

    ``kinds`` colours the columns: "plain", "residual" or "noise".
    """
    figure, axes = new_figure(len(columns), rows=2, width=PAGE_WIDTH, height=3.3, grid=False)
    image = None
    for place, ((title, (x, series)), kind) in enumerate(zip(columns.items(), kinds, strict=True)):
        top, bottom = axes[:, place]
        top.plot(x, series, color=_NOISE_INK if kind == "noise" else colour_of(kind), linewidth=0.6)
        top.set_title(title.replace(" ", "\n", 1), fontsize=7.5, loc="center")
        top.set_xlim(x[0], x[-1])
        top.tick_params(labelsize=6.5)
        top.locator_params(nbins=4)
        ends = (x[0], x[-1], x[-1], x[0])
        centred = series - series.mean()
        variance = centred.var()
        # A gradient without variance has no covariance to show; zero is drawn rather than 0/0.
        covariance = np.abs(np.outer(centred, centred)) / (variance if variance > 0 else 1.0)
        image = bottom.imshow(
            covariance, cmap="magma", vmin=0, vmax=_BRIGHTEST, extent=ends, interpolation="nearest"
        )
        bottom.set_xticks([x[0], 0, x[-1]])
        bottom.set_yticks([x[0], 0, x[-1]] if place == 0 else [])
        bottom.tick_params(labelsize=6.5)
        bottom.set_xlabel("input", fontsize=7.5)
        panel_letter(top, "abcdefgh"[place])
    axes[0, 0].set_ylabel("gradient", fontsize=7.5)
    axes[1, 0].set_ylabel("input", fontsize=7.5)
    if image is not None:
        bar = figure.colorbar(image, ax=list(axes[1]), fraction=0.015, pad=0.01, extend="max")
        bar.ax.tick_params(labelsize=6.5)
        bar.set_label("|covariance| / σ²", fontsize=7)
    return figure


def autocorrelation_panels(
    panels: Mapping[tuple[str, str], Mapping[int, np.ndarray]],
    noises: Mapping[str, np.ndarray],
    bands: Mapping[str, tuple[np.ndarray, np.ndarray]],
) -> Figure:
    """Draw the mean ACF with its interval for every depth, a panel a kind of network, and noise in the last.

    ``panels`` maps (condition, title) to depth → (runs, lags from 0); ``noises`` are (runs, lags from 0), ``bands``
    the ends (lags from 1) of where noise lies. The darker a line, the deeper the networks.
    """
    figure, axes = new_figure(len(panels) + 1, width=PAGE_WIDTH, height=2.8, sharey=True)
    for ax, letter in zip(axes[0], "abcdefgh", strict=False):
        for kind, (low, high) in bands.items():
            ax.fill_between(np.arange(1, len(low) + 1), low, high, color=NOISE[kind], alpha=0.28, linewidth=0)
        ax.set_xlabel("lag")
        panel_letter(ax, letter)
    for ax, ((condition, title), by_depth) in zip(axes[0], panels.items(), strict=False):
        shades = _shades(colour_of(condition), len(by_depth))
        for shade, runs in zip(shades, by_depth.values(), strict=True):
            _curve(ax, runs, shade)
        ax.set_title(title, fontsize=8.5)
    last = axes[0, -1]
    for kind, runs in noises.items():
        _curve(last, runs, NOISE[kind], f"{kind} noise")
    last.set_title("Noise", fontsize=8.5)
    last.legend(fontsize=6.5, loc="center right")
    axes[0, 0].set_ylabel("autocorrelation")
    axes[0, 0].set_ylim(-0.12, 1.04)
    depths = list(dict.fromkeys(depth for by_depth in panels.values() for depth in by_depth))
    greys = [Line2D([], [], color=shade) for shade in _shades("#888888", len(depths))]
    words = [f"{depth} layers" for depth in depths]
    figure.legend(greys, words, loc="outside lower center", ncols=len(words), fontsize=7.5)
    return figure


def _curve(ax: Axes, runs: np.ndarray, colour: str, label: str = "") -> None:
    mean, low, high = mean_interval(runs)
    lags = np.arange(runs.shape[1])
    ax.fill_between(lags, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(lags, mean, color=colour, linewidth=1.2, label=label)


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
