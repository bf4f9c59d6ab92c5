"""Greater: one mean exceeds another, or 0."""

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
class Greater(Kind):
    """The first sample's mean exceeds the second's, or 0 for one sample of differences.

    ``margin`` > 0 weakens it to "not worse by more than the margin" (≥ in the papers); ``margin`` < 0
    demands at least that much more. The test is Welch's, or Student's for one sample.
    """

    margin: float = 0.0

    def check(self, where: str, count: int, paper: float | None) -> None:
        """Refuse a margin that is no number."""
        super().check(where, count, paper)
        require(math.isfinite(self.margin), f"{where} has margin {self.margin}; give a finite one.")

    def margin_for(self, paper: float | None) -> float:
        """The margin as declared."""
        return self.margin

    @classmethod
    def region(cls, margin: float | None, paper: float | None) -> Region:
        """All that lies above minus the margin."""
        return EVERYWHERE if margin is None else (-margin, math.inf)

    @classmethod
    def rule(cls, verdict: Verdict) -> str:
        """Name the threshold."""
        return (
            f"Holds where {quantity(verdict)} is above {with_unit(limit(verdict.region[0]), verdict.unit)}."
        )
