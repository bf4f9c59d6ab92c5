"""Where overlapping units make a Hessian singular: rows, smallest eigenvalues, numbers of zeros."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results, matching, sample_of
from skiplab.studies.orhan2017.notes.evidence import A_BLOCK, ratios_of, values
from skiplab.studies.orhan2017.notes.trials import ACTIVATIONS, NETWORKS, PLAIN_POINTS, SHAPES, multilayer

INK, MARK = "#555555", "#C1272D"
_FLOOR = 1e-18  # what is rounding is drawn here, on the line marked 0
_ROUNDING = 1e-12


def note_panels(results: Results) -> Figure:
    """Draw notes 1 to 3 in a row each."""
    figure, axes = new_figure(2, rows=3, width=PAGE_WIDTH, height=7.6)
    _rows(axes[0, 0], results)
    _smallest(axes[0, 1], _smallest_eigenvalues(results))
    _table(axes[1, 0], PLAIN_POINTS, _most(results, "gauss-newton"), "zeros of Gauss–Newton")
    _table(axes[1, 1], PLAIN_POINTS, _most(results, A_BLOCK), "zeros of its block of $a$")
    ratios = ratios_of(results)
    _eigenvalues(axes[2, 0], ratios, _samples(results, "eigenvalue", NETWORKS[:2]))
    _by_ratio(axes[2, 1], ratios, _samples(results, "smallest", NETWORKS), results.settings.depth)
    for ax, letter in zip(axes.flat, "abcdef", strict=True):
        panel_letter(ax, letter)
    return figure


def _smallest_eigenvalues(results: Results) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The smallest |eigenvalues| of each network off and at an optimum."""

    def off_and_at(note: int, point: str, **where: str) -> tuple[np.ndarray, np.ndarray]:
        off, at = (
            values(results, note, "smallest", point=place, **where).to_numpy()
            for place in (point, f"{point}, optimum")
        )
        return off, at

    first = {f"note 1, {case}": off_and_at(1, "overlap", case=case) for case in ACTIVATIONS}
    return first | {
        f"{network}, {case}": off_and_at(2, "b overlaps", network=network, case=case)
        for network in NETWORKS[:2]
        for case in SHAPES
    }


def _most(results: Results, quantity: str) -> dict[str, list[float]]:
    """The largest number of zeros that a network of note 2 has at each point."""
    return {
        f"{network}, {case}": [
            values(results, 2, quantity, network=network, case=case, point=point).max()
            for point in PLAIN_POINTS
        ]
        for case in SHAPES
        for network in NETWORKS[:2]
    }


def _samples(results: Results, quantity: str, networks: Sequence[str]) -> dict[str, list[np.ndarray]]:
    """A quantity of note 3's networks, a sample for every ratio u/s."""
    return {
        name: [values(results, 3, quantity, network=name, x=ratio).to_numpy() for ratio in ratios_of(results)]
        for name in networks
    }


def _rows(ax: Axes, results: Results) -> None:
    """How two rows of the Hessian differ, weight by weight, in the first network of note 1."""
    case, (_, inputs, width) = next(iter(ACTIVATIONS.items()))
    rows = results.rows(multilayer, quantity="row difference", case=case)
    difference = sample_of(matching(rows, draw=rows["draw"].min()), by="x")
    # Weights up to the end of the two units' incoming ones, of their layer, and of the next.
    blocks = (2 * inputs, width * inputs, width * inputs + width * width)
    places = np.arange(1, len(difference) + 1)
    unequal = difference > _ROUNDING
    ax.vlines(places[unequal], 0, difference[unequal], color=MARK, linewidth=1.6)
    ax.plot(places[~unequal], difference[~unequal], "o", markersize=2, color=INK)
    for end in blocks[1:]:
        ax.axvline(end + 0.5, color=INK, linewidth=0.6, linestyle=":")
    top = difference.max()
    starts = (0, *blocks[1:])
    for start, end, text in zip(
        starts, (*starts[1:], len(difference)), ("layer 1", "layer 2", "output"), strict=True
    ):
        ax.text((start + end) / 2 + 0.5, 1.13 * top, text, ha="center", va="center", fontsize=7.5, color=INK)
    ax.text(
        blocks[0] + 1.5,
        0.92 * top,
        "← incoming weights of\n    the two units",
        fontsize=7.5,
        color=MARK,
        va="center",
    )
    ax.set(xlabel="weight (column of $H$)", ylabel="|difference of two rows|", ylim=(-0.03 * top, 1.22 * top))
    ax.grid(False, axis="x")


