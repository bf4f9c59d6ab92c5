"""Figure S6's six panels: accuracies of both sizes; spectra, gradients and overlaps of the narrow networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from skiplab.data.registry import title as title_of
from skiplab.experiments.gains import PLAIN, RESIDUAL, WIDE
from skiplab.experiments.narrow_networks import NARROW
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2018.spectra_panels import (
    DEGENERATE,
    NEGATIVE,
    at_best,
    at_common,
    fractions_panel,
    line_key,
)

MODELS = (PLAIN, RESIDUAL)
SECOND = 2  # hidden layers are counted from 1


def figure(results: Results) -> Any:
    """The paper's six panels, a block of three rows for each data set."""
    from skiplab.figures.style import new_figure, panel_letter

    sets = results.settings.data
    figure, axes = new_figure(columns=2, rows=3 * len(sets), width=7.2, height=7.5 * len(sets))
    for number, data in enumerate(sets):
        _panels(list(axes[3 * number : 3 * number + 3].flat), results, data)
    for letter, ax in zip("abcdefghijkl", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


def _panels(axes: Sequence[Any], results: Results, data: str) -> None:
    training, test, negative, degenerate, norms, overlap = axes
    _training(training, results, data)
    narrow, wide = (at_best(results, size, data, MODELS) for size in (NARROW, WIDE))
    fractions_panel(test, wide, "test_accuracy", "test accuracy")
    fractions_panel(test, narrow, "test_accuracy", "test accuracy", line="--")
    words, narrow = at_common(results, data, MODELS)
    small = f"2×{results.settings.narrow}, {words}"
    fractions_panel(negative, narrow, "negative", NEGATIVE, title=f"{small}, exact")
    fractions_panel(degenerate, narrow, "degenerate", DEGENERATE, title=f"{small}, exact")
    for layer, line in ((1, "-"), (SECOND, "--")):
        label = "gradient norm in activities"
        fractions_panel(norms, narrow, "gradient_norm", label, title=small, layer=layer, line=line)
    norms.set_yscale("log")
    line_key(norms, (), {"layer 1": "-", "layer 2": "--"})
    fractions_panel(overlap, narrow, "overlap", "mean overlap, layer 2", title=small, layer=SECOND)


def _training(ax: Any, results: Results, data: str) -> None:
    from skiplab.experiments.gain_figures import own_curves
    from skiplab.figures.curves import learning_curves

    settings = results.settings
    styles = {}
    for size, units, line in ((WIDE, settings.width, "-"), (NARROW, settings.narrow, "--")):
        gains = dict.fromkeys(f"{size.own_gain(results, data, model):.3g}" for model in MODELS)
        styles[f"2×{units} units, gain {'/'.join(gains)}"] = line
        known = len(ax.get_lines())
        curves = {model.name: own_curves(results, data, model, size) for model in MODELS}
        learning_curves(ax, range(1, settings.epochs + 1), curves, labels="none")
        for drawn in ax.get_lines()[known:]:
            drawn.set(linestyle=line)
    line_key(ax, [model.name for model in MODELS], styles)
    ax.set(title=title_of(data), xlabel="epoch", ylabel="training accuracy")
