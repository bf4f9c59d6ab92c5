"""Differences within pairs: before training by quantity, during training by step."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.transferred import MATCHING, USUAL, shade_of
from skiplab.studies.yu2019.transform.evidence import EQUAL
from skiplab.studies.yu2019.transform.trials import CONNECTED, CONVOLUTIONAL, same_function, same_steps

QUANTITIES = {
    "block": "blocks",
    "output": "logits",
    "gradient": "gradients",
    "cost gradient": "cost gradients",
}
LOOKS = {MATCHING: ("#009E73", r"$\|T^{-1}(p)\|^2$"), USUAL: ("#CC79A7", r"$\|p\|^2$, usual")}
MARKERS = {CONVOLUTIONAL: "o", CONNECTED: "^"}
LEAST = 1e-17  # where a difference of exactly 0 is drawn


def draw(results: Results) -> Figure:
    """Draw both panels."""
    figure, axes = new_figure(2, width=PAGE_WIDTH, height=3.1)
    _before(axes[0, 0], results)
    _training(axes[0, 1], results)
    for ax, letter in zip(axes[0], "ab", strict=True):
        panel_letter(ax, letter)
    return figure


def _before(ax: Axes, results: Results) -> None:
    depths = sorted(results.settings.depths)
    lanes = [(family, depth) for family in MARKERS for depth in depths]
    for place, quantity in enumerate(QUANTITIES):
        for lane, (family, depth) in enumerate(lanes):
            rows = results.rows(same_function, quantity=quantity, family=family, depth=depth)
            worst = rows.groupby(["seed", "init"])["value"].max().to_numpy()
            x = place + 0.8 * ((lane + 0.5) / len(lanes) - 0.5)
            shade = shade_of(depth, depths)
            own: dict[str, Any] = {
                "color": shade,
                "markersize": 3,
                "alpha": 0.7,
                "linestyle": "",
                "markeredgewidth": 0,
            }
            ax.plot(np.full(len(worst), x), worst.clip(LEAST), marker=MARKERS[family], **own)
    ax.axhline(1e-12, color="#777777", linestyle=(0, (4, 3)), linewidth=0.9)
    ax.set_yscale("log")
    ax.set_ylim(LEAST, 1e-11)
    ax.set_xticks(range(len(QUANTITIES)), list(QUANTITIES.values()))
    ax.grid(False, axis="x")
    ax.set(ylabel="largest relative difference", title="before training")
    keys = [
        Line2D([], [], marker=mark, color="#444444", linestyle="", label=name)
        for name, mark in MARKERS.items()
    ]
    keys += [
        Line2D([], [], marker="s", color=shade_of(depth, depths), linestyle="", label=f"{depth} layers")
        for depth in depths
    ]
    ax.legend(handles=keys, loc="lower right", ncols=2, fontsize=7)


def _training(ax: Axes, results: Results) -> None:
    for decay, (colour, _) in LOOKS.items():
        for family, mark in MARKERS.items():
            for depth in results.settings.depths:
                rows = results.rows(
                    same_steps, decay=decay, quantity="parameters", family=family, depth=depth
                )
                rows = rows[rows["step"] > 0]  # before training there is no difference at all
                runs = rows.pivot_table(index="step", columns="seed", values="value").clip(LEAST)
                own: dict[str, Any] = {"color": colour, "markersize": 2.5, "linewidth": 0.9, "alpha": 0.75}
                ax.plot(runs.index, runs.median(axis=1), marker=mark, **own)
                ax.fill_between(
                    runs.index, runs.min(axis=1), runs.max(axis=1), color=colour, alpha=0.15, lw=0
                )
    ax.axhline(EQUAL, color="#777777", linestyle=(0, (4, 3)), linewidth=0.9)
    ax.set_yscale("log")
    ax.set(xlabel="step", ylabel="relative distance of parameters", title="training on the same batches")
    keys = [Line2D([], [], color=colour, label=f"penalty {words}") for colour, words in LOOKS.values()]
    ax.legend(handles=keys, loc="center right", bbox_to_anchor=(1, 0.36))
    ax.set_xlim(0)
