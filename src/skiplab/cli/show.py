"""``skiplab show``: figure, claims and settings of one study in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skiplab.cli.options import StoreOption, duration
from skiplab.cli.verdicts import verdict_table
from skiplab.reproduction.store import Store, runs_at_hand
from skiplab.studies import CATALOGUE


def show(
    study: Annotated[str, typer.Argument(help="A study's id.")],
    figure: Annotated[bool, typer.Option(help="Draw the figure in the terminal.")] = True,
    store: StoreOption = None,
) -> None:
    """Show a study's figure, claims, settings, what is ours and what the paper gets wrong."""
    from rich.console import Console
    from rich.markup import escape

    found = CATALOGUE[study]
    console = Console()
    runs = [run for run in runs_at_hand(Store(store), found.id) if run.scale != "smoke"]
    if runs:
        best = runs[0]
        if figure and console.is_terminal:
            draw(console, best.folder / "figure.png")
        verdict_table(found, best, all_rows=True)
        where = "published with skiplab" if best.published else f"in {best.folder}"
        console.print(f"Scale {best.scale}, {where}; {best.provenance['finished']}", highlight=False)
    else:
        console.print(f"[bold]{found.id}[/]  {escape(found.title)}\nNot run yet: skiplab run {found.id}")
        for claim in found.claims:
            console.print(f"  {claim.id}: {escape(claim.text)}", highlight=False)
    console.print(f"\n{escape(found.caption)}", highlight=False)
    console.print("\n[bold]Settings[/]")
    for scale, settings in found.settings.items():
        values = ", ".join(f"{key}={value}" for key, value in vars(settings).items())
        cost = f" ({duration(found.cost[scale])})" if scale in found.cost else ""
        console.print(f"  {scale}{cost}: {escape(values)}", highlight=False)
    for heading, lines in (("Ours, where the paper is silent", found.choices), ("Errata", found.errata)):
        if lines:
            console.print(f"\n[bold]{heading}[/]")
            for line in lines:
                console.print(f"  {escape(line)}", highlight=False)


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
