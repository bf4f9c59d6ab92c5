"""What a network computes along a line through input space: bent and broken, or straight."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter

Curve = tuple[np.ndarray, np.ndarray]  # places t on the line, values there
ByDepth = Mapping[int, Curve]

_SHADES = ("#A6C8E0", "#4A90C2", "#12507F", "#06233A")  # the deeper, the darker


def looks_linear_panels(
    rows: Mapping[str, Mapping[str, ByDepth]],
    slopes: set[str],
    departures: Mapping[str, Mapping[str, float]],
    depths: Mapping[str, str],
) -> Figure:
    """Draw a column for each network and a row for each quantity, one line a depth; arrays are (points,).

    Rows named in ``slopes`` hold derivatives, drawn relative to their root mean square along the line; others are
    outputs, shown without their mean and in units of their deviation. ``departures`` has a number for a panel, and
    ``depths`` says what a row's depths count, such as layers.
    """
    columns = list(next(iter(rows.values())))
    figure, axes = new_figure(len(columns), rows=len(rows), width=PAGE_WIDTH, height=1.55 * len(rows) + 0.5)
    for place, (row, networks) in enumerate(rows.items()):
        scaled = {
            network: {depth: (t, _scaled(t, values, row in slopes)) for depth, (t, values) in curves.items()}
            for network, curves in networks.items()
        }
        reach = max(np.abs(y).max() for curves in scaled.values() for _, y in curves.values())
        for column, network in enumerate(columns):
            ax = axes[place, column]
            _curves(ax, scaled[network])
            ax.set_ylim(-1.4 * reach, 1.1 * reach)  # room for the number below
            ax.margins(x=0)
            ax.tick_params(labelleft=column == 0, labelbottom=place == len(rows) - 1)
            if place == 0:
                ax.set_title(network)
            if place == len(rows) - 1:
                ax.set_xlabel("place $t$ on the line")
            if network in departures.get(row, {}):
                verb = "changes" if row in slopes else "departs"
                ax.text(
                    *(0.98, 0.04, f"{verb} by {_number(departures[row][network])}"),
                    transform=ax.transAxes,
                    ha="right",
                    va="bottom",
                    fontsize=7,
                    color="#333333",
                    bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1.0},
                )
        axes[place, 0].set_ylabel(row)
        # Beside the panels, where it covers no line however many depths there are.
        axes[place, -1].legend(
            loc="center left",
            bbox_to_anchor=(1.04, 0.5),
            borderaxespad=0,
            fontsize=7,
            title=depths[row],
            title_fontsize=7,
            alignment="left",
        )
        panel_letter(axes[place, 0], "abcdefgh"[place])
    return figure


def _curves(ax: Axes, curves: ByDepth) -> None:
    # Thick and light below thin and dark, so that lines that coincide can all be seen.
    for rank, (depth, (t, values)) in enumerate(sorted(curves.items())):
        colour = _SHADES[min(rank, len(_SHADES) - 1)]
        ax.plot(t, values, color=colour, linewidth=max(2.4 - 0.8 * rank, 0.8), label=str(depth))


def _scaled(t: np.ndarray, values: np.ndarray, slope: bool) -> np.ndarray:
    """Values in units of their own size, turned so that they rise, or are positive, on the whole."""
    if slope:
        size = np.sqrt(np.mean(values**2))
        sign = 1.0 if values.mean() >= 0 else -1.0
    else:
        values = values - values.mean()
        size = values.std()
        sign = 1.0 if (values * (t - t.mean())).sum() >= 0 else -1.0
    return sign * values / size if size > 0 else values


def _number(value: float) -> str:
    exponent = int(np.floor(np.log10(value))) if value > 0 else 0
    return f"{value:.2g}" if exponent >= -2 else rf"{value / 10.0**exponent:.0f}·10$^{{{exponent}}}$"
