"""Changes under noise by layer and by size, and cushion, change, error and loss against the dose of identity."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, PercentFormatter

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.measured import NOISE, TENTH
from skiplab.studies.yu2019.noise.evidence import dosed, means_over_layers
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, values

MODELS = (PLAIN, RESIDUAL)
KEPT = (0, (3, 2))
DOSE = "#332288"
SHUFFLED = "#117733"
TICKS = (0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 0.06, 0.07)
BY_LAYER = {"absolute": "noise_absolute_0.01", "relative": "noise_relative_0.1"}


def draw(results: Results) -> Figure:
    """Draw pairs above, doses below."""
    rows = 2 if results.settings.dosed else 1
    figure, axes = new_figure(3, rows=rows, width=PAGE_WIDTH, height=2.4 * rows)
    for ax, (kind, quantity) in zip(axes[0], BY_LAYER.items(), strict=False):
        _by_layer(ax, results, kind, quantity)
    _by_size(axes[0, 2], results)
    if results.settings.dosed:
        _doses(axes[1], results)
    for ax, letter in zip(axes.flat, "abcdef", strict=False):
        panel_letter(ax, letter)
    return figure


def _doses(axes: Sequence[Axes], results: Results) -> None:
    depth = results.settings.dose_depth
    own = {
        "cushion, tenth layer": ("cushion_kept", min(TENTH, depth), False),
        r"$\|\Delta y\|/\|y\|$, deviation .01": ("noise_absolute_0.01", -1, True),
        "test error": ("test_error", 0, False),
    }
    for ax, (words, (quantity, layer, is_log)) in zip(axes, own.items(), strict=True):
        _by_dose(ax, results, quantity, layer, is_log)
        ax.set(xlabel="dose of identity at the start", ylabel=words)
    axes[2].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))


def _by_layer(ax: Axes, results: Results, kind: str, quantity: str) -> None:
    depth = results.settings.first_depth
    layers = np.arange(1, depth + 1)
    lines: list[tuple[str, str, Any]] = [(PLAIN, quantity, "-"), (RESIDUAL, quantity, "-")]
    if kind == "relative":
        lines.append((RESIDUAL, quantity.replace("relative", "relative_kept"), KEPT))
    for model, name, style in lines:
        logs = np.stack([values(results, model, depth, name, layer=int(layer)) for layer in layers], axis=1)
        mean, low, high = (np.exp(each) for each in mean_interval(logs))
        ax.fill_between(layers, low, high, color=colour_of(model), alpha=0.15, linewidth=0)
        ax.plot(layers, mean, color=colour_of(model), linestyle=style, linewidth=1.1)
    ax.set_yscale("log")
    bottom, top = ax.get_ylim()
    shown = [tick for tick in TICKS if bottom <= tick <= top]
    if len(shown) > 2:  # else the axis keeps its own
        ax.set_yticks(shown, [f"{tick:g}" for tick in shown])
        ax.minorticks_off()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    size = quantity.rpartition("_")[2]
    title = f"deviation {size}" if kind == "absolute" else rf"{size} of $\|A\|_F$"
    ax.set(xlabel=r"layer with noise $\ell$", ylabel=r"change of outputs $\|\Delta y\|/\|y\|$", title=title)
    keys = [Line2D([], [], color=colour_of(model), label=label_of(model)) for model in MODELS]
    if kind == "relative":
        keys.append(Line2D([], [], color=colour_of(RESIDUAL), linestyle=KEPT, label="1 in the norm"))
    ax.legend(handles=keys, fontsize=7)


def _by_size(ax: Axes, results: Results) -> None:
    """By how much less outputs of residual networks change, pair by pair."""
    rows = [
        (kind, size)
        for kind in ("absolute", "relative", "relative_kept")
        for size in NOISE[kind.partition("_")[0]]
    ]
    places = [
        place + 1.6 * (place // 3) for place in range(len(rows))
    ]  # a gap between kinds, for their names
    for place, (kind, size) in zip(places, rows, strict=True):
        plain, residual = means_over_layers(results, f"{kind}_{size:g}")
        ratio = plain - residual
        ax.plot(np.exp(ratio), np.full(len(ratio), place), "o", color="#888888", markersize=2.5, alpha=0.6)
        mean, low, high = (float(np.exp(each)) for each in mean_interval(ratio))
        ax.errorbar(
            mean, place, xerr=[[mean - low], [high - mean]], fmt="D", color="#222222", markersize=3, capsize=2
        )
    ax.axvline(1, color="#777777", linestyle=KEPT, linewidth=0.9)
    ax.set_yticks(places, [f"{size:g}" for _, size in rows])
    for group, words in enumerate(("deviation", r"of $\|A\|_F$, without the 1", r"of $\|A\|_F$, with the 1")):
        above = places[3 * group] - 0.9
        ax.annotate(
            words, (0.99, above), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=7
        )
        if group:
            ax.axhline(above - 0.7, color="#BBBBBB", linewidth=0.6)
    ax.set_ylim(places[-1] + 0.6, -1.6)
    ax.grid(False, axis="y")
    ax.set(
        xlabel="change, plain / residual",
        ylabel="size of the noise",
        title=f"mean over layers 2 to {results.settings.first_depth - 1}",
    )


def _by_dose(ax: Axes, results: Results, quantity: str, layer: int, is_log: bool) -> None:
    doses = results.settings.doses
    for place, share in enumerate((*doses, max(doses))):
        is_shuffled = place == len(doses)
        sample = dosed(results, share, quantity, shuffled=is_shuffled, layer=layer)
        sample = np.exp(sample) if is_log else sample
        colour, at = (SHUFFLED, share + 0.06) if is_shuffled else (DOSE, share)
        ax.plot(
            np.full(len(sample), at), sample, "o", color=colour, markersize=2.5, alpha=0.5, markeredgewidth=0
        )
        mean, low, high = (float(each) for each in mean_interval(sample))
        ax.errorbar(
            at + 0.02, mean, [[mean - low], [high - mean]], fmt="D", color=colour, markersize=3, capsize=2
        )
    keys = [
        Line2D([], [], color=DOSE, marker="D", linestyle="", markersize=3, label="ID entries"),
        Line2D([], [], color=SHUFFLED, marker="D", linestyle="", markersize=3, label="shuffled"),
    ]
    ax.set_xticks(doses, [f"{share:g}" for share in doses])
    ax.legend(handles=keys, fontsize=7)
