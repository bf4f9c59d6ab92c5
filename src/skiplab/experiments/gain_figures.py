"""Figures of gain experiments: learning curves at the gains judged, accuracy by gain, gradient norms by layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.gains import WIDE, Gains, Model, Quantity, accuracies
from skiplab.experiments.gradient_falls import log_norms
from skiplab.reproduction.results import Results, matching

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

MANY = 6  # lines, beyond which each is named at its end: a legend cannot tell so many greys apart
Shown = Mapping[str, Model]  # by the name that has a colour


def curves_and_gains(results: Results, shown: Shown) -> Any:
    """A column per data set: accuracy over epochs at each model's own gain above, last accuracy by gain below."""
    from skiplab.figures.curves import label_ends, learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    settings = results.settings
    width = 7.2 if len(settings.data) > 1 or len(shown) > MANY else 5.0
    figure, axes = new_figure(columns=len(settings.data), rows=2, sharey=True, width=width, height=6.0)
    words = with_gains(results, shown)
    for column, data in enumerate(settings.data):
        above, below = axes[:, column]
        curves = {name: own_curves(results, data, model) for name, model in shown.items()}
        learning_curves(above, range(1, settings.epochs + 1), curves, labels="none", words=words)
        above.set(title=title_of(data), xlabel="epoch")
        gains_panel(below, results, data, shown)
        if column == 0:
            above.set_ylabel("training accuracy")
            below.set_ylabel("training accuracy, last epoch")
    if len(shown) > MANY:
        label_ends(axes[0, -1])
    else:
        legend_above(figure, axes[0, 0], 2 if len(settings.data) == 1 else 3)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def legend_above(figure: Any, ax: Any, columns: int) -> None:
    """The names of a panel's lines in so many columns above all panels, where they cover no curve."""
    lines, names = ax.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=min(columns, len(names)))


def with_gains(
    results: Results, shown: Shown, size: Gains = WIDE, sets: Sequence[str] | None = None
) -> dict[str, str]:
    """What a legend says of models: the name, and the gain at which it is judged on each data set (once if equal)."""
    from skiplab.figures.colours import label_of

    words = {}
    for name, model in shown.items():
        gains = [size.own_gain(results, data, model) for data in sets or results.settings.data]
        each = [f"{gain:.3g}" for gain in (gains if len(set(gains)) > 1 else gains[:1])]
        words[name] = f"{label_of(name)}, g = {' / '.join(each)}"
    return words


def gains_panel(
    ax: Any,
    results: Results,
    data: str,
    shown: Shown,
    size: Gains = WIDE,
    *,
    quantity: Quantity = accuracies,
    dots: bool = True,
) -> None:
    """Last accuracy, or another quantity, against the initial gain: mean and interval over runs, models side by side.

    ``dots``: whether every run is shown too. A gain at which a model has no runs is left empty.
    """
    from skiplab.figures.colours import colour_of
    from skiplab.figures.curves import mean_interval

    gains = results.settings.gains
    width = 0.7 / len(shown)
    for place, (name, model) in enumerate(shown.items()):
        shift = (place - (len(shown) - 1) / 2) * width
        for at, gain in enumerate(gains):
            values = quantity(size.at(results, data, model, gain))
            if not len(values):
                continue
            if dots:
                style = {"s": 6, "color": colour_of(name), "alpha": 0.4, "linewidths": 0}
                ax.scatter([at + shift] * len(values), values, **style)
            mean, low, high = (float(each) for each in mean_interval(values))
            ends = [[mean - low], [high - mean]]
            ax.errorbar(at + shift, mean, ends, fmt="o", markersize=3, capsize=2, color=colour_of(name))
    ax.set_xticks(range(len(gains)), [f"{gain:.3g}" for gain in gains])
    ax.set_xlabel("initial gain g")
    ax.grid(False, axis="x")


def in_legend(rows_by_name: Mapping[str, pd.DataFrame]) -> dict[str, str]:
    """What a legend says of the networks drawn: the name, their gain, and how many they are where counts differ."""
    from skiplab.figures.colours import label_of

    counts = {name: rows["seed"].nunique() for name, rows in rows_by_name.items()}
    words = {}
    for name, rows in rows_by_name.items():
        gains = "/".join(f"{gain:.3g}" for gain in sorted(rows["gain"].unique()))
        many = f", n = {counts[name]}" if len(set(counts.values())) > 1 else ""
        words[name] = f"{label_of(name)}, g = {gains}{many}"
    return words


def norms_and_curves(results: Results, shown: Shown) -> Any:
    """A row per data set: gradient norms by layer at a common gain and at own gains, and accuracy over epochs."""
    from skiplab.figures.curves import by_layer, learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    settings = results.settings
    figure, axes = new_figure(columns=3, rows=len(settings.data), width=7.4, height=3.3 * len(settings.data))
    words = with_gains(results, shown)
    starts = " and ".join(str(epoch + 1) for epoch in settings.norms_at if epoch > 0)
    for (left, middle, right), data in zip(axes, settings.data, strict=True):
        common = WIDE.common_gain(results, data, list(shown.values()))
        for ax, gain in ((left, None), (middle, common)):
            norms = {name: layer_norms(results, data, model, gain) for name, model in shown.items()}
            by_layer(ax, range(1, settings.depth + 1), norms, labels="none")
            title = "own gains" if gain is None else f"gain {gain:.3g} for all (judged)"
            ax.set(xlabel="hidden layer", title=title)
        left.set_ylabel(f"gradient norm, starts of epochs {starts}")
        ends = [end for ax in (left, middle) for end in ax.get_ylim()]
        for ax in (left, middle):  # so that what vanishes at one gain can be compared with the other
            ax.set_ylim(min(ends), max(ends))
            ax.yaxis.set_minor_formatter("")
        curves = {name: own_curves(results, data, model) for name, model in shown.items()}
        learning_curves(right, range(1, settings.epochs + 1), curves, labels="none", words=words)
        right.set(xlabel="epoch", ylabel="training accuracy", title=f"{title_of(data)}, own gains")
    legend_above(figure, axes[0, 2], len(shown))
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def own_curves(results: Results, data: str, model: Model, size: Gains = WIDE) -> np.ndarray:
    """Accuracy (runs, epochs) of a model at the gain at which it is judged."""
    return wide(matching(size.at(results, data, model), quantity="accuracy"), "epoch")


def layer_norms(
    results: Results, data: str, model: Model, gain: float | None, epoch: int | None = None
) -> np.ndarray:
    """Gradient norms (runs, layers) at an epoch or (None) their geometric mean over those after training began.

    At a gain or (None) at the one at which the model is judged.
    """
    import numpy as np

    rows = WIDE.at(results, data, model, gain)
    if epoch is not None:
        return wide(matching(rows, quantity="gradient_norm", epoch=epoch), "layer")
    norms: np.ndarray = np.exp(log_norms(rows).mean(1))
    return norms


def wide(rows: pd.DataFrame, columns: str) -> np.ndarray:
    """Values (runs, columns), one row per seed."""
    return rows.pivot(index="seed", columns=columns, values="value").to_numpy(dtype=float)
