"""``skiplab check``: the scoreboard, one verdict per claim."""

from __future__ import annotations

import json
from itertools import groupby
from typing import Annotated

import typer

from skiplab.cli.options import JsonOption, StoreOption
from skiplab.cli.verdicts import claims_table, rows_table
from skiplab.reproduction.scoreboard import Entry, counts, scoreboard
from skiplab.reproduction.store import Store
from skiplab.reproduction.verdict import VERDICTS
from skiplab.studies import CATALOGUE

STALE = ", stale: its trials have a newer version, so run it again"


def check(
    as_json: JsonOption = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="The conditions behind every verdict, and further ones.")
    ] = False,
    all_runs: Annotated[
        bool, typer.Option("--all", help="Every stored run, not only the best of each study.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Print one verdict per claim from the largest results at hand, local before published."""
    entries = scoreboard(CATALOGUE, Store(store), all_runs=all_runs)
    totals = counts(entry.judged for entry in entries)
    studies = dict.fromkeys(entry.judged.study for entry in entries)
    amended = sum(len(CATALOGUE[study].amendments) for study in studies)
    if as_json:
        claims = [entry.to_dict() for entry in entries]
        answer = {"claims": claims, "counts": totals, "amendments": amended}
        typer.echo(json.dumps(answer, indent=1, allow_nan=False))
        return
    if not entries:
        typer.echo("Nothing has been run yet; try `skiplab run tour`.")
        return
    _print(entries, rows)
    for whose, words in (("paper", "the papers'"), ("ours", "our own")):
        each = totals[whose]
        summary = ", ".join(f"{each[name]} {name}" for name in VERDICTS)
        typer.echo(f"{sum(each.values())} claims of {words}: {summary}")
    typer.echo(f"{amended} amended after results were seen; `skiplab show ID` lists them.")


def _print(entries: list[Entry], rows: bool) -> None:
    from rich.console import Console

    console = Console()
    keys = groupby(entries, lambda entry: (entry.judged.study, entry.run, entry.stale))
    for (study, run, stale), group in keys:
        scale, _, deviating = run.partition("+")
        deviates = " with settings of its own" if deviating else ""
        heading = f"\n[bold]{study}[/] at {scale} scale{deviates}{STALE if stale else ''}"
        console.print(heading, highlight=False)
        judged = [entry.judged for entry in group]
        table = rows_table(judged, console.width, further=True) if rows else claims_table(judged)
        console.print(table, highlight=False)
