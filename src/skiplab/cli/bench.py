"""``skiplab bench``: speed against the obvious alternative and against peers, as ratios."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from skiplab.checks import one_of
from skiplab.cli.options import JsonOption


def bench(
    name: Annotated[str | None, typer.Argument(help="Which benchmark; all if left out.")] = None,
    as_json: JsonOption = False,
    rounds: Annotated[int, typer.Option(min=1, help="Interleaved rounds; the median counts.")] = 5,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
) -> None:
    """Measure ours and others in one interleaved run; report ratios, since machines are noisy."""
    from skiplab.benchmarks import BENCHMARKS, measure

    names = [one_of("benchmark", name, BENCHMARKS)] if name else list(BENCHMARKS)
    rows = []
    for each in names:
        typer.echo(f"measuring {each} …", err=True)
        rows += measure(each, rounds=rounds, device=device)
    if as_json:
        typer.echo(json.dumps([vars(row) for row in rows], indent=1))
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in ("benchmark", "what", "seconds", "times ours", "note"):
        table.add_column(heading)
    for row in rows:
        seconds = "–" if row.seconds is None else f"{row.seconds:.4g}"
        ratio = "–" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(row.benchmark, row.what, seconds, ratio, row.note)
    Console().print(table)
