"""How verdicts look in a terminal."""

from __future__ import annotations

from typing import Any

from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study

SIGNS = {
    "holds": "[green]✓ holds[/]",
    "contradicted": "[red]✗ contradicted[/]",
    "undecided": "[yellow]? undecided[/]",
}


def verdict_table(study: Study, run: StudyRun, *, all_rows: bool = False) -> None:
    """Print a study's headline verdicts, or all rows, and where its figure is."""
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    console.print(f"\n[bold]{study.id}[/]  {escape(study.title)}")
    if run.scale == "smoke":
        console.print("Smoke scale only shows that it runs; verdicts start at quick scale.")
    else:
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for heading in ("claim", "condition", "verdict", "ours", "interval", "paper", "runs"):
            table.add_column(heading)
        for row in run.verdicts:
            if row["headline"] or all_rows:
                interval = f"[{number(row['low'])}, {number(row['high'])}]"
                cells = [row["claim"], row["condition"]]
                facts = [number(row["statistic"]), interval, number(row["paper_value"]), str(row["runs"])]
                table.add_row(*map(escape, cells), SIGNS[row["verdict"]], *map(escape, facts))
        console.print(table)
        further = sum(not row["headline"] for row in run.verdicts)
        if further and not all_rows:
            console.print(f"{further} further rows (other conditions): skiplab show {study.id}")
    for key, change in run.deviations.items():
        console.print(f"Deviation: {key} = {change['used']} (declared {change['declared']})", highlight=False)
    console.print(f"Figure: {run.folder / 'figure.png'}", highlight=False, soft_wrap=True)


def number(value: Any) -> str:
    """Write a number briefly; nothing for None."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"
