"""Theories of a pair of gradients beside what was measured: their moments against depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.balduzzi2017.palette import network_colour
from skiplab.studies.balduzzi2017.theorems import models
from skiplab.studies.balduzzi2017.theorems.evidence import depths_of, sample
from skiplab.studies.balduzzi2017.theorems.trials import gated, real, weightless

# (quantity, kind) → (L, values), and (quantity, law) → (L, samples over runs).
Curves = Mapping[tuple[str, str], tuple[Sequence[int], Sequence[float]]]
Points = Mapping[tuple[str, str], tuple[Sequence[int], Sequence[Sequence[float]]]]

INK, GREY = "#222222", "#8A8A8A"
COLOURS = {
    "plain": network_colour(None),
    "plain with BN": "#CC79A7",
    "resnet": network_colour(1.0),
    "β = 1": network_colour(1.0),
    "β = .1": network_colour(0.1),
    "highway": "#882255",
}
NAMES = {
    "plain": "feedforward",
    "plain with BN": "feedforward with BN",
}  # as the paper's other figures have it
LINES = {"exact": "-", "asymptotic": "--", "corrected": ":"}
TITLES = ("feedforward and resnet", "resnet with BN", "highway")
# By law: marker, whether it is filled, a factor on the depth that sets it apart, and words.
MARKS = {
    "gates": ("o", True, 0.97, "independent gates"),
    "nets": ("s", False, 1.03, "real nets"),
    "wide nets": ("^", False, 0.98, "real nets, widest"),
}
LOWEST = 1e-4  # correlations below are noise in any affordable Monte Carlo
PANELS = (
    (models.PLAIN, models.PLAIN_NORMALISED, models.RESIDUAL),
    (models.NORMALISED, models.NORMALISED_TENTH),
    (models.HIGHWAY,),
)
LABELS = {
    "plain": "plain",
    "plain batch norm": "plain with BN",
    "residual": "resnet",
    "batch norm 1": "β = 1",
    "batch norm .1": "β = .1",
    "highway": "highway",
}
QUANTITIES = ("variance", "correlation")
DEEPEST = 100


def draw(results: Results) -> Figure:
    """Draw curves and points of every panel's models."""
    shown = {LABELS[model.name]: model for group in PANELS for model in group}
    curves = {label: _curves(model, results.settings.batch) for label, model in shown.items()}
    points = {label: _points(results, model) for label, model in shown.items()}
    return theorem_panels([[LABELS[model.name] for model in group] for group in PANELS], curves, points)


def _curves(model: models.Model, batch: int) -> Curves:
    """(quantity, kind) → (L, values); kinds are exact, asymptotic and corrected."""
    depths = range(2, DEEPEST + 1)
    wide = [models.corrected(model, L, batch) for L in depths]
    pairs = {"corrected": [(moments.variance, moments.correlation) for moments in wide]}
    if model in models.GATED:  # the others are in no theorem
        exact = [models.theory(model, L) for L in depths]
        pairs["exact"] = [(moments.variance, moments.correlation) for moments in exact]
        pairs["asymptotic"] = [models.asymptotic(model, L) for L in depths]
    return {
        (quantity, kind): (list(depths), [pair[place] for pair in found])
        for place, quantity in enumerate(QUANTITIES)
        for kind, found in pairs.items()
    }


def _points(results: Results, model: models.Model) -> Points:
    """(quantity, law) → (L, samples over runs)."""
    found = {}
    measured = {"gates": model in models.GATED, "nets": True}
    measured["wide nets"] = model is models.RESIDUAL and results.settings.wide_width > 0
    for law, trial in (("gates", gated), ("nets", real), ("wide nets", weightless)):
        depths = depths_of(results, trial, model) if measured[law] else []
        for quantity in QUANTITIES:
            samples = [sample(results, trial, model, L, quantity) for L in depths]
            found[quantity, law] = (depths, samples)
    return found


