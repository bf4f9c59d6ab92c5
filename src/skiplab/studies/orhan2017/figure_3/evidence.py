"""Connections found against those that eqs 1–4 say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from skiplab.randomness import run_seeds
from skiplab.reproduction import Evidence, Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2017.figure_3.trials import ARCHITECTURES, WIDTH, probe

if TYPE_CHECKING:
    import pandas as pd

PAPER_WEIGHTS = 23
ENDS = ["before", "source", "after", "target"]
Edge = tuple[int, int, int, int]  # layer and unit from which, layer and unit to which


def edges(rows: pd.DataFrame) -> list[Edge]:
    """The ends of connections."""
    return list(rows[ENDS].itertuples(index=False, name=None))


def expected_skips(architecture: str, depth: int) -> set[Edge]:
    """Skips that the equations say: eqs 1–4 for x_2 … x_{depth+1}."""
    pairs = [(layer, layer + 1) for layer in range(1, depth + 1)]
    units = range(1, WIDTH + 1)
    match architecture:
        case "residual":
            return {(before, unit, after, unit) for before, after in pairs for unit in units}
        case "hyper-residual":
            return {
                (before, unit, after, unit)
                for after in range(2, depth + 2)
                for before in range(1, after)
                for unit in units
            }
        case "path-residual":
            return {
                (before, one, after, other) for before, after in pairs for one in units for other in units
            }
        case _:
            return set()


def factor(architecture: str, after: int) -> float:
    """What the equation multiplies x_after's connections by; l = after − 1."""
    skips = {"plain": 0, "residual": 1, "hyper-residual": after - 1, "path-residual": WIDTH}[architecture]
    return 2 / (2 + skips)


def by_draw(results: Results, architecture: str, kind: str) -> list[pd.DataFrame]:
    """The connections of one kind in one network, a table per draw of the activities."""
    rows = results.rows(probe, architecture=architecture, kind=kind)
    seeds = run_seeds(results.settings.seed, results.settings.runs)
    return [matching(rows, draw=seed) for seed in seeds]


def weights_printed(results: Results) -> Iterator[Evidence]:
    """Weights found, less the paper's number."""
    yield from _weights(results, PAPER_WEIGHTS)


def weights(results: Results) -> Iterator[Evidence]:
    """Weights found, less those of two units in each layer and one output."""
    yield from _weights(results, WIDTH * WIDTH * results.settings.depth + WIDTH)


def _weights(results: Results, expected: int) -> Iterator[Evidence]:
    for name in ARCHITECTURES:
        counts = [len(rows) for rows in by_draw(results, name, "weight")]
        apart = [count - expected for count in counts]
        yield Evidence(name, [apart], detail=f"{counts[0]} weights, {expected} said")


def skips(results: Results) -> Iterator[Evidence]:
    """Skips that are missing or too many."""
    for name in ARCHITECTURES:
        expected = expected_skips(name, results.settings.depth)
        found = [edges(rows) for rows in by_draw(results, name, "skip")]
        wrong = [len(set(each) ^ expected) for each in found]
        yield Evidence(name, [wrong], detail=f"{len(found[0])} skips")


def into_hidden_units(results: Results, architecture: str) -> pd.DataFrame:
    """Weights and skips of one network that end in its hidden layers."""
    rows = results.rows(probe, architecture=architecture, kind=("weight", "skip"))
    return rows[rows["after"] <= results.settings.depth + 1]


def factors(results: Results) -> Iterator[Evidence]:
    """Strengths of all connections into hidden units, less the equations' factors."""
    for name in ARCHITECTURES:
        rows = into_hidden_units(results, name)
        said = [factor(name, after) for after in rows["after"]]
        yield Evidence(name, [(rows["strength"] - said).tolist()])


def equalised(results: Results) -> Iterator[Evidence]:
    """What comes into each hidden unit in all, less two."""
    for name in ARCHITECTURES:
        rows = into_hidden_units(results, name)
        sums = rows.groupby(["draw", "after", "target"])["strength"].sum()
        detail = f"{len(rows) // results.settings.runs} connections into hidden units"
        yield Evidence(name, [(sums - WIDTH).tolist()], detail=detail)


def after_the_units(results: Results) -> Iterator[Evidence]:
    """Connections by which what is left when all units are silent differs from the skips."""
    columns = ["draw", *ENDS, "strength"]
    for name in ARCHITECTURES:
        skip, left = (
            set(results.rows(probe, architecture=name, kind=kind)[columns].itertuples(index=False, name=None))
            for kind in ("skip", "left when silent")
        )
        detail = f"{len(left) // results.settings.runs} left"
        yield Evidence(name, [[float(len(skip ^ left))]], detail=detail)
