"""``skiplab report``: the static site from whatever has been run or published."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from skiplab.cli.options import StoreOption
from skiplab.reproduction.store import Store, best_runs, runs_at_hand
from skiplab.studies import CATALOGUE


def report(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the site; default: report/ in the store.")
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write the report, a static site that opens from disk."""
    typer.echo(f"Report: {write_report(Store(store), out)}")


def write_report(store: Store, out: Path | None) -> Path:
    """Build the site and return its first page."""
    from skiplab.reporting import site

    return site.build(
        CATALOGUE, best_runs(store), out or store.root / "report", all_runs=runs_at_hand(store)
    ).resolve()
