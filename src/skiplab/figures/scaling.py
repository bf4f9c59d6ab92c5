"""Time against size on logarithmic axes, with the slope that was fitted and the one to be expected."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullFormatter

from skiplab.checks import require

MEASURED, EXPECTED = "#0072B2", "#999999"


def time_against_size(
    ax: Axes,
    sizes: Sequence[float],
    seconds: np.ndarray,
    *,
    slope: float,
    work: Sequence[float],
    fitted_from: float,
) -> None:
    """Draw every round's milliseconds (rounds, sizes), the fitted slope from a size on, and time that grows as work.

    The latter goes through the median at the largest size, where a device is fullest.
    """
    seconds = np.asarray(seconds, dtype=float)
    require(
        seconds.ndim == 2 and seconds.shape[1] == len(sizes) == len(work),
        f"seconds have shape {seconds.shape} for {len(sizes)} sizes and {len(work)} amounts of work; "
        "give (rounds, sizes).",
    )
    x, load, taken = np.asarray(sizes, float), np.asarray(work, float), 1000 * seconds
    ax.set_xscale("log")
    ax.set_yscale("log")
    expected = np.median(taken[:, -1]) * load / load[-1]
    ax.plot(x, expected, color=EXPECTED, linestyle="--", label="as work grows")
    used = x >= fitted_from
    # Least squares on logarithms go through the middle of both.
    middle = np.exp(np.log(taken[:, used]).mean() + slope * (np.log(x[used]) - np.log(x[used]).mean()))
    ax.plot(x[used], middle, color=MEASURED, label=f"slope {slope:.2f}")
    for row in taken:
        ax.plot(x, row, color=MEASURED, linestyle="none", marker="o", alpha=0.5)
    ax.set_xticks(x, [f"{size:g}" for size in sizes])
    ax.set_xticks([], minor=True)
    # 0.5, 1, 2 read faster than powers of ten with factors.
    ax.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_formatter(NullFormatter())
    ax.set_ylabel("ms per step")
    ax.legend(loc="lower right")
