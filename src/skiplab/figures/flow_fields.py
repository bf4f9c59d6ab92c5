"""Flow fields, and trajectories over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm

Field = Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
FULL = "#C1272D"


def flow_field(
    ax: Axes,
    field: Field,
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    arrows: int = 17,
    decades: float = 3.0,
) -> Any:
    """Draw arrows of equal length along a field, coloured by its speed on a logarithmic scale; return them.

    Speeds are shown relative to the largest in the panel, over the given number of decades.
    """
    # Half a step inside: arrows on the frame would be cut.
    columns, rows = arrows, max(3, round(arrows * 0.75))
    places = [low + (np.arange(n) + 0.5) / n * (high - low) for n, (low, high) in ((columns, x), (rows, y))]
    X, Y = np.meshgrid(*places)
    dx, dy = field(X, Y)
    speed = np.hypot(dx, dy)
    speed = np.maximum(speed / speed.max(), 10**-decades)
    # Directions as they look on the page, so that arrows follow the drawn trajectories.
    across, up = dx / (x[1] - x[0]), dy / (y[1] - y[0])
    length = np.hypot(across, up)
    length[length == 0] = 1
    norm = LogNorm(10**-decades, 1)
    ax.set(xlim=x, ylim=y)
    return ax.quiver(
        X,
        Y,
        across / length,
        up / length,
        speed,
        cmap="viridis_r",
        norm=norm,
        angles="uv",
        pivot="middle",
        scale=arrows * 1.35,
        width=0.0055,
        headwidth=4.5,
        headlength=4.5,
        headaxislength=4,
        zorder=2,
    )


def trajectory(ax: Axes, x: np.ndarray, y: np.ndarray, *, colour: str = FULL, dot: bool = True) -> None:
    """Draw a path over a field, with a dot where it starts."""
    ax.plot(x, y, color=colour, linewidth=1.3, zorder=4)
    if dot:
        ax.plot(x[:1], y[:1], "o", color="black", markersize=4.5, zorder=5)
