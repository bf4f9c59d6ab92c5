#!/usr/bin/env python3
"""Writes docs/errata.md from the errata of the studies.

python tools/errata.py            rewrite docs/errata.md
python tools/errata.py --check    exit 1 if docs/errata.md is not what this would write
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from pathlib import Path

from skiplab import studies
from skiplab.reproduction.study import Paper, Study
from skiplab.reproduction.words import Erratum, errata_of, read
from skiplab.studies import CATALOGUE

ERRATA = Path(__file__).parent.parent / "docs" / "errata.md"
UNTIED = "Not tied to one item"
PREFACE = """# Where the papers err or are silent, and what we do

Written by `python tools/errata.py` from the Errata sections of the studies' Markdown files. Each entry ends with the
studies on whose pages it stands and the tests that show it; one that several papers share stands under the first."""


def by_erratum() -> dict[Erratum, list[Study]]:
    """The studies that show each erratum."""
    found: dict[Erratum, list[Study]] = {}
    for study in CATALOGUE:
        for erratum in read(study.words).errata:
            found.setdefault(erratum, []).append(study)
    return found


def untied(paper: Paper) -> tuple[Erratum, ...]:
    """What is said of a paper as a whole, in the file that its studies share."""
    shared = Path(studies.__file__).parent / paper.id / "shared.md"
    return errata_of(shared, UNTIED) if shared.is_file() else ()


def bullet(erratum: Erratum, shown_by: list[Study]) -> str:
    """One erratum: its first item, its text, its studies and tests."""
    item = f"**{shown_by[0].item}.** " if shown_by else ""
    ids = ", ".join(f"`{study.id}`" for study in shown_by)
    sources = "; ".join(each for each in (ids, erratum.tests) if each)
    text = f"{item}{erratum.text}" + (f" ({sources})" if sources else "")
    return textwrap.fill(text, 118, initial_indent="- ", subsequent_indent="  ", break_on_hyphens=False)


def written() -> str:
    """docs/errata.md as the studies have it."""
    found = by_erratum()
    parts = [PREFACE]
    for paper in CATALOGUE.papers:
        parts.append(f"## {paper.id}\n\n{paper.authors} ({paper.year}), *{paper.title}*")
        tied = [bullet(each, shown_by) for each, shown_by in found.items() if shown_by[0].paper == paper.id]
        parts.append("\n".join(tied))
        whole = [bullet(each, []) for each in untied(paper)]
        if whole:
            parts += [f"### {UNTIED}", "\n".join(whole)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        sys.exit(written() != ERRATA.read_text())
    ERRATA.write_text(written())
