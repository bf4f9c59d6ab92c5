"""The scoreboard: one entry per claim of the runs at hand, each marked if its trials have a newer version."""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from skiplab.reproduction.catalogue import Catalogue
from skiplab.reproduction.claim import OURS
from skiplab.reproduction.judgement import Judgement, judgements, tally
from skiplab.reproduction.store import Store, best_runs, runs_at_hand
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import versions_at_hand

ROW_FIELDS = (
    "condition", "headline", "verdict", "reason", "statistic", "low", "high", "unit", "kind", "margin", "worth", "p",
    "level", "paired", "paper_value", "runs", "needs", "missing", "detail",
)  # fmt: skip


@dataclass(frozen=True)
class Entry:
    """A claim, whether its trials have a newer version by now, and the name of the run that it comes from."""

    judged: Judgement
    stale: bool
    run: str

    def to_dict(self) -> dict[str, Any]:
        """Return what other programs read: the claim's verdict, and the rows behind it."""
        judged = self.judged
        rows = [{name: getattr(row, name) for name in ROW_FIELDS} for row in (*judged.rows, *judged.further)]
        return {
            "study": judged.study,
            "claim": judged.claim,
            "text": judged.text,
            "source": judged.source,
            "verdict": judged.verdict,
            "reason": judged.reason,
            "p_adjusted": judged.p_adjusted,
            "scale": judged.rows[0].scale,
            "stale": self.stale,
            "rows": rows,
        }


def yet_to_run(studies: Iterable[Study], runs: Container[str]) -> dict[str, int]:
    """How many claims of its paper a study has, by the id of every study of which there is no run."""
    claims = {
        study.id: sum(claim.source != OURS for claim in study.claims)
        for study in studies
        if study.id not in runs
    }
    return {study: number for study, number in claims.items() if number}


def scoreboard(catalogue: Catalogue, store: Store, *, all_runs: bool = False) -> list[Entry]:
    """One entry per claim, in the catalogue's order; smoke runs decide nothing and are left out."""
    if all_runs:
        runs = [run for run in runs_at_hand(store) if run.scale != "smoke"]
    else:
        runs = list(best_runs(store).values())
    order = {study.id: index for index, study in enumerate(catalogue)}
    runs = sorted((run for run in runs if run.study in order), key=lambda run: order[run.study])
    versions = versions_at_hand()
    found = []
    for run in runs:
        stale = run.stale(versions)
        rows = [dataclasses.replace(row, stale=stale or row.stale) for row in run.verdicts]
        found += [
            Entry(judged, any(row.stale for row in judged.rows), run.name) for judged in judgements(rows)
        ]
    return found


def counts(judged: Iterable[Judgement]) -> dict[str, dict[str, int]]:
    """Count claims by verdict: the papers' own, and apart from them ours."""
    every = list(judged)
    return {
        "paper": tally(each for each in every if not each.ours),
        "ours": tally(each for each in every if each.ours),
    }
