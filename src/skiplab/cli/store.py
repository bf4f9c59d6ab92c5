"""``skiplab store``: carry results between machines, and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skiplab.cli.options import StoreOption
from skiplab.reproduction import packing, verifying
from skiplab.reproduction.store import Store

app = typer.Typer(help="Carry results between machines, and check them.", no_args_is_help=True)


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


@app.command("verify")
def verify(store: StoreOption = None) -> None:
    """Check every stored and published result; set what is damaged aside, so that it is computed again."""
    place = Store(store)
    found = verifying.verify(place)
    counts = f"{found.trials} trial(s), {found.runs} run(s), {found.checkpoints} checkpoint file(s)"
    verdict = f"{found.damaged} damaged" if found.damaged else "all as they were written"
    typer.echo(f"{counts} in {place.root} and {found.published} published studies: {verdict}.")
    if found.without_checksum:
        typer.echo(
            f"{found.without_checksum} trial(s) of earlier versions have no checksum; they could be read."
        )
    for command in found.to_run_again:
        typer.echo(f"Trials of a run are missing; `{command}` computes them again.")
    if found.set_aside_before:
        typer.echo(f"{found.set_aside_before} set aside earlier (.damaged-…) can be removed by hand.")
    if found.damaged:
        raise typer.Exit(1)


def _note(sentence: str) -> None:
    typer.echo(sentence, err=True)
