"""Accuracy against depth, one line per model, every network a dot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, PercentFormatter

from skiplab.data.registry import title as title_of
from skiplab.figures.colours import colour_of
from skiplab.figures.curves import mean_interval
from skiplab.figures.style import new_figure, panel_letter

ByDepth = Mapping[int, Sequence[float] | np.ndarray]  # depth → one accuracy per network
MODELS = {
    "crelu-ll": ("CReLU, looks linear", "#009E73"),
    "crelu": ("CReLU", "#E69F00"),
    "resnet": ("ResNet", colour_of("residual")),
    "relu": ("ReLU", colour_of("plain")),
    "prelu-ll": ("PReLU, looks linear", "#CC79A7"),
}


def title(data: str, quantity: str) -> str:
    """What stands above the panel of a data set and quantity."""
    return f"{title_of(data)}, {'test' if quantity == 'test_accuracy' else 'training'}"


def accuracy_by_depth(
    panels: Mapping[str, Mapping[str, ByDepth]], *, baseline: tuple[str, float] | None = None
) -> Figure:
    """Draw a panel per title: accuracies by depth for each model, with a dashed baseline where one is given."""
    figure, axes = new_figure(columns=len(panels), sharey=True, width=3.6 * len(panels), height=3.0)
    for letter, (ax, (title, models)) in zip(
        "abcdef", zip(axes[0], panels.items(), strict=True), strict=False
    ):
        for place, (name, by_depth) in enumerate(models.items()):
            _line(ax, name, by_depth, 1 + 0.025 * (place - (len(models) - 1) / 2))
        if baseline is not None:
            words, height = baseline
            ax.axhline(height, color="#777777", linestyle=(0, (4, 3)), linewidth=0.9, label=words, zorder=1)
        depths = sorted({depth for by_depth in models.values() for depth in by_depth})
        ax.set(title=title, xlabel="depth (layers with weights)")
        ax.set_xscale("log")
        ax.xaxis.set_minor_locator(NullLocator())
        ax.xaxis.set_minor_formatter(NullFormatter())
        ax.set_xticks(depths, [str(depth) for depth in depths])
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        panel_letter(ax, letter)
    axes[0, 0].set_ylabel("accuracy")
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=len(names))
    return figure


def _line(ax: Axes, name: str, by_depth: ByDepth, shift: float) -> None:
    """Means with intervals over networks, and the networks; models stand side by side at each depth."""
    label, colour = MODELS.get(name, (name, colour_of(name)))
    means, ends, places = [], [], []
    for depth in sorted(by_depth):
        values = np.asarray(by_depth[depth], dtype=float)
        mean, low, high = (float(each) for each in mean_interval(values))
        ax.scatter([depth * shift] * len(values), values, s=6, color=colour, alpha=0.35, linewidths=0)
        means.append(mean)
        ends.append((mean - low, high - mean))
        places.append(depth * shift)
    ax.errorbar(places, means, np.array(ends).T, fmt="o-", capsize=2, color=colour, label=label, zorder=3)
