"""Deviations, second moments and what layers add to them, effective depth by the number of blocks."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.colours import in_order
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.littwin2017.bn_start.evidence import LAST, USUAL, depths, half_gains, harmonic, sizes
from skiplab.studies.littwin2017.bn_start.trials import (
    BEFORE,
    BY_UNIT,
    DEVIATION,
    MOMENT,
    ONE,
    PRINTED,
    streams,
)
from skiplab.studies.littwin2017.start_paths import INPUTS

LOOKS = {BY_UNIT: "#0072B2", ONE: "#56B4E9", PRINTED: "#D55E00", BEFORE: "#009E73"}
WITH, WITHOUT = "#0072B2", "#E69F00"


def draw(results: Results) -> Figure:
    """Draw the four panels."""
    figure, axes = new_figure(4, width=PAGE_WIDTH, height=2.7)
    deviations, moments, added, lengths = axes.flat
    _by_layer(deviations, results, DEVIATION)
    _by_layer(moments, results, MOMENT)
    _added(added, results)
    _depths(lengths, results)
    layers = np.arange(1, results.settings.layers + 1)
    moments.plot(layers, layers, color="#777777", linestyle=(0, (4, 3)), label="$l$ (the recursion)")
    usual = f"{results.settings.wide} units, {INPUTS} inputs"
    deviations.set(ylabel=r"deviation $\sigma_l$")
    moments.set(ylabel=r"$E[N_l^2]$")
    for ax in (deviations, moments):
        ax.set_title(usual, fontsize=7)
    moments.legend(fontsize=6)
    for ax, letter in zip(axes.flat, "abcd", strict=True):
        ax.tick_params(labelsize=7)
        panel_letter(ax, letter)
    return figure


def _by_layer(ax: Axes, results: Results, quantity: str) -> None:
    for variant, colour in LOOKS.items():
        rows = results.rows(
            streams, stage=USUAL, quantity=quantity, variant=variant, width=results.settings.wide
        )
        runs = rows.pivot_table(index="layer", columns="seed", values="value")
        label = None if quantity == MOMENT else variant
        ax.plot(runs.index, runs.mean(axis=1), color=colour, label=label)
        ax.fill_between(runs.index, runs.min(axis=1), runs.max(axis=1), color=colour, alpha=0.18, lw=0)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ticks = [tick for tick in (1, 2, 5, 10, 20, 60) if tick <= results.settings.layers]
    ax.set_xticks(ticks, [str(tick) for tick in ticks])
    ax.minorticks_off()
    ax.set(xlabel="layer")
    if quantity == DEVIATION:
        low, high = ax.get_ylim()
        shown = [tick for tick in (0.5, 1, 2, 5, 10, 20) if low <= tick <= high]
        ax.set_yticks(shown, [f"{tick:g}" for tick in shown])
        ax.legend(fontsize=6, title="BN", title_fontsize=6)


def _added(ax: Axes, results: Results) -> None:
    """What a layer adds to the second moment, by the networks' size."""
    settings = results.settings
    usual = f"{settings.wide} units, {INPUTS} inputs"
    cases = [(usual, {"stage": USUAL, "variant": BY_UNIT, "width": settings.wide})]
    cases += [(name, {"stage": name}) for name in sizes(settings)]
    for (name, where), colour in zip(cases, in_order(len(cases)), strict=True):
        rows = results.rows(streams, quantity=MOMENT, **where)
        runs = rows[rows["layer"] <= settings.deep].pivot_table(index="layer", columns="seed", values="value")
        mean, low, high = mean_interval(runs.diff().iloc[1:].to_numpy().T)
        ax.fill_between(runs.index[1:], low, high, color=colour, alpha=0.18, lw=0)
        ax.plot(
            runs.index[1:], mean, color=colour, label=name.replace(" units,", " ×").replace(" inputs", "")
        )
    ax.axhspan(0.9, 1.1, color="#EDEDED", lw=0)
    ax.set_title("centred, by unit", fontsize=7)
    ax.set(xlabel="layer", ylabel=r"$E[N_l^2] - E[N_{l-1}^2]$", ylim=(0.8, None))
    ax.legend(fontsize=6, title="units × inputs", title_fontsize=6)


def _depths(ax: Axes, results: Results) -> None:
    counts = sorted({LAST, *results.settings.others})
    fine = np.arange(1, max(counts) + 1)
    predicted = {
        "after": [harmonic(int(p)) for p in fine],
        "none": [half_gains(int(p), 1.0) for p in fine],
    }
    for norm, colour, words in (("none", WITHOUT, "no BN"), ("after", WITH, "BN")):
        found = [depths(results, norm, blocks=p) for p in counts]
        spread = [np.quantile(each, (0.025, 0.975)) for each in found]
        means = np.array([each.mean() for each in found])
        errors = np.abs(np.array(spread).T - means)
        ax.errorbar(
            counts, means, errors, color=colour, marker="o", markersize=3.5, linestyle="", label=words
        )
        ax.plot(fine, predicted[norm], color=colour, linestyle=(0, (4, 3)), linewidth=0.9)
    ax.plot(fine, fine / 2, color="#777777", linewidth=0.9, linestyle=":", label="p/2")
    ax.set(xlabel="blocks p", ylabel="effective depth D")
    ax.set_title(f"{results.settings.width} units, {INPUTS} inputs", fontsize=7)
    ax.legend(fontsize=6)
