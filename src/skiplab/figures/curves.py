"""Plots that several papers need, from plain arrays: runs over time, by layer, at the end, over a grid.

Each draws into axes it is given and shows every run or an interval over runs, never a bare mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from skiplab import checks
from skiplab.figures.colours import colour_of, label_of

Interval = tuple[np.ndarray, np.ndarray]
LABELS = ("legend", "direct", "none")
_BAND: dict[str, Any] = {"alpha": 0.18, "linewidth": 0}


def mean_interval(runs: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mean, low and high over the first axis: mean ± t·s/√n, Student's interval; (runs, …) in."""
    from scipy import stats

    runs = np.asarray(runs, dtype=float)
    mean = runs.mean(axis=0)
    if len(runs) < 2:
        return mean, mean, mean
    half = stats.t.ppf(0.5 + level / 2, len(runs) - 1) * runs.std(axis=0, ddof=1) / np.sqrt(len(runs))
    return mean, mean - half, mean + half


def median_interval(runs: np.ndarray, level: float = 0.95) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return median, low and high over the first axis; the interval lies between two order statistics.

    The number of runs below the median is binomial(n, ½), which needs no assumption about their law and,
    unlike an interval about the mean, never reaches below zero. Fewer than 6 runs give their whole range.
    """
    from scipy import stats

    ordered = np.sort(np.asarray(runs, dtype=float), axis=0)
    skipped = max(int(stats.binom.ppf((1 - level) / 2, len(ordered), 0.5)) - 1, 0)
    return np.median(ordered, axis=0), ordered[skipped], ordered[len(ordered) - 1 - skipped]


def learning_curves(
    ax: Axes,
    x: Sequence[float] | np.ndarray,
    runs_by_name: Mapping[str, np.ndarray],
    *,
    intervals: Mapping[str, Interval] | None = None,
    level: float = 0.95,
    labels: str = "legend",
    colours: Mapping[str, str] | None = None,
    words: Mapping[str, str] | None = None,
) -> None:
    """Draw each condition's mean over runs with its interval; arrays are (runs, points).

    ``intervals`` maps a name to its own (low, high), each of shape (points,); a name left out gets Student's
    interval. A run that is NaN from some point on leaves a gap there, rather than a mean over survivors. ``colours``
    are those of names that a user chose, by ``colours.distinct``, ``words`` what labels say in place of names.
    """
    checks.one_of("labels", labels, LABELS)
    chosen = colours or {}
    for name, runs in runs_by_name.items():
        array = _runs(name, runs, len(x))
        mean, low, high = mean_interval(array, level)
        if intervals and name in intervals:
            low, high = intervals[name]
        colour = chosen.get(name) or colour_of(name)
        ax.fill_between(x, low, high, color=colour, **_BAND)
        ax.plot(x, mean, color=colour, label=(words or {}).get(name) or label_of(name))
    ax.margins(x=0.02)
    _label(ax, labels)


def by_layer(
    ax: Axes,
    layers: Sequence[float] | np.ndarray,
    norms_by_name: Mapping[str, np.ndarray],
    *,
    level: float = 0.95,
    labels: str = "legend",
    words: Mapping[str, str] | None = None,
) -> None:
    """Draw a positive quantity by layer on a logarithmic axis: the median over runs and its interval.

    Arrays are (runs, layers). Exact zeros, as in a dead network, fall off the axis instead of bending it.
    """
    checks.one_of("labels", labels, LABELS)
    ax.set_yscale("log", nonpositive="mask")
    for name, norms in norms_by_name.items():
        array = _runs(name, norms, len(layers))
        middle, low, high = median_interval(array, level)
        # A masked edge would cut the band out where only its lower end is zero.
        floor = array.min(initial=np.inf, where=array > 0)
        ax.fill_between(layers, np.maximum(low, floor), high, where=high > 0, color=colour_of(name), **_BAND)
        label = (words or {}).get(name) or label_of(name)
        ax.plot(layers, middle, color=colour_of(name), marker="o", markersize=2.5, label=label)
    ax.margins(x=0.02)
    _label(ax, labels)


def final_dots(
    ax: Axes,
    names: Sequence[str],
    samples: Sequence[Sequence[float] | np.ndarray],
    *,
    intervals: Sequence[tuple[float, float]] | None = None,
    level: float = 0.95,
    colours: Mapping[str, str] | None = None,
    rings: Sequence[np.ndarray] | None = None,
) -> None:
    """Draw every run as a dot, and beside the dots the mean with its interval.

    ``rings`` says for each sample which of its runs are rings, to set them apart.
    """
    checks.require(
        len(names) == len(samples),
        f"final_dots got {len(names)} names for {len(samples)} samples; give each sample one name.",
    )
    for place, (name, sample) in enumerate(zip(names, samples, strict=True)):
        colour = (colours or {}).get(name) or colour_of(name)
        values = np.asarray(sample, dtype=float)
        order = np.argsort(values, kind="stable")
        ringed = np.zeros(len(values), bool) if rings is None else np.asarray(rings[place])[order]
        values = values[order]
        # Multiples of the golden ratio spread neighbours evenly, so no random jitter is needed.
        shift = (np.arange(len(values)) * 0.6180339887 % 1 - 0.5) * 0.34
        across = place - 0.1 + shift
        ax.scatter(across[~ringed], values[~ringed], s=7, color=colour, alpha=0.55, linewidths=0)
        if ringed.any():
            ax.scatter(
                across[ringed], values[ringed], s=9, facecolor="none", edgecolor=colour, linewidths=0.7
            )
        mean, low, high = (float(each) for each in mean_interval(values, level))
        if intervals is not None:
            low, high = intervals[place]
        ends = [[mean - low], [high - mean]]
        ax.errorbar(place + 0.24, mean, ends, fmt="o", markersize=3, capsize=3, elinewidth=1.2, color=colour)
    shown = [label_of(name) for name in names]
    ax.set_xticks(range(len(names)), shown)
    if sum(map(len, shown)) > 30:
        ax.tick_params(axis="x", labelrotation=35)
        for text in ax.get_xticklabels():
            text.set(ha="right", rotation_mode="anchor")
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.grid(False, axis="x")


def heatmap(
    ax: Axes,
    values: np.ndarray,
    row_ticks: Sequence[float | str],
    column_ticks: Sequence[float | str],
    *,
    row_label: str = "",
    column_label: str = "",
    value_label: str = "",
    number: str = ".1f",
    best: str | None = "max",
) -> None:
    """Draw a grid search: one cell a setting with its value, the best one framed; NaN means not run.

    Values are (rows, columns). ``best`` is "max", "min" or None; ``value_label`` titles the panel.
    """
    values = np.asarray(values, dtype=float)
    shape = (len(row_ticks), len(column_ticks))
    checks.require(
        values.shape == shape,
        f"heatmap got values of shape {values.shape}, but ticks for {shape}; give each cell one value.",
    )
    scale: Any = ax.imshow(values, cmap="cividis", aspect="auto").norm
    ax.set_facecolor("#EEEEEE")  # shows through where a cell is NaN
    for (row, column), value in np.ndenumerate(values):
        ink = "#222222" if not np.isfinite(value) or float(scale(value)) > 0.55 else "white"
        text = format(value, number) if np.isfinite(value) else "–"
        ax.text(column, row, text, ha="center", va="center", fontsize=7.5, color=ink)
    if best is not None and np.isfinite(values).any():
        pick = np.nanargmax if checks.one_of("best", best, ("max", "min")) == "max" else np.nanargmin
        row, column = np.unravel_index(pick(values), values.shape)
        corner = (column - 0.46, row - 0.46)
        ax.add_patch(Rectangle(corner, 0.92, 0.92, fill=False, edgecolor="#D55E00", linewidth=1.6))
    ax.set_xticks(range(shape[1]), [_tick(tick) for tick in column_ticks])
    ax.set_yticks(range(shape[0]), [_tick(tick) for tick in row_ticks])
    ax.set(xlabel=column_label, ylabel=row_label)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(False)
    if value_label:
        ax.set_title(value_label)


def label_ends(ax: Axes) -> None:
    """Write each labelled line's name at its right end in its colour, moved apart where they would touch."""
    ax.get_ylim()  # matplotlib fits the limits to the data only when they are asked for
    ends = []
    for line in ax.get_lines():
        y = np.asarray(line.get_ydata(), dtype=float)
        y = y[np.isfinite(y)]
        if y.size and not str(line.get_label()).startswith("_"):
            height = ax.transData.transform((0, y[-1]))[1] * 72 / ax.figure.dpi
            ends.append((float(height), float(y[-1]), line))
    ends.sort(key=lambda end: end[0])
    places = _apart([height for height, _, _ in ends], gap=10.5)  # points: a line of text
    for place, (height, y_end, line) in zip(places, ends, strict=True):
        ax.annotate(
            str(line.get_label()),
            xy=(1, y_end),
            xycoords=("axes fraction", "data"),
            xytext=(4, place - height),
            textcoords="offset points",
            color=line.get_color(),
            fontsize=8,
            va="center",
            annotation_clip=False,
        )


