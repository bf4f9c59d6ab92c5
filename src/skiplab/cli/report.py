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
        Path | None,
        typer.Option(help="New or empty folder, or an earlier report; default: report/ in the store."),
    ] = None,
    store: StoreOption = None,
) -> None:
    """Write the report, a static site that opens from disk."""
    typer.echo(f"Report: {write_report(Store(store), out)}")


def write_report(store: Store, out: Path | None) -> Path:
    """Build the site, with a line in a terminal that says which page is being written; return its first page."""
    from rich.console import Console

    from skiplab.reporting import site

    with Console(stderr=True).status("Reading the results") as status:
        return site.build(
            CATALOGUE,
            best_runs(store),
            out or store.root / "report",
            all_runs=runs_at_hand(store),
            tell=lambda study: status.update(f"Writing the page of {study}"),
        ).resolve()
