"""Where noise lies, and whether gradients lie there too: evidence of figures 1 and 2."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.reproduction import Evidence, Results
from skiplab.studies.balduzzi2017.line_gradients import averages, curves, measured, over_lags
from skiplab.studies.balduzzi2017.line_networks import Network, plain

if TYPE_CHECKING:
    import pandas as pd

# What may be done to a feedforward network's units, the paper's own first.
NORMALISATIONS = {"centre": "mean-centred", "batch": "batch-normalised", "none": "nothing centred, biases"}


def mean(results: Results, kind: str) -> float:
    """The mean over many noise series of their ACF averaged over lags 1 to 15."""
    return float(measured(results, kind, "average")["value"].iloc[0])


def band(results: Results, kind: str) -> tuple[float, float]:
    """Between what values 95 % of noise series of this kind have their ACF averaged over lags 1 to 15."""
    low, high = (float(measured(results, kind, f"average {end}")["value"].iloc[0]) for end in ("low", "high"))
    return low, high


def band_of_means(results: Results, kind: str, count: int) -> tuple[float, float]:
    """The same for the mean over ``count`` series: √count times narrower, about the mean of all series."""
    low, high = band(results, kind)
    centre, half = mean(results, kind), (high - low) / 2 / count**0.5
    return centre - half, centre + half


def band_at_lag(results: Results, kind: str, lag: int, count: int) -> tuple[float, float]:
    """Where the ACF at one lag, averaged over ``count`` series, lies in 95 % of experiments."""
    ends = [measured(results, kind, end).set_index("x")["value"] for end in ("low", "high")]
    low, high = (float(end[float(lag)]) for end in ends)
    # The trial's band is that of as many series as it drew.
    half = (high - low) / 2 * (len(curves(results, kind)) / count) ** 0.5
    return (low + high) / 2 - half, (low + high) / 2 + half


def inside(results: Results, kind: str, network: Network, where: str, headline: bool) -> Iterator[Evidence]:
    """Two rows of evidence: networks' mean is above a noise band's lower end, and below its upper end.

    The band is that of single series, wider than that of a mean; see ``as_noise`` for what is stricter.
    """
    low, high = band(results, kind)
    sample = averages(results, network)
    within = sum(low <= value <= high for value in sample)
    detail = f"{within} of {len(sample)} networks lie in the band of single series, {low:.3f} to {high:.3f}"
    for words, apart in (
        ("above the {} band's foot", [value - low for value in sample]),
        ("below the {} band's top", [high - value for value in sample]),
    ):
        yield Evidence(f"{where}: {words.format(kind)}", [apart], headline=headline, detail=detail)


def as_noise(results: Results, kind: str, acfs: pd.DataFrame, where: str) -> Iterator[Evidence]:
    """Three further rows, each 0 or more if networks were noise; ``acfs`` has a row per network, a column per lag.

    Of single series 95 % lie in their band, by definition. The mean over networks, of the average over lags and of
    lag 1 alone, is compared with the band of the mean of as many series, at the end that it is nearer to.
    """
    sample, count = over_lags(acfs), len(acfs)
    low, high = band(results, kind)
    within = [low <= value <= high for value in sample]
    yield Evidence(
        f"{where}: share of networks in the {kind} band, less .95",
        [[each - 0.95 for each in within]],
        headline=False,
        detail=f"{sum(within)} of {count} networks",
    )
    for words, values, ends in (
        ("mean", sample, band_of_means(results, kind, count)),
        ("mean at lag 1", acfs[1.0].tolist(), band_at_lag(results, kind, 1, count)),
    ):
        middle = sum(values) / count
        above = 2 * middle < sum(ends)  # nearer to the foot, and to be above it
        yield Evidence(
            f"{where}: {words}, inside the band of as many {kind} series' mean",
            [[value - ends[0] if above else ends[1] - value for value in values]],
            headline=False,
            detail=f"the mean is {middle:.4f}, and that of {count} series {ends[0]:.4f} to {ends[1]:.4f} in 95 %",
        )


def white_at(results: Results, depth: int) -> Iterator[Evidence]:
    """Whether feedforward networks of a depth are white; those that centre decide, as the paper's do."""
    for normalisation, words in NORMALISATIONS.items():
        network, own = plain(depth, results.settings.width, normalisation), normalisation == "centre"
        yield from inside(results, "white", network, words, headline=own)
        if own:
            yield from as_noise(results, "white", curves(results, network), words)
