"""Ordered: samples rise in the order given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from skiplab.reproduction.kinds.base import Kind, Region
from skiplab.reproduction.numerals import limit

if TYPE_CHECKING:
    from skiplab.reproduction.statistics import Array, Test
    from skiplab.reproduction.verdict import Verdict


@dataclass(frozen=True)
class Ordered(Kind):
    """The samples rise in the order given: Jonckheere's test of P(later > earlier) + ½ P(equal) > ½.

    Where runs share seeds, pairs are counted within seeds only. ``worth`` is by how much the probability must exceed
    ½ to be worth having; ours, the probability that goes with Cohen's small effect of .2 standard deviations.
    """

    takes: ClassVar[tuple[float, float]] = (2, math.inf)

    worth: float = 0.056

    @classmethod
    def of_statistic(cls, unit: str) -> str:
        """A probability, whatever the samples are; a claim may say in its unit of what."""
        return unit if unit.startswith("P(") else "P(later > earlier)"

    def margin_for(self, paper: float | None) -> None:
        """A probability is above ½ or not; there is no margin."""

    def worth_having(self) -> float:
        """The probability above ½."""
        return self.worth

    def test(self, samples: Sequence[Array], paired: bool) -> Test:
        """Jonckheere's test, which for two samples is that of Mann and Whitney; its blocked form for pairs."""
        from skiplab.reproduction import statistics

        return statistics.blocked_order(samples) if paired else statistics.jonckheere(samples)

    def refuted_region(self, margin: float | None, paper: float | None) -> Region:
        """Below the smallest probability worth having."""
        return 0.5 + self.worth, math.inf

    def estimate(self, samples: Sequence[Array]) -> float:
        """The share of pairs of runs in which the later sample's is larger."""
        from skiplab.reproduction import statistics

        return statistics.superiority(samples)

    def notes(self, samples: Sequence[Array]) -> tuple[str, ...]:
        """Show the steps between means: a rise overall may hide a fall on the way."""
        from skiplab.reproduction import statistics

        means = [statistics.mean_of(sample) for sample in samples]
        steps = (later - earlier for earlier, later in pairwise(means))
        return ("adjacent differences of means " + ", ".join(f"{step:+.3g}" for step in steps),)

    @classmethod
    def region(cls, margin: float | None, paper: float | None) -> Region:
        """All that lies above ½, where a later run is as often larger as smaller."""
        return 0.5, math.inf

    @classmethod
    def rule(cls, verdict: Verdict) -> str:
        """Name the probability."""
        chance = "P(later > earlier), the chance that of two runs the one later in the order has more,"
        if verdict.worth is None:
            return f"Holds where {chance} is above ½."
        worth = limit(0.5 + verdict.worth)
        return (
            f"Holds where all of the interval of {chance} is above ½ and some of it above {worth}, the smallest "
            "effect worth having; contradicted where all of it is below that."
        )
