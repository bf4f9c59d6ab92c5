"""Figures of results: a panel per quantity, by layer, or with networks side by side of a result without layers."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from skiplab.figures.colours import colour_of, distinct
from skiplab.figures.style import PAGE_WIDTH, new_figure
from skiplab.figures.ticks import decimal_ticks
from skiplab.measurements.estimate import Estimate, over_networks

if TYPE_CHECKING:
    from skiplab.measurements.result import Result

MOST_LINES = 8  # networks that a figure draws by themselves; of more, the mean and its interval
MOST_LETTERS = 24  # of a layer's name beside an axis
MOST_NAMES = 12  # layers in a narrow figure, whose names are slanted; of more they stand upright
MOST_TICKS = 36  # names below a wide figure; of more layers each second, third … has its name
LEVEL_LETTERS = 3  # of names that stand level
MANY = 60  # layers whose dots would hide the line
NARROW, ROW, SINGLE = (
    4.8,
    1.45,
    2.2,
)  # inches: a figure's width, the height of one panel among others and alone
LETTERS_ABOVE = 56  # of a line above a panel
LETTER = 0.062  # inches of a name, per letter
SLANTED: dict[str, Any] = {"rotation": 35, "ha": "right", "rotation_mode": "anchor", "fontsize": 7}
UPRIGHT: dict[str, Any] = {"rotation": 90, "fontsize": 6}
DECADES = 2  # that a logarithmic axis may span and still have plain numbers
MARK = {"color": "#777777", "linestyle": (0, (4, 3)), "linewidth": 0.9}
CAPS = {"linestyle": "none", "marker": "_", "markersize": 6}


def by_place(result: Result) -> Any:
    """Draw every quantity of which something is known by place, with intervals and what to compare with.

    Each network has a line of its own; of many it is their mean, with the interval of that. Panels stand above each
    other, so that a layer is at one place in all, and only the lowest names the layers.
    """
    known = drawn_quantities(result)
    count = len(result.places)
    columns = 2 if len(known) > 3 and count <= MOST_NAMES else 1
    rows = -(-len(known) // columns)
    step = -(-count // MOST_TICKS)
    names = [shortened(place) for place in result.places[::step]]
    longest = max(map(len, names))
    level = longest <= LEVEL_LETTERS and len(names) <= 2 * MOST_NAMES
    upright = len(names) > MOST_NAMES
    words = 0.1 if level else LETTER * longest * (1 if upright else 0.6)
    height = (SINGLE if len(known) == 1 else rows * ROW) + words
    wide = columns == 2 or count > MOST_NAMES
    figure, axes = new_figure(columns, rows, width=PAGE_WIDTH if wide else NARROW, height=height)
    places = np.arange(1, count + 1)
    for number, panel in enumerate(axes.flat):
        if number >= len(known):
            panel.set_visible(False)
            continue
        name, estimate = known[number]
        ends = _lines(panel, result, estimate, places, named=number == 0)
        panel.set_xlim(0.5, count + 0.5)
        panel.set_xticks(places[::step])
        lowest = number + columns >= len(known)
        turned: dict[str, Any] = {} if level else UPRIGHT if upright else SLANTED
        panel.set_xticklabels(names if lowest else [], parse_math=False, **turned)
        panel.set_xlabel(result.place if lowest else "")
        if len(known) == 1:
            panel.set(title=result.title, ylabel=fill(result.on_axes.get(name, name), 26))
        else:
            panel.set_title(fill(result.on_axes.get(name, name), LETTERS_ABOVE), fontsize="small")
        _scale(panel, ends, result.by_decades)
        _finish(panel, name, result, places)
    if len(known) > 1:
        figure.suptitle(result.title)
    return figure


def _lines(panel: Any, result: Result, estimate: Estimate, places: Any, *, named: bool) -> list[list[Any]]:
    """Draw the networks, or the mean of many, and return value, low and high of each."""
    if len(estimate.value) > MOST_LINES:
        estimate = over_networks(estimate)[None]
    ends = []
    for network, (label, colour) in enumerate(colours(result.member, len(estimate.value)).items()):
        value, low, high = drawn(estimate[network])
        (line,) = panel.plot(places, value, marker="o", color=colour, label=label if named else "")
        if len(places) > MANY:
            line.set_markersize(2)
        if result.in_order:
            panel.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
        else:
            line.set_linestyle("none")
        panel.vlines(places, low, high, color=colour, linewidth=1.2)
        cap(panel, places, value, low, high, colour)
        ends.append([value, low, high])
    return ends


def by_network(result: Result) -> Any:
    """Every quantity in a panel of its own, with the networks side by side."""
    count = len(result.estimates)
    figure, axes = new_figure(count, width=2.4 * count)
    for panel, (name, estimate) in zip(axes[0], result.estimates.items(), strict=True):
        value, low, high = drawn(estimate[:, 0])
        places, colour = np.arange(len(value)), colour_of("residual")
        panel.plot(places, value, "o", color=colour)
        panel.vlines(places, low, high, color=colour, linewidth=1.2)
        cap(panel, places, value, low, high, colour)
        panel.set(xlim=(-0.5, len(value) - 0.5), xlabel=result.member if len(value) > 1 else "")
        few = len(value) <= MOST_NAMES
        panel.set_xticks([] if len(value) == 1 else places if few else places[:: len(value) // 6])
        panel.set_title(fill(result.on_axes.get(name, name), 26), fontsize="small")
        _scale(panel, [[value, low, high]], False)
        _finish(panel, name, result, places)
    figure.suptitle(result.title)
    return figure


def drawn(estimate: Estimate) -> list[np.ndarray]:
    """Value, low and high as arrays; no value where the question is open, since there the interval is the answer.

    An interval without ends is not drawn.
    """
    known = estimate.settled & estimate.value.isfinite()
    points = torch.where(known, estimate.value, torch.nan)
    ends = [torch.where(end.isfinite(), end, torch.nan) for end in (estimate.low, estimate.high)]
    return [part.detach().double().cpu().numpy() for part in (points, *ends)]


def shortened(name: str) -> str:
    """A name with its middle left out if it is long: layers differ in front, in their blocks, or at their ends."""
    if len(name) <= MOST_LETTERS:
        return name
    half = MOST_LETTERS // 2
    return f"{name[:half]}…{name[1 - half :]}"


def drawn_quantities(result: Result) -> list[tuple[str, Estimate]]:
    """The quantities with a value or limits in some layer; the first where nothing is known of any."""
    every = list(result.estimates.items())
    found = [
        (name, each)
        for name, each in every
        if bool(each.settled.any()) or bool((each.low.isfinite() & each.high.isfinite()).any())
    ]
    return found or every[:1]


def colours(member: str, count: int) -> dict[str, str]:
    """A colour by network; a single line has no name."""
    if count == 1:
        return {"": colour_of("residual")}
    return distinct([f"{member} {number}" for number in range(count)])


def cap(panel: Any, places: Any, value: Any, low: Any, high: Any, colour: str) -> None:
    """Mark both ends of open intervals, which may be shorter than a line is wide."""
    open_ = np.isnan(value) & ~np.isnan(low)
    if open_.any():
        for end in (low, high):
            panel.plot(places[open_], end[open_], color=colour, **CAPS)


def _scale(panel: Any, ends: Sequence[Sequence[Any]], by_decades: bool) -> None:
    """A logarithmic axis for values that span a decade, and the whole range for shares that are all 0 or all 1."""
    every = [np.concatenate([each[kind][np.isfinite(each[kind])] for each in ends]) for kind in range(3)]
    numbers, values = np.concatenate(every), every[0]
    if not numbers.size:
        panel.text(0.5, 0.5, "unknown", transform=panel.transAxes, ha="center", va="center")
        return
    least, most = numbers.min(), numbers.max()
    if by_decades and values.size and values.min() > 0 and most >= 10 * values.min():
        # An interval that reaches down to 0 ends at the edge, a decade below the values.
        panel.set_yscale("log", nonpositive="clip")
        if least < values.min() / 10:
            panel.set_ylim(bottom=values.min() / 10)
        if most < 10**DECADES * max(least, values.min() / 10):
            decimal_ticks(panel, "y")
        return
    if least == most and least in (0, 1):
        panel.set_ylim(-0.04, 1.04)
    panel.ticklabel_format(axis="y", scilimits=(-4, 5))


def _finish(panel: Any, name: str, result: Result, places: Any) -> None:
    """The lines to compare with, of all places or of each, and what the lines are."""
    for quantity, value, words in result.marks:
        if quantity != name:
            continue
        if isinstance(value, Sequence):
            style = MARK if result.in_order and len(places) > 1 else {**MARK, **CAPS}
            panel.plot(places, value, label=words, zorder=1, **style)
        else:
            panel.axhline(value, label=words, zorder=1, **MARK)
    key(panel)


def key(panel: Any) -> None:
    """Say what the named lines are, if there are any."""
    handles, labels = panel.get_legend_handles_labels()
    shown: Sequence[Any] = [handle for handle, label in zip(handles, labels, strict=True) if label]
    if shown:
        panel.legend(handles=shown, loc="best", fontsize=6.5, frameon=True, framealpha=0.7, edgecolor="none")
