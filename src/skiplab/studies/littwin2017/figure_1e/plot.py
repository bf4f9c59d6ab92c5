"""‖w‖ over the iterations, as in the paper, and what moves it."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, key_above, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.littwin2017.figure_1e.evidence import HEADLINE, further, norms, shares
from skiplab.studies.littwin2017.toy_evidence import stages
from skiplab.studies.littwin2017.toys import train

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
FORCE, NOISE = "#332288", "#999933"
PUSH, STEPS = r"$-2\mu\, w^\top g$", r"$\mu^2\Vert g\Vert^2$"


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
            ax.plot(epochs * steps, mean, color=colour, label=stage.replace(", ", ",\n"))
            ax.plot(epochs[-1] * steps, mean[-1], "o", color=colour, markersize=3)
    ax.axhline(1.0, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.set_yscale("log")
    ax.set_yticks([1, 1.5, 2, 3, 4, 5], ["1", "1.5", "2", "3", "4", "5"])
    ax.minorticks_off()
    ax.set(xlabel="iteration", ylabel=r"$\Vert w\Vert$ / $\Vert w\Vert$ before training")
    ax.legend(loc="upper right", fontsize=6, handlelength=1.2, borderaxespad=0.1)


def _parts(ax: Axes, results: Results) -> None:
    """Force and noise summed up to an epoch, in the deciding condition."""
    start = norms(results, HEADLINE)[1][:, :1] ** 2
    for quantity, colour, label in (
        ("force", FORCE, PUSH),
        ("noise", NOISE, STEPS),
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
    """Sums of both parts after the strip's epochs, and of the deciding networks at the end; dots are networks."""
    short, last = results.settings.strip_epochs, results.settings.epochs
    rows = [(words, stage, short) for words, stage in ((HEADLINE, HEADLINE), *further(results))]
    if last > short:
        rows[0] = (f"{HEADLINE}, {short} epochs", HEADLINE, short)
        rows.insert(1, (f"{HEADLINE}, {last} epochs", HEADLINE, last))
    for place, (_, stage, until) in enumerate(rows):
        for label, quantity, colour, shift in ((PUSH, "force", FORCE, -0.15), (STEPS, "noise", NOISE, 0.15)):
            kept = len(norms(results, stage)[1])
            values = shares(results, stage, quantity, until=until) if kept else np.empty(0)
            at = np.full(len(values), place + shift)
            own = "_" if place else label
            ax.plot(values, at, "o", color=colour, markersize=2.6, alpha=0.6, label=own)
    ax.axvline(0.0, color="#888888", linewidth=0.7, linestyle=(0, (3, 3)))
    ax.set_xscale("symlog", linthresh=1)
    ax.margins(x=0.12)
    ax.set_xticks([-10, -1, 0, 1, 10], ["−10", "−1", "0", "1", "10"])
    ax.minorticks_off()
    ax.grid(False, axis="y")
    ax.set_yticks(range(len(rows)), [words.replace(", ", ",\n") for words, _, _ in rows], fontsize=6.5)
    ax.invert_yaxis()
    ax.set(xlabel=r"added to $\Vert w\Vert^2$ (its start = 1)")
    key_above(ax)
