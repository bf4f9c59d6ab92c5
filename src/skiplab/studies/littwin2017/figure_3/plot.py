"""‖γ‖ by layer and over epochs, as in the paper, with controls, and the branch's share of a block's variance."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator, ScalarFormatter

from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.littwin2017.figure_2.plot import by_layer, over_epochs
from skiplab.studies.littwin2017.resnet_evidence import LABELS


def draw(results: Results) -> Figure:
    """Draw figure 3, a row per data set, and γ² over the variance of the skip beside."""
    names = results.settings.data
    figure, axes = new_figure(3, rows=len(names), width=PAGE_WIDTH, height=2.5 * len(names))
    for row, data in enumerate(names):
        by_layer(axes[row, 0], results, data, "scale")
        axes[row, 0].set(ylabel=r"$\Vert\gamma\Vert$", title=LABELS.get(data, data), xlabel="normalisation")
        over_epochs(axes[row, 1], results, data, "scale")
        axes[row, 1].set(ylabel=r"mean $\Vert\gamma\Vert$")
        by_layer(axes[row, 2], results, data, "branch_share")
        axes[row, 2].set_yscale("log")
        axes[row, 2].yaxis.set_major_formatter(ScalarFormatter())
        axes[row, 2].yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(1, 0.3)))
        axes[row, 2].xaxis.set_major_locator(MaxNLocator(integer=True))
        axes[row, 2].set(ylabel=r"$\gamma^2$ / variance of the skip", xlabel="block")
        if axes[row, 2].get_legend() is not None:
            axes[row, 2].get_legend().remove()  # the colours are those of the first panel
    for ax, letter in zip(axes.flat, "abcdef", strict=False):
        panel_letter(ax, letter)
    return figure
