"""``skiplab check``: the scoreboard, one row a claim and condition."""

from __future__ import annotations

import json
from collections import Counter
from typing import Annotated, Any

import typer

from skiplab.cli.options import JsonOption, StoreOption
from skiplab.cli.verdicts import SIGNS, number
from skiplab.reproduction.scoreboard import FIELDS, scoreboard
from skiplab.reproduction.store import Store
from skiplab.studies import CATALOGUE


def check(
    as_json: JsonOption = False,
    all_runs: Annotated[
        bool, typer.Option("--all", help="Every stored run, not only the best of each study.")
    ] = False,
    store: StoreOption = None,
) -> None:
    """Print every claim's verdict from the largest results at hand, local before published."""
    rows = scoreboard(CATALOGUE, Store(store), all_runs=all_runs)
    counts = Counter(row["verdict"] for row in rows)
    if as_json:
        claims = [{field: row[field] for field in FIELDS} for row in rows]
        totals = {name: counts[name] for name in ("holds", "contradicted", "undecided")}
        typer.echo(json.dumps({"claims": claims, "counts": totals}, indent=1, allow_nan=False))
        return
    if not rows:
        typer.echo("Nothing has been run yet; try `skiplab run tour`.")
        return
    _print(rows, counts)


def _print(rows: list[dict[str, Any]], counts: Counter[str]) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("study", "claim", "condition", "verdict", "ours", "interval", "paper", "runs", "scale"):
        table.add_column(heading)
    for row in rows:
        interval = f"[{number(row['low'])}, {number(row['high'])}]"
        facts = [number(row["statistic"]), interval, number(row["paper_value"]), str(row["runs"])]
        names = [row["study"], row["claim"], row["condition"]]
        scale = row["scale"] + (" (stale)" if row["stale"] else "")
        table.add_row(*map(escape, names), SIGNS[row["verdict"]], *map(escape, facts), scale)
    console = Console()
    console.print(table)
    summary = ", ".join(f"{counts[name]} {name}" for name in ("holds", "contradicted", "undecided"))
    console.print(summary, highlight=False)
