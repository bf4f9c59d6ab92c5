"""``skiplab data``: get and look at data sets."""

from __future__ import annotations

from typing import Annotated

import typer

from skiplab import data
from skiplab.checks import DataDamaged

app = typer.Typer(help="Download data sets, and see which are here.", no_args_is_help=True)


@app.command("fetch")
def fetch(name: Annotated[str, typer.Argument(help="cifar10, cifar100, svhn or stl10.")]) -> None:
    """Download a data set, check it, and put it in place."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        bar = bars.add_task(f"fetching {name}", total=1.0)
        result = data.fetch(name, lambda done, text: bars.update(bar, completed=done, description=text))
    place = f"{len(result.files)} file(s) in {result.files[0].parent}" if result.files else "nothing to fetch"
    typer.echo(f"{name}: {place}, from {result.origin}.")


@app.command("list")
def list_sets() -> None:
    """Say which data sets are here, and how to get the others."""
    typer.echo(f"Data sets in {data.root()}:")
    for name in data.NAMES:
        if not data.is_available(name):
            typer.echo(f"  {name:16} missing: {data.remedy(name)}")
            continue
        try:
            part = data.part_of(name)
        except DataDamaged as problem:
            typer.echo(f"  {name:16} damaged: {problem}")
        else:
            typer.echo(f"  {name:16} {f'in part, {part}: {data.remedy(name)}' if part else 'here'}")
