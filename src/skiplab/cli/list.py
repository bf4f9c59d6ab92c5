"""``skiplab list``: every study, what it shows, its cost at each scale and the last verdicts."""

from __future__ import annotations

import json
from textwrap import fill

import typer

from skiplab.cli.options import JsonOption, NamesArgument, StoreOption
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.scoreboard import counts
from skiplab.reproduction.store import Store, StudyRun, best_runs
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, UNDECIDED
from skiplab.studies import CATALOGUE
from skiplab.telling import duration


def list_studies(names: NamesArgument = None, as_json: JsonOption = False, store: StoreOption = None) -> None:
    """List studies: what each shows and costs, its claims that hold ✓, are contradicted ✗, are undecided ?."""
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
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    best = best_runs(Store(store))
    columns = "{:27} {:>6} {:>7}  {}"
    console.print(columns.format("study", "quick", "paper", "claims"), style="dim")
    for study in studies:
        away = "*" if study.paper_device != "cpu" else ""
        costs = duration(study.cost["quick"]), duration(study.cost["paper"]) + away
        line = Text(columns.format(study.id, *costs, verdicts(best.get(study.id))))
        line.stylize("bold", 0, len(study.id))
        console.print(line, soft_wrap=True)
        console.print(Text(fill(study.title, console.width, initial_indent="  ", subsequent_indent="  ")))
    elsewhere = sorted({study.paper_device for study in studies} - {"cpu"})
    if elsewhere:
        console.print(f"\nCosts are for 2 CPU cores, * for {' or '.join(elsewhere)}.")
    console.print("Run one with `skiplab run ID`, or the most telling ones with `skiplab run tour`.")


def verdicts(run: StudyRun | None) -> str:
    """Count the paper's claims by verdict in a few signs, then our own, and say where they come from."""
    if run is None:
        return "not run"
    found = counts(judgements(run.verdicts))
    signs = {
        whose: f"✓{each[HOLDS]} ✗{each[CONTRADICTED]} ?{each[UNDECIDED]}" for whose, each in found.items()
    }
    ours = f"ours {signs['ours']}" if any(found["ours"].values()) else ""
    return f"{signs['paper']:9}  {ours:14} {'published' if run.published else run.scale}"
