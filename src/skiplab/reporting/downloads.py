"""What a report gives away as files: drawings that only draw, and tables that no spreadsheet computes."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

LARGEST_DRAWING = 64 * 2**20  # bytes
# What matplotlib writes. Anything else in an SVG may run a program, load something or look like a page.
ELEMENTS = (
    "svg", "g", "path", "use", "defs", "style", "clipPath", "rect", "image", "text", "tspan", "pattern", "metadata",
    "title", "RDF", "Work", "type", "Agent", "creator", "date", "format", "source",
)  # fmt: skip
OWN = re.compile(r"#[\w.-]+|data:image/png;base64,[\s\w+/=]*", re.ASCII)
TYPE = re.compile(r"http://purl\.org/dc/dcmitype/StillImage")  # where metadata say what it is
LOADS = re.compile(r"@import|url\((?!\s*#)|expression|javascript:|</", re.IGNORECASE)

FORMULA = ("=", "+", "-", "@", "\t", "\r")


def only_draws(path: Path) -> bool:
    """Whether an SVG has nothing but shapes, text and pictures of its own, as those that we draw."""
    if path.stat().st_size > LARGEST_DRAWING:
        return False
    content = path.read_bytes()
    if re.search(rb"<!ENTITY|<\?xml-stylesheet|<!DOCTYPE[^>]*\[", content, re.IGNORECASE):
        return False
    try:
        root = ElementTree.fromstring(content)
    except (ElementTree.ParseError, ValueError, LookupError):  # also encodings that nobody knows
        return False
    return all(_is_plain(each) for each in root.iter())


def _is_plain(element: Any) -> bool:
    if not isinstance(element.tag, str) or element.tag.rpartition("}")[2] not in ELEMENTS:
        return False
    for name, value in element.attrib.items():
        short = name.rpartition("}")[2].lower()
        if short.startswith("on") or LOADS.search(value):
            return False
        if short in ("href", "src", "resource") and not (OWN.fullmatch(value) or TYPE.fullmatch(value)):
            return False
    return element.tag.rpartition("}")[2] != "style" or not LOADS.search(element.text or "")


def plain_cell(value: Any) -> Any:
    """A cell that a spreadsheet shows and does not compute: text like a formula gets the quote that says so."""
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        float(value)
    except ValueError:
        return f"'{value}"
    return value


def write_csv(table: pd.DataFrame, path: Path) -> None:
    """Write a table for spreadsheets."""
    import pandas as pd

    words = [name for name, kind in table.dtypes.items() if kind.kind not in "biufc"]
    safe = table.assign(**{str(name): table[name].astype(object).map(plain_cell) for name in words})
    safe.columns = pd.Index([plain_cell(name) for name in safe.columns])
    safe.to_csv(path, index=False)
