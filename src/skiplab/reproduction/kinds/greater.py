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

    ``worth`` is the smallest effect worth having: an interval that lies above 0 and reaches it holds, one that
    stays below it contradicts, so that no difference can come out too. ``margin`` > 0 weakens the claim to "not
    worse by more than the margin" (≥ in the papers), ``margin`` < 0 demands at least that much more. The test is
    Student's for one sample or for pairs, otherwise Welch's.
    """

    worth: float = 0.0
    margin: float = 0.0

    def check(self, where: str, count: int, paper: float | None) -> None:
        """Refuse a claim that does not say which effect would matter."""
        super().check(where, count, paper)
        require(math.isfinite(self.margin), f"{where} has margin {self.margin}; give a finite one.")
        require(0 <= self.worth < math.inf, f"{where} has worth {self.worth}; give a finite effect above 0.")
        require(
            (self.worth > 0) != (self.margin != 0),
            f"{where} has worth {self.worth} and margin {self.margin}; give one of them: "
            "the smallest effect worth having, or by how much it may fall short.",
        )

    def margin_for(self, paper: float | None) -> float:
        """The margin as declared."""
        return self.margin

    def worth_having(self) -> float | None:
        """The effect as declared; a claim with a margin has none."""
        return self.worth or None

    def refuted_region(self, margin: float | None, paper: float | None) -> Region | None:
        """Below the smallest effect worth having."""
        return (self.worth, math.inf) if self.worth else None

    @classmethod
    def region(cls, margin: float | None, paper: float | None) -> Region:
        """All that lies above minus the margin."""
        return EVERYWHERE if margin is None else (-margin, math.inf)

    @classmethod
    def rule(cls, verdict: Verdict) -> str:
        """Name the threshold and the effect worth having."""
        least = with_unit(limit(verdict.region[0]), verdict.unit)
        if verdict.worth is None:
            return f"Holds where {quantity(verdict)} is above {least}."
        worth = with_unit(limit(verdict.worth), verdict.unit)
        return (
            f"Holds where all of the interval is above {least} and some of it above {worth}, the smallest "
            "effect worth having; contradicted where all of it is below that."
        )

    @classmethod
    def reason(cls, verdict: Verdict) -> str:
        """Tell a difference too small to matter from one that goes the other way."""
        if verdict.worth is None or verdict.high is None or verdict.high < 0:
            return ""
        return "no difference worth having"
