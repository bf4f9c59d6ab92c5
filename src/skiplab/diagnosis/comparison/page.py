"""A comparison as one HTML page, which asks nothing of the network."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import jinja2

from skiplab.checks import Refused, require
from skiplab.files import write_bytes

if TYPE_CHECKING:
    from skiplab.diagnosis.comparison.result import Comparison

MARK = '<meta name="generator" content="skiplab compare">'


def write(found: Comparison, path: Path) -> Path:
    """Write the page; replace an earlier one, and refuse whatever else is there."""
    require(path.suffix.lower() in (".html", ".htm"), f"{path} is no name of a page; let it end in .html.")
    refuse_others(path)
    write_bytes(path, rendered(found).encode())
    return path


def refuse_others(path: Path) -> None:
    """Refuse to replace what is not a page of ours."""
    if not path.exists() and not path.is_symlink():
        return
    if path.is_file() and not path.is_symlink():
        with path.open("rb") as file:
            if MARK.encode() in file.read(2000):
                return
    raise Refused(f"{path} exists and is no page of `skiplab compare`; name another file.")


def rendered(found: Comparison) -> str:
    """The page as text."""
    from skiplab.figures.style import svg_text

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = environment.get_template("comparison.html")
    return page.render(
        mark=MARK,
        found=found,
        figure=svg_text(found.plot()),
        headline=repr(found).partition("\n")[0],
        measured=_measured(found),
    )


def _measured(found: Comparison) -> list[dict[str, object]]:
    """One table row per instrument and model: before and after training."""
    rows: dict[tuple[str, str], dict[str, object]] = {}
    for each in found.measures:
        row = rows.setdefault(
            (each.instrument, each.model),
            {
                "instrument": each.instrument,
                "quantity": each.quantity,
                "model": each.model,
                "place": each.place,
            },
        )
        row[each.when] = str(each)
    return [{"before": "–", "after": "–"} | row for row in rows.values()]
