"""A claim's one verdict: what its conditions say together.

A claim is a conjunction. It holds if every headline condition does, is contradicted if one of them is, and is
undecided otherwise; a further condition has no say. Every condition was tested at the claim's level (``verdict``), so
holding is an intersection–union test and keeps its level. A contradiction by one of n conditions does not: by chance
alone it may come n times as often. ``docs/scoreboard.md`` counts those that Bonferroni's factor n would leave open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from skiplab.reproduction.claim import NOT_RUN, OURS
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
        """The row that decides the verdict: the least clear of those that bear it, as all of them have to.

        One contradicted row is enough to contradict a claim, so there it is the clearest.
        """
        pick = min if self.verdict == CONTRADICTED else max
        bearing = [row for row in self.rows if row.verdict == self.verdict]
        return pick(bearing, key=lambda row: -1.0 if row.p is None else row.p)

    @property
    def reason(self) -> str:
        """Why a contradicted claim is contradicted, where there is more to say."""
        against = [row for row in self.rows if row.verdict == CONTRADICTED]
        return against[0].reason if against and len({row.reason for row in against}) == 1 else ""

    @property
    def too_small(self) -> bool:
        """Whether a contradicted claim is so only because the effect is too small, and not by a reverse one."""
        against = [row for row in self.rows if row.verdict == CONTRADICTED]
        return bool(against) and all(row.reason for row in against)

    @property
    def turned(self) -> list[Verdict]:
        """Further rows at other initial gains that say the reverse, beyond a difference too small to matter."""
        reverse = {HOLDS: CONTRADICTED, CONTRADICTED: HOLDS}.get(self.verdict)
        return [row for row in self.at_gains if row.verdict == reverse and not row.reason]

    @property
    def depends(self) -> str:
        """At which initial gains the reverse is true, in words, if anywhere."""
        if not self.turned:
            return ""
        share = f"{self.turned[0].verdict} in {len(self.turned)} of {len(self.at_gains)} further conditions"
        return f"depends on the initial scale: {share}, such as {self.turned[0].condition}"

    @property
    def at_gains(self) -> list[Verdict]:
        """Further rows that differ from the headline in the initial scale of weights."""
        return [row for row in self.further if row.other_scale]

    @property
    def waits(self) -> bool:
        """Whether the claim is undecided only because runs are still to be made."""
        undecided = [row for row in self.rows if row.verdict == UNDECIDED]
        return self.verdict == UNDECIDED and all(row.missing == NOT_RUN for row in undecided)

    @property
    def p_adjusted(self) -> float | None:
        """The claim's p-value after Holm over the study's claims; None if any condition has no numbers to test."""
        if any(row.missing for row in self.rows):
            return None
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


def paid(judged: Judgement) -> bool:
    """Whether a contradiction stands if each of its claim's tested conditions is paid for (Bonferroni)."""
    tested = [row for row in judged.rows if row.p is not None and row.level is not None]
    against = [row for row in judged.rows if row.verdict == CONTRADICTED]
    return any(row.p is None or row.level is None or row.p * len(tested) <= row.level for row in against)


def tally(judged: Iterable[Judgement]) -> dict[str, int]:
    """Count claims by verdict."""
    verdicts = [each.verdict for each in judged]
    return {name: verdicts.count(name) for name in VERDICTS}


def tallied(told: Mapping[str, int]) -> str:
    """Counts of claims by verdict in words."""
    holding = f"{told[HOLDS]} {'holds' if told[HOLDS] == 1 else 'hold'}"
    against = f"{told[CONTRADICTED]} {'is' if told[CONTRADICTED] == 1 else 'are'} contradicted"
    left = f"{told[UNDECIDED]} {'is' if told[UNDECIDED] == 1 else 'are'} undecided"
    return f"{holding}, {against}, {left}"
