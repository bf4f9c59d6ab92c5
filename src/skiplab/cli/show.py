"""``skiplab show``: figure, claims and settings of one study in the terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skiplab.checks import one_of, require
from skiplab.cli.options import JsonOption, StoreOption
from skiplab.cli.verdicts import claims_table, deviation_lines, figure_line, study_heading, verdict_table
from skiplab.reporting.words import count
from skiplab.reproduction.amendments import in_order
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.runner import drawn
from skiplab.reproduction.scoreboard import Entry
from skiplab.reproduction.store import Store, StudyRun, runs_at_hand
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import plain, versions_at_hand
from skiplab.studies import CATALOGUE
from skiplab.telling import duration

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

CHOICES = "Ours, where the paper is silent"
TALLEST = 40  # lines of a figure, so that it and its claims fit two screens
BRIEF = 6  # choices whose beginnings are shown: with more, a study of many claims fills three screens


def show(
    study: Annotated[str, typer.Argument(help="A study's id.")],
    run: Annotated[
        str | None,
        typer.Option(
            help="A run by its name in the store (quick, or paper+1a2b3c4d); default: the best there is."
        ),
    ] = None,
    figure: Annotated[bool, typer.Option(help="Draw the figure in the terminal.")] = True,
    rows: Annotated[
        bool, typer.Option("--rows", help="The conditions behind every verdict, and further ones.")
    ] = False,
    settings: Annotated[bool, typer.Option("--settings", help="Every setting at every scale.")] = False,
    choices: Annotated[
        bool, typer.Option("--choices", help="All that is ours, where the paper is silent.")
    ] = False,
    errata: Annotated[bool, typer.Option("--errata", help="What the paper gets wrong.")] = False,
    amendments: Annotated[
        bool, typer.Option("--amendments", help="What was changed after results were seen.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="All of these.")] = False,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show a study's figure, its claims with verdict and number, and the choices that are ours, in brief.

    Options name what is shown in full; --json has all of it.
    """
    found = CATALOGUE[study]
    runs = [each for each in runs_at_hand(Store(store), found.id) if each.scale != "smoke"]
    if run is not None:
        names = list(dict.fromkeys(each.name for each in runs))
        require(bool(names), f"{found.id} has no run yet; make one with `skiplab run {found.id}`.")
        one_of(f"run of {found.id}", run, names)
        runs = [each for each in runs if each.name == run]
    shown = runs[0] if runs else None
    if as_json:
        typer.echo(json.dumps(told(found, shown), indent=1, allow_nan=False))
        return
    asked = {
        "rows": rows,
        "settings": settings,
        "choices": choices,
        "errata": errata,
        "amendments": amendments,
    }
    _print(found, shown, figure, {name for name, wanted in asked.items() if wanted or everything}, everything)


def told(study: Study, run: StudyRun | None) -> dict[str, Any]:
    """What other programs read of a study: its words, settings, claims, and the run that judges these, if any."""
    texts = ("id", "item", "title", "caption", "choices", "errata", "amendments")
    own = {name: plain(getattr(study, name)) for name in texts}
    claims = [
        {name: getattr(claim, name) for name in ("id", "text", "source", "unit")} for claim in study.claims
    ]
    settings = {scale: plain(vars(values)) for scale, values in study.settings.items()}
    judged = None
    if run is not None:
        stale = run.stale(versions_at_hand())
        judged = {
            "name": run.name,
            "scale": run.scale,
            "published": run.published,
            "deviations": run.deviations,
            "provenance": run.provenance,
            "figure": [str(path) for path in run.pictures],
            "claims": [Entry(each, stale, run.name).to_dict() for each in judgements(run.verdicts)],
        }
    return own | {"claims": claims, "settings": settings, "cost": dict(study.cost), "run": judged}


