"""The scoreboard: verdict rows of the runs at hand, each marked if its trials have a newer version."""

from __future__ import annotations

from typing import Any

from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.store import Store, best_runs, runs_at_hand
from skiplab.reproduction.trial import versions_at_hand

FIELDS = (
    "study", "claim", "condition", "verdict", "statistic", "low", "high", "margin", "p", "paper_value", "runs",
    "scale", "stale",
)  # fmt: skip


def scoreboard(catalogue: Catalogue, store: Store, *, all_runs: bool = False) -> list[dict[str, Any]]:
    """One row a claim and condition, in the catalogue's order; smoke runs decide nothing and are left out."""
    if all_runs:
        runs = [run for run in runs_at_hand(store) if run.scale != "smoke"]
    else:
        runs = list(best_runs(store).values())
    order = {study.id: index for index, study in enumerate(catalogue)}
    runs = sorted((run for run in runs if run.study in order), key=lambda run: order[run.study])
    versions = versions_at_hand()
    marks = [{"stale": run.stale(versions), "run": run.name} for run in runs]
    return [row | mark for run, mark in zip(runs, marks, strict=True) for row in run.verdicts]
