"""Loss and test error against depth, Table 1's numbers beside ours, and by what factor loss grows with depth."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, PercentFormatter, StrMethodFormatter

from skiplab.figures.paired_dots import Groups, Printed, side_by_side
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction import Results
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, is_papers, steps, values
from skiplab.studies.yu2019.table_1.evidence import ERRORS, FACTORS, LOSSES, at_equal_rates, increase

MODELS = (PLAIN, RESIDUAL)


def draw(results: Results) -> Figure:
    """Draw ends of training by depth, with the controls at equal rates to their right."""
    figure, axes = new_figure(3, width=PAGE_WIDTH, height=2.9)
    for ax, quantity, numbers in ((axes[0, 0], "loss", LOSSES), (axes[0, 1], "test_error", ERRORS)):
        side_by_side(ax, *_ends(results, quantity, numbers), legend=quantity == "loss")
        ax.set(xlabel="depth (layers with weights)")
    _logarithmic(axes[0, 0])
    axes[0, 0].set(ylabel="training loss $L$", title="loss")
    axes[0, 1].set(ylabel="test error", title="error")
    axes[0, 1].yaxis.set_major_formatter(PercentFormatter(1.0, decimals=1))
    _factors(axes[0, 2], results)
    for ax, letter in zip(axes.flat, "abc", strict=True):
        panel_letter(ax, letter)
    return figure


def _ends(results: Results, quantity: str, numbers: dict[str, dict[int, float]]) -> tuple[Groups, Printed]:
    settings = results.settings
    groups = {
        str(depth): {model: values(results, model, depth, quantity) for model in MODELS}
        for depth in sorted(settings.depths)
    }
    printed = {
        str(depth): {model: numbers[model][depth] for model in MODELS}
        for depth in settings.depths
        if is_papers(settings)
    }
    for depth in settings.slow_depths:
        slow = {model: values(results, model, depth, quantity, **at_equal_rates(results)) for model in MODELS}
        groups[f"{depth}\n{settings.slow_rate:g}"] = slow
    return groups, printed


def _logarithmic(ax: Axes) -> None:
    """A logarithmic axis where numbers differ by more than a factor of 3, as the paper's do."""
    low, high = ax.dataLim.intervaly
    if low > 0 and high > 3 * low:
        ax.set_yscale("log")
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        ax.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        ax.yaxis.set_minor_formatter(NullFormatter())


def _factors(ax: Axes, results: Results) -> None:
    settings = results.settings
    groups = {
        f"{start}→{end}": {model: np.exp(increase(results, model, start, end)) for model in MODELS}
        for start, end in steps(settings.depths)
    }
    printed = {
        f"{start}→{end}": dict(zip(MODELS, FACTORS[start, end], strict=True))
        for start, end in steps(settings.depths)
        if is_papers(settings)
    }
    for end in settings.slow_depths:
        start = settings.first_depth
        equal = at_equal_rates(results)
        groups[f"{start}→{end}\n{settings.slow_rate:g}"] = {
            model: np.exp(increase(results, model, start, end, **equal)) for model in MODELS
        }
    side_by_side(ax, groups, printed, legend=False)
    ax.axhline(1, color="#888888", linewidth=0.7, zorder=0)
    ax.set(xlabel="from depth → to depth", ylabel="factor of $L$", title="degradation")
    _logarithmic(ax)
