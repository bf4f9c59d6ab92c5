"""Where noise lies, and whether gradients lie there too: evidence of figures 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import NOT_SAID, Equivalent, Evidence, Greater, Results
from skiplab.studies.balduzzi2017.line_gradients import averages, curves, measured, over_lags
from skiplab.studies.balduzzi2017.line_networks import Network, plain

if TYPE_CHECKING:
    import pandas as pd

# What may be done to a feedforward network's units, the paper's own first.
NORMALISATIONS = {"centre": "mean-centred", "batch": "batch-normalised", "none": "nothing centred, biases"}

# "Resembles" is to lie in the band that holds 95 % of single noise series: its ends are 1 half-width from its middle.
RESEMBLES = Equivalent(margin=1.0)
BOTH = "averaged over lags 1 to 15 and at lag 1; where the two disagree, this is undecided"
IN_BAND = "half-widths from the middle of the band"
# A difference of two ACFs: a twentieth of full correlation, more than the ±.03 that single white series scatter by.
APART = Greater(worth=0.05)
# Of single networks 5 % more may lie outside the band than the 5 % of noise that do: twice as many.
SCATTER = Greater(margin=0.05)


def mean(results: Results, kind: str) -> float:
    """The mean over many noise series of their ACF averaged over lags 1 to 15."""
    return float(measured(results, kind, "average")["value"].iloc[0])


def band(results: Results, kind: str) -> tuple[float, float]:
    """Between what values 95 % of noise series of this kind have their ACF averaged over lags 1 to 15."""
    low, high = (float(measured(results, kind, f"average {end}")["value"].iloc[0]) for end in ("low", "high"))
    return low, high


def band_at_lag(results: Results, kind: str, lag: int, count: int = 1) -> tuple[float, float]:
    """Where the ACF at one lag, averaged over ``count`` series, lies in 95 % of experiments."""
    ends = [measured(results, kind, end).set_index("x")["value"] for end in ("low", "high")]
    low, high = (float(end[float(lag)]) for end in ends)
    # The trial's band is that of as many series as it drew.
    half = (high - low) / 2 * (len(curves(results, kind)) / count) ** 0.5
    return (low + high) / 2 - half, (low + high) / 2 + half


def resembling(
    results: Results, kind: str, acfs: pd.DataFrame, where: str, headline: bool = True
) -> Iterator[Evidence]:
    """Where in the band of single noise series networks' ACFs lie; ``acfs`` has a row per network.

    Averaged over lags and at lag 1, which an average can hide. Where one mean lies in its band and the other does
    not, the verdict hangs on what "resembles" means, which the paper does not say, and the claim stays open.
    """
    averaged, first = over_lags(acfs), acfs[1.0].tolist()
    readings = {
        "averaged over lags": (averaged, band(results, kind)),
        "lag 1 alone": (first, band_at_lag(results, kind, 1)),
    }
    inside = {
        words: low <= sum(sample) / len(sample) <= high for words, (sample, (low, high)) in readings.items()
    }
    agree = len(set(inside.values())) == 1
    for words, (sample, (low, high)) in readings.items():
        within = sum(low <= value <= high for value in sample)
        yield Evidence(
            f"{where}, {kind} noise, {words}",
            [[(2 * value - low - high) / (high - low) for value in sample]],
            headline=headline and agree,
            detail=f"the mean is {sum(sample) / len(sample):.3f}; {within} of {len(sample)} networks lie "
            f"in the band of single series, {low:.3f} to {high:.3f}",
        )
    if headline and not agree:
        told = ", ".join(f"{words} {'inside' if within else 'outside'}" for words, within in inside.items())
        detail = (
            f"the paper does not say by what an ACF resembles {kind} noise's; the mean is {told} the band"
        )
        yield Evidence.without(f"{where}, {kind} noise, the paper's measure", NOT_SAID, detail)


def white_at(results: Results, depth: int) -> Iterator[Evidence]:
    """Whether feedforward networks of a depth are white; those that centre decide, as the paper's do."""
    for normalisation, words in NORMALISATIONS.items():
        acfs = curves(results, plain(depth, results.settings.width, normalisation))
        yield from resembling(results, "white", acfs, words, headline=normalisation == "centre")


def scattered_as_white(results: Results, depth: int) -> Iterator[Evidence]:
    """The share of single networks in the band that holds 95 % of white series, less that."""
    low, high = band(results, "white")
    for normalisation, words in NORMALISATIONS.items():
        sample = averages(results, plain(depth, results.settings.width, normalisation))
        within = [low <= value <= high for value in sample]
        yield Evidence(
            words,
            [[each - 0.95 for each in within]],
            headline=normalisation == "centre",
            detail=f"{sum(within)} of {len(sample)} networks",
        )


def above_white(results: Results, network: Network) -> list[float]:
    """By how much each network's ACF exceeds the mean of white noise."""
    return [value - mean(results, "white") for value in averages(results, network)]


def below_brown(results: Results, network: Network) -> list[float]:
    """By how much each network's ACF stays below the mean of brown noise."""
    return [mean(results, "brown") - value for value in averages(results, network)]
