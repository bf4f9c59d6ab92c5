"""Losses of pairs over training and their differences, and Table 2's numbers beside ours."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import PercentFormatter

from skiplab.figures.curves import learning_curves, median_interval
from skiplab.figures.paired_dots import side_by_side
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.table_2.evidence import PRINTED, divergence, ends
from skiplab.studies.yu2019.table_2.trials import FIRST, SECOND, train_pairs
from skiplab.studies.yu2019.transferred import shade_of

MODELS = {SECOND: "plain", FIRST: "residual"}
LEAST = 2.0**-24  # half of a float32's last bit at 1, as which a difference of exactly 0 is drawn


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
    groups = {
        str(depth): {name: ends(results, kind, depth, quantity) for kind, name in MODELS.items()}
        for depth in depths
    }
    printed = {
        str(depth): {name: PRINTED[kind][depth][which] for kind, name in MODELS.items()}
        for depth in depths
        if depth in PRINTED[FIRST]
    }
    side_by_side(ax, groups, printed)
    ax.set(xlabel="depth (layers with weights)")
