"""The best and the worst of many networks, ranked by training accuracy averaged over epochs.

A trial that measures only its extremes (``Measured.extremes``) chooses by the same rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from skiplab.experiments.measured_networks import chosen
from skiplab.reproduction.results import matching

if TYPE_CHECKING:
    import pandas as pd


class BestAndWorst(NamedTuple):
    """Rows of the best networks and of the worst."""

    best: pd.DataFrame
    worst: pd.DataFrame

    def have(self, quantity: str) -> bool:
        """Whether a quantity was measured."""
        return len(matching(self.best, quantity=quantity)) > 0

    def missed(self, measured: int) -> str:
        """Say how many of these networks have no measurement, if any."""
        lost = sum(rows["seed"].nunique() for rows in self) - measured
        were = "was" if lost == 1 else "were"
        return f"{lost} of these networks diverged and {were} not measured" if lost else ""


def extremes_among(runs: int, wanted: int) -> int:
    """How many are best and how many worst: no network may be both."""
    return max(1, min(wanted, runs // 2))


def best_and_worst(everyone: pd.DataFrame, wanted: int) -> BestAndWorst:
    """The best and the worst networks, so many of each or half of all."""
    accuracy = matching(everyone, quantity="accuracy").sort_values(["epoch", "seed"])
    seeds = sorted(accuracy["seed"].unique())
    place = {seed: member for member, seed in enumerate(seeds)}
    rows = [
        {"member": place[seed], "quantity": "accuracy", "value": value}
        for seed, value in zip(accuracy["seed"], accuracy["value"].tolist(), strict=True)
    ]
    count = extremes_among(len(seeds), wanted)
    order = [seeds[member] for member in chosen(rows, len(seeds), count)]
    return BestAndWorst(matching(everyone, seed=order[:count]), matching(everyone, seed=order[-count:]))
