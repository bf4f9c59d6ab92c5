"""``skiplab check``: the scoreboard, a few lines per paper, or one verdict per claim of what is named."""

from __future__ import annotations

import json
from collections import Counter
from itertools import groupby
from typing import TYPE_CHECKING, Annotated

import typer

from skiplab.cli.options import JsonOption, NamesArgument, StoreOption
from skiplab.cli.verdicts import COLOURED_SIGNS, claims_table, rows_table
from skiplab.reproduction.judgement import tallied
from skiplab.reproduction.scoreboard import Entry, counts, scoreboard
from skiplab.reproduction.store import Store
from skiplab.reproduction.verdict import CONTRADICTED, UNDECIDED, VERDICTS
from skiplab.studies import CATALOGUE

if TYPE_CHECKING:
    from rich.console import Console

STALE = ", stale: its trials have a newer version, so run it again"


def check(
    names: NamesArgument = None,
    as_json: JsonOption = False,
    rows: Annotated[
        bool, typer.Option("--rows", help="The conditions behind every verdict, and further ones.")
    ] = False,
    all_runs: Annotated[
        bool, typer.Option("--all", help="Every stored run, not only the best of each study.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Count the verdicts of every paper, or print one verdict per claim of the papers and studies named.

    The largest results at hand count, local before published.
    """
    from rich.console import Console

    asked = {study.id for study in CATALOGUE.select(names or ["all"])}
    found = scoreboard(CATALOGUE, Store(store), all_runs=all_runs)
    entries = [entry for entry in found if entry.judged.study in asked]
    totals = counts(entry.judged for entry in entries)
    studies = dict.fromkeys(entry.judged.study for entry in entries)
    amended = sum(len(CATALOGUE[study].amendments) for study in studies)
    if as_json:
        claims = [entry.to_dict() for entry in entries]
        answer = {"claims": claims, "counts": totals, "amendments": amended}
        typer.echo(json.dumps(answer, indent=1, allow_nan=False))
        return
    if not entries:
        typer.echo(f"Nothing has been run yet; try `skiplab run {' '.join(names or ['tour'])}`.")
        return
    console = Console()
    if names or rows or all_runs:
        _claims(console, entries, rows)
    else:
        _papers(console, entries)
    for whose, words in (("paper", "of the papers"), ("ours", "of ours")):
        count = sum(totals[whose].values())
        typer.echo(f"{count} {'claim' if count == 1 else 'claims'} {words}: {tallied(totals[whose])}")
    waiting = sum(entry.judged.waits and not entry.judged.ours for entry in entries)
    if waiting:
        typer.echo(f"Of the papers' undecided claims {waiting} only lack runs that are still to be made.")
    typer.echo(f"{amended} amended after results were seen; `skiplab show ID --amendments` lists them.")
    if not (names or rows or all_runs):
        typer.echo("`skiplab check PAPER` or `check ID` lists claims, with --rows their conditions.")


def _papers(console: Console, entries: list[Entry]) -> None:
    """A line of counts per paper, and below it the items with claims that do not hold."""
    for paper in CATALOGUE.papers:
        own = [entry.judged for entry in entries if CATALOGUE[entry.judged.study].paper == paper.id]
        if not own:
            continue
        each = counts(own)["paper"]
        signs = "  ".join(f"{COLOURED_SIGNS[verdict]} {each[verdict]}" for verdict in VERDICTS)
        _hanging(console, 0, f"[bold]{paper.id}[/]  {signs}  {paper.authors}")
        for verdict in (CONTRADICTED, UNDECIDED):
            items = Counter(
                judged.study.partition("/")[2]
                for judged in own
                if judged.verdict == verdict and not judged.ours
            )
            if items:
                words = ", ".join(
                    item if count == 1 else f"{item} ({count})" for item, count in items.items()
                )
                _hanging(console, 2, f"{COLOURED_SIGNS[verdict]} {words}")


def _hanging(console: Console, indent: int, markup: str) -> None:
    """Print a paragraph whose further lines stand four columns in."""
    from rich.text import Text

    for line in Text.from_markup(markup).wrap(console, console.width - 4):
        line.rstrip()
        console.print(Text(" " * indent) + line, highlight=False)
        indent = 4


def _claims(console: Console, entries: list[Entry], rows: bool) -> None:
    """One verdict per claim, study by study."""
    keys = groupby(entries, lambda entry: (entry.judged.study, entry.run, entry.stale))
    for (study, run, stale), group in keys:
        scale, _, deviating = run.partition("+")
        deviates = " with settings of its own" if deviating else ""
        heading = f"\n[bold]{study}[/] at {scale} scale{deviates}{STALE if stale else ''}"
        console.print(heading, highlight=False)
        judged = [entry.judged for entry in group]
        table = rows_table(judged, console.width, further=True) if rows else claims_table(judged)
        console.print(table, highlight=False)
