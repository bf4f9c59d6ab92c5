"""What stands of a paper, in a few sentences: the claims that carry it, each with its verdict, number and interval.

A sentence is made of the claim and of the row that decides it, nothing else, so that no one has to keep it true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skiplab.reproduction import numerals
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.kinds.base import CONTRADICTED, HOLDS, UNDECIDED
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Paper

WORDS = {HOLDS: "Holds", CONTRADICTED: "Contradicted", UNDECIDED: "Undecided"}


@dataclass(frozen=True)
class Finding:
    """A claim that carries its paper, and what our runs say of it."""

    judged: Judgement

    @property
    def verdict(self) -> str:
        """The claim's verdict."""
        return self.judged.verdict

    @property
    def text(self) -> str:
        """The claim in words."""
        return self.judged.text

    @property
    def evidence(self) -> str:
        """The verdict and the number that decides it: of several conditions the one nearest to another verdict."""
        row, rows = self.judged.deciding, self.judged.rows
        same = sum(each.verdict == self.verdict for each in rows)
        where = row.condition
        if len(rows) > 1:
            where = f"in {same} of {len(rows)} conditions, least clearly {row.condition}"
        if row.statistic is None:
            return f"{WORDS[self.verdict]} ({where}): {row.detail or 'no runs yet'}."
        value = numerals.with_unit(numerals.number(row.statistic), row.unit)
        between = row.meaning.written_interval(numerals.interval(row.low, row.high))
        paper = "" if row.paper_value is None else f"; the paper has {numerals.number(row.paper_value)}"
        told = row.reason or (row.detail if self.verdict == UNDECIDED else "")
        reason = f"; {told}" if told else ""
        return f"{WORDS[self.verdict]} ({where}): {value}, {between}{paper}{reason}."


def findings(paper: Paper, runs: Mapping[str, StudyRun]) -> list[Finding]:
    """The claims that carry a paper, in its order, as far as there are runs that say something of them."""
    found = []
    for name in paper.carried_by:
        item, _, claim = name.partition(" ")
        run = runs.get(f"{paper.id}/{item}")
        if run is not None and run.scale != "smoke":
            found += [Finding(each) for each in judgements(run.verdicts) if each.claim == claim]
    return found
