"""Panels of figures 4 and S7: the best against the worst networks of the paper's width, and of small ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.epoch_figures import epoch_axis, runs_at
from skiplab.reproduction.results import Results, matching
from skiplab.studies.orhan2018.accuracy_evidence import by_network, extremes
from skiplab.studies.orhan2018.accuracy_trials import WIDE

if TYPE_CHECKING:
    import pandas as pd

UNITS = {"norm": "mean norm", "overlap": "mean overlap", "dependence": "linear dependence"}
STYLES = ("-", "--", ":")  # of small networks' depths
SHOWN = 10  # best and worst networks of the paper's width whose means are drawn, as in the paper


def figure(results: Results) -> Any:
    """Draw the paper's five panels, one row per data set."""
    from skiplab.figures.style import new_figure, panel_letter

    sets = results.settings.data
    figure, axes = new_figure(columns=5, rows=len(sets), width=9.4, height=0.7 + 1.9 * len(sets))
    for across, data in zip(axes, sets, strict=True):
        _panels(across, results, data)
    settings = results.settings
    handles, names = axes[0, 0].get_legend_handles_labels()
    styles = dict(zip([f"b: {depth} layers" for depth in settings.narrow_depths], STYLES, strict=False))
    for words, style in styles.items():
        handles += axes[0, 0].plot([], [], color="#444444", linestyle=style)
        names.append(words)
    runs = settings.wide_runs
    few = f"{min(SHOWN, runs // 2)} of {runs}, in b {settings.extremes} of those that learn"
    figure.legend(handles, [f"{name} {few}" if name in ("Best", "Worst") else name for name in names],
                  loc="outside upper center", ncols=2)  # fmt: skip
    for letter, ax in zip("abcdefghij", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _panels(across: Any, results: Results, data: str) -> None:
    from skiplab.studies.orhan2018.regression import spearman

    settings, rows = results.settings, results.rows(stage=WIDE, data=data)
    accuracy = by_network(rows, "accuracy")
    wide = _groups(rows, accuracy)
    _lines(across[0], wide, "accuracy")
    across[0].set(title="training accuracy", ylabel=title_of(data))
    for depth, style in zip(settings.narrow_depths, STYLES, strict=False):
        best, worst, _ = extremes(results, data, depth)
        _lines(across[1], {"best": best, "worst": worst}, "degenerate", style)
    across[1].set(title="degenerate fraction")
    after = [epoch for epoch in settings.at if epoch > 0]
    for ax, (quantity, title) in zip(across[2:], UNITS.items(), strict=True):
        _lines(ax, wide, quantity)
        values = by_network(rows, quantity, after)
        rho = spearman(values.to_numpy(float), accuracy[values.index].to_numpy(float))
        ax.set_title(f"{title}\nρ = {rho:+.2f}".replace("-", "−"))
    for ax, shown in zip(across, [settings.at, settings.spectra_at, *[settings.at] * 3], strict=True):
        epoch_axis(ax, list(shown))


def _groups(rows: pd.DataFrame, accuracy: pd.Series) -> dict[str, pd.DataFrame]:
    """Rows of the best and of the worst networks, of all whether they learn or not."""
    order = accuracy.sort_values(ascending=False).index.tolist()
    some = min(SHOWN, len(order) // 2)
    return {
        "best": matching(rows, seed=order[:some]),
        "worst": matching(rows, seed=order[len(order) - some :]),
    }


def _lines(ax: Any, groups: Mapping[str, pd.DataFrame], quantity: str, style: str = "-") -> None:
    from skiplab.figures.curves import learning_curves

    for name, rows in groups.items():
        if len(matching(rows, quantity=quantity)):
            epochs, runs = runs_at(rows, quantity)
            learning_curves(ax, epochs, {name: runs}, labels="none")
            ax.lines[-1].set_linestyle(style)
