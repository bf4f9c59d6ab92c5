"""Pages that are one file: style sheet and figures inside, no script, nothing asked of the network."""

from __future__ import annotations

import base64
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skiplab.checks import Refused, require
from skiplab.files import check_writable, kind_of, write_bytes, writing_to
from skiplab.reporting import words
from skiplab.reporting.site import ASSETS
from skiplab.version import __version__

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
# At the head of every page: a file that begins so was written here and may be replaced.
MARKER = "<!doctype html>\n<!-- Written by skiplab, which replaces it when asked to write here again. -->\n"


def write_single_page(path: Path, template: str, **values: Any) -> Path:
    """Fill a template of this folder and write it; what is there and is no page of ours is refused."""
    path = refuse_foreign(path)
    style = (ASSETS / "site.css").read_text("utf-8") + (TEMPLATES / "page.css").read_text("utf-8")
    text = _environment().get_template(template).render(style=style, version=__version__, **values)
    write_bytes(path, MARKER.encode(), text.encode("utf-8", "backslashreplace"))
    return path


def refuse_foreign(path: str | Path) -> Path:
    """Return the path unless it has no page's name, or something else is there: a link, folder, device or file."""
    path = Path(path)
    kind = kind_of(path)
    if kind not in ("", "a file"):
        raise Refused(f"{path} is {kind}; name a new file for the page, such as page.html.")
    require(path.suffix.lower() in (".html", ".htm"), f"{path} is no name of a page; let it end in .html.")
    if not kind:
        return path
    with writing_to(path), path.open("rb") as file:
        start = file.read(len(MARKER.encode()))
    if start not in (b"", MARKER.encode()):
        raise Refused(f"{path} exists and is no page of skiplab's; name another file, or move it away.")
    return path


def check_place(path: Path) -> None:
    """Refuse a place for a page before the work that fills it: what is there is foreign, or takes no files."""
    refuse_foreign(path)
    check_writable(path.parent)


def picture(figure: Any) -> str:
    """A figure as the address of an image that holds it; as an image it can neither load nor run anything."""
    from skiplab.figures.style import svg

    return f"data:image/svg+xml;base64,{base64.b64encode(svg(figure)).decode()}"


@cache
def _environment() -> jinja2.Environment:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = words.count
    return environment
