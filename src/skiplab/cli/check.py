"""``skiplab check``: the scoreboard, one row per claim and condition."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from typing import Annotated

import typer

from skiplab.cli.options import JsonOption, StoreOption
from skiplab.cli.verdicts import rows_table
from skiplab.reproduction.scoreboard import Row, scoreboard
from skiplab.reproduction.store import Store
from skiplab.reproduction.verdict import VERDICTS
from skiplab.studies import CATALOGUE

STALE = ", stale: its trials have a newer version, so run it again"


def check(
    as_json: JsonOption = False,
    all_runs: Annotated[
        bool, typer.Option("--all", help="Every stored run, not only the best of each study.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Print every claim's verdict from the largest results at hand, local before published."""
    rows = scoreboard(CATALOGUE, Store(store), all_runs=all_runs)
    counts = Counter(row.verdict.verdict for row in rows)
    if as_json:
        claims = [row.to_dict() for row in rows]
        totals = {name: counts[name] for name in VERDICTS}
        typer.echo(json.dumps({"claims": claims, "counts": totals}, indent=1, allow_nan=False))
        return
    if not rows:
        typer.echo("Nothing has been run yet; try `skiplab run tour`.")
        return
    _print(rows, counts)


def _print(rows: list[Row], counts: Counter[str]) -> None:
    from rich.console import Console

    console = Console()
    keys = groupby(rows, lambda row: (row.verdict.study, row.run, row.verdict.stale))
    for (study, run, stale), group in keys:
        scale, _, deviating = run.partition("+")
        deviates = " with settings of its own" if deviating else ""
        heading = f"\n[bold]{study}[/] at {scale} scale{deviates}{STALE if stale else ''}"
        console.print(heading, highlight=False)
        console.print(rows_table([row.verdict for row in group], console.width), highlight=False)
    summary = ", ".join(f"{counts[name]} {name}" for name in VERDICTS)
    console.print(f"{len(rows)} rows: {summary}", highlight=False)
