"""A comparison as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from skiplab.diagnosis.single_page import picture, write_single_page

if TYPE_CHECKING:
    from skiplab.diagnosis.comparison.result import Comparison


def write_page(found: Comparison, path: Path) -> Path:
    """Write a comparison as one HTML file and return its path; see ``single_page`` for what is refused."""
    return write_single_page(
        path,
        "comparison.html",
        found=found,
        figure=picture(found.plot()),
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
