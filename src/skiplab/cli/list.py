"""``skiplab list``: every study, what it shows, its cost at each scale and the last verdicts."""

from __future__ import annotations

import json

import typer

from skiplab.cli.options import JsonOption, NamesArgument, StoreOption, duration
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.scoreboard import counts
from skiplab.reproduction.store import Store, StudyRun, best_runs
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, UNDECIDED
from skiplab.studies import CATALOGUE


def list_studies(names: NamesArgument = None, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """List studies: id, what it shows, cost at each scale, claims that hold ✓, fail ✗, are open ?."""
    studies = CATALOGUE.select(names or ["all"])
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
            for study in studies
        ]
        typer.echo(json.dumps(rows, indent=1, allow_nan=False))
        return
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    best = best_runs(Store(store))
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("study", no_wrap=True)
    table.add_column("what it shows")
    for heading in ("quick", "paper"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdicts", no_wrap=True)
    elsewhere = sorted({study.paper_device for study in studies} - {"cpu"})
    previous = ""
    for study in studies:
        if previous not in ("", study.paper):
            table.add_section()
        previous = study.paper
        paper = duration(study.cost["paper"]) + ("*" if study.paper_device != "cpu" else "")
        quick = duration(study.cost["quick"])
        table.add_row(study.id, escape(study.title), quick, paper, verdicts(best.get(study.id)))
    console = Console()
    console.print(table)
    if elsewhere:
        console.print(f"Costs are for 2 CPU cores, * for {' or '.join(elsewhere)}.", highlight=False)
    console.print("Run one with `skiplab run ID`, or the most telling ones with `skiplab run tour`.")


def verdicts(run: StudyRun | None) -> str:
    """Count the paper's claims by verdict in a few signs, above our own and where they come from."""
    if run is None:
        return "not run"
    found = counts(judgements(run.verdicts))
    signs = {
        whose: f"✓{each[HOLDS]} ✗{each[CONTRADICTED]} ?{each[UNDECIDED]}" for whose, each in found.items()
    }
    ours = f"\nours {signs['ours']}" if any(found["ours"].values()) else ""
    return f"{signs['paper']}{ours}\n{'published' if run.published else run.scale}"
