"""Ticks of short logarithmic axes, on which powers of ten alone would be too few."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter


def decimal_ticks(ax: Axes, which: str) -> None:
    """Label 1, 2 and 5 of every decade of an axis ("x" or "y") as plain numbers."""
    axis = getattr(ax, f"{which}axis")
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
