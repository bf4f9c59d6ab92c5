"""How figure 2c is laid out: a column per data set; ratios at best gains, at every gain, and by distance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.gain_figures import gains_panel, in_legend
from skiplab.experiments.gains import WIDE, Model
from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.curves import final_dots
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2017.rescaled_networks import ratios


def panels(results: Results, models: Sequence[Model]) -> Any:
    """Draw the ratios of the models' runs."""
    sets = results.settings.data
    shown = {model.name: model for model in models}
    figure, axes = new_figure(columns=len(sets), rows=3, width=PAGE_WIDTH, height=7.2, sharey=True)
    for (top, middle, low), data in zip(axes.T, sets, strict=True):
        final_dots(top, list(shown), [ratios(WIDE.at(results, data, model)) for model in models])
        rows = {model.name: WIDE.at(results, data, model) for model in models}
        words = [each.replace(", ", "\n", 1) for each in in_legend(rows).values()]
        top.set_xticks(range(len(models)), words, rotation=0, ha="center", fontsize=7)
        top.set_title(f"{title_of(data)}, own gains")
        gains_panel(middle, results, data, shown, quantity=ratios)
        _by_distance(low, results, data, models)
        for ax in (top, middle, low):
            ax.axhline(1, color="#444444", linewidth=0.7, linestyle=":")
    for ax in axes[:, 0]:
        ax.set_ylabel("accuracy, rescaled / not")
    axes[2, 0].legend(fontsize=7)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _by_distance(ax: Any, results: Results, data: str, models: Sequence[Model]) -> None:
    """Mean ratios at own gains against the distance of the two matrices, with standard errors."""
    style = {"fmt": "o-", "markersize": 2.5, "linewidth": 1.0, "elinewidth": 0.7}
    for model in models:
        rows = matching(WIDE.at(results, data, model), quantity="rescaling_at_distance")
        near = rows.groupby("layer")["value"].agg(["mean", "sem"]).astype(float)
        words = {"color": colour_of(model.name), "label": label_of(model.name)}
        ax.errorbar(near.index, near["mean"], near["sem"], **style, **words)
    ax.locator_params(axis="x", integer=True, nbins=10, steps=(1, 3, 10))
    ax.set_xlabel("distance of the matrices, l − k")
