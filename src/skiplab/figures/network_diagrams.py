"""Networks drawn unit by unit from a list of their connections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch

from skiplab.figures.colours import colour_of, label_of
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

INK = "#444444"
Edge = tuple[int, int, int, int]  # layer and unit from which, layer and unit to which, from 1
_APART = 0.75  # inches between the units of a layer
_TITLE = 0.36  # inches above a network


def network_panels(
    networks: Mapping[str, tuple[Sequence[Edge], Sequence[Edge]]],
    units: Sequence[int],
    equations: Mapping[str, str],
) -> Figure:
    """Draw each network in a row of its own: weights as black arrows, skips as coloured lines.

    ``networks`` maps a name to its weights and skips, ``units`` are the numbers of units of the layers.
    """
    reaches = [_reach(skips, units) for _, skips in networks.values()]
    height = sum(2 * _APART * reach + _TITLE for reach in reaches)
    figure, axes = new_figure(1, rows=len(networks), width=PAGE_WIDTH, height=height, grid=False)
    axes[0, 0].get_gridspec().set_height_ratios(reaches)
    rows = zip(axes[:, 0], "abcdefgh", reaches, networks.items(), strict=False)
    for ax, letter, reach, (name, (weights, skips)) in rows:
        draw_network(ax, weights, skips, units, colour_of(name), reach)
        ax.set_title(f"{label_of(name)}:  {equations[name]}")
        panel_letter(ax, letter)
    return figure


def draw_network(
    ax: Axes,
    weights: Sequence[Edge],
    skips: Sequence[Edge],
    units: Sequence[int],
    colour: str,
    reach: float,
) -> None:
    """Draw layers from left to right; skips are bent away from the weights they run beside."""
    places = {
        (layer, unit): (float(layer), (count + 1) / 2 - unit)
        for layer, count in enumerate(units, start=1)
        for unit in range(1, count + 1)
    }
    for before, source, after, target in weights:
        _arrow(ax, places[before, source], places[after, target], INK, 0.0, "-|>", 0.7)
    for before, source, after, target in skips:
        start, end = places[before, source], places[after, target]
        outward = -1.0 if start[1] > 0 else 1.0  # upper units' skips bend up, lower ones' down
        bend = _bend(after - before) if start[1] == end[1] else 0.16
        _arrow(ax, start, end, colour, outward * bend, "-", 1.1)
    for place in places.values():
        ax.scatter(*place, s=70, facecolor="white", edgecolor=INK, linewidths=0.9, zorder=3)
    last = len(units)
    for layer in range(1, last + 1):
        text = "$y$" if layer == last else f"$x_{layer}$"
        beside = 0.16 if units[layer - 1] % 2 else 0.0  # a unit stands in the middle
        ax.text(layer + beside, 0, text, ha="center", va="center", fontsize=7.5, color=INK)
    ax.set(xlim=(0.7, last + 0.4), ylim=(-reach, reach))
    ax.axis("off")


def _bend(span: int) -> float:
    """How far a line over some layers bends, relative to its length: more in all, less for its length."""
    return 0.3 * (1 + 0.55 * (span - 1)) / span


def _reach(skips: Sequence[Edge], units: Sequence[int]) -> float:
    """Half the height of a network, in units' distances."""
    inches_a_layer = (PAGE_WIDTH - 0.3) / (len(units) - 0.3)
    longest = max((after - before for before, _, after, _ in skips), default=0)
    bulge = _bend(longest) * longest * inches_a_layer / 2 if longest else 0.0
    return (max(units) - 1) / 2 + bulge / _APART + 0.18


def _arrow(
    ax: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    colour: str,
    bend: float,
    style: str,
    width: float,
) -> None:
    ax.add_patch(
        FancyArrowPatch(
            start,
            end,
            arrowstyle=style,
            connectionstyle=f"arc3,rad={bend}",
            color=colour,
            linewidth=width,
            mutation_scale=7,
            shrinkA=4.5,
            shrinkB=4.5,
            zorder=2 if bend else 1,
        )
    )
