"""A claim's one verdict: what its conditions say together.

A claim is a conjunction. It holds if every headline condition does, is contradicted if one of them is, and is
undecided otherwise; a further condition has no say. Every condition was tested at the claim's level (``verdict``), so
holding is an intersection–union test.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from skiplab.reproduction.claim import OURS
from skiplab.reproduction.kinds.base import CONTRADICTED, HOLDS, UNDECIDED
from skiplab.reproduction.verdict import VERDICTS, Verdict


@dataclass(frozen=True)
class Judgement:
    """One claim of a study: its headline rows, of which there is at least one, and the further ones."""

    rows: Sequence[Verdict]
    further: Sequence[Verdict] = ()

    @property
    def study(self) -> str:
        """The id of the study that makes the claim."""
        return self.rows[0].study

    @property
    def claim(self) -> str:
        """The claim's id."""
        return self.rows[0].claim

    @property
    def text(self) -> str:
        """The claim in words."""
        return self.rows[0].text

    @property
    def source(self) -> str:
        """Where the paper says it, or "ours"."""
        return self.rows[0].source

    @property
    def ours(self) -> bool:
        """Whether the claim is ours, and so counts neither for nor against the paper."""
        return self.source == OURS

    @property
    def verdict(self) -> str:
        """What the headline rows say together."""
        return conjunction([row.verdict for row in self.rows])

    @property
    def deciding(self) -> Verdict:
        """The row that decides the verdict: of those that bear it, the one nearest to another verdict."""
        bearing = [row for row in self.rows if row.verdict == self.verdict]
        return max(bearing, key=lambda row: -1.0 if row.p is None else row.p)

    @property
    def reason(self) -> str:
        """Why a contradicted claim is contradicted, where there is more to say."""
        against = [row for row in self.rows if row.verdict == CONTRADICTED]
        return against[0].reason if against and len({row.reason for row in against}) == 1 else ""

    @property
    def p_adjusted(self) -> float | None:
        """The claim's p-value after Holm over the study's claims; None without a test."""
        return next((row.p_adjusted for row in self.rows if row.p_adjusted is not None), None)


def conjunction(verdicts: Sequence[str]) -> str:
    """One verdict for several that must all hold."""
    if CONTRADICTED in verdicts:
        return CONTRADICTED
    return HOLDS if verdicts and set(verdicts) == {HOLDS} else UNDECIDED


def judgements(verdicts: Iterable[Verdict]) -> list[Judgement]:
    """The claims behind the rows of one run, in their order; a claim without a headline row is not judged."""
    found: dict[str, tuple[list[Verdict], list[Verdict]]] = {}
    for row in verdicts:
        found.setdefault(row.claim, ([], []))[not row.headline].append(row)
    return [Judgement(rows, further) for rows, further in found.values() if rows]


def tally(judged: Iterable[Judgement]) -> dict[str, int]:
    """Count claims by verdict."""
    verdicts = [each.verdict for each in judged]
    return {name: verdicts.count(name) for name in VERDICTS}
