"""``skiplab store``: carry results between machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skiplab.cli.options import StoreOption
from skiplab.reproduction import packing
from skiplab.reproduction.store import Store

app = typer.Typer(help="Carry results between machines.", no_args_is_help=True)


@app.command("pack")
def pack(
    file: Annotated[Path, typer.Argument(help="Where to write; pieces are FILE.000, FILE.001, …")],
    store: StoreOption = None,
    checkpoints: Annotated[bool, typer.Option(help="Also pack unfinished trials' checkpoints.")] = False,
) -> None:
    """Pack a store into pieces of at most 16 MiB."""
    pieces = packing.pack(Store(store), file, checkpoints=checkpoints, tell=_note)
    for piece in pieces:
        typer.echo(f"{piece} ({piece.stat().st_size / 2**20:.1f} MiB)")


@app.command("unpack")
def unpack(
    file: Annotated[Path, typer.Argument(help="The FILE given to pack; its pieces lie beside it.")],
    store: StoreOption = None,
) -> None:
    """Add packed results to a store, at most 16 GiB; what is there already stays."""
    added, known = packing.unpack(Store(store), file, tell=_note)
    typer.echo(f"{added} folder(s) added, {known} known already.")


def _note(sentence: str) -> None:
    typer.echo(sentence, err=True)
