"""The landscapes of random targets: settings, the stage, and what figures 4 and S1 both claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Evidence, Found, Greater, Ordered, Results, subset
from skiplab.reproduction.trial import Trial
from skiplab.studies.orhan2017.landscapes.trials import ARCHITECTURES, Target, landscape
from skiplab.studies.orhan2017.smallest_effects import POWERS_OF_TEN, TEN_PERCENT

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class LandscapeSettings:
    """How many random targets, and the toy network; weights is 4·depth + 2, or one more for a sign."""

    runs: int = 20
    seed: int = 0
    depth: int = 5
    points: int = 64
    weights: int = 22
    biases: bool = False
    tolerance: float = 1e-10


# Only smoke has a smaller network.
QUICK: dict[str, Any] = {"runs": 5}
SMOKE: dict[str, Any] = {"runs": 2, "depth": 2, "weights": 10, "points": 16}


def targets(results: Results) -> list[Call]:
    """Name one trial per random target."""
    settings = results.settings
    seeds = run_seeds(settings.seed, settings.runs)
    return [landscape.of(subset(Target, settings, seed=seed), f"target {seed}") for seed in seeds]


def by_target(results: Results, quantity: str, trial: Trial = landscape) -> pd.DataFrame:
    """A number for each target (row) and architecture (column)."""
    rows = results.rows(trial, quantity=quantity)
    return rows.pivot(index="target", columns="architecture", values="value")[list(ARCHITECTURES)]


def one_or_zero(results: Results, trial: Trial = landscape) -> Evidence:
    """The share of the plain network's configurations with one better neighbour or none, one number per target."""
    rows = results.rows(trial, architecture="plain", quantity="better_neighbours")
    counts = rows.pivot(index="target", columns="bin", values="value")
    shares = counts.div(counts.sum(axis=1), axis=0)
    none, one = (shares[number].median() for number in (0, 1))
    detail = f"medians: {none:.3g} have none, {one:.3g} have one"
    return Evidence("plain", [(shares[0] + shares[1]).tolist()], detail=detail)


def order(results: Results) -> Iterator[Evidence]:
    """Numbers of minima of each architecture and the one before it, on the same targets."""
    counts = by_target(results, "minima")
    for more, fewer in pairwise(ARCHITECTURES):
        right = int((counts[more] > counts[fewer]).sum())
        detail = f"in {right} of {len(counts)} targets"
        samples = [counts[name].tolist() for name in (fewer, more)]
        yield Evidence(f"{more} above {fewer}", samples, detail=detail, paired=True)


def plain_least(quantity: str) -> Found:
    """Evidence that a quantity is smallest in the plain network."""

    def found(results: Results) -> Iterator[Evidence]:
        means = by_target(results, quantity)
        yield _ratio("next smallest over plain", means.drop(columns="plain").min(axis=1), means["plain"])

    return found


def hyper_most(quantity: str) -> Found:
    """Evidence that a quantity is largest in the hyper-residual network."""

    def found(results: Results) -> Iterator[Evidence]:
        means = by_target(results, quantity)
        others = means.drop(columns="hyper-residual").max(axis=1)
        yield _ratio("hyper-residual over next largest", means["hyper-residual"], others)

    return found


def basins_below(results: Results, smaller: str, larger: str) -> pd.Series[float]:
    """P(a random minimum of the one has a smaller basin than one of the other) − ½, one number per target.

    From the histograms by octave, as the figure shows them; two basins of one octave count one half. (The mean basin
    says nothing of its own: times the number of minima it is the number of configurations.)
    """
    rows = results.rows(landscape, quantity="basin_size_log2")
    shares = []
    for name in (smaller, larger):
        part = rows[rows["architecture"] == name]
        counts = part.pivot(index="target", columns="bin", values="value")
        shares.append(counts.reindex(columns=sorted(set(rows["bin"]))).fillna(0.0))
    first, second = (each.div(each.sum(axis=1), axis=0) for each in shares)
    return ((first.cumsum(axis=1) - first / 2) * second).sum(axis=1) - 0.5


def smallest_basins(results: Results) -> Iterator[Evidence]:
    """Basins of plain minima against those of each other architecture."""
    for other in ARCHITECTURES[1:]:
        yield Evidence(f"plain below {other}", [basins_below(results, "plain", other).tolist()])


def largest_basins(results: Results) -> Iterator[Evidence]:
    """Basins of each other architecture against those of hyper-residual minima."""
    *others, hyper = ARCHITECTURES
    for other in reversed(others):
        yield Evidence(f"{hyper} above {other}", [basins_below(results, other, hyper).tolist()])


def _ratio(condition: str, larger: pd.Series[float], smaller: pd.Series[float]) -> Evidence:
    """log₁₀ of a ratio that should be above 1, one number per target."""
    import numpy as np

    detail = f"medians {larger.median():.3g} and {smaller.median():.3g}"
    return Evidence(condition, [np.log10(larger / smaller).tolist()], detail=detail)


# The paper gives no walk lengths or basin sizes: ten per cent of whatever they are.
TENTH_MORE = Greater(worth=TEN_PERCENT)
MORE_OFTEN, ABOVE_HALF = Greater(worth=Ordered().worth), "P − ½"
DOMINATED = Claim(
    "one-or-zero",
    "Configurations with one or zero better neighbours dominate the plain landscape: more than half.",
    lambda results: [one_or_zero(results)],
    kind=Greater(margin=-0.5),
    unit="share of configurations",
)
ORDER_CLAIMS = (
    Claim(
        "order-of-minima",
        "Plain has the most local minima, then path-residual, residual, hyper-residual.",
        order,
        kind=Ordered(),
        unit="P(the first has more minima)",
    ),
    Claim(
        "shortest-walks-plain",
        "Steepest walks are shortest in the plain network.",
        plain_least("mean_walk_length"),
        kind=TENTH_MORE,
        unit=POWERS_OF_TEN,
    ),
    Claim(
        "longest-walks-hyper",
        "Steepest walks are longest in the hyper-residual network.",
        hyper_most("mean_walk_length"),
        kind=TENTH_MORE,
        unit=POWERS_OF_TEN,
    ),
    Claim(
        "smallest-basins-plain",
        "Basins of local minima are smallest in the plain network: of two random minima, its own has the smaller one "
        "more often than not.",
        smallest_basins,
        kind=MORE_OFTEN,
        unit=ABOVE_HALF,
    ),
    Claim(
        "largest-basins-hyper",
        "Basins of local minima are largest in the hyper-residual network: of two random minima, its own has the "
        "larger one more often than not.",
        largest_basins,
        kind=MORE_OFTEN,
        unit=ABOVE_HALF,
    ),
)
