"""Whether gradients of shallow networks are brown noise, by their differences and not by their ACF alone."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Evidence, Results
from skiplab.studies.balduzzi2017.figure_1.trials import ALTERNATIVES, BROWN, network_steps, series_steps
from skiplab.studies.balduzzi2017.line_gradients import curves
from skiplab.studies.balduzzi2017.line_networks import BIAS, Network, shallow
from skiplab.studies.balduzzi2017.noise_bands import resembling

if TYPE_CHECKING:
    import pandas as pd


def shallow_brown(results: Results) -> Iterator[Evidence]:
    """How far shallow networks' differences are from brown noise's; biases that make the paper's picture decide.

    Further rows: the text's biases, one step and a straight line, which must fail, and the ACF, which lets them pass.
    """
    settings = results.settings
    for biases in (BIAS, settings.text_bias):
        network = shallow(settings.width, biases)
        where = f"biases of deviation {biases:.3g}"
        yield from by_differences(results, network, where, headline=biases == BIAS)
    for kind, words in ALTERNATIVES.items():
        yield from by_differences(results, kind, words, headline=False)
    for biases in (BIAS, settings.text_bias):
        acfs = curves(results, shallow(settings.width, biases))
        where = f"the ACF itself, biases of deviation {biases:.3g}"
        yield from resembling(results, BROWN, acfs, where, headline=False)


def by_differences(results: Results, what: Network | str, where: str, headline: bool) -> Iterator[Evidence]:
    """How far networks or series are from brown noise in three ways, 1 being the furthest that still resembles it.

    The ACF of differences, at lag 1 and averaged over lags: half-widths from the middle of the band of single white
    series. The number of jumps: on a logarithmic scale, 1 being halfway from brown noise to one step.
    """
    acfs = steps_of(results, what, "acf").pivot(index="run", columns="x", values="value")
    for words, values, ends in (
        ("differences at lag 1", acfs[1.0], ("low", "high")),
        ("differences averaged over lags", acfs.mean(axis=1), ("average low", "average high")),
    ):
        low, high = (float(steps_of(results, BROWN, end)["value"].iloc[0]) for end in ends)
        yield Evidence(
            f"{where}, {words}",
            [((2 * values - low - high) / (high - low)).tolist()],
            headline=headline,
            detail=f"the mean is {values.mean():.3f}; white differences have {low:.3f} to {high:.3f}",
        )
    brown, own = (steps_of(results, each, "jumps")["value"].map(math.log) for each in (BROWN, what))
    noise = float(brown.mean())
    yield Evidence(
        f"{where}, number of jumps",
        [((noise - own) / (noise / 2)).tolist()],  # one step has ln 1
        headline=headline,
        detail=f"in effect {math.exp(own.mean()):.3g} jumps of one size; brown noise has {math.exp(noise):.3g}, one "
        "step 1",
    )


def steps_of(results: Results, what: Network | str, quantity: str) -> pd.DataFrame:
    """The rows of a quantity of differences, ordered by run and lag."""
    if isinstance(what, Network):
        where: dict[str, Any] = {"model": what.name, "depth": what.depth, "biases": what.bias_std}
        rows = results.rows(network_steps, quantity=quantity, **where)
    else:
        rows = results.rows(series_steps, quantity=quantity, model=what)
    return rows.sort_values(["run", "x"])
