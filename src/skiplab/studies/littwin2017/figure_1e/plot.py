"""‖w‖ over the iterations, as in the paper, and what moves it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.littwin2017.figure_1e.evidence import HEADLINE, norms, shares
from skiplab.studies.littwin2017.toy_evidence import stages
from skiplab.studies.littwin2017.toys import train

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
FORCE, NOISE = "#332288", "#999933"


def draw(results: Results) -> Figure:
    """Draw figure 1e, the parts of its growth over training, and their sums in every condition."""
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.8)
    _norms(axes[0, 0], results)
    _parts(axes[0, 1], results)
    _sums(axes[0, 2], results)
    for ax, letter in zip(axes.flat, "abc", strict=True):
        panel_letter(ax, letter)
    return figure


def _norms(ax: Axes, results: Results) -> None:
    settings = results.settings
    steps = -(-settings.samples // settings.batch_size)
    for stage, colour in zip(stages(results), COLOURS, strict=False):
        epochs, found = norms(results, stage)
        if len(found):
            mean, low, high = mean_interval(found / found[:, :1])
            ax.fill_between(epochs * steps, low, high, color=colour, alpha=0.15, linewidth=0)
            ax.plot(epochs * steps, mean, color=colour, label=stage)
    ax.axhline(1.0, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.set(xlabel="iteration", ylabel=r"$\Vert w\Vert$ / $\Vert w\Vert$ before training")
    ax.legend(fontsize=6.5)


def _parts(ax: Axes, results: Results) -> None:
    """Force and noise summed up to an epoch, in the deciding condition."""
    start = norms(results, HEADLINE)[1][:, :1] ** 2
    for quantity, colour, label in (
        ("force", FORCE, r"$-2\mu\, w^\top g$"),
        ("noise", NOISE, r"$\mu^2\Vert g\Vert^2$"),
    ):
        rows = results.rows(train, stage=HEADLINE, quantity=quantity, diverged=False)
        wide = rows.pivot_table(index="seed", columns="epoch", values="value", observed=True)
        mean, low, high = mean_interval(wide.to_numpy().cumsum(1) / start)
        ax.fill_between(wide.columns, low, high, color=colour, alpha=0.2, linewidth=0)
        ax.plot(wide.columns, mean, color=colour, label=label)
    ax.axhline(0.0, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.set(xlabel="epoch", ylabel=r"added to $\Vert w\Vert^2$ (its start = 1)", title=HEADLINE)
    ax.legend(fontsize=7, loc="center right")


def _sums(ax: Axes, results: Results) -> None:
    names = stages(results)
    for place, stage in enumerate(names):
        for quantity, colour, shift in (("force", FORCE, -0.15), ("noise", NOISE, 0.15)):
            values = shares(results, stage, quantity) if len(norms(results, stage)[1]) else np.empty(0)
            ax.plot(values, np.full(len(values), place + shift), "o", color=colour, markersize=2.6, alpha=0.6)
    ax.axvline(0.0, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.set_xscale("symlog", linthresh=1)
    ax.set_xticks([-10, -1, 0, 1, 10], ["−10", "−1", "0", "1", "10"])
    ax.grid(False, axis="y")
    ax.set_yticks(range(len(names)), names, fontsize=6.5)
    ax.invert_yaxis()
    ax.set(xlabel=r"added to $\Vert w\Vert^2$ (start = 1)", title="to the end")
