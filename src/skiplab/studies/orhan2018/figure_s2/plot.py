"""Figure S2's panels: a row per condition, a column per quantity, the best against the worst."""

from __future__ import annotations

from typing import Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.best_and_worst import BestAndWorst
from skiplab.experiments.epoch_figures import epoch_axis, runs_at
from skiplab.reproduction.results import Results, matching
from skiplab.studies.orhan2018.figure_s2.evidence import Condition, conditions

COLUMNS = {
    "accuracy": "training\naccuracy",
    "test_accuracy": "test\naccuracy",
    "negative": "negative\nfraction",
    "degenerate": "degenerate\nfraction",
    "norm": "mean\nnorm",
}


def figure(results: Results) -> Any:
    """Draw means and 95 % intervals over the networks of each group."""
    from skiplab.figures.style import new_figure, panel_letter

    shown = list(conditions(results))
    height = 0.5 + 1.55 * len(shown)
    figure, axes = new_figure(columns=len(COLUMNS), rows=len(shown), width=8.4, height=height)
    for row, (condition, across) in enumerate(zip(shown, axes, strict=True)):
        for ax, (quantity, title) in zip(across, COLUMNS.items(), strict=True):
            _panel(ax, condition.groups, quantity, title if row == 0 else "", results.settings.at)
            ax.set_xlabel("epoch" if row == len(shown) - 1 or not ax.axison else "")
        across[0].set_ylabel(_words(condition, results.settings), fontsize=7.5)
    for letter, ax in zip("abcdefgh", axes[0], strict=False):
        panel_letter(ax, letter)
    lines, names = axes[0, 0].get_legend_handles_labels()
    counts = [rows["seed"].nunique() for rows in shown[0].groups]
    labels = [f"{name} {count}" for name, count in zip(names, counts, strict=True)]
    figure.legend(lines, labels, loc="outside upper center", ncols=len(labels))
    return figure


def _panel(ax: Any, groups: BestAndWorst, quantity: str, title: str, at: tuple[int, ...]) -> None:
    from skiplab.figures.curves import learning_curves

    if not groups.have(quantity):
        ax.text(0.5, 0.5, "not measured", transform=ax.transAxes, ha="center", va="center")
        ax.set_axis_off()
        return
    for name, rows in groups._asdict().items():
        if len(matching(rows, quantity=quantity)):  # a whole group may have diverged
            epochs, runs = runs_at(rows, quantity)
            learning_curves(ax, epochs, {name: runs}, labels="none")
    epoch_axis(ax, list(at))
    ax.set_title(title)


def _words(condition: Condition, settings: Any) -> str:
    """What a row of panels shows, in three short lines."""
    shape = f"{settings.narrow_depth} × {settings.narrow} units"
    return f"{title_of(condition.data)}\n{shape}\n{condition.gain_in_words}"
