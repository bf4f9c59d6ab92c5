"""How verdicts look in a terminal: one table a study, its claims as headings, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study

if TYPE_CHECKING:
    from rich.table import Table

SIGNS = {
    "holds": "[green]✓ holds[/]",
    "contradicted": "[red]✗ contradicted[/]",
    "undecided": "[yellow]? undecided[/]",
}


def verdict_table(study: Study, run: StudyRun, *, all_rows: bool = False) -> None:
    """Print a study's headline verdicts, or all rows, and where its figure is."""
    from rich.console import Console
    from rich.markup import escape

    console = Console()
    console.print(f"\n[bold]{study.id}[/]  {escape(study.title)}", highlight=False)
    if run.scale == "smoke":
        console.print("Smoke scale only shows that it runs; verdicts start at quick scale.")
    else:
        console.print(rows_table([row for row in run.verdicts if row["headline"] or all_rows]))
        further = sum(not row["headline"] for row in run.verdicts)
        if further and not all_rows:
            rows = "1 further row" if further == 1 else f"{further} further rows"
            console.print(f"{rows} (other conditions): skiplab show {study.id}", highlight=False)
    for key, change in run.deviations.items():
        change_text = f"Deviation: {key} = {change['used']} (declared {change['declared']})"
        console.print(escape(change_text), highlight=False)
    if run.bitmap:
        console.print(f"Figure: {escape(str(run.bitmap))}", highlight=False, soft_wrap=True)


def rows_table(rows: Sequence[dict[str, Any]]) -> Table:
    """A table of verdict rows with a heading a claim; a column that says nothing is left out."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    longest = max((len(row["claim"]) for row in rows), default=0)
    table.add_column("claim and condition", overflow="fold", min_width=longest)
    table.add_column("verdict", no_wrap=True)
    table.add_column("ours", justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    with_paper = any(row["paper_value"] is not None for row in rows)
    if with_paper:
        table.add_column("paper", justify="right", no_wrap=True)
    table.add_column("runs", justify="right", no_wrap=True)
    for claim, group in groupby(rows, key=lambda row: row["claim"]):
        table.add_row(f"[bold]{escape(claim)}[/]")
        for row in group:
            paper = [number(row["paper_value"])] if with_paper else []
            facts = [number(row["statistic"]), interval(row), *paper, str(row["runs"])]
            table.add_row(escape(row["condition"]), SIGNS[row["verdict"]], *map(escape, facts))
    return table


def interval(row: dict[str, Any]) -> str:
    """Write a row's interval; an end at infinity is a dash, and so is an interval that does not exist."""
    if row["low"] is None and row["high"] is None:
        return "–"
    return f"[{number(row['low'], 3)}, {number(row['high'], 3)}]"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number briefly: 0.1234, 12.35k or 3.261M; a dash for None."""
    if value is None:
        return "–"
    if 1e6 <= abs(value) < 1e9:
        return f"{value / 1e6:.{digits}g}M"
    if 1e4 <= abs(value) < 1e6:
        return f"{value / 1e3:.{digits}g}k"
    return f"{value:.{digits}g}"
