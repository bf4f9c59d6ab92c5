"""How figure 12 is laid out: profiles, symmetry and accuracy as in the paper, and below what else was run."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from skiplab.data.registry import title as title_of
from skiplab.experiments.gain_figures import gains_panel, own_curves, with_gains
from skiplab.experiments.gains import LEARNED, chance
from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import final_dots, heatmap, learning_curves
from skiplab.figures.style import new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2017.figure_12.profiles import DECREASING, KINDS, PROFILES, best_of, searched
from skiplab.studies.orhan2017.rescaled_networks import after, ratios

SHOWN = {kind.name: kind for kind in KINDS}


def panels(results: Results) -> Any:
    """Draw the six panels; the first data set is the paper's."""
    settings = results.settings
    data = settings.data[0]
    figure, axes = new_figure(columns=3, rows=2, width=8.4, height=6.0)
    (lines, symmetry, curves), (grid, gains, by_gain) = axes
    _profiles(lines, results, data)
    least = LEARNED * chance(data)
    kept = [PROFILES.at(results, data, kind) for kind in KINDS]
    dead = [after(rows, "before") < least for rows in kept]
    final_dots(symmetry, list(SHOWN), [ratios(rows) for rows in kept], rings=dead)
    symmetry.axhline(1, color="#999999", linewidth=0.8, zorder=0)
    symmetry.set(ylabel="accuracy ratio after rescaling", title="all networks; rings never learn")
    runs = {name: own_curves(results, data, kind, PROFILES) for name, kind in SHOWN.items()}
    epochs = range(1, settings.epochs + 1)
    words = with_gains(results, SHOWN, PROFILES, [data])
    alive = {name: _those(each, each[:, -1] >= least) for name, each in runs.items()}
    learning_curves(curves, epochs, alive, labels="none", words=words)
    curves.lines[list(SHOWN).index(DECREASING.name)].set_linestyle(
        (0, (4, 3))
    )  # over that of constant profiles
    curves.legend(loc="lower right", bbox_to_anchor=(1, 0.1))
    for name, each in runs.items():  # dead networks, one line each
        for never in each[each[:, -1] < least]:
            curves.plot(epochs, never, color=colour_of(name), linewidth=0.6, linestyle=":")
    curves.set(xlabel="epoch", ylabel="training accuracy", title=title_of(data))
    _grid(grid, results, data)
    gains_panel(gains, results, data, SHOWN, PROFILES)
    gains.set(ylabel="training accuracy, last epoch", title="every gain")
    gains_panel(by_gain, results, data, SHOWN, PROFILES, quantity=ratios, dots=False)
    by_gain.axhline(1, color="#999999", linewidth=0.8, zorder=0)
    by_gain.set(ylabel="accuracy ratio after rescaling", title="every gain")
    key = [
        Line2D([], [], color=colour_of(name), marker="o", markersize=3, label=label_of(name))
        for name in SHOWN
    ]
    gains.legend(handles=key, loc="upper left")
    by_gain.legend(handles=key, loc="lower left")
    for letter, ax in zip("abcdef", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure


def _those(values: np.ndarray, learned: np.ndarray) -> np.ndarray:
    """The runs that learn, or all where none does."""
    return values[learned] if learned.any() else values


def _profiles(ax: Any, results: Results, data: str) -> None:
    """All lines in grey, rising ones dotted, and each kind's best in its colour."""
    layers = np.arange(1, results.settings.depth + 1)
    for slope, offset in results.settings.profiles:
        style = ":" if slope > 0 else "-"
        ax.plot(layers, slope * layers + offset, color="#C8C8C8", linewidth=0.7, linestyle=style)
    for name, kind in SHOWN.items():
        line = PROFILES.best_profile(results, data, kind, PROFILES.own_gain(results, data, kind))
        biases = line["slope"] * layers + line["offset"]
        ax.plot(layers, biases, color=colour_of(name), label=label_of(name))
    ax.set(xlabel="hidden layer l", ylabel="constant bias a·l + b", title="profiles")


def _grid(ax: Any, results: Results, data: str) -> None:
    """Mean accuracy of the search at the gain of its best profile, in per cent; each kind's choice framed."""
    means = searched(results, data)
    gain = float(best_of(means)["gain"])
    wide = matching(means, gain=gain).pivot(index="slope", columns="offset", values="value")
    wide = wide.sort_index(ascending=False)
    heatmap(
        ax,
        100 * wide.to_numpy(dtype=float),
        list(wide.index),
        list(wide.columns),
        row_label="slope a",
        column_label="offset b",
        value_label=f"accuracy in %, search, gain {gain:.3g}",
        best=None,
    )
    slopes, offsets = ([float(each) for each in axis] for axis in (wide.index, wide.columns))
    for name, kind in SHOWN.items():
        line = PROFILES.best_profile(results, data, kind, gain)
        column, row = offsets.index(line["offset"]), slopes.index(line["slope"])
        corner = (column - 0.46, row - 0.46)
        ax.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, edgecolor=colour_of(name), linewidth=2))
