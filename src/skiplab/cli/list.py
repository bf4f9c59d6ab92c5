"""``skiplab list``: every study, what it shows, its cost at each scale and the last verdicts."""

from __future__ import annotations

import json

import typer

from skiplab.cli.options import JsonOption, StoreOption, duration
from skiplab.reproduction.store import Store, StudyRun, best_runs
from skiplab.studies import CATALOGUE


def list_studies(as_json: JsonOption = False, store: StoreOption = None) -> None:
    """List every study: id, what it shows, cost at each scale, last verdicts."""
    if as_json:
        rows = [
            {
                "id": study.id,
                "paper": study.paper,
                "item": study.item,
                "title": study.title,
                "claims": [claim.id for claim in study.claims],
                "cost": {"quick": study.cost["quick"], "paper": study.cost["paper"]},
            }
            for study in CATALOGUE
        ]
        typer.echo(json.dumps(rows, indent=1))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    best = best_runs(Store(store))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("study", "what it shows", "quick", "paper", "verdicts"):
        table.add_column(heading, no_wrap=heading in ("study", "quick"))
    for study in CATALOGUE:
        paper = duration(study.cost["paper"])
        if study.paper_device != "cpu":
            paper += f" on {study.paper_device}"
        table.add_row(
            study.id, study.title, duration(study.cost["quick"]), paper, verdicts(best.get(study.id))
        )
    Console().print(table)


def verdicts(run: StudyRun | None) -> str:
    """Count a run's headline verdicts in a few signs."""
    if run is None:
        return "not run"
    counts = {"holds": 0, "contradicted": 0, "undecided": 0}
    for verdict in run.verdicts:
        if verdict["headline"]:
            counts[verdict["verdict"]] += 1
    where = "published" if run.published else run.scale
    return f"✓{counts['holds']} ✗{counts['contradicted']} ?{counts['undecided']} ({where})"
