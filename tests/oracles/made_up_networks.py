"""Made-up results of yu2019's trained networks, on which a paper's claim is known to be right or wrong."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from skiplab.reproduction import Results
from skiplab.reproduction.results import Part
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.yu2019.networks import train

Row = dict[str, Any]


def wiggle(seed: int) -> float:
    """A spread over seeds that sums to nearly nothing: −1, −½, 0, ½, 1 and again."""
    return (seed % 5 - 2) / 2


def rows_of(
    model: str,
    depth: int,
    quantity: str,
    numbers: Iterable[float],
    *,
    epoch: int,
    layer: int = 0,
    **other: Any,
) -> list[Row]:
    """A row per seed of one quantity."""
    own = {"model": model, "depth": depth, "quantity": quantity, "epoch": epoch, "layer": layer, **other}
    return [{"seed": seed, "value": value, **own} for seed, value in enumerate(numbers)]


def results_with(settings: Any, stages: dict[str, list[Row]]) -> Results:
    """Results whose trial is the shared one, stage by stage."""
    parts = [Part(train.name, stage, pd.DataFrame(rows)) for stage, rows in stages.items() if rows]
    return Results(settings, parts)


def verdicts(study: Study, results: Results, scale: str = "paper") -> dict[str, str]:
    """One verdict per claim."""
    from skiplab.reproduction.judgement import judgements

    return {each.claim: each.verdict for each in judgements(judge(study, results, scale))}


def rows_by_condition(study: Study, results: Results, claim: str, scale: str = "paper") -> dict[str, Verdict]:
    """The rows of one claim, further ones too."""
    return {row.condition: row for row in judge(study, results, scale) if row.claim == claim}
