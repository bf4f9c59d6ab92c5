"""Equivalent: two means differ by less than a margin."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.checks import require
from skiplab.reproduction.kinds.base import EVERYWHERE, Kind, Region, quantity
from skiplab.reproduction.numerals import limit, with_unit

if TYPE_CHECKING:
    from skiplab.reproduction.verdict import Verdict


@dataclass(frozen=True)
class Equivalent(Kind):
    """The means of two samples differ by less than the margin, or one sample's mean is that near 0.

    Two opposing Welch tests (or Student's for one sample) make it the equivalence test TOST.
    """

    margin: float

    def check(self, where: str, count: int, paper: float | None) -> None:
        """Refuse a margin that leaves no room."""
        super().check(where, count, paper)
        sentence = f"{where} has margin {self.margin}; equivalence needs a positive one."
        require(0 < self.margin < math.inf, sentence)

    def margin_for(self, paper: float | None) -> float:
        """The margin as declared."""
        return self.margin

    @classmethod
    def region(cls, margin: float | None, paper: float | None) -> Region:
        """All that lies within the margin of 0."""
        return EVERYWHERE if margin is None else (-margin, margin)

    @classmethod
    def rule(cls, verdict: Verdict) -> str:
        """Name the margin."""
        return (
            f"Holds where {quantity(verdict)} is within ±{with_unit(limit(verdict.region[1]), verdict.unit)}."
        )
