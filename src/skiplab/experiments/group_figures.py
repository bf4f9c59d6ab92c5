"""How figures 4, S2 and S7 are laid out: a row a condition, a column a quantity, the best against the worst."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from skiplab.experiments import best_and_worst
from skiplab.experiments import old_epoch_figures as drawing
from skiplab.experiments.best_and_worst import NARROW, WIDE_UNITS, Condition, Settings

if TYPE_CHECKING:
    import pandas as pd

TITLES = drawing.TITLES | {"svhn": "SVHN", "stl10": "STL-10"}
# How the rank correlations are called and drawn.
UNITS = {
    "norm": ("ρ of norm", "o-", "#222222"),
    "overlap": ("ρ of overlap", "s--", "#777777"),
    "dependence": ("ρ of dependence", "^:", "#222222"),
}


def panels(frame: pd.DataFrame, settings: Settings, columns: Mapping[str, str]) -> Any:
    """Draw means and 95 % intervals over the networks of each group; columns are quantities and their titles.

    Where a network of the paper's width has no spectrum, its place shows the rank correlations (ours).
    """
    from skiplab.figures.style import new_figure, panel_letter

    shown = list(best_and_worst.conditions(frame, settings))
    height = 0.5 + 1.55 * len(shown)
    figure, axes = new_figure(columns=len(columns), rows=len(shown), width=8.4, height=height)
    for row, (condition, across) in enumerate(zip(shown, axes, strict=True)):
        for ax, (quantity, title) in zip(across, columns.items(), strict=True):
            if condition.has(quantity):
                _groups(ax, condition, settings, quantity)
                ax.set_title(title if row == 0 else "")
            elif condition.role == WIDE_UNITS and quantity == "degenerate":
                _correlations(ax, condition, settings)
            else:
                ax.text(0.5, 0.5, "not measured", transform=ax.transAxes, ha="center", va="center")
                ax.set_axis_off()
            ax.set_xlabel("epoch" if row == len(shown) - 1 or not ax.axison else "")
        across[0].set_ylabel(_words(condition, settings), fontsize=7.5)
    for letter, ax in zip("abcdefgh", axes[0], strict=False):
        panel_letter(ax, letter)
    _legend(figure, axes, shown)
    return figure


def _groups(ax: Any, condition: Condition, settings: Settings, quantity: str) -> None:
    from skiplab.figures.curves import learning_curves

    for name, rows in (("best", condition.best), ("worst", condition.worst)):
        if (rows["quantity"] == quantity).any():  # a whole group may have diverged
            epochs, runs = drawing.runs_at(rows, quantity)
            learning_curves(ax, epochs, {name: runs}, labels="none")
    drawing.epoch_axis(ax, list(settings.at))


def _correlations(ax: Any, condition: Condition, settings: Settings) -> None:
    """Spearman's ρ with accuracy over all networks, one line a quantity, with 95 % intervals."""
    import numpy as np

    for quantity, (name, line, colour) in UNITS.items():
        found = [best_and_worst.rank_correlation(condition.everyone, quantity, at) for at in settings.at]
        rho, low, high = np.array(found).T
        style: dict[str, Any] = {"markersize": 3, "elinewidth": 0.8, "linewidth": 0.9, "color": colour}
        ax.errorbar(settings.at, rho, (rho - low, high - rho), fmt=line, label=name, **style)
    ax.set_ylim(-1.05, 1.05)
    drawing.epoch_axis(ax, list(settings.at))
    ax.set_title("rank correlation\nwith accuracy (ours)", fontsize=7.5)


def _words(condition: Condition, settings: Settings) -> str:
    """What a row of panels shows, in three short lines."""
    shape = (
        (settings.narrow_depth, settings.narrow)
        if condition.role == NARROW
        else (settings.depth, settings.width)
    )
    gain = f"{'best ' if condition.is_best else ''}gain {condition.gain:.3g}"
    return f"{TITLES.get(condition.data, condition.data)}\n{shape[0]} × {shape[1]} units\n{gain}"


def _legend(figure: Any, axes: Any, shown: list[Condition]) -> None:
    lines, names = axes[0, 0].get_legend_handles_labels()
    counts = (rows["seed"].nunique() for rows in (shown[0].best, shown[0].worst))
    names = [f"{name} {count}" for name, count in zip(names, counts, strict=True)]
    ours = {name for name, _, _ in UNITS.values()}
    for ax in axes.flat:
        more = ax.get_legend_handles_labels()
        if more[1] and set(more[1]) <= ours:
            lines, names = lines + more[0], names + more[1]
            break
    figure.legend(lines, names, loc="outside upper center", ncols=len(names))
