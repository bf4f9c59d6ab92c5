"""Exact: every number is 0 up to rounding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from skiplab.checks import at_least
from skiplab.reproduction.kinds.base import CONTRADICTED, EVERYWHERE, HOLDS, Finding, Kind, Region
from skiplab.reproduction.numerals import NOTHING, limit, with_unit

if TYPE_CHECKING:
    from skiplab.reproduction.statistics import Array
    from skiplab.reproduction.verdict import Verdict


@dataclass(frozen=True)
class Exact(Kind):
    """Every number in the sample is 0 up to rounding (violations, differences); no statistics.

    It looks at numbers, each of which must be right, and not at runs: one NaN contradicts it.
    """

    takes: ClassVar[tuple[float, float]] = (1, math.inf)
    statistical: ClassVar[bool] = False

    rounding: float = 0.0

    def check(self, where: str, count: int, paper: float | None) -> None:
        """Refuse a negative rounding."""
        super().check(where, count, paper)
        at_least(f"Rounding of {where}", self.rounding, 0.0)

    def margin_for(self, paper: float | None) -> float:
        """The rounding that is allowed."""
        return self.rounding

    def find(self, samples: Sequence[Array], paper: float | None, paired: bool = False) -> Finding:
        """Settle by the largest size among all numbers."""
        import numpy as np

        values = np.abs(np.concatenate(samples))
        if values.size == 0:
            return Finding(math.nan, self.rounding, ("there are no numbers to check",))
        worst = float(values.max())  # NaN if any is NaN, and then no comparison holds
        lost = int(np.count_nonzero(~np.isfinite(values)))
        notes = (f"{lost} of {values.size} numbers are not finite",) if lost else ()
        settled = HOLDS if worst <= self.rounding and not lost else CONTRADICTED
        return Finding(worst, self.rounding, notes, settled=settled, low=worst, high=worst)

    @classmethod
    def region(cls, margin: float | None, paper: float | None) -> Region:
        """From 0 to the rounding: the statistic is the largest size of a number that should be 0."""
        return EVERYWHERE if margin is None else (0.0, margin)

    @classmethod
    def rule(cls, verdict: Verdict) -> str:
        """Name the rounding."""
        high = verdict.region[1]
        if high == 0:
            return "Holds if every number is 0."
        return f"Holds if no number exceeds {with_unit(limit(high), verdict.unit)}."

    @classmethod
    def written_interval(cls, interval: str) -> str:
        """A word, for a number that is known has no interval."""
        return "exact"

    @classmethod
    def written_runs(cls, runs: int) -> str:
        """A dash: what is counted are numbers."""
        return NOTHING
