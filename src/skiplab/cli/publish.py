"""``skiplab publish``: put a study's results into the package, in a checkout."""

from __future__ import annotations

from typing import Annotated

import typer

from skiplab.cli.options import StoreOption
from skiplab.reproduction.publishing import publish_study
from skiplab.reproduction.store import Store
from skiplab.studies import CATALOGUE


def publish(
    study: Annotated[str, typer.Argument(help="A study's id.")],
    scale: Annotated[str, typer.Option(help="Which scale's run to publish.")] = "paper",
    store: StoreOption = None,
) -> None:
    """Add a study's tables, figure and provenance to published/, trial by trial."""
    order = [each.id for each in CATALOGUE]
    count, archive = publish_study(CATALOGUE[study], Store(store), scale, order)
    typer.echo(f"Published {study} from {count} trial(s) into {archive}.")
