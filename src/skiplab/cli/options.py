"""Options that several commands take."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from skiplab.checks import Refused, require

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


_BYTES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def parse_bytes(text: str) -> int:
    """Read '8GB', '512 MB' or '8GiB' as bytes; GB are 10⁹, GiB 2³⁰."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmgt]?)(i?)b?", text.strip().lower())
    if not match or (match[3] and not match[2]):
        raise Refused(f"{text!r} is no amount of memory; write 8GB, 512MB or 8GiB.")
    unit = 1024 ** "kmgt".index(match[2]) * 1024 if match[3] else _BYTES[match[2]]
    amount = int(float(match[1]) * unit)
    require(
        amount >= 10**6, f"{text!r} is {amount} bytes, too little for any network; write 8GB, 512MB or 8GiB."
    )
    return amount
