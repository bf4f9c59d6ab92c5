"""How verdicts look in a terminal: one table per study, its claims as headings, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.store import StudyRun, default_root
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, UNDECIDED, Verdict

if TYPE_CHECKING:
    from rich.console import Group

GAP = 2  # spaces between columns
LEAST_ROOM = 24  # columns for a condition beside its numbers; with fewer it goes above them
SIGNS = {
    HOLDS: "[green]✓ holds[/]",
    CONTRADICTED: "[red]✗ contradicted[/]",
    UNDECIDED: "[yellow]? undecided[/]",
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
        rows = [row for row in run.verdicts if row.headline or all_rows]
        console.print(rows_table(rows, console.width), highlight=False)
        further = sum(not row.headline for row in run.verdicts)
        if further and not all_rows:
            more = "1 further row" if further == 1 else f"{further} further rows"
            console.print(
                f"{more} (other conditions): {_show_command(study, run)}", highlight=False, soft_wrap=True
            )
    for key, change in run.deviations.items():
        change_text = f"Deviation: {key} = {change['used']} (declared {change['declared']})"
        console.print(escape(change_text), highlight=False)
    if run.bitmap:
        console.print(f"Figure: {escape(str(run.bitmap))}", highlight=False, soft_wrap=True)


def _show_command(study: Study, run: StudyRun) -> str:
    """The command that shows this very run, whatever else is stored or published."""
    root = run.folder.parents[2].parent  # studies/PAPER/ITEM/RUN
    place = "" if root.resolve() == default_root().resolve() else f" --store {root}"
    return f"skiplab show {study.id} --run {run.name}{place}"


def rows_table(rows: Sequence[Verdict], width: int) -> Group:
    """Verdict rows with a heading per claim; a column that says nothing is left out, and no number is ever cut.

    The condition takes the room that the numbers leave, or a line of its own where that is too little.
    """
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    heads = ["verdict", "ours", "interval", "paper", "runs"]
    facts = [_facts(row) for row in rows]
    if all(row.paper_value is None for row in rows):
        heads.remove("paper")
        for cells in facts:
            del cells[3]
    widths = [
        max(Text.from_markup(cell).cell_len for cell in column) for column in zip(heads, *facts, strict=True)
    ]
    longest = max([len("condition"), *(len(row.condition) for row in rows)])
    room = min(longest, width - sum(widths) - GAP * len(widths))
    beside = room >= min(longest, LEAST_ROOM)

    def line(condition: str, cells: Sequence[str]) -> Table:
        table = Table.grid(padding=(0, GAP, 0, 0))
        table.add_column(width=room if beside else GAP, overflow="fold")
        for head, size in zip(heads, widths, strict=True):
            justify = "left" if head in ("verdict", "interval") else "right"
            table.add_column(width=size, no_wrap=True, justify=justify)  # type: ignore[arg-type]
        table.add_row(escape(condition) if beside else "", *cells)
        return table

    shown: list[Any] = [
        line("condition", heads),
        "─" * min(width, sum(widths) + GAP * len(widths) + max(room, GAP)),
    ]
    for claim, group in groupby(zip(rows, facts, strict=True), key=lambda pair: pair[0].claim):
        pairs = list(group)
        unit = pairs[0][0].unit
        shown.append(Text.from_markup(f"[bold]{escape(claim)}[/]" + (f"  {escape(unit)}" if unit else "")))
        for row, cells in pairs:
            shown += [] if beside else [Text(row.condition)]
            shown.append(line(row.condition, cells))
    return Group(*shown)


def _facts(row: Verdict) -> list[str]:
    from rich.markup import escape

    extent, runs = (
        row.meaning.written_interval(interval(row.low, row.high)),
        row.meaning.written_runs(row.runs),
    )
    facts = (number(row.statistic), extent, number(row.paper_value), runs)
    return [SIGNS[row.verdict], *map(escape, facts)]


def interval(low: float | None, high: float | None) -> str:
    """Write an interval; an end at infinity is a dash, and so is an interval that does not exist."""
    if low is None and high is None:
        return "–"
    return f"[{number(low, 3)}, {number(high, 3)}]"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number briefly: 0.1234, 12.35k or 3.261M; a dash for None."""
    if value is None:
        return "–"
    if 1e6 <= abs(value) < 1e9:
        return f"{value / 1e6:.{digits}g}M"
    if 1e4 <= abs(value) < 1e6:
        return f"{value / 1e3:.{digits}g}k"
    return f"{value:.{digits}g}"
