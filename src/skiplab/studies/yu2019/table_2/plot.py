"""Losses of pairs over training and their differences, and Table 2's numbers beside ours."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import learning_curves, mean_interval, median_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.table_2.evidence import PRINTED, divergence, ends
from skiplab.studies.yu2019.table_2.trials import FIRST, SECOND, train_pairs
from skiplab.studies.yu2019.transferred import shade_of

MODELS = {SECOND: "plain", FIRST: "residual"}
LEAST = 2.0**-24  # half of a float32's last bit at 1, as which a difference of exactly 0 is drawn
PRINT: dict[str, Any] = {
    "marker": "*",
    "color": "#222222",
    "markersize": 6,
    "linestyle": "",
    "markeredgewidth": 0,
}


def draw(results: Results) -> Figure:
    """Draw figure 6's two panels and, below, the ends of training by depth."""
    figure, axes = new_figure(2, rows=2, width=PAGE_WIDTH, height=5.2)
    _losses(axes[0, 0], results)
    _differences(axes[0, 1], results)
    _ends(axes[1, 0], results, "epoch_loss", 0)
    axes[1, 0].set(ylabel="training loss $L$", title="end of training: loss")
    _ends(axes[1, 1], results, "test_error", 1)
    axes[1, 1].set(ylabel="test error", title="end of training: error")
    axes[1, 1].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        panel_letter(ax, letter)
    return figure


def _by_epoch(results: Results, kind: str, depth: int) -> np.ndarray:
    """Losses (pairs, epochs) of the whole training."""
    rows = results.rows(train_pairs, stage="training", depth=depth, kind=kind, quantity="epoch_loss")
    return rows.pivot_table(index="seed", columns="step", values="value").to_numpy()


def _losses(ax: Axes, results: Results) -> None:
    depth = min(results.settings.depths)
    curves = {name: _by_epoch(results, kind, depth) for kind, name in MODELS.items()}
    epochs = np.arange(1, results.settings.epochs + 1)
    learning_curves(ax, epochs, curves, labels="none")
    # The pair's curves lie on each other: a dashed one above lets both be seen.
    ax.get_lines()[1].set_linestyle((0, (3, 2)))
    ax.legend()
    if np.max(curves["residual"]) > 3 * np.min(curves["residual"]):
        ax.set_yscale("log")  # the paper's; over less than a factor of 3 its ticks would be hard to read
    ax.set(xlabel="epoch", ylabel="training loss $L$", title=f"{depth} layers, float32")


def _differences(ax: Axes, results: Results) -> None:
    depths = sorted(results.settings.depths)
    for depth in depths:
        colour = shade_of(depth, depths)
        double = divergence(results, depth).drop(index=0)
        _band(ax, double.index.to_numpy(), double.to_numpy().T, colour, "-")
        plain, residual = (_by_epoch(results, kind, depth) for kind in MODELS)
        steps = results.rows(train_pairs, stage="training", depth=depth, quantity="epoch_loss")["step"]
        _band(ax, np.unique(steps), np.abs(plain - residual).clip(LEAST), colour, (0, (3, 2)))
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set(xlabel="iteration", ylabel=r"$|\Delta L|$ within pairs", title="rounding drives pairs apart")
    keys = [Line2D([], [], color=shade_of(depth, depths), label=f"{depth} layers") for depth in depths]
    keys += [
        Line2D([], [], color="#444444", linestyle=style, label=words)
        for words, style in {"float64": "-", "float32": (0, (3, 2))}.items()
    ]
    ax.legend(handles=keys, fontsize=7)


def _band(ax: Axes, x: np.ndarray, runs: np.ndarray, colour: str, style: object) -> None:
    middle, low, high = median_interval(runs)
    ax.fill_between(x, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.plot(x, middle, color=colour, linestyle=style, linewidth=1.1)


def _ends(ax: Axes, results: Results, quantity: str, which: int) -> None:
    """Pairs as lines between two dots, means with intervals beside them, the paper's numbers as stars."""
    depths = sorted(results.settings.depths)
    for place, depth in enumerate(depths):
        both = [ends(results, kind, depth, quantity) for kind in MODELS]
        for pair in zip(*both, strict=True):
            ax.plot([place - 0.15, place + 0.15], pair, color="#BBBBBB", linewidth=0.6, zorder=1)
        for side, (kind, values) in zip((-1, 1), zip(MODELS, both, strict=True), strict=True):
            colour = colour_of(MODELS[kind])
            ax.scatter(
                [place + 0.15 * side] * len(values), values, s=8, color=colour, alpha=0.6, linewidths=0
            )
            mean, low, high = (float(each) for each in mean_interval(values))
            bars = [[mean - low], [high - mean]]
            ax.errorbar(place + 0.25 * side, mean, bars, fmt="o", color=colour, markersize=3, capsize=2)
            if depth in PRINTED[kind]:
                ax.plot(place + 0.35 * side, PRINTED[kind][depth][which], **PRINT)
    ax.set_xticks(range(len(depths)), [str(depth) for depth in depths])
    ax.set(xlabel="depth (layers with weights)", xlim=(-0.6, len(depths) - 0.4))
    ax.grid(False, axis="x")
    keys = [
        Line2D([], [], marker="o", linestyle="", color=colour_of(name), label=label_of(name))
        for name in MODELS.values()
    ]
    if any(depth in PRINTED[FIRST] for depth in depths):
        keys.append(Line2D([], [], label="paper", **PRINT))
    ax.legend(handles=keys, fontsize=7)
