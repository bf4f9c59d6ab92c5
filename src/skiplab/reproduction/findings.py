"""What stands of a paper, in a few sentences: the claims that carry it, each with its verdict, number and interval.

A sentence is made of the claim and of the row that decides it, nothing else, so that no one has to keep it true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from skiplab.data.registry import with_titles
from skiplab.reproduction import numerals
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.kinds import Equivalent, Greater
from skiplab.reproduction.kinds.base import CONTRADICTED, HOLDS, UNDECIDED
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Paper
from skiplab.reproduction.verdict import Verdict

SHORT = 150  # characters of a claim that can be read in passing
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
    def number(self) -> str:
        """The deciding number with unit and interval, beside it what the paper has, or that it is too small."""
        row = self.judged.deciding
        paper = "" if row.paper_value is None else f"the paper has {numerals.number(row.paper_value)}"
        return "; ".join(filter(None, (_amount(row), paper, row.reason)))

    @property
    def evidence(self) -> str:
        """The verdict, in how many conditions, and the number of the one that decides it."""
        row = self.judged.deciding
        if row.statistic is None:
            return with_titles(f"{self._verdict}: {row.detail or 'no runs yet'}.")
        open_for = row.detail if self.verdict == UNDECIDED else ""
        further = filter(None, (open_for, self.judged.depends))
        return with_titles(f"{self._verdict}: {'; '.join([self.number, *further])}.")

    @property
    def _verdict(self) -> str:
        """The verdict, in how many conditions, and which of them is told."""
        row, rows = self.judged.deciding, self.judged.rows
        if len(rows) == 1:
            return f"{WORDS[self.verdict]} ({row.condition})"
        same = sum(each.verdict == self.verdict for each in rows)
        count = f"{same} of {len(rows)}"
        if same == len(rows):
            count = "both" if same == 2 else f"all {same}"
        told = row.condition
        if same > 1:
            clear = "the clearest" if self.verdict == CONTRADICTED else "the least clear"
            told = f"{'such as' if row.p is None else f'{clear} being'} {told}"
        return f"{WORDS[self.verdict]} in {count} conditions, {told}"


def _amount(row: Verdict) -> str:
    """The number and its interval, with what it is: a difference of accuracies in points, others in their unit."""
    value, low, high, unit = row.statistic, row.low, row.high, row.statistic_unit
    assert value is not None, "a row without a number has no amount"
    difference = "difference" if len(row.means) == 2 and issubclass(row.meaning, Greater | Equivalent) else ""
    if difference and unit.endswith("accuracy"):
        value, low, high = (None if each is None else 100 * each for each in (value, low, high))
        unit = f"points of {unit}"
    elif difference and unit:
        difference, unit = f"difference in {unit}", ""
    between = row.meaning.written_interval(numerals.interval(low, high))
    return f"{difference} {numerals.with_unit(numerals.number(value), unit)} ({between})".lstrip()


def findings(paper: Paper, runs: Mapping[str, StudyRun]) -> list[Finding]:
    """The claims that carry a paper, in its order, as far as there are runs that say something of them.

    If none of them is contradicted but another claim of the paper is, the first such claim stands at the end.
    """
    carrying, others = _claims(paper, runs)
    if all(each.verdict != CONTRADICTED for each in carrying):
        carrying += [each for each in others if each.verdict == CONTRADICTED][:1]
    return carrying


def in_short(paper: Paper, runs: Mapping[str, StudyRun]) -> list[Finding]:
    """For a reader in a hurry: a claim of the paper that holds and one that is contradicted, where there are such.

    Claims that carry the paper come first, and of these the ones with an interval; long sentences are passed over
    as far as there are shorter ones.
    """
    carrying, others = _claims(paper, runs)
    every = [each for each in carrying + others if each.judged.deciding.statistic is not None]

    def rank(finding: Finding) -> tuple[bool, bool, bool]:
        return len(finding.text) > SHORT, finding not in carrying, finding.judged.deciding.p is None

    decided = ([each for each in every if each.verdict == verdict] for verdict in (HOLDS, CONTRADICTED))
    return [min(those, key=rank) for those in decided if those]


def _claims(paper: Paper, runs: Mapping[str, StudyRun]) -> tuple[list[Finding], list[Finding]]:
    """The paper's own claims of which there are runs: those that carry it, in its order, and the others by study."""
    own = {
        f"{study.removeprefix(f'{paper.id}/')} {each.claim}": Finding(each)
        for study, run in sorted(runs.items())
        if study.startswith(f"{paper.id}/") and run.scale != "smoke"
        for each in judgements(run.verdicts)
        if not each.ours
    }
    return [own.pop(name) for name in paper.carried_by if name in own], list(own.values())
