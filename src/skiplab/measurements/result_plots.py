"""Figures of results: the quantity that matters most by layer, or every quantity of a result without layers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from skiplab.figures.colours import colour_of, distinct
from skiplab.figures.style import new_figure
from skiplab.figures.ticks import decimal_ticks
from skiplab.measurements.estimate import Estimate, over_networks

if TYPE_CHECKING:
    from skiplab.measurements.result import Result

MOST_LINES = 8  # networks that a figure draws by themselves; of more, the mean and its interval
MOST_LETTERS = 24  # of a layer's name beside an axis
MOST_NAMES = 12  # layers whose names stand beside an axis
DECADES = 2  # that a logarithmic axis may span and still have plain numbers
MARK = {"color": "#777777", "linestyle": (0, (4, 3)), "linewidth": 0.9}
CAPS = {"linestyle": "none", "marker": "_", "markersize": 6}


def by_place(result: Result) -> Any:
    """Draw the first quantity of which something is known, with its intervals and what to compare it with.

    Each network has a line of its own; of many it is their mean, with the interval of that.
    """
    name, estimate = _first_known(result)
    if len(estimate.value) > MOST_LINES:
        estimate = over_networks(estimate)[None]
    figure, axes = new_figure(width=4.8)
    panel = axes[0, 0]
    places = np.arange(1, len(result.places) + 1)
    ends = []
    for network, (label, colour) in enumerate(colours(result.member, len(estimate.value)).items()):
        value, low, high = drawn(estimate[network])
        (line,) = panel.plot(places, value, marker="o", color=colour, label=label)
        if result.in_order:
            panel.fill_between(places, low, high, color=colour, alpha=0.18, linewidth=0)
        else:
            line.set_linestyle("none")
        panel.vlines(places, low, high, color=colour, linewidth=1.2)
        cap(panel, places, value, low, high, colour)
        ends += [value, low, high]
    few = len(result.places) <= MOST_NAMES
    panel.set_xticks(places if few else places[:: len(places) // 6])
    if few:
        names = [shortened(place) for place in result.places]
        level = max(map(len, names)) <= 3
        turned = {} if level else {"rotation": 35, "ha": "right"}
        panel.set_xticklabels(names, parse_math=False, **turned)
    order = result.place if few else f"{result.place}, in order"
    panel.set(title=result.title, xlabel=order, ylabel=name)
    _scale(panel, ends, result.by_decades)
    _finish(panel, name, result)
    return figure


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
        panel.set_title(fill(name, 26), fontsize="small")
        _scale(panel, [value, low, high], False)
        _finish(panel, name, result)
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


def _first_known(result: Result) -> tuple[str, Estimate]:
    """The first quantity with a value in some layer, else the first with limits, else the first."""
    every = list(result.estimates.items())
    for known in (
        lambda each: bool(each.settled.any()),
        lambda each: bool((each.low.isfinite() & each.high.isfinite()).any()),
    ):
        for name, estimate in every:
            if known(estimate):
                return name, estimate
    return every[0]


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


def _scale(panel: Any, ends: Iterable[Any], by_decades: bool) -> None:
    """A logarithmic axis for what spans a decade, and the whole range for shares that are all 0 or all 1."""
    numbers = np.concatenate([each[np.isfinite(each)] for each in ends])
    if not numbers.size:
        panel.text(0.5, 0.5, "unknown", transform=panel.transAxes, ha="center", va="center")
        return
    least, most = numbers.min(), numbers.max()
    if by_decades and least > 0 and most >= 10 * least:
        panel.set_yscale("log")
        if most < 10**DECADES * least:
            decimal_ticks(panel, "y")
    elif least == most and least in (0, 1):
        panel.set_ylim(-0.04, 1.04)


def _finish(panel: Any, name: str, result: Result) -> None:
    """The line to compare with, and what the lines are."""
    for quantity, value, words in result.marks:
        if quantity == name:
            panel.axhline(value, label=words, zorder=1, **MARK)
    key(panel)


def key(panel: Any) -> None:
    """Say what the named lines are, if there are any."""
    handles, labels = panel.get_legend_handles_labels()
    shown: Sequence[Any] = [handle for handle, label in zip(handles, labels, strict=True) if label]
    if shown:
        panel.legend(handles=shown, loc="best", fontsize=6.5, frameon=True, framealpha=0.7, edgecolor="none")
