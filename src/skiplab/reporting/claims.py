"""A study's claims as its page shows them: each with its rule and its rows of verdicts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from skiplab.data.registry import with_titles
from skiplab.reporting import forest
from skiplab.reproduction import numerals
from skiplab.reproduction.claim import OURS
from skiplab.reproduction.judgement import Judgement, judgements
from skiplab.reproduction.kinds import Value
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
        return with_titles(self.judged.condition) or "all"

    @property
    def paper(self) -> str:
        """The paper's value and, where it is judged, how near to it a mean has to be."""
        value, margin = self.judged.paper_value, self.judged.margin
        if value is None or margin is None or not issubclass(self.judged.meaning, Value):
            return numerals.number(value)
        return f"{numerals.number(value)} ± {numerals.number(margin)}"

    @property
    def ours(self) -> str:
        """Our statistic."""
        return numerals.number(self.judged.statistic)

    @property
    def unit(self) -> str:
        """The unit of our statistic, where there is one."""
        return self.judged.statistic_unit if self.judged.statistic is not None else ""

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
        """The condition's own p-value."""
        return numerals.p_value(self.judged.p)

    @property
    def test(self) -> str:
        """Whether runs were compared seed by seed."""
        return "paired by seed" if self.judged.paired else ""

    @property
    def needs(self) -> str:
        """The runs that would settle an undecided condition."""
        return f"about {self.judged.needs:,} runs would settle it" if self.judged.needs else ""

    @property
    def drawing(self) -> Markup:
        """Region, interval and estimate as a picture."""
        return forest.draw(self.judged, self.domain)


@dataclass(frozen=True)
class ShownClaim:
    """A claim's text, whose it is, the rule by which it is judged, and its rows."""

    id: str
    text: str
    source: str
    rows: Sequence[Row]

    @property
    def judged(self) -> Judgement | None:
        """The claim's one verdict; None without a headline row."""
        return next(iter(judgements(row.judged for row in self.rows)), None)

    @property
    def place(self) -> str:
        """Whose claim it is, in words."""
        return (
            "ours, not counted for or against the paper"
            if self.source == OURS
            else f"the paper, {self.source}"
        )

    @property
    def p(self) -> str:
        """The claim's p-value after Holm, where there is a test."""
        adjusted = self.judged.p_adjusted if self.judged else None
        return "" if adjusted is None else numerals.p_value(adjusted)

    @property
    def depends(self) -> str:
        """At which initial scales of weights the reverse is true, if anywhere."""
        return with_titles(self.judged.depends) if self.judged else ""

    @property
    def strip(self) -> Markup:
        """How much conditions matter: the statistic in every further one, as a picture."""
        return forest.strip([row.judged for row in self.further])

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
    said = {claim.id: (claim.text, claim.source or "") for claim in study.claims}
    # A stored run may know claims that the declaration has since dropped; they are still its results.
    said.update({each.claim: (each.text, each.source) for each in verdicts if each.claim not in said})
    return [
        ShownClaim(name, text, source, _rows([each for each in verdicts if each.claim == name]))
        for name, (text, source) in said.items()
    ]


def _rows(verdicts: Sequence[Verdict]) -> list[Row]:
    rows = []
    for headline in (True, False):  # each on a scale of its own: further conditions may lie far away
        group = [each for each in verdicts if each.headline == headline]
        shared = forest.domain_of(group) if group and group[0].meaning.shares_axis else None
        rows += [Row(each, shared or forest.domain_of([each])) for each in group]
    return rows
