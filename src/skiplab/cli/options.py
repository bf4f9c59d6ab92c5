"""Options that several commands take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

StoreOption = Annotated[
    Path | None,
    typer.Option("--store", help="Where results are kept; default $SKIPLAB_STORE, else ./skiplab-results."),
]
NamesArgument = Annotated[
    list[str] | None,
    typer.Argument(
        help="A paper's id, studies' ids or 'tour'; default: everything.",
        show_default=False,
        metavar="[ID]...",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs (docs/json.md).")]


def duration(seconds: float) -> str:
    """Write seconds as a person would: '40 s', '6 min', '1.5 h'."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
