"""Covariances of gradients as pictures, their effective rank and mean norm by depth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter, StrMethodFormatter

from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, STYLE, HouseAxes, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.reproduction.results import matching
from skiplab.studies.balduzzi2017.figure_5.evidence import beta_of, by_depth
from skiplab.studies.balduzzi2017.figure_5.trials import measure, structure
from skiplab.studies.balduzzi2017.palette import (
    COVARIANCE_LABEL,
    COVARIANCE_MAP,
    NOISE,
    network_colour,
    network_name,
)

_WHITE = "White noise"
Model = float | None  # a network's β, None being the feedforward one


def draw(results: Results) -> Figure:
    """Draw the first data set and kind of gradient: the covariances that were kept, and the curves of all models."""
    settings = results.settings
    data, gradient = settings.data[0], settings.gradients[0]
    kept = results.rows(measure, data=data, quantity="covariance")
    pictures: dict[Model, dict[int, np.ndarray]] = {}
    for model, depth in product(settings.models, settings.depths):
        rows = matching(kept, model=model, depth=depth)
        if len(rows):
            pictures.setdefault(beta_of(model), {})[depth] = whole(rows)

    def curves(quantity: str) -> dict[Model, np.ndarray]:
        where = {"data": data, "gradient": gradient, "quantity": quantity}
        return {
            beta_of(model): by_depth(results, model=model, **where).to_numpy(dtype=float)
            for model in settings.models
        }

    sizes = {beta_of(model): cluster_sizes(results, data, model) for model in settings.pictured}
    ranks, norms = curves("relative_rank"), curves("mean_norm")
    return gradient_covariances(
        pictures, sizes, sorted(set(settings.depths)), ranks, norms, samples=settings.samples
    )


def cluster_sizes(results: Results, data: str, model: str) -> list[int]:
    """How many images each cluster of the first run has, in the order of the pictures."""
    rows = results.rows(structure, data=data, model=model, quantity="cluster size")
    rows = matching(rows, seed=rows["seed"].min()).sort_values("row")
    return [int(size) for size in rows["value"]]


def whole(rows: pd.DataFrame) -> np.ndarray:
    """The symmetric matrix of which a trial kept the lower half."""
    size = int(rows["row"].max()) + 1
    matrix = np.zeros((size, size))
    below = rows["row"].to_numpy(), rows["column"].to_numpy()
    matrix[below] = matrix[below[::-1]] = rows["value"].to_numpy()
    return matrix


def gradient_covariances(
    pictures: Mapping[Model, Mapping[int, np.ndarray]],
    sizes: Mapping[Model, Sequence[int]],
    depths: Sequence[int],
    ranks: Mapping[Model, np.ndarray],
    norms: Mapping[Model, np.ndarray],
    *,
    samples: int,
) -> Figure:
    """Draw covariances (samples, samples) by model and depth above, curves (runs, depths) by model below.

    Pictures have one scale, from 0 to the 99th percentile of all their entries off the diagonal, and lines between
    clusters, of which ``sizes`` are the numbers of images.
    """
    shown = [(model, depth) for model, by_depth in pictures.items() for depth in sorted(by_depth)]
    columns = max(len(shown), 2)
    figure, axes = new_figure(columns=columns, rows=2, width=PAGE_WIDTH, height=5.0)
    grid = axes[0, 0].get_gridspec()
    grid.set_height_ratios((1.1, 1.0))
    for ax in (*axes[0, len(shown) :], *axes[1]):
        ax.remove()
    off = [
        matrix[~np.eye(len(matrix), dtype=bool)]
        for by_depth in pictures.values()
        for matrix in by_depth.values()
    ]
    top = float(np.percentile(np.concatenate(off), 99)) or 1.0
    for ax, (model, depth) in zip(axes[0], shown, strict=False):
        image = _picture(ax, pictures[model][depth], top, sizes[model])
        ax.set_title(f"{network_name(model)},\n{depth} layers", fontsize=8.5)
    drawn = list(axes[0, : len(shown)])
    bar = figure.colorbar(image, ax=drawn, location="right", fraction=0.02, pad=0.01, extend="max")
    bar.ax.tick_params(labelsize=7, length=2)
    bar.set_label(COVARIANCE_LABEL, fontsize=7)
    axes[0, 0].set_ylabel("image, by cluster")
    first = [next(k for k, (model, _) in enumerate(shown) if model == name) for name in pictures]
    for letter, place in zip("ab", first, strict=False):
        panel_letter(axes[0, place], letter)
    half = columns // 2
    with mpl.rc_context(STYLE):  # axes look up spines and grids when they are made
        left = figure.add_subplot(grid[1, :half], axes_class=HouseAxes)
        right = figure.add_subplot(grid[1, half:], axes_class=HouseAxes)
        for ax in (left, right):
            ax.grid(True)
    _curves(left, depths, ranks, white=1.0)
    left.set(ylabel="relative effective rank", ylim=(0, None))
    _curves(right, depths, norms, white=samples**-0.5)
    right.set_yscale("log")
    right.set(ylabel="‖mean‖ / standard deviation")
    right.yaxis.set_major_locator(
        FixedLocator([round(start * 10.0**k, 3) for k in (-2, -1) for start in (1, 1.5, 2, 3, 5, 7)])
    )
    right.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    right.yaxis.set_minor_locator(NullLocator())
    lines, names = left.get_legend_handles_labels()
    # Networks first: matplotlib puts plain lines, here that of noise, before those with error bars.
    order = sorted(range(len(names)), key=lambda place: names[place] == _WHITE)
    figure.legend(
        [lines[k] for k in order], [names[k] for k in order], loc="outside lower center", ncols=len(names)
    )
    panel_letter(left, "c")
    panel_letter(right, "d")
    return figure


def _picture(ax: Axes, matrix: np.ndarray, top: float, sizes: Sequence[int]) -> AxesImage:
    image = ax.imshow(matrix, cmap=COVARIANCE_MAP, vmin=0.0, vmax=top, interpolation="nearest")
    for border in np.cumsum(sizes)[:-1] - 0.5:
        for line in (ax.axhline, ax.axvline):
            line(border, color="white", linewidth=0.35, alpha=0.7)
    ax.set(xticks=[], yticks=[])
    ax.set_xlabel("image, by cluster", labelpad=3)
    ax.grid(False)
    return image


def _curves(
    ax: Axes, depths: Sequence[int], runs_by_model: Mapping[Model, np.ndarray], *, white: float
) -> None:
    """Means over runs by depth with their intervals, on a logarithmic axis of depths; white noise dashed."""
    for place, (model, runs) in enumerate(runs_by_model.items()):
        # Side by side, so that intervals do not cover each other.
        shifted = np.asarray(depths) * 1.03 ** (place - (len(runs_by_model) - 1) / 2)
        mean, low, high = mean_interval(np.asarray(runs, dtype=float))
        style: dict[str, Any] = {"color": network_colour(model), "capsize": 2, "fmt": "o-", "markersize": 3}
        ax.errorbar(shifted, mean, np.stack([mean - low, high - mean]), label=network_name(model), **style)
    ax.axhline(white, color=NOISE["white"], linestyle=(0, (4, 3)), linewidth=0.9, label=_WHITE, zorder=1)
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.set_xticks(list(depths), [str(depth) for depth in depths])
    ax.set_xlabel("depth (convolutions)")
