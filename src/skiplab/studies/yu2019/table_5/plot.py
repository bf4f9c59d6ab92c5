"""Error and loss of networks with T′ by depth beside Table 5's, and the errors of the variants."""

from __future__ import annotations

from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from skiplab.figures.curves import final_dots
from skiplab.figures.paired_dots import STAR, side_by_side
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.pairs import RESIDUAL, is_papers
from skiplab.studies.yu2019.table_5.evidence import (
    BASELINE,
    DENSE_ERROR,
    DIAGONAL,
    ERRORS,
    LOSSES,
    VARIANTS,
    ends,
    residual_ends,
)

NAME = "T′"
SHORT = ("dense half", "dense + ones", "KWI", "permuted")  # of VARIANTS


def draw(results: Results) -> Figure:
    """Draw error and loss against depth, then all networks of the first depth."""
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=3.0)
    depths = sorted(results.settings.depths)
    for ax, quantity, own, other in (
        (axes[0, 0], "test_error", ERRORS, BASELINE),
        (axes[0, 1], "loss", LOSSES, {}),
    ):
        groups = {
            str(depth): {
                RESIDUAL: residual_ends(results, depth, quantity),
                NAME: ends(results, DIAGONAL, depth, quantity),
            }
            for depth in depths
        }
        printed = {
            str(depth): {NAME: own[depth]} | ({RESIDUAL: other[depth]} if other else {})
            for depth in depths
            if is_papers(results.settings)
        }
        side_by_side(ax, groups, printed, legend=quantity == "test_error")
        ax.set(xlabel="depth (layers with weights)")
    axes[0, 0].set(ylabel="test error", title="error")
    axes[0, 1].set(ylabel="training loss $L$", title="loss")
    depth = results.settings.first_depth
    samples = [ends(results, DIAGONAL, depth)] + [ends(results, model, depth) for model in VARIANTS]
    samples.append(residual_ends(results, depth, "diagonal_test_error"))
    final_dots(axes[0, 2], [NAME, *SHORT, "residual, zeroed"], samples)
    if is_papers(results.settings):
        axes[0, 2].plot([0.4, 1.4], [ERRORS[depth], DENSE_ERROR], **STAR)
    axes[0, 2].set(ylabel="test error", title=f"variants, {depth} layers")
    for ax in (axes[0, 0], axes[0, 2]):
        ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    for ax, letter in zip(axes.flat, "abc", strict=True):
        panel_letter(ax, letter)
    return figure
