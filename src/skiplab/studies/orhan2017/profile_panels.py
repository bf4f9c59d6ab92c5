"""How figure 12 is laid out: profiles, symmetry and accuracy as in the paper, and below what else was run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from skiplab.experiments import networks
from skiplab.experiments import old_gains as searches
from skiplab.experiments.old_gain_figures import TITLES, best_curves, gains_panel
from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import final_dots, heatmap, learning_curves, mean_interval
from skiplab.figures.style import new_figure, panel_letter
from skiplab.studies.orhan2017.rescaled_networks import values

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.studies.orhan2017.figure_12 import Settings


def panels(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the six panels; the first data set is the paper's."""
    from skiplab.studies.orhan2017.figure_12 import KINDS

    data = settings.data[0]
    figure, axes = new_figure(columns=3, rows=2, width=8.4, height=6.0)
    (lines, symmetry, curves), (grid, gains, by_gain) = axes
    best = {kind: searches.best_gain(frame, data, kind) for kind in KINDS}
    chosen = {kind: searches.deciding(frame, data, kind, gain) for kind, gain in best.items()}
    _profiles(lines, settings, {kind: _line(rows) for kind, rows in chosen.items()})
    final_dots(symmetry, KINDS, [values(rows) for rows in chosen.values()])
    symmetry.axhline(1, color="#999999", linewidth=0.8, zorder=0)
    symmetry.set(ylabel="accuracy ratio after rescaling", title="rescaling symmetry")
    runs = {kind: best_curves(frame, data, kind, "identity") for kind in KINDS}
    learning_curves(curves, range(1, settings.epochs + 1), runs)
    curves.set(xlabel="epoch", ylabel="training accuracy", title=TITLES.get(data, data))
    _grid(grid, frame, settings, data)
    gains_panel(gains, frame, data, settings, [(kind, kind, "identity") for kind in KINDS])
    gains.set(ylabel="training accuracy, last epoch", title="every gain")
    _by_gain(by_gain, frame, settings, data)
    for letter, ax in zip("abcdef", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure


def _line(rows: pd.DataFrame) -> tuple[float, float]:
    first = rows.iloc[0]
    return float(first["slope"]), float(first["offset"])


def _profiles(ax: Any, settings: Settings, chosen: dict[str, tuple[float, float]]) -> None:
    """All lines in grey, rising ones dotted, and the chosen ones in their kind's colour."""
    layers = np.arange(1, settings.depth + 1)
    for slope, offset in settings.profiles:
        style = ":" if slope > 0 else "-"
        ax.plot(layers, slope * layers + offset, color="#C8C8C8", linewidth=0.7, linestyle=style)
    for kind, (slope, offset) in chosen.items():
        ax.plot(layers, slope * layers + offset, color=colour_of(kind), label=label_of(kind))
    ax.set(xlabel="hidden layer l", ylabel="constant bias a·l + b", title="profiles")


def _grid(ax: Any, frame: pd.DataFrame, settings: Settings, data: str) -> None:
    """Mean accuracy of the search at the gain of its best profile, in per cent."""
    found = frame[networks.is_search(frame["seed"]) & (frame["data"] == data)]
    last = networks.last_accuracy(found)
    means = last.groupby(["gain", "slope", "offset"], as_index=False)["value"].mean()
    gain = float(means.loc[means["value"].idxmax(), "gain"])
    wide = means[means["gain"] == gain].pivot(index="slope", columns="offset", values="value")
    wide = wide.sort_index(ascending=False)
    words = {"row_label": "slope a", "column_label": "offset b"}
    title = f"accuracy in %, search, gain {gain:.3g}"
    heatmap(
        ax, 100 * wide.to_numpy(dtype=float), list(wide.index), list(wide.columns), value_label=title, **words
    )


def _by_gain(ax: Any, frame: pd.DataFrame, settings: Settings, data: str) -> None:
    """Rescaling symmetry against the initial gain, mean and interval over runs, kinds side by side."""
    from skiplab.studies.orhan2017.figure_12 import KINDS

    width = 0.7 / len(KINDS)
    for place, kind in enumerate(KINDS):
        shift = (place - (len(KINDS) - 1) / 2) * width
        for at, gain in enumerate(settings.gains):
            ratios = values(searches.deciding(frame, data, kind, gain))
            mean, low, high = (float(each) for each in mean_interval(ratios))
            ends = [[mean - low], [high - mean]]
            ax.errorbar(at + shift, mean, ends, fmt="o", markersize=3, capsize=2, color=colour_of(kind))
    ax.set_xticks(range(len(settings.gains)), [f"{gain:.3g}" for gain in settings.gains])
    ax.axhline(1, color="#999999", linewidth=0.8, zorder=0)
    ax.set(xlabel="initial gain g", ylabel="accuracy ratio after rescaling", title="every gain")
    ax.grid(False, axis="x")