def _apart(places: Sequence[float], gap: float) -> list[float]:
    """Move sorted places so that neighbours are a gap apart, keeping each touching group's middle."""
    groups: list[list[float]] = []
    for place in places:
        groups.append([place])
        while len(groups) > 1 and _centre(groups[-1]) - _centre(groups[-2]) < gap * (
            (len(groups[-1]) + len(groups[-2])) / 2
        ):
            last = groups.pop()
            groups[-1] += last
    return [_centre(group) + gap * (i - (len(group) - 1) / 2) for group in groups for i in range(len(group))]


def _centre(group: Sequence[float]) -> float:
    return sum(group) / len(group)


def _label(ax: Axes, labels: str) -> None:
    if labels == "direct":
        label_ends(ax)
    elif labels == "legend" and ax.get_legend_handles_labels()[0]:
        ax.legend()


def _runs(name: str, runs: np.ndarray, points: int) -> np.ndarray:
    array = np.atleast_2d(np.asarray(runs, dtype=float))
    checks.require(
        array.ndim == 2 and array.shape[1] == points,
        f"{name} has runs of shape {array.shape} for {points} points; give an array (runs, points).",
    )
    return array


def _tick(tick: float | str) -> str:
    return tick if isinstance(tick, str) else f"{tick:g}"
