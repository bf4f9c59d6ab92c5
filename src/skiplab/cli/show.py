"""``skiplab show``: figure, claims and settings of one study in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from skiplab.checks import one_of, require
from skiplab.cli.options import JsonOption, StoreOption
from skiplab.cli.verdicts import verdict_table
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.runner import drawn
from skiplab.reproduction.scoreboard import Entry
from skiplab.reproduction.store import Store, StudyRun, runs_at_hand
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import plain, versions_at_hand
from skiplab.studies import CATALOGUE
from skiplab.telling import duration

if TYPE_CHECKING:
    from rich.table import Table


def show(
    study: Annotated[str, typer.Argument(help="A study's id.")],
    run: Annotated[
        str | None,
        typer.Option(
            help="A run by its name in the store (quick, or paper+1a2b3c4d); default: the best there is."
        ),
    ] = None,
    figure: Annotated[bool, typer.Option(help="Draw the figure in the terminal.")] = True,
    as_json: JsonOption = False,
    store: StoreOption = None,
) -> None:
    """Show a study's figure, claims and settings, the choices that are ours, and the paper's errors."""
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
    else:
        _print(found, shown, figure)


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


def _print(found: Study, run: StudyRun | None, figure: bool) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    if run:
        best = drawn(found, run)
        if figure and console.is_terminal and best.bitmap:
            draw(console, best.bitmap)
        verdict_table(found, best, all_rows=True)
        where = "published with skiplab" if best.published else f"in {best.folder}"
        when = best.provenance["finished"].partition("+")[0].replace("T", " ")
        console.print(f"Scale {best.scale}, {where}, {when} UTC", highlight=False, soft_wrap=True)
    else:
        console.print(f"[bold]{found.id}[/]  {escape(found.title)}\nNot run yet: skiplab run {found.id}")
        for claim in found.claims:
            console.print(f"  • {escape(claim.text)} ({claim.source})", highlight=False)
    console.print(f"\n{escape(found.caption)}", highlight=False)
    if found.described:
        console.print(f"\n[bold]The paper's own figure[/]\n{escape(found.described)}", highlight=False)
    console.print(_settings(found))
    for heading, lines in (
        ("Ours, where the paper is silent", found.choices),
        ("Errata", found.errata),
        ("Changed after results were seen", found.amendments),
    ):
        if lines:
            console.print(f"\n[bold]{heading}[/]")
            items = Table.grid(padding=(0, 1))
            for line in lines:
                items.add_row("•", escape(line))
            console.print(items)


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
    """Draw a picture with half-block characters, two pixels a cell, as wide as the terminal."""
    from PIL import Image
    from rich.console import Console
    from rich.text import Text

    assert isinstance(console, Console)
    picture = Image.open(path).convert("RGB")
    width = min(console.width, 140)
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
