"""Figure 4: every configuration of four toy networks with binary weights, on random targets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact, Greater, Value
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017.landscapes import ARCHITECTURES, Target, landscape

if TYPE_CHECKING:
    import pandas as pd

PAPER_MINIMA = {"plain": 3.2e6, "path-residual": 505e3, "residual": 140e3, "hyper-residual": 54.0}


@dataclass(frozen=True)
class Settings:
    """How many random targets, and the toy network; weights is 4·depth + 2, or one more for a sign."""

    runs: int
    seed: int = 0
    depth: int = 5
    points: int = 64
    weights: int = 22
    biases: bool = False
    tolerance: float = 1e-10


def targets(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Name one trial a random target."""
    return [
        landscape.of(
            Target(
                seed=seed,
                depth=settings.depth,
                points=settings.points,
                weights=settings.weights,
                biases=settings.biases,
                tolerance=settings.tolerance,
            ),
            label=f"target {seed}",
        )
        for seed in run_seeds(settings.seed, settings.runs)
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' histograms and means as they are, one row a bin."""
    return tables[0]


def by_target(table: pd.DataFrame, quantity: str) -> pd.DataFrame:
    """Return a number for each target (row) and architecture (column)."""
    chosen = table[table["quantity"] == quantity]
    return chosen.pivot(index="target", columns="architecture", values="value")[list(ARCHITECTURES)]


def _minima(table: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    counts = by_target(table, "minima")
    for architecture, paper in PAPER_MINIMA.items():
        ours = counts[architecture]
        fewer = f"{int((ours <= paper).sum())} of {len(ours)} targets have no more minima than the paper's"
        detail = f"{settings.weights} weights; {fewer}"
        yield Evidence(architecture, [ours.tolist()], paper_value=paper, detail=detail)


def _order(table: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    counts = by_target(table, "minima").to_numpy()
    wrong = (counts[:, :-1] <= counts[:, 1:]).sum(axis=1)
    detail = (
        f"in {int((wrong > 0).sum())} of {len(wrong)} targets at least one of the three steps is reversed"
    )
    yield Evidence("every target", [wrong.tolist()], detail=detail)


def _plain_least(table: pd.DataFrame, quantity: str) -> Iterator[Evidence]:
    means = by_target(table, quantity)
    gap = means.drop(columns="plain").min(axis=1) - means["plain"]
    yield Evidence("next smallest − plain", [gap.tolist()])


def _hyper_most(table: pd.DataFrame, quantity: str) -> Iterator[Evidence]:
    means = by_target(table, quantity)
    gap = means["hyper-residual"] - means.drop(columns="hyper-residual").max(axis=1)
    yield Evidence("hyper-residual − next largest", [gap.tolist()])


ORDER_CLAIMS = (
    Claim(
        "order-of-minima",
        "In every target plain has the most local minima, then path-residual, residual, hyper-residual.",
        _order,
        Exact(),
        unit="reversed steps",
    ),
    Claim(
        "shortest-walks-plain",
        "Steepest walks are shortest in the plain network.",
        lambda table, settings: _plain_least(table, "mean_walk_length"),
        Greater(),
        unit="steps",
    ),
    Claim(
        "longest-walks-hyper",
        "Steepest walks are longest in the hyper-residual network.",
        lambda table, settings: _hyper_most(table, "mean_walk_length"),
        Greater(),
        unit="steps",
    ),
    Claim(
        "smallest-basins-plain",
        "Basins of local minima are smallest, on average, in the plain network.",
        lambda table, settings: _plain_least(table, "mean_basin_size"),
        Greater(),
        unit="configurations",
    ),
    Claim(
        "largest-basins-hyper",
        "Basins of local minima are largest, on average, in the hyper-residual network.",
        lambda table, settings: _hyper_most(table, "mean_basin_size"),
        Greater(),
        unit="configurations",
    ),
)
NUMBER_CLAIM = Claim(
    "number-of-minima",
    "The paper's number of local minima lies in our range over targets, give or take a tenth.",
    _minima,
    Value(tolerance=0.1, spread="range"),
    unit="local minima",
)


def figure(table: pd.DataFrame, settings: Settings) -> Any:
    """Draw the three distributions, with the paper's numbers of minima where it gives them."""
    from skiplab.figures.landscapes import landscape_panels

    comparable = settings.depth == Settings.depth and not settings.biases
    return landscape_panels(
        _histograms(table, "better_neighbours"),
        _histograms(table, "walk_length"),
        _histograms(table, "basin_size_log2"),
        PAPER_MINIMA if comparable else None,
    )


def _histograms(table: pd.DataFrame, quantity: str) -> dict[str, Any]:
    """Return (targets, bins) for each architecture; a bin that a target never reaches counts 0."""
    chosen = table[table["quantity"] == quantity]
    return {
        name: part.pivot(index="target", columns="bin", values="value").fillna(0.0).to_numpy()
        for name in ARCHITECTURES
        if len(part := chosen[chosen["architecture"] == name])
    }


def scales(biases: bool) -> dict[str, Settings]:
    """Return the settings at the three scales; only smoke has a smaller network."""
    return {
        "smoke": Settings(runs=2, depth=2, weights=10, points=16, biases=biases),
        "quick": Settings(runs=5, biases=biases),
        "paper": Settings(runs=20, biases=biases),
    }


STUDY = Study(
    id="orhan2017/figure-4",
    words=__file__,
    settings=scales(biases=False),
    stages=(targets,),
    table=table,
    figure=figure,
    claims=(NUMBER_CLAIM, *ORDER_CLAIMS),
    cost={"smoke": 0.1, "quick": 12.0, "paper": 40.0},
    in_tour=True,
)
