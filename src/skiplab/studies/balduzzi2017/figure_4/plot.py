"""Which units are active for which inputs: rasters, and histograms below them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import SubplotSpec
from matplotlib.patches import Patch

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, STYLE, HouseAxes, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.balduzzi2017.activity import histogram, rows_of
from skiplab.studies.balduzzi2017.line_networks import REACH

_ACTIVE, _RUNS = "#0072B2", "#E69F00"


def draw(results: Results, shown: Mapping[str, str]) -> Figure:
    """Draw each kind of network, by the words of its title, at every layer seen in detail."""
    layers = results.settings.layers
    return raster_panels(
        {title: {layer: _of(results, words, layer) for layer in layers} for words, title in shown.items()},
        reach=REACH,
    )


def _of(results: Results, words: str, layer: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A cell: the first network's pattern and all networks' histograms."""
    activation, runs = (
        histogram(results, words, quantity, layer).to_numpy()
        for quantity in ("activation share", "run share")
    )
    return raster(results, words, layer), activation, runs


def raster(results: Results, words: str, layer: int) -> np.ndarray:
    """The first network's pattern (units, inputs), put together from the starts of its runs."""
    units, points = results.settings.width, results.settings.points
    rows = rows_of(results, words, "run", layer=layer).sort_values(["unit", "x"])
    places = rows["unit"].to_numpy() * points + rows["x"].to_numpy().astype(int)
    lengths = np.diff(places, append=units * points)
    return np.repeat(rows["value"].to_numpy(), lengths).reshape(units, points)


def raster_panels(
    cases: Mapping[str, Mapping[int, tuple[np.ndarray, np.ndarray, np.ndarray]]], reach: float
) -> Figure:
    """Draw a column for each case and a row for each layer: a raster over two histograms.

    A cell is (pattern, activation, runs): the pattern (units, inputs from −reach to reach), the shares of units
    (networks, bins of equal width from 0 to 1) and the shares of runs (networks, octaves of length from 1).
    """
    rows = max(len(layers) for layers in cases.values())
    figure, axes = new_figure(width=PAGE_WIDTH, height=0.7 + 2.35 * rows, grid=False)
    axes[0, 0].remove()
    # One grid for all, so that what is alike is of one size: two columns per case, two rows per layer, and gaps.
    cells = figure.add_gridspec(
        *(3 * rows - 1, 3 * len(cases) - 1),
        height_ratios=[*((1.35, 1.0, 0.12) * rows)][:-1],
        width_ratios=[*((1.0, 1.0, 0.1) * len(cases))][:-1],
    )
    for place, (title, layers) in enumerate(cases.items()):
        for row, (layer, cell) in enumerate(layers.items()):
            heading = f"{title}\nlayer {layer}" if row == 0 else f"layer {layer}"
            top, left = 3 * row, 3 * place
            slots = (cells[top, left : left + 2], cells[top + 1, left], cells[top + 1, left + 1])
            raster = _cell(figure, slots, cell, heading, reach, first=place == 0)
            if row == 0:
                panel_letter(raster, "abcde"[place])
    key = [Patch(facecolor=shade, edgecolor="#444444", linewidth=0.6) for shade in ("black", "white")]
    key += [Patch(color=_ACTIVE), Patch(color=_RUNS)]
    words = ["active", "inactive", "share of units", "share of runs"]
    figure.legend(key, words, loc="outside lower center", ncols=len(words), fontsize=7.5)
    return figure


def _cell(
    figure: Figure,
    slots: Sequence[SubplotSpec],
    cell: tuple[np.ndarray, np.ndarray, np.ndarray],
    heading: str,
    reach: float,
    *,
    first: bool,
) -> Axes:
    """Draw a raster over two histograms, and return the raster's axes."""
    pattern, activation, runs = cell
    with mpl.rc_context(STYLE):  # axes added later than new_figure's do not know the house style
        raster, left, right = (figure.add_subplot(place, axes_class=HouseAxes) for place in slots)
    units = len(pattern)
    ends = (-reach, reach, units + 0.5, 0.5)
    raster.imshow(pattern, cmap="Greys", vmin=0, vmax=1, aspect="auto", extent=ends, interpolation="nearest")
    raster.set_title(heading, fontsize=7.5)
    raster.set_xticks([-reach, 0, reach])
    raster.set_yticks([1, units] if first else [])
    raster.tick_params(labelsize=6, length=2)
    raster.set_xlabel("input $x$", fontsize=6.5, labelpad=1)
    raster.spines[:].set_visible(True)
    bins = activation.shape[1]
    _bars(left, (np.arange(bins) + 0.5) / bins, activation, 1 / bins, _ACTIVE)
    left.set_xticks([0, 0.5, 1], ["0", "½", "1"])
    left.set_xlabel("activation per unit", fontsize=6.5, labelpad=1)
    octaves = np.arange(runs.shape[1])
    _bars(right, octaves + 0.5, runs, 1, _RUNS)
    shown = octaves[::2]
    right.set_xticks(shown + 0.5, [str(2**octave) for octave in shown])
    right.set_xlabel("contiguity (inputs)", fontsize=6.5, labelpad=1)
    right.set_yticklabels([])
    if first:
        raster.set_ylabel("unit", fontsize=6.5, labelpad=1)
        left.set_ylabel("share", fontsize=6.5, labelpad=1)
    else:
        left.set_yticklabels([])
    return raster


def _bars(ax: Axes, places: np.ndarray, shares: np.ndarray, width: float, colour: str) -> None:
    mean, low, high = mean_interval(shares)
    ax.bar(places, mean, width=0.92 * width, color=colour)
    ax.vlines(places, low, high, color="#222222", linewidth=0.6)
    ax.set_ylim(0, 1)
    ax.set_yticks([0, 0.5, 1], ["0", "½", "1"])
    ax.tick_params(labelsize=6, length=2)
