"""Covariances of gradients as pictures, their effective rank and mean norm by depth (balduzzi2017, figure 5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, ScalarFormatter, StrMethodFormatter

from skiplab.figures.colours import colour_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import PAGE_WIDTH, STYLE, HouseAxes, new_figure, panel_letter

_SHADES = ("#0072B2", "#56B4E9", "#332288", "#44AA99")  # residual networks, the first β first


def gradient_covariances(
    pictures: Mapping[str, Mapping[int, np.ndarray]],
    depths: Sequence[int],
    ranks: Mapping[str, np.ndarray],
    norms: Mapping[str, np.ndarray],
    *,
    samples: int,
) -> Figure:
    """Draw covariances (samples, samples) by model and depth above, curves (runs, depths) by model below.

    Models are "plain" or "resnet-β". Each picture has its own scale, from 0 to the 99th percentile of its entries
    off the diagonal, since the question is whether there is structure, not how large it is.
    """
    shown = [(model, depth) for model, by_depth in pictures.items() for depth in sorted(by_depth)]
    columns = max(len(shown), 2)
    figure, axes = new_figure(columns=columns, rows=2, width=PAGE_WIDTH, height=4.6)
    grid = axes[0, 0].get_gridspec()
    for ax in (*axes[0, len(shown) :], *axes[1]):
        ax.remove()
    for ax, (model, depth) in zip(axes[0], shown, strict=False):
        _picture(ax, pictures[model][depth])
        ax.set_title(f"{_label(model)}, L={depth}")
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
    right.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    right.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    right.yaxis.set_minor_locator(NullLocator())
    lines, names = left.get_legend_handles_labels()
    figure.legend(lines, names, loc="outside lower center", ncols=len(names))
    panel_letter(left, "c")
    panel_letter(right, "d")
    return figure


def _picture(ax: Axes, matrix: np.ndarray) -> None:
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    top = float(np.percentile(off, 99)) or 1.0
    ax.imshow(matrix, cmap="viridis", vmin=0.0, vmax=top, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.grid(False)


def _curves(
    ax: Axes, depths: Sequence[int], runs_by_model: Mapping[str, np.ndarray], *, white: float
) -> None:
    """Means over runs by depth with their intervals, on a logarithmic axis of depths; white noise dashed."""
    residual = [model for model in runs_by_model if model != "plain"]
    for model, runs in runs_by_model.items():
        colour = colour_of("plain") if model == "plain" else _SHADES[residual.index(model) % len(_SHADES)]
        mean, low, high = mean_interval(np.asarray(runs, dtype=float))
        style: dict[str, Any] = {"color": colour, "capsize": 2, "fmt": "o-", "markersize": 3}
        ax.errorbar(depths, mean, np.stack([mean - low, high - mean]), label=_label(model), **style)
    ax.axhline(
        white, color="#777777", linestyle=(0, (4, 3)), linewidth=0.9, label="White gradients", zorder=1
    )
    ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(ScalarFormatter())
    ax.set_xticks(list(depths), [str(depth) for depth in depths])
    ax.set_xlabel("depth (convolutions)")


def _label(model: str) -> str:
    return "No skips" if model == "plain" else f"ResNet, β={model.removeprefix('resnet-')}"
