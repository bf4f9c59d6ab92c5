"""The figure of a comparison."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from skiplab.figures.colours import distinct
from skiplab.figures.curves import final_dots, learning_curves
from skiplab.figures.style import new_figure

if TYPE_CHECKING:
    from skiplab.diagnosis.comparison.result import Comparison

POINTS = 50  # of a curve: single steps are too noisy to be read


def drawn(found: Comparison) -> Any:
    """The loss over training, the networks' final values, and one panel per instrument."""
    instruments = list(dict.fromkeys(each.instrument for each in found.measures))
    colours = distinct(found.names)
    panels = 2 + len(instruments)
    columns = min(panels, 3)
    rows = -(-panels // columns)
    figure, axes = new_figure(columns, rows)
    places = list(axes.flat)
    steps, curves = in_bins({runs.name: runs.loss for runs in found.runs})
    learning_curves(places[0], steps, curves, colours=colours)
    places[0].set(title="Training", xlabel="step", ylabel="loss")
    finals = {runs.name: runs.finals[found.decided_by] for runs in found.runs}
    _dots(places[1], finals, colours)
    places[1].set(title=found.decided_by.capitalize())
    for panel, instrument in zip(places[2:], instruments, strict=False):
        after = [each for each in found.measures if (each.instrument, each.when) == (instrument, "after")]
        chosen = after or [each for each in found.measures if each.instrument == instrument]
        samples = {each.model: each.in_short for each in chosen}
        # In logarithms, so that the mean and its interval are those of the text.
        by_decades = chosen[0].by_decades and all(
            (values[~np.isnan(values)] > 0).all() for values in samples.values()
        )
        if by_decades:
            samples = {name: np.log10(values) for name, values in samples.items()}
        _dots(panel, samples, colours)
        panel.set_title(f"{instrument.replace('_', ' ')}, {chosen[0].when} training", fontsize="small")
        panel.set_ylabel(f"log₁₀ {chosen[0].quantity}" if by_decades else chosen[0].quantity)
    for panel in places[panels:]:
        panel.set_visible(False)
    return figure


def in_bins(curves: dict[str, np.ndarray], points: int = POINTS) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Means of curves (runs, steps) over bins of steps, and the middle of each bin, counted from step 1."""
    steps = next(iter(curves.values())).shape[1]
    edges = np.unique(np.linspace(0, steps, min(points, steps) + 1).round().astype(int))
    bins = list(itertools.pairwise(edges))
    middles = np.array([(low + 1 + high) / 2 for low, high in bins])
    return middles, {
        name: np.stack([curve[:, low:high].mean(1) for low, high in bins], axis=1)
        for name, curve in curves.items()
    }


def _dots(panel: Any, samples: dict[str, np.ndarray], colours: dict[str, str]) -> None:
    """Dots of what is finite; a model without any keeps its name on the axis."""
    finite = [values[np.isfinite(values)] for values in samples.values()]
    kept = {name: values for name, values in zip(samples, finite, strict=True) if len(values)}
    if kept:
        final_dots(panel, list(kept), list(kept.values()), colours=colours)
