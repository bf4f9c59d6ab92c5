"""Amendments taken apart: when a study was changed after results were seen, and which verdicts that changed.

A study's Markdown file has them as bullets, ``2026-11-19: What was changed. Verdicts: claim holds → undecided.``
The last sentence stands where the amendment changed a verdict. A claim that is gone keeps the name it had.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from skiplab.checks import Refused
from skiplab.reproduction.kinds.base import CONTRADICTED, HOLDS, UNDECIDED

MARK = "Verdicts: "
_LINE = re.compile(rf"(?P<date>\d{{4}}-\d\d-\d\d): (?P<text>.*?)(?: {MARK}(?P<changes>.*)\.)?", re.DOTALL)
_VERDICT = f"{HOLDS}|{CONTRADICTED}|{UNDECIDED}"
_CHANGE = re.compile(
    rf"(?P<claim>[\w-]+)(?: \((?P<part>[^()]+)\))? (?P<old>{_VERDICT}) → (?P<new>{_VERDICT})", re.ASCII
)


@dataclass(frozen=True)
class Change:
    """A verdict before and after; ``part`` says of what in the claim, where it was not all of it."""

    claim: str
    part: str
    old: str
    new: str


@dataclass(frozen=True)
class Amendment:
    """One amendment: its date, its words without date and verdicts, and the verdicts that it changed."""

    date: str
    text: str
    changes: tuple[Change, ...]
    line: str

    @classmethod
    def of(cls, line: str) -> Amendment:
        """The amendment that a line of a study's words is."""
        found = _LINE.fullmatch(line)
        if not found or MARK in found["text"]:
            raise Refused(f"{line[:60]!r} … is no amendment; write YYYY-MM-DD: words. {MARK}claim old → new.")
        written = [] if found["changes"] is None else found["changes"].split(", ")
        parts = [_CHANGE.fullmatch(each) for each in written]
        for each, part in zip(written, parts, strict=True):
            if part is None or part["old"] == part["new"]:
                raise Refused(
                    f"{each!r} is no change of a verdict; write claim {CONTRADICTED} → {UNDECIDED}."
                )
        changes = tuple(
            Change(part["claim"], part["part"] or "", part["old"], part["new"]) for part in parts if part
        )
        return cls(found["date"], found["text"], changes, line)


def in_order(lines: Iterable[str]) -> list[Amendment]:
    """Amendments as a reader wants them: those that changed a verdict first, and the newest first in both parts."""
    newest_first = sorted(map(Amendment.of, lines), key=lambda each: each.date, reverse=True)
    return sorted(newest_first, key=lambda each: not each.changes)