def theorem_panels(
    groups: Sequence[Sequence[str]], curves: Mapping[str, Curves], points: Mapping[str, Points]
) -> Figure:
    """Draw a column per group of models: the variance above, the correlation below."""
    figure, axes = new_figure(3, rows=2, width=PAGE_WIDTH, height=5.0, sharex=True)
    for column, group in enumerate(groups):
        for row, quantity in enumerate(("variance", "correlation")):
            ax = axes[row, column]
            for name in group:
                _model(ax, quantity, curves[name], points[name], COLOURS[name])
            ax.set_xscale("log")
            ax.set_xticks([2, 5, 10, 20, 50, 100], ["2", "5", "10", "20", "50", "100"])
            ax.minorticks_off()
            ax.set_xlim(1.8, 112)
        axes[0, column].set_title(TITLES[column])
        axes[1, column].set_xlabel("depth $L$")
        handles = [Line2D([], [], color=COLOURS[name]) for name in group]
        axes[0, column].legend(handles, [NAMES.get(name, name) for name in group], loc="upper left")
    axes[0, 0].set(yscale="log", ylabel=r"second moment $E[\nabla_i^2]$", ylim=(1e-2, 1e32))
    axes[0, 1].set(yscale="log", ylim=(0.7, 1500))
    axes[0, 2].set(ylim=(0.85, 1.15))
    axes[1, 0].set(yscale="log", ylabel=r"correlation $R(i, j)$", ylim=(LOWEST, 1.3))
    axes[1, 1].set(yscale="log", ylim=(0.03, 1.6))
    axes[1, 1].set_yticks([0.05, 0.1, 0.2, 0.5, 1], [".05", ".1", ".2", ".5", "1"])
    axes[1, 2].set(ylim=(0.5, 0.8))
    axes[1, 2].set_yticks([0.5, 0.6, 0.7, 0.8], [".5", ".6", ".7", ".8"])
    axes[1, 2].axhline(np.exp(-0.5), color=GREY, linewidth=0.7)
    axes[1, 2].text(100, np.exp(-0.5) - 0.004, "$e^{-1/2}$", fontsize=7.5, color=INK, ha="right", va="top")
    _key(axes[1, 2])
    for ax, letter in zip(axes.flat, "abcdef", strict=True):
        panel_letter(ax, letter)
    return figure


def _model(ax: Axes, quantity: str, curves: Curves, points: Points, colour: str) -> None:
    exact = curves.get((quantity, "exact"), ([], []))[1]
    for kind, style in LINES.items():
        depths, values = curves.get((quantity, kind), ([], []))
        if kind != "exact" and len(values) == len(exact) and np.allclose(values, exact):
            continue  # a curve that is the exact one would only hide it
        ax.plot(depths, values, style, color=colour, linewidth=1.1, alpha=1 if kind != "asymptotic" else 0.75)
    for law, (marker, filled, shift, _) in MARKS.items():
        depths, samples = points[quantity, law]
        for depth, each in zip(depths, samples, strict=True):
            mean, low, high = (float(number) for number in mean_interval(np.asarray(each)))
            if low <= 0:
                continue  # not to be told from 0, which has no place on a logarithmic axis
            bar = [[mean - low], [high - mean]]
            ax.errorbar(
                depth * shift,
                mean,
                bar,
                fmt=marker,
                color=colour,
                markersize=4,
                markerfacecolor=colour if filled else "white",
                markeredgewidth=0.9,
                elinewidth=0.9,
                capsize=1.8,
                zorder=3,
            )


def _key(ax: Axes) -> None:
    handles = [
        Line2D([], [], color=INK, linestyle="-", label="exact theory"),
        Line2D([], [], color=INK, linestyle="--", label="∼ of theorem 3"),
        Line2D([], [], color=INK, linestyle=":", label="corrected for real nets"),
        *(
            Line2D(
                *([], []),
                color=INK,
                marker=marker,
                markersize=4,
                markerfacecolor=INK if filled else "white",
                linestyle="",
                label=words,
            )
            for marker, filled, _, words in MARKS.values()
        ),
    ]
    ax.legend(handles=handles, loc="upper right", fontsize=6.8)
