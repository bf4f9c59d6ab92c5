"""Effective depth over training, shares by length before and after it, scales, and λ against the first layer's."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.littwin2017.path_measures import SHARE
from skiplab.studies.littwin2017.paths.evidence import depths, scaled_depths
from skiplab.studies.littwin2017.paths.networks import (
    FROZEN,
    SCALES,
    SMALL,
    WITH,
    WITHOUT,
    Group,
    resnet_groups,
    toy_group,
)

COLOURS = {WITH: "#0072B2", WITHOUT: "#E69F00", SMALL: "#D55E00", FROZEN: "#56B4E9"}
IMAGES = ("#009E73", "#882255")


def draw(results: Results) -> Figure:
    """Draw four panels, with ResNets beside the small networks where there are any."""
    figure, axes = new_figure(2, 2, width=PAGE_WIDTH, height=5.2)
    over, shares, scales, ratio = axes.flat
    groups = [toy_group(results, name) for name in COLOURS]
    looks = dict(COLOURS)
    for group, colour in zip(resnet_groups(results), IMAGES, strict=False):
        groups.append(group)
        looks[group.name] = colour
    for group in groups:
        _over_training(over, results, group, looks[group.name])
    over.axhline(0.5, color="#777777", linestyle=":", linewidth=0.9)
    over.set_xscale("symlog", linthresh=1, linscale=0.4)
    over.set_xlim(-0.15, None)
    last = int(max(depths(results, group)[0][-1] for group in groups))
    ticks = [tick for tick in (0, 1, 2, 5, 10, 20, 50, 100, 200) if tick <= last]
    over.set_xticks(ticks, [str(tick) for tick in ticks])
    over.minorticks_off()
    over.set(xlabel="epoch", ylabel="effective depth / p", ylim=(0, max(0.75, over.get_ylim()[1])))
    over.legend(fontsize=6.5, loc="upper right")
    _shares(shares, results)
    _scales(scales, results)
    _ratios(ratio, results)
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        panel_letter(ax, letter)
    return figure


def _over_training(ax: Axes, results: Results, group: Group, colour: str) -> None:
    epochs, found = depths(results, group)
    mean, low, high = mean_interval(found)
    ax.plot(epochs, mean, color=colour, marker="o", markersize=2.5, label=group.name)
    ax.fill_between(epochs, low, high, color=colour, alpha=0.18, linewidth=0)


def _shares(ax: Axes, results: Results) -> None:
    for name in (WITH, WITHOUT):
        group = toy_group(results, name)
        epochs, _ = depths(results, group)
        for epoch, line in ((epochs[0], (0, (2, 1.5))), (epochs[-1], "-")):
            found = group.by_length(results, SHARE, int(epoch))
            mean, low, high = mean_interval(found)
            lengths = np.arange(len(mean))
            ax.plot(lengths, mean, color=COLOURS[name], linestyle=line, label=f"{name}, epoch {epoch}")
            ax.fill_between(lengths, low, high, color=COLOURS[name], alpha=0.15, linewidth=0)
    ax.set(xlabel="path length (blocks)", ylabel="share of the output", ylim=(0, None))
    ax.legend(fontsize=6.5)


def _scales(ax: Axes, results: Results) -> None:
    cases = (
        ("all weights, no BN", WITHOUT, [scaled_depths(results, "none", gain=s) for s in SCALES]),
        ("λ of skipped layers, BN", WITH, [scaled_depths(results, "after", scale=s) for s in SCALES]),
        (
            "all λ and shifts N(0, 1), BN",
            FROZEN,
            [scaled_depths(results, "after", every_scale=s) for s in SCALES],
        ),
    )
    for words, name, several in cases:
        mean, low, high = mean_interval(np.stack(several, 1))
        ax.plot(SCALES, mean, color=COLOURS[name], marker="o", markersize=3, label=words)
        ax.fill_between(SCALES, low, high, color=COLOURS[name], alpha=0.18, linewidth=0)
    ax.set_xscale("log")
    ax.set_xticks(SCALES, [f"{scale:g}" for scale in SCALES])
    ax.minorticks_off()
    ax.set(xlabel="multiplied by", ylabel="effective depth / p", ylim=(0, None), title="before training")
    ax.legend(fontsize=6.5)


def _ratios(ax: Axes, results: Results) -> None:
    group = toy_group(results, WITH)
    rows = group.rows(results, "scale")
    wide = rows.pivot_table(index=["seed", "epoch"], columns="layer", values="value", observed=True)
    first, skipped = wide[1].unstack("epoch"), wide.drop(columns=1).mean(axis=1).unstack("epoch")
    for values, colour, words in (
        (skipped, "#0072B2", "skipped layers"),
        (first, "#444444", "first layer"),
        (skipped / first, "#CC79A7", "skipped / first"),
    ):
        mean, low, high = mean_interval(values.to_numpy())
        ax.plot(values.columns, mean, color=colour, label=words)
        ax.fill_between(values.columns, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.set(xlabel="epoch", ylabel=r"mean $|\lambda|$", title=WITH, ylim=(0, None))
    ax.legend(fontsize=6.5)
