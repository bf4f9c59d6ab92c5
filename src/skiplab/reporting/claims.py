"""A study's claims as its page shows them: each with its rule and its rows of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from skiplab.reporting import forest
from skiplab.reproduction import numerals
from skiplab.reproduction.kinds.base import Region
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict


@dataclass(frozen=True)
class Row:
    """A verdict, its numbers in words, and its drawing on the scale of its claim."""

    judged: Verdict
    domain: Region | None

    @property
    def condition(self) -> str:
        """Where the claim was judged."""
        return self.judged.condition or "all"

    @property
    def paper(self) -> str:
        """The paper's value."""
        return numerals.number(self.judged.paper_value)

    @property
    def ours(self) -> str:
        """Our statistic."""
        return numerals.number(self.judged.statistic)

    @property
    def unit(self) -> str:
        """The unit of our statistic, where there is one."""
        return self.judged.unit if self.judged.statistic is not None else ""

    @property
    def means(self) -> str:
        """The means behind a comparison."""
        means = [numerals.number(mean) for mean in self.judged.means]
        return f"means {', '.join(means)}" if len(means) > 1 else ""

    @property
    def interval(self) -> str:
        """The interval, or a dash where neither end is known."""
        low, high = self.judged.low, self.judged.high
        return numerals.NOTHING if low is None and high is None else numerals.interval(low, high)

    @property
    def coverage(self) -> str:
        """The interval's coverage, where it comes from a test."""
        level = self.judged.level
        return "" if level is None else f"{100 * (1 - level):.3g} %"

    @property
    def p(self) -> str:
        """The p-value after Holm."""
        return numerals.p_value(self.judged.p_adjusted)

    @property
    def drawing(self) -> Markup:
        """Region, interval and estimate as a picture."""
        return forest.draw(self.judged, self.domain)


@dataclass(frozen=True)
class ShownClaim:
    """A claim's text, the rule by which it is judged, and its rows."""

    id: str
    text: str
    rows: Sequence[Row]

    @property
    def rule(self) -> str:
        """Where the claim holds, in words; nothing without a row."""
        first = next((row.judged for row in self.rows), None)
        return first.meaning.rule(first) if first else ""

    @property
    def headline(self) -> list[Row]:
        """The rows that the claim is about."""
        return [row for row in self.rows if row.judged.headline]

    @property
    def further(self) -> list[Row]:
        """What was looked at besides."""
        return [row for row in self.rows if not row.judged.headline]

    @property
    def valued(self) -> bool:
        """Whether the paper gives a number to compare with."""
        return any(row.judged.paper_value is not None for row in self.rows)

    @property
    def statistical(self) -> bool:
        """Whether p-values and runs have something to say."""
        return any(row.judged.meaning.statistical for row in self.rows)


def claims_of(study: Study, verdicts: Sequence[Verdict]) -> list[ShownClaim]:
    """Return the study's claims in their declared order, each with its verdicts."""
    texts = {claim.id: claim.text for claim in study.claims}
    # A stored run may know claims that the declaration has since dropped; they are still its results.
    texts.update({each.claim: each.text for each in verdicts if each.claim not in texts})
    return [
        ShownClaim(name, text, _rows([each for each in verdicts if each.claim == name]))
        for name, text in texts.items()
    ]


def _rows(verdicts: Sequence[Verdict]) -> list[Row]:
    shared = forest.domain_of(verdicts) if verdicts and verdicts[0].meaning.shares_axis else None
    return [Row(each, shared or forest.domain_of([each])) for each in verdicts]
