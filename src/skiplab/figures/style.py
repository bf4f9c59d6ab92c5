"""How every figure looks and how it is written, without touching matplotlib's global state.

Figures are made outside pyplot, so nothing here needs a display, leaks open figures, or changes the
settings of a user's own plots. Text keeps its size in points, so widths are those of a printed page.
"""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from skiplab import checks

COLUMN_WIDTH = 3.2  # inches: one column of a two-column page
PAGE_WIDTH = 7.2
PANEL_HEIGHT = 2.4
DOTS_PER_INCH = 200
PLAIN_METADATA = {"Date": None, "Creator": None}  # of an SVG

STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],  # ships with matplotlib, so every machine draws the same
    "font.size": 8.5,
    "mathtext.fontset": "dejavusans",
    "axes.titlesize": 9.0,
    "axes.titlelocation": "left",
    "axes.labelsize": 8.5,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#444444",
    "axes.labelcolor": "#222222",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.5,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "xtick.color": "#444444",
    "ytick.color": "#444444",
    "xtick.labelcolor": "#222222",
    "ytick.labelcolor": "#222222",
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.minor.width": 0.4,
    "ytick.minor.width": 0.4,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "legend.fontsize": 8.0,
    "legend.frameon": False,
    "legend.handlelength": 1.4,
    "legend.labelspacing": 0.3,
    "legend.borderaxespad": 0.3,
    # A white ground, so that a figure reads the same on a dark page.
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.hashsalt": "skiplab",  # without it every writing draws new random ids
    "svg.fonttype": "path",
}


def _in_style(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def styled(*args: Any, **kwargs: Any) -> Any:
        with mpl.rc_context(STYLE):
            return method(*args, **kwargs)

    return styled


class HouseAxes(Axes):
    """Axes that draw in the house style also after ``new_figure`` has returned.

    Matplotlib looks sizes and widths up when a thing is added, not when the axes are made.
    """


class HouseFigure(Figure):
    """A figure whose own title, legend and colour bars follow the house style, as its axes do."""


_DRAWING = (
    "plot",
    "errorbar",
    "scatter",
    "legend",
    "set_title",
    "set_xlabel",
    "set_ylabel",
    "text",
    "annotate",
)
for _name in _DRAWING:
    setattr(HouseAxes, _name, _in_style(getattr(Axes, _name)))
for _name in ("legend", "suptitle", "supxlabel", "supylabel", "colorbar", "text"):
    setattr(HouseFigure, _name, _in_style(getattr(Figure, _name)))


def new_figure(
    columns: int = 1,
    rows: int = 1,
    width: float | None = None,
    height: float | None = None,
    sharey: bool = False,
    sharex: bool = False,
    grid: bool = True,
) -> tuple[Figure, np.ndarray]:
    """Return a figure in the house style and its axes, an array of shape (rows, columns).

    Width and height are in inches; left out, they follow from the number of panels, a page's width at most.
    """
    checks.at_least("columns", columns, 1)
    checks.at_least("rows", rows, 1)
    size = (width or min(COLUMN_WIDTH * columns, PAGE_WIDTH), height or PANEL_HEIGHT * rows)
    with mpl.rc_context(STYLE):
        figure = HouseFigure(figsize=size, layout="constrained")
        FigureCanvasAgg(figure)
        house = {"axes_class": HouseAxes}
        axes = figure.subplots(rows, columns, squeeze=False, sharey=sharey, sharex=sharex, subplot_kw=house)
        for ax in axes.flat:
            ax.grid(grid)
    return figure, axes


def panel_letter(ax: Axes, letter: str) -> None:
    """Write a bold panel letter at the upper left, outside the axes, where it covers no data."""
    ax.annotate(
        letter,
        xy=(0, 1),
        xycoords="axes fraction",
        xytext=(-24, 4),
        textcoords="offset points",
        fontsize=10,
        fontweight="bold",
        ha="left",
        va="bottom",
    )


def key_above(ax: Axes) -> None:
    """Put a panel's colour key above it, where no dot is hidden."""
    ax.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=2, fontsize=6.5, handletextpad=0.1, columnspacing=0.8
    )


def save(figure: Figure, folder: Path) -> None:
    """Write figure.png and figure.svg into the folder, with the same bytes each time."""
    folder.mkdir(parents=True, exist_ok=True)
    with _laid_out(figure):
        # A date or a version in the file would change the bytes of an unchanged figure.
        figure.savefig(folder / "figure.png", dpi=DOTS_PER_INCH, metadata={"Software": None})
        figure.savefig(folder / "figure.svg", metadata=PLAIN_METADATA)


def svg(figure: Figure) -> bytes:
    """The figure as an SVG file, with the same bytes each time."""
    file = io.BytesIO()
    with _laid_out(figure):
        figure.savefig(file, format="svg", metadata=PLAIN_METADATA)
    return file.getvalue()


@contextmanager
def _laid_out(figure: Figure) -> Iterator[None]:
    """The house style, in which constrained layout, which moves a little at every drawing, is done once and held."""
    with mpl.rc_context(STYLE):
        if figure.get_layout_engine() is not None:
            figure.draw_without_rendering()
            figure.set_layout_engine("none")
        yield