def _print(found: Study, run: StudyRun | None, figure: bool, full: set[str], everything: bool) -> None:
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    if run:
        _print_run(console, found, drawn(found, run), figure, "rows" in full)
    else:
        console.print(f"[bold]{found.id}[/]  {escape(found.title)}\nNot run yet: skiplab run {found.id}")
        for claim in found.claims:
            console.print(f"  • {escape(claim.text)} ({claim.source})")
    console.print(f"\n{escape(found.caption)}")
    if found.described and everything:
        console.print(f"\n[bold]The paper's own figure[/]\n{escape(found.described)}")
    if "settings" in full:
        console.print(_settings(found))
    folded = [] if "settings" in full else [f"{len(vars(found.settings['quick']))} settings (--settings)"]
    if "choices" in full:
        _list(console, CHOICES, found.choices)
    elif found.choices:
        _list_in_brief(console, found.choices)
    if "errata" in full:
        _list(console, "Errata", found.errata)
    elif found.errata:
        folded.append(f"{count(len(found.errata), 'erratum', 'errata')} (--errata)")
    amended = in_order(found.amendments)
    if "amendments" in full:
        _list(console, "Changed after results were seen", [each.line for each in amended])
    elif amended:
        turning = sum(bool(each.changes) for each in amended)
        which = f", of which {turning} changed a verdict" if turning else ""
        folded.append(f"{count(len(amended), 'amendment')}{which} (--amendments)")
    if found.described and not everything:
        folded.append("the paper's own figure in words (--all)")
    if folded:
        console.print(f"\nNot shown: {', '.join(folded)}.", style="dim")


def _print_run(console: Console, found: Study, run: StudyRun, figure: bool, rows: bool) -> None:
    """The run's figure and claims: one sentence each with its verdict and number, or all conditions."""
    from rich.markup import escape

    if figure and console.is_terminal and run.bitmap:
        draw(console, run.bitmap)
    where = "published with skiplab" if run.published else f"in {run.folder}"
    when = run.provenance["finished"].partition("+")[0].replace("T", " ")
    origin = escape(f"Scale {run.scale}, {where}, {when} UTC")
    if rows:
        verdict_table(found, run, all_rows=True)
        console.print(origin, soft_wrap=True)
        return
    study_heading(console, found)
    figure_line(console, run)
    console.print(origin, soft_wrap=True)
    judged = judgements(run.verdicts)
    console.print()
    console.print(claims_table(judged))
    behind = sum(len(each.rows) + len(each.further) for each in judged)
    if behind:
        console.print(f"{behind} conditions are behind these verdicts: --rows shows them.", style="dim")
    deviation_lines(console, run)


def _list(console: Console, heading: str, lines: Sequence[str]) -> None:
    """A heading with a bullet per line of text; nothing without any."""
    from rich.markup import escape
    from rich.table import Table

    if not lines:
        return
    items = Table.grid(padding=(0, 1))
    for line in lines:
        items.add_row("•", escape(line))
    console.print(f"\n[bold]{heading}[/]")
    console.print(items)


def _list_in_brief(console: Console, lines: Sequence[str]) -> None:
    """The beginnings of the first choices, a line each, and how many more there are."""
    from rich.text import Text

    bullets = [Text(f"• {line}") for line in lines[:BRIEF]]
    room = console.width - 1
    is_whole = len(lines) <= BRIEF and all(bullet.cell_len <= room for bullet in bullets)
    console.print(f"\n[bold]{CHOICES}[/]{'' if is_whole else ', in brief; whole by --choices'}")
    for bullet in bullets:
        bullet.truncate(room, overflow="ellipsis")
        console.print(bullet)
    if len(lines) > BRIEF:
        console.print(f"• and {len(lines) - BRIEF} more", style="dim")


def _settings(study: Study) -> Table:
    """Every setting at every scale; the scale's cost stands in its heading."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("setting", no_wrap=True)
    for scale in study.settings:
        cost = f"\n{duration(study.cost[scale])}" if scale in study.cost else ""
        table.add_column(scale + cost)
    for key in vars(study.settings["quick"]):
        values = [getattr(settings, key) for settings in study.settings.values()]
        table.add_row(key, *(escape(_brief(value)) for value in values))
    return table


def _brief(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(_brief(part) for part in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def draw(console: object, path: Path) -> None:
    """Draw a picture with half-block characters, two pixels a cell, as wide as the terminal, at most 40 lines."""
    from PIL import Image
    from rich.console import Console
    from rich.text import Text

    assert isinstance(console, Console)
    picture = Image.open(path).convert("RGB")
    width = min(console.width, 140, round(2 * TALLEST * picture.width / picture.height))
    height = round(picture.height * width / picture.width / 2) * 2
    picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    for y in range(0, height, 2):
        line = Text()
        for x in range(width):
            upper, lower = picture.getpixel((x, y)), picture.getpixel((x, y + 1))
            line.append("▀", style=f"rgb({_rgb(upper)}) on rgb({_rgb(lower)})")
        console.print(line)


def _rgb(pixel: object) -> str:
    assert isinstance(pixel, tuple)
    return ",".join(map(str, pixel))
