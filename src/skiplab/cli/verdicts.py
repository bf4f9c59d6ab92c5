"""How verdicts look in a terminal: a heading per claim, its conditions below, readable at 80 columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.store import StudyRun, default_root
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import CONTRADICTED, HOLDS, SIGNS, UNDECIDED, Verdict

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.table import Table

GAP = 2  # spaces between columns
LEAST_ROOM = 24  # columns for a condition beside its numbers; with fewer it goes above them
COLOURS = {HOLDS: "green", CONTRADICTED: "red", UNDECIDED: "yellow"}
COLOURED_SIGNS = {verdict: f"[{COLOURS[verdict]}]{sign}[/]" for verdict, sign in SIGNS.items()}


def verdict_table(study: Study, run: StudyRun, *, all_rows: bool = False) -> None:
    """Print a study's claims with their headline conditions, or with all, and where its figure is."""
    console, judged = _headed(study, run)
    if judged:
        console.print(rows_table(judged, console.width, further=all_rows), highlight=False)
        further = sum(len(each.further) for each in judged)
        if further and not all_rows:
            more = "1 further condition" if further == 1 else f"{further} further conditions"
            console.print(f"{more}, not judged: {_show_command(study, run)}", highlight=False, soft_wrap=True)
    deviation_lines(console, run)
    figure_line(console, run)


def brief_verdicts(study: Study, run: StudyRun) -> None:
    """Print a line or two per claim of the paper, as of one study among many, and where the rest is."""
    console, judged = _headed(study, run)
    papers = [each for each in judged if not each.ours]
    if judged:
        console.print(claims_table(papers), highlight=False)
        ours, behind = len(judged) - len(papers), sum(len(each.rows) + len(each.further) for each in judged)
        beside = f"{ours} of ours and " if ours else ""
        behind_them = f"{beside}{behind} conditions: {_show_command(study, run)}"
        console.print(behind_them, highlight=False, soft_wrap=True, style="dim")
    deviation_lines(console, run)


def _headed(study: Study, run: StudyRun) -> tuple[Console, list[Judgement]]:
    """A console with the study's heading on it, and the claims to print there: none at smoke scale, which says so."""
    from rich.console import Console

    console = Console()
    console.print()
    study_heading(console, study)
    if run.scale == "smoke":
        console.print("Smoke scale only shows that it runs; verdicts start at quick scale.")
        return console, []
    return console, judgements(run.verdicts)


def study_heading(console: Console, study: Study) -> None:
    """Print a study's id and title."""
    from rich.markup import escape

    console.print(f"[bold]{study.id}[/]  {escape(study.title)}", highlight=False)


def deviation_lines(console: Console, run: StudyRun) -> None:
    """Print which settings of a run differ from those declared for its scale."""
    from rich.markup import escape

    for key, change in run.deviations.items():
        change_text = f"Deviation: {key} = {change['used']} (declared {change['declared']})"
        console.print(escape(change_text), highlight=False)


def figure_line(console: Console, run: StudyRun) -> None:
    """Print where a run's figure is, if it has one."""
    from rich.markup import escape

    if run.bitmap:
        console.print(f"Figure: {escape(str(run.bitmap))}", highlight=False, soft_wrap=True)


def _show_command(study: Study, run: StudyRun) -> str:
    """The command that shows this very run, whatever else is stored or published."""
    root = run.folder.parents[2].parent  # studies/PAPER/ITEM/RUN
    place = "" if root.resolve() == default_root().resolve() else f" --store {root}"
    return f"skiplab show {study.id} --rows --run {run.name}{place}"


def claims_table(judged: Sequence[Judgement]) -> Table:
    """A sentence per claim with its verdict, and the numbers of the condition that decides it.

    Where another initial gain reverses the verdict, the sentence is followed by one that says so.
    """
    from rich.markup import escape
    from rich.table import Table

    table = Table.grid(padding=(0, GAP, 0, 0), expand=True)
    table.add_column()
    table.add_column(ratio=1, overflow="fold")
    for justify in ("right", "left", "right"):
        table.add_column(justify=justify, no_wrap=True)
    for each in judged:
        row = each.deciding
        bearing = sum(other.verdict == each.verdict for other in each.rows)
        whose = " (ours)" if each.ours else ""
        whose += f" This verdict {each.depends}." if each.depends else ""
        extent = row.meaning.written_interval(interval(row.low, row.high))
        cells = [each.text + whose, number(row.statistic), extent, f"{bearing} of {len(each.rows)}"]
        table.add_row(COLOURED_SIGNS[each.verdict], *map(escape, cells))
    return table


def rows_table(judged: Sequence[Judgement], width: int, *, further: bool = False) -> Group:
    """Claims with their verdicts as headings, their conditions below; no number is ever cut.

    A column that says nothing is left out. The condition takes the room that the numbers leave, or a line of its own
    where that is too little. Further conditions have numbers and no verdict.
    """
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    rows = [row for each in judged for row in (*each.rows, *(each.further if further else ()))]
    heads = ["", "ours", "interval", "paper", "runs"]
    facts = {id(row): _facts(row) for row in rows}
    if all(row.paper_value is None for row in rows):
        heads.remove("paper")
        for cells in facts.values():
            del cells[3]
    widths = [
        max(Text.from_markup(cell).cell_len for cell in column)
        for column in zip(heads, *facts.values(), strict=True)
    ]
    longest = max([len("condition"), *(len(row.condition) for row in rows)])
    room = min(longest, width - sum(widths) - GAP * len(widths))
    beside = room >= min(longest, LEAST_ROOM)

    def line(condition: str, cells: Sequence[str]) -> Table:
        table = Table.grid(padding=(0, GAP, 0, 0))
        table.add_column(width=room if beside else GAP, overflow="fold")
        for head, size in zip(heads, widths, strict=True):
            justify = "left" if head in ("", "interval") else "right"
            table.add_column(width=size, no_wrap=True, justify=justify)  # type: ignore[arg-type]
        table.add_row(escape(condition) if beside else "", *cells)
        return table

    shown: list[Any] = [
        line("condition", heads),
        "─" * min(width, sum(widths) + GAP * len(widths) + max(room, GAP)),
    ]
    for each in judged:
        shown.append(_heading(each))
        shown += [Text(f"  This verdict {each.depends}.")] if each.depends else []
        for row in (*each.rows, *(each.further if further else ())):
            shown += [] if beside else [Text(row.condition)]
            shown.append(line(row.condition, facts[id(row)]))
            if row.headline and row.needs:
                shown.append(Text(f"  about {row.needs:,} runs would settle it", style="dim"))
    return Group(*shown)


def _heading(judged: Judgement) -> Any:
    """A claim's verdict, the claim itself, whose it is and in which unit."""
    from rich.markup import escape
    from rich.text import Text

    reason = f", {judged.reason}" if judged.reason else ""
    about = ", ".join(part for part in (judged.source, judged.rows[0].statistic_unit) if part)
    claim = f"[bold]{escape(judged.text)}[/] [dim]({escape(about)})[/]"
    return Text.from_markup(f"{COLOURED_SIGNS[judged.verdict]} {judged.verdict}{reason}: {claim}")


def _facts(row: Verdict) -> list[str]:
    from rich.markup import escape

    extent, runs = (
        row.meaning.written_interval(interval(row.low, row.high)),
        row.meaning.written_runs(row.runs),
    )
    facts = (number(row.statistic), extent, number(row.paper_value), runs)
    return [COLOURED_SIGNS[row.verdict] if row.headline else "", *map(escape, facts)]


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