def _smallest(ax: Axes, smallest: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
    names = list(smallest)
    for place, name in enumerate(names):
        colour = colour_of("residual" if name.startswith("residual") else "plain")
        for sample, marker, shift in zip(smallest[name], ("o", "x"), (-0.15, 0.2), strict=True):
            shown = np.where(sample <= _ROUNDING, _FLOOR, sample)
            spread = shift + (np.arange(len(shown)) * 0.6180339887 % 1 - 0.5) * 0.25
            ax.plot(shown, place + spread, marker, markersize=2.2, color=colour, markeredgewidth=0.7)
    ax.plot([], [], "o", markersize=2.6, color=INK, label="off an optimum")
    ax.plot([], [], "x", markersize=2.6, color=INK, label="at an optimum")
    ax.legend(loc="lower left", bbox_to_anchor=(0.04, 0.0), fontsize=7)
    ax.set_xscale("log")
    ax.set_xlim(_FLOOR / 10, 1)
    ax.set_xticks([_FLOOR, 1e-12, 1e-6, 1.0], ["0", "$10^{-12}$", "$10^{-6}$", "1"])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_yticks(range(len(names)), names, fontsize=7)
    ax.invert_yaxis()
    ax.grid(False, axis="y")
    ax.set_xlabel("smallest |eigenvalue| of $H$, relative")


def _table(ax: Axes, points: Sequence[str], numbers: Mapping[str, Sequence[float]], title: str) -> None:
    """Write the numbers; those above the generic one of their row are red."""
    for row, (_, found) in enumerate(numbers.items()):
        for column, value in enumerate(found):
            more = value > found[0]
            ax.text(
                column,
                row,
                f"{value:g}",
                ha="center",
                va="center",
                fontsize=8.5,
                color=MARK if more else INK,
                fontweight="bold" if more else "normal",
            )
        if row % 2 and row + 1 < len(numbers):
            ax.axhline(row + 0.5, color="#CCCCCC", linewidth=0.6)
    ax.set_xlim(-0.5, len(points) - 0.5)
    ax.set_ylim(len(numbers) - 0.5, -0.5)
    ax.set_xticks(range(len(points)), [point.replace(" ", "\n", 1) for point in points], fontsize=7)
    ax.set_yticks(range(len(numbers)), list(numbers), fontsize=7)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    ax.grid(False)
    ax.set_title(title)


def _eigenvalues(ax: Axes, ratios: Sequence[float], eigenvalues: Mapping[str, Sequence[np.ndarray]]) -> None:
    line = np.linspace(0, max(ratios) * 1.05, 200)
    ax.plot(line, line * (1 - line), color=INK, linewidth=0.9, label="$u(s-u)/s^2$")
    ax.axhline(0, color=MARK, linewidth=0.9, linestyle="--", label="as printed")
    markers = dict(zip(eigenvalues, "osD", strict=False))
    for name, samples in eigenvalues.items():
        for ratio, sample in zip(ratios, samples, strict=True):
            ax.plot(
                np.full(len(sample), ratio),
                sample,
                markers[name],
                markersize=6 - 2.5 * list(eigenvalues).index(name),
                color=colour_of(name),
                label=label_of(name) if ratio == ratios[0] and len(sample) else None,
                markerfacecolor="none" if name == "plain" else None,
                linestyle="none",
            )
    handles, labels = ax.get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    ax.legend(unique.values(), unique.keys(), loc="lower left")
    ax.set(xlabel="$u/s$", ylabel="eigenvalue of $e_1-e_2$\n$\\times\\,(a_1+c)^2/s^2$")


def _by_ratio(
    ax: Axes, ratios: Sequence[float], samples: Mapping[str, Sequence[np.ndarray]], depth: int
) -> None:
    other = (depth - 1) / (2 * depth - 1)
    for place in (1.0, other):
        ax.axvline(place, color=INK, linewidth=0.6, linestyle=":")
    for number, (name, by_ratio) in enumerate(samples.items()):
        shift = (number - (len(samples) - 1) / 2) * 0.022
        for ratio, found in zip(ratios, by_ratio, strict=True):
            shown = np.where(found <= _ROUNDING, _FLOOR, found)
            ax.plot(
                np.full(len(shown), ratio + shift),
                shown,
                "o",
                markersize=2.4,
                color=colour_of(name),
                label=label_of(name) if ratio == ratios[0] else None,
            )
    ax.set_yscale("log")
    ax.set_ylim(_FLOOR / 20, 3e3)
    ax.set_yticks([_FLOOR, 1e-12, 1e-6, 1.0], ["0", "$10^{-12}$", "$10^{-6}$", "1"])
    ax.yaxis.set_minor_locator(NullLocator())
    ax.text(1.0, 2e2, " $u=s$", fontsize=7.5, color=INK, ha="left", va="center")
    ax.text(
        other,
        2e2,
        rf"$\frac{{{depth - 1}}}{{{2 * depth - 1}}}s$ ",
        fontsize=7.5,
        color=INK,
        ha="right",
        va="center",
    )
    ax.legend(loc="center right")
    ax.set(xlabel="$u/s$", ylabel="smallest |eigenvalue|\nof the reduced $H$, relative")
