"""Ordered: samples rise in the order given."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

from skiplab.reproduction.kinds.base import Kind, Region

if TYPE_CHECKING:
    from skiplab.reproduction.statistics import Array, StudentTest
    from skiplab.reproduction.verdict import Verdict


@dataclass(frozen=True)
class Ordered(Kind):
    """The samples rise in the order given: Jonckheere's test of P(later > earlier) + ½ P(equal) > ½."""

    takes: ClassVar[tuple[float, float]] = (2, math.inf)

    def margin_for(self, paper: float | None) -> None:
        """A probability is above ½ or not; there is no margin."""

    def test(self, samples: Sequence[Array]) -> StudentTest:
        """Jonckheere's test, which for two samples is that of Mann and Whitney."""
        from skiplab.reproduction import statistics

        return statistics.jonckheere(samples)

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
        return "Holds where P(later > earlier) over pairs of runs is above ½."
