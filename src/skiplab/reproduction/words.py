"""The words of a study: its title, caption, choices, errata and amendments, from a Markdown file beside it.

The standard library alone reads them, when they are first asked for, so that `skiplab list` answers at once.
CONTRIBUTING.md shows the form of the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from skiplab.checks import Refused, near, one_of, require

HEADINGS = ("Caption", "The paper says", "Choices", "Errata", "Amendments")
_LINK = re.compile(r"\[[^]]+\]\(([^)#]+)#([^)]+)\)")
_TESTS = re.compile(r"(?P<text>.*\S) \((?P<tests>`tests/[^`]+`(, `tests/[^`]+`)*)\)")


@dataclass(frozen=True)
class Erratum:
    """Where a paper errs or is silent, and the tests that show it, which docs/errata.md names and pages do not."""

    text: str
    tests: str = ""


@dataclass(frozen=True)
class Words:
    """What is said of a study, with the text of every linked section in its place."""

    title: str
    caption: str
    described: str
    choices: tuple[str, ...]
    errata: tuple[Erratum, ...]
    amendments: tuple[str, ...]


@dataclass(frozen=True)
class _Block:
    """A paragraph or a bullet, line by line."""

    bullet: bool
    lines: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Document:
    path: Path
    title: str
    sections: dict[str, list[_Block]] = field(default_factory=dict)

    def section(self, anchor: str) -> list[_Block] | None:
        """The section that a link's end names, as GitHub would find it."""
        return {slug(heading): blocks for heading, blocks in self.sections.items()}.get(anchor)


@cache
def read(declared: str) -> Words:
    """The words of the study that is declared in this file."""
    document = _document(beside(declared))
    for heading in document.sections:
        one_of(f"heading of {document.path.name}", heading, HEADINGS)
    require("Caption" in document.sections, f"{document.path.name} has no section Caption.")
    return Words(
        title=document.title,
        caption=_paragraph(document, "Caption"),
        described=_paragraph(document, "The paper says"),
        choices=_bullets(document, "Choices"),
        errata=_errata(document, "Errata"),
        amendments=_bullets(document, "Amendments"),
    )


def errata_of(path: Path, heading: str) -> tuple[Erratum, ...]:
    """The errata in one section of a file that studies share."""
    return _errata(_document(path), heading)


def beside(declared: str) -> Path:
    """The Markdown file of a declaration: figure_7.md for figure_7.py, words.md for a file of an item's folder."""
    own, folders = Path(declared).with_suffix(".md"), Path(declared).with_name("words.md")
    return folders if folders.is_file() and not own.is_file() else own


def slug(heading: str) -> str:
    """How a link names a heading: 'Initial gain' is initial-gain."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def _paragraph(document: _Document, heading: str) -> str:
    return " ".join(_texts(document, document.sections.get(heading, [])))


def _bullets(document: _Document, heading: str) -> tuple[str, ...]:
    blocks = document.sections.get(heading, [])
    listed = all(block.bullet for block in blocks)
    require(listed, f"{heading} of {document.path.name} must be bullets, '- ' at the start of a line.")
    return tuple(_texts(document, blocks))


def _errata(document: _Document, heading: str) -> tuple[Erratum, ...]:
    found = ((text, _TESTS.fullmatch(text)) for text in _bullets(document, heading))
    return tuple(Erratum(match["text"], match["tests"]) if match else Erratum(text) for text, match in found)


def _texts(document: _Document, blocks: list[_Block], above: tuple[str, ...] = ()) -> list[str]:
    """One text per block, but for a block that is nothing but a link, which stands for all of its section's."""
    texts = []
    for block in blocks:
        lines = [_line(document, line, above) for line in block.lines]
        texts += lines[0] if len(lines) == 1 else [" ".join(text for line in lines for text in line)]
    return texts


def _line(document: _Document, line: str, above: tuple[str, ...]) -> list[str]:
    """A line as it is, or the texts of the section to which it links."""
    link = _LINK.fullmatch(line)
    if not link:
        require("](" not in line, f"{document.path.name} has a link that does not fill its line: {line}")
        return [line]
    other, anchor = link.groups()
    target = _document((document.path.parent / other).resolve())
    blocks = target.section(anchor)
    if blocks is None:
        close = near(anchor, map(slug, target.sections))
        raise Refused(f"{document.path.name} links to {other}#{anchor}, which has no such section.{close}")
    place = f"{target.path}#{anchor}"
    require(place not in above, f"{other}#{anchor} links to itself.")
    return _texts(target, blocks, (*above, place))


@cache
def _document(path: Path) -> _Document:
    """A Markdown file as sections of paragraphs and bullets."""
    if not path.is_file():
        close = near(path.name, (each.name for each in path.parent.glob("*.md")))
        raise Refused(f"{path} is missing, and a study's words stand there.{close}")
    title, *lines = path.read_text(encoding="utf-8").splitlines() or [""]
    require(title.startswith("# "), f"{path.name} must start with its title, '# ' and a line.")
    document = _Document(path, title[2:].strip())
    blocks: list[_Block] | None = None
    ended = True  # a blank line ends a paragraph or bullet
    for line in lines:
        if line.startswith("#"):
            heading = line[3:].strip()
            require(line.startswith("## "), f"{path.name} has a heading that is not '## ' and a name: {line}")
            require(heading not in document.sections, f"{path.name} has two sections {heading}.")
            blocks, ended = document.sections.setdefault(heading, []), True
        elif not line.strip():
            ended = True
        else:
            if blocks is None:
                raise Refused(f"{path.name} has a line before its first section: {line}")
            if ended or line.startswith("- "):
                blocks.append(_Block(line.startswith("- ")))
            blocks[-1].lines.append(line.removeprefix("- ").strip())
            ended = False
    return document
