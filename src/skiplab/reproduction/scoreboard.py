"""The scoreboard: verdict rows of the runs at hand, each marked if its trials have a newer version."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.store import Store, best_runs, runs_at_hand
from skiplab.reproduction.trial import versions_at_hand
from skiplab.reproduction.verdict import Verdict

FIELDS = (
    "study", "claim", "condition", "verdict", "statistic", "low", "high", "margin", "p", "paper_value", "runs",
    "scale", "stale",
)  # fmt: skip


@dataclass(frozen=True)
class Row:
    """A verdict, stale or not as of now, and the name of the run that it comes from."""

    verdict: Verdict
    run: str

    def to_dict(self) -> dict[str, Any]:
        """Return the fields that other programs read."""
        return {name: getattr(self.verdict, name) for name in FIELDS}


def scoreboard(catalogue: Catalogue, store: Store, *, all_runs: bool = False) -> list[Row]:
    """One row per claim and condition, in the catalogue's order; smoke runs decide nothing and are left out."""
    if all_runs:
        runs = [run for run in runs_at_hand(store) if run.scale != "smoke"]
    else:
        runs = list(best_runs(store).values())
    order = {study.id: index for index, study in enumerate(catalogue)}
    runs = sorted((run for run in runs if run.study in order), key=lambda run: order[run.study])
    versions = versions_at_hand()
    return [
        Row(dataclasses.replace(verdict, stale=stale), run.name)
        for run, stale in [(run, run.stale(versions)) for run in runs]
        for verdict in run.verdicts
    ]
