"""The landscapes of random targets: settings, the stage, and what figures 4 and S1 both claim."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Evidence, Exact, Found, Results, subset
from skiplab.studies.orhan2017.landscapes.trials import ARCHITECTURES, Target, landscape

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


def by_target(results: Results, quantity: str) -> pd.DataFrame:
    """A number for each target (row) and architecture (column)."""
    rows = results.rows(landscape, quantity=quantity)
    return rows.pivot(index="target", columns="architecture", values="value")[list(ARCHITECTURES)]


def order(results: Results) -> Iterator[Evidence]:
    """Steps from one architecture to the next at which minima do not become fewer, one number per target."""
    counts = by_target(results, "minima").to_numpy()
    wrong = (counts[:, :-1] <= counts[:, 1:]).sum(axis=1)
    reversed_ = int((wrong > 0).sum())
    detail = f"in {reversed_} of {len(wrong)} targets at least one of the three steps is reversed"
    yield Evidence("every target", [wrong.tolist()], detail=detail)


def plain_least(quantity: str) -> Found:
    """Evidence that a quantity is smallest in the plain network."""

    def found(results: Results) -> Iterator[Evidence]:
        means = by_target(results, quantity)
        gap = means.drop(columns="plain").min(axis=1) - means["plain"]
        yield Evidence("next smallest − plain", [gap.tolist()])

    return found


def hyper_most(quantity: str) -> Found:
    """Evidence that a quantity is largest in the hyper-residual network."""

    def found(results: Results) -> Iterator[Evidence]:
        means = by_target(results, quantity)
        gap = means["hyper-residual"] - means.drop(columns="hyper-residual").max(axis=1)
        yield Evidence("hyper-residual − next largest", [gap.tolist()])

    return found


ORDER_CLAIMS = (
    Claim(
        "order-of-minima",
        "In every target plain has the most local minima, then path-residual, residual, hyper-residual.",
        order,
        kind=Exact(),
        unit="reversed steps",
    ),
    Claim(
        "shortest-walks-plain",
        "Steepest walks are shortest in the plain network.",
        plain_least("mean_walk_length"),
        unit="steps",
    ),
    Claim(
        "longest-walks-hyper",
        "Steepest walks are longest in the hyper-residual network.",
        hyper_most("mean_walk_length"),
        unit="steps",
    ),
    Claim(
        "smallest-basins-plain",
        "Basins of local minima are smallest, on average, in the plain network.",
        plain_least("mean_basin_size"),
        unit="configurations",
    ),
    Claim(
        "largest-basins-hyper",
        "Basins of local minima are largest, on average, in the hyper-residual network.",
        hyper_most("mean_basin_size"),
        unit="configurations",
    ),
)
