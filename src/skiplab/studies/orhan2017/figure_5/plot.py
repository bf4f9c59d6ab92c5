"""Figure 5's panels: weights over time, steps from every start, losses, and what should be zero."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from skiplab.figures.colours import colour_of
from skiplab.figures.strips import GUIDE, Line, Strip, lines_panel, strips_panel
from skiplab.figures.style import PAGE_WIDTH, new_figure, panel_letter
from skiplab.reproduction.results import Results
from skiplab.studies.orhan2017.figure_5.evidence import path, steps_of, values
from skiplab.studies.orhan2017.figure_5.terms import SETS, singular_sets, terms
from skiplab.studies.orhan2017.figure_5.trials import (
    B_STARTS,
    DYNAMICS,
    EXACT_ONES,
    MODES,
    NAMES,
    ONES,
    ONES_MODES,
    ORTHONORMAL,
    SMALL,
    agreement,
)

PLAIN, RESIDUAL = colour_of("plain"), colour_of("residual")
TINTS = {ONES: PLAIN, ONES_MODES: "#E69F00", ORTHONORMAL: "#999999", MODES: "#56B4E9", EXACT_ONES: "#882255"}
PRINTED: Any = (0, (2, 1.5))  # dashes
ZERO = 1e-17  # where an exact zero stands on a logarithmic axis
LOSSES = {
    ONES: "Plain, b = a",
    EXACT_ONES: "the same, no noise",
    ONES_MODES: "Plain, b = u",
    ORTHONORMAL: "Plain, orthonormal",
}
COSINES = {
    "cooperation ⊥ competition: at zero": ("zero", "residual"),
    "learning, u = v": ("zero, while learning, u = v", "residual"),
    "learning, u ≠ v": ("zero, while learning", "residual"),
    "at zero, hidden layer narrower": ("zero, hidden layer narrower than the output", "residual"),
    "plain": ("random", "plain"),
}


def three_layer_panels(results: Results, rounding: float) -> Figure:
    """A row each for small random starts and for equal norms (a¹, a², steps to learn), then losses and checks."""
    figure, axes = new_figure(3, rows=3, width=PAGE_WIDTH, height=6.9)
    for mode in (1, 2):
        above, below = axes[:2, mode - 1]
        lines_panel(above, _small_starts(results, mode), legend=mode == 2)
        above.set(xlabel="step", ylabel=f"weights $a^{mode}$", title=f"$a^{mode}$, small random start")
        lines_panel(below, _equal_norms(results, mode), legend=mode == 1)
        below.set(xlabel="step", ylabel=f"weights $a^{mode}$", title=f"$a^{mode}$, equal norms")
        below.set(xscale="log", xlim=(1, None))
    small = _steps(results, SMALL, "plain", "plain", PLAIN)
    small += _steps(results, SMALL, "residual", "residual", RESIDUAL)
    equal = _steps(results, MODES, "residual", "residual", RESIDUAL)
    for name in B_STARTS:
        equal += _steps(results, name, "plain", f"plain, {NAMES[name]}", TINTS[name])
    for ax, strips in zip(axes[:2, 2], (small, equal), strict=True):
        strips_panel(ax, strips)
        ax.set(xlabel="steps until learned", title="● corrected, ○ printed")
    lines_panel(axes[2, 0], _losses(results), legend=True)
    axes[2, 0].axhline(1.125, **GUIDE)
    axes[2, 0].set(xscale="log", xlim=(1, None), xlabel="step", ylabel="loss", title="Loss, equal norms")
    axes[2, 0].set_ylim(top=7.4)  # room for the legend above the curves
    strips_panel(axes[2, 1], _apart(results))
    axes[2, 1].axvline(rounding, **GUIDE)
    axes[2, 1].set(xlabel="|ODE − descent on $W_1, W_2$|", title="● corrected, ○ printed")
    strips_panel(axes[2, 2], _zeros(results), floor=ZERO)
    axes[2, 2].set(xlabel="|cosine| or distance", title="Zero if true")
    axes[2, 2].set_xticks([ZERO, 1e-12, 1e-8, 1e-4, 1.0], ["0", "$10^{-12}$", "$10^{-8}$", "$10^{-4}$", "1"])
    for letter, ax in zip("abcdefghi", axes.flat, strict=True):
        panel_letter(ax, letter)
    return figure


def _small_starts(results: Results, mode: int) -> list[Line]:
    plain = _pair(results, SMALL, "plain", mode, PLAIN, "Plain")
    return plain + _pair(results, SMALL, "residual", mode, RESIDUAL, "Residual")


def _equal_norms(results: Results, mode: int) -> list[Line]:
    return [
        *_pair(results, ONES, "plain", mode, PLAIN, "Plain, b = a"),
        *_pair(results, ONES_MODES, "plain", mode, TINTS[ONES_MODES], "Plain, b = u"),
        *_pair(results, MODES, "residual", mode, RESIDUAL, "Residual"),
    ]


def _pair(results: Results, start: str, network: str, mode: int, colour: str, label: str) -> list[Line]:
    """A mode's weights into the two hidden units."""
    return [
        Line(path(results, start, network, f"a{mode} unit {unit}"), colour, label if unit == 1 else "")
        for unit in (1, 2)
    ]


def _steps(results: Results, start: str, network: str, label: str, colour: str) -> list[Strip]:
    return [
        Strip(label, steps_of(results, start, network, dynamics).tolist(), colour, dynamics == "printed")
        for dynamics in DYNAMICS
    ]


def _losses(results: Results) -> list[Line]:
    lines = [Line(path(results, MODES, "residual", "loss"), RESIDUAL, "Residual")]
    for name, label in LOSSES.items():
        lines.append(Line(path(results, name, "plain", "loss"), TINTS[name], label))
        if name in (ONES_MODES, ORTHONORMAL):  # elsewhere the printed equations give the same
            lines.append(Line(path(results, name, "plain", "loss", "printed"), TINTS[name], style=PRINTED))
    return [*lines, Line((np.empty(0), np.empty(0)), "#777777", "as printed", PRINTED)]


def _apart(results: Results) -> list[Strip]:
    """How far the flows are from gradient descent."""
    rows = results.rows(agreement, quantity="apart")
    return [
        Strip(
            f"{network}, {NAMES[str(start)]}",
            part["value"].tolist(),
            colour_of(str(network)),
            dynamics == "printed",
        )
        for (network, start, dynamics), part in rows.groupby(["network", "start", "dynamics"], sort=False)
    ]


def _zeros(results: Results) -> list[Strip]:
    """Quantities that are 0 if the statement of their row is true."""
    strips = []
    for label, (start, network) in COSINES.items():
        cosines = values(results, terms, "cosine", start=start, network=network)
        strips.append(Strip(label, cosines.tolist(), colour_of(network)))
    for name in SETS:
        away = values(results, singular_sets, "distance", start=name, network="plain")
        strips.append(Strip(f"stays {name}", away.tolist(), PLAIN, name in SETS[2:]))
    return strips
