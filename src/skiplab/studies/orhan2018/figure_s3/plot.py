"""Figure S3's panels: the mixture against exact fractions as the paper draws it, and Lanczos below (ours)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.results import Results
from skiplab.studies.orhan2018.figure_s3.evidence import FRACTIONS, pairs, points
from skiplab.studies.orhan2018.spectra_panels import INK

if TYPE_CHECKING:
    import pandas as pd

BINS = 8
BLACK = "#111111"


def figure(results: Results) -> Any:
    """For each width the mixture against exact fractions (as the paper's), and below it Lanczos (ours)."""
    from skiplab.figures.style import new_figure, panel_letter

    settings = results.settings
    cases = list(product(settings.data, settings.widths))
    figure, axes = new_figure(columns=2, rows=2 * len(cases), width=6.6, height=6.2 * len(cases) + 0.3)
    for number, (data, width) in enumerate(cases):
        each = points(results, data, width)
        for row, draw in enumerate((_mixture_panel, _lanczos_panel)):
            for column, fraction in enumerate(FRACTIONS):
                ax = axes[2 * number + row, column]
                draw(ax, each, fraction, settings.gains)
                across = _ceiling(each[fraction])
                up = max(across, _ceiling(each[(f"mixture_{fraction}", f"lanczos_{fraction}_high")[row]]))
                ax.plot((0, across), (0, across), color=INK, linestyle="--", linewidth=0.9, zorder=1)
                ax.set(xlim=(-0.03 * across, 1.03 * across), ylim=(-0.03 * up, 1.03 * up))
                ax.set_title(f"{('Mixture', 'Lanczos (ours)')[row]}, {settings.depth} × {width} units")
                ax.set(xlabel=f"exact {fraction} fraction", ylabel=f"estimated {fraction} fraction")
    lines, names = axes[0, 0].get_legend_handles_labels()
    more, further = axes[1, 0].get_legend_handles_labels()
    figure.legend([*lines, *more], [*names, *further], loc="outside upper center", ncols=4)
    for letter, ax in zip("abcdefghijklmnop", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _ceiling(values: pd.Series) -> float:
    """The upper end of an axis: the next tenth above all values."""
    return min(1.0, math.ceil(10 * values.max() + 0.1) / 10)


def _mixture_panel(ax: Any, each: pd.DataFrame, fraction: str, gains: Sequence[float]) -> None:
    """Points by gain, means and standard errors in bins, and the regression line with its band."""
    import numpy as np

    from skiplab.figures.colours import colour_of
    from skiplab.studies.orhan2018.regression import binned, line_with_band

    x, y, groups = pairs(each, "mixture", fraction)
    for marker, gain in zip("^osDv", gains, strict=False):
        chosen = (each["gain"] == gain).to_numpy()
        dots = {"s": 16, "color": colour_of("plain"), "alpha": 0.6, "linewidths": 0, "marker": marker}
        ax.scatter(x[chosen], y[chosen], label=f"gain {gain:.3g}", zorder=3, **dots)
    at = np.linspace(x.min(), x.max(), 60)
    heights, half = line_with_band(x, y, groups, at)
    ax.fill_between(at, heights - half, heights + half, color=BLACK, alpha=0.15, linewidth=0)
    ax.plot(at, heights, color=BLACK, label="fit, 95 % band")
    middle, mean, error = binned(x, y, groups, min(BINS, max(1, len(x) // 4)))
    style = {"fmt": "o", "color": BLACK, "markersize": 3.5, "capsize": 2, "linewidth": 1}
    ax.errorbar(middle, mean, np.nan_to_num(error), label="bins, ± s.e.", **style)


def _lanczos_panel(ax: Any, each: pd.DataFrame, fraction: str, _: Sequence[float]) -> None:
    """Middles of the limits with [low, high] as bars; filled where resolved, hollow where not."""
    from skiplab.figures.colours import colour_of

    blue = colour_of("residual")
    for resolved, face, words in ((False, "white", "Lanczos, unresolved"), (True, blue, "Lanczos, resolved")):
        some = each[(each["lanczos_resolved"] > 0) == resolved]
        x, y = some[fraction].to_numpy(), some[f"lanczos_{fraction}"].to_numpy()
        low, high = (some[f"lanczos_{fraction}_{end}"].to_numpy() for end in ("low", "high"))
        ends = [(y - low).clip(min=0), (high - y).clip(min=0)]
        style = {"fmt": "o", "markersize": 3.5, "linewidth": 0.7, "alpha": 0.8}
        ax.errorbar(x, y, ends, color=blue, markerfacecolor=face, label=words, **style)
