"""Figure 9's two panels: losses of deep networks over the epochs, and the gap at every depth."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.paired_dots import STAR
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.figure_9.evidence import MEANS, PEAK, curves, gap
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, is_papers
from skiplab.studies.yu2019.transferred import shade_of

MODELS = (PLAIN, RESIDUAL)
STYLES = ("-", (0, (1.2, 1.2)), (0, (4, 2)))


def draw(results: Results) -> Figure:
    """Draw losses of the two deepest kinds of network, and the gap of all."""
    figure, axes = new_figure(2, width=PAGE_WIDTH, height=3.0)
    _losses(axes[0, 0], results)
    _gaps(axes[0, 1], results)
    for ax, letter in zip(axes.flat, "ab", strict=True):
        panel_letter(ax, letter)
    return figure


def _losses(ax: Axes, results: Results) -> None:
    settings = results.settings
    depths = sorted(settings.depths)[-2:]  # the paper's 32 and 44, or the two largest that are there
    keys = [Line2D([], [], color=colour_of(model), label=label_of(model)) for model in MODELS]
    for depth, style in zip(depths, STYLES, strict=False):
        for model in MODELS:
            _line(ax, curves(results, model, depth), colour_of(model), style)
        keys.append(Line2D([], [], color="#444444", linestyle=style, label=f"{depth} layers"))
    slow = [depth for depth in depths if len(curves(results, PLAIN, depth, "slow_start"))]
    for depth in slow:
        _line(ax, curves(results, PLAIN, depth, "slow_start"), "#7A3500", STYLES[2])
        words = f"Plain, {depth} layers at {settings.slow_rate:g}"
        keys.append(Line2D([], [], color="#7A3500", linestyle=STYLES[2], label=words))
    if is_papers(settings):
        for means in MEANS.values():
            for number in (means[depth] for depth in depths if depth in means):
                ax.plot(1.03 * settings.epochs, number, **STAR)
        keys.append(Line2D([], [], label="paper", **STAR))
    everything = np.concatenate(
        [curves(results, model, depth).ravel() for depth in depths for model in MODELS]
    )
    if np.nanmax(everything) > 3 * np.nanmin(everything):
        ax.set_yscale("log")
    ax.set(xlabel="epoch", ylabel="training loss $L$", title="loss")
    ax.legend(handles=keys, fontsize=7)


def _gaps(ax: Axes, results: Results) -> None:
    depths = sorted(results.settings.depths)
    for depth in depths:
        _line(ax, gap(results, depth), shade_of(depth, depths), "-", f"{depth} layers")
    if results.settings.epochs > PEAK:
        ax.axvline(PEAK, color="#888888", linewidth=0.7, linestyle=(0, (2, 2)), zorder=0)
        ax.set_xscale("log")
    ax.axhline(0, color="#888888", linewidth=0.7, zorder=0)
    ax.set(xlabel="epoch", ylabel=r"$L$ of plain less residual", title="gap between pairs")
    ax.legend(fontsize=7)


def _line(ax: Axes, runs: np.ndarray, colour: str, style: object, label: str = "") -> None:
    """A mean over networks with its 95 % interval."""
    epochs = np.arange(1, runs.shape[1] + 1)
    mean, low, high = mean_interval(runs)
    ax.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(epochs, mean, color=colour, linestyle=style, label=label or None, linewidth=1.2)
