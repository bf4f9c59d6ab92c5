"""Value: a mean is the number that the paper prints."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from skiplab.checks import at_least, one_of, require
from skiplab.reproduction.kinds.base import EVERYWHERE, HOLDS, UNDECIDED, Finding, Kind, Region

if TYPE_CHECKING:
    from skiplab.reproduction.statistics import Array
    from skiplab.reproduction.verdict import Verdict

NOWHERE: Region = (math.inf, -math.inf)  # no rank shows that a value does come from our law


@dataclass(frozen=True)
class Value(Kind):
    """The mean is within ``tolerance`` (relative) of the paper's value; relative to 0 that leaves only 0.

    With ``spread="range"`` each run is an exact answer to a random problem, the paper's value is one more
    such answer, and the question is whether it lies inside our range, widened by the tolerance. Outside n runs it
    has the rank p-value 2/(n + 1), so with fewer than 39 it cannot contradict at .05.
    """

    takes: ClassVar[tuple[float, float]] = (1, 1)
    # A paper's values may differ by orders between conditions.
    shares_axis: ClassVar[bool] = False

    tolerance: float = 0.1
    spread: str = "mean"  # or "range"

    def check(self, where: str, count: int, paper: float | None) -> None:
        """Refuse an unknown spread, a negative tolerance and evidence without the paper's value."""
        super().check(where, count, paper)
        one_of(f"Spread of {where}", self.spread, ("mean", "range"))
        at_least(f"Tolerance of {where}", self.tolerance, 0.0)
        require(
            paper is not None and math.isfinite(paper),
            f"{where} has paper_value {paper}, but a Value claim needs the paper's number.",
        )

    def margin_for(self, paper: float | None) -> float:
        """The tolerance times the size of the paper's value."""
        assert paper is not None
        return self.tolerance * abs(paper)

    def decide(
        self, samples: Sequence[Array], margin: float | None, paper: float | None, paired: bool
    ) -> Finding:
        """Test the mean, or the rank of the paper's value among the runs."""
        if self.spread == "mean":
            return super().decide(samples, margin, paper, paired)
        from skiplab.reproduction import statistics

        test, (least, most) = statistics.RankTest(samples[0]), self.region(margin, paper)
        low, high = test.interval(0.05)
        settled = HOLDS if least <= high and low <= most else UNDECIDED
        notes = ("the interval is the range of the runs",)
        return Finding(test.estimate, margin, notes, test, NOWHERE, (least, most), settled)

    def tested_region(self, margin: float | None, paper: float | None) -> Region:
        """Give way by one floating-point step: "within" includes the ends, and what is tested is open."""
        low, high = self.region(margin, paper)
        return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)

    @classmethod
    def region(cls, margin: float | None, paper: float | None) -> Region:
        """All that lies within the margin of the paper's value."""
        return EVERYWHERE if margin is None or paper is None else (paper - margin, paper + margin)

    @classmethod
    def rule(cls, verdict: Verdict) -> str:
        """Point at the mark; each row has a margin and a value of its own."""
        return "Holds where the mean is within the margin of the paper's value (▾)."

    @classmethod
    def marks(cls, verdict: Verdict) -> tuple[float, ...]:
        """The paper's value."""
        return () if verdict.paper_value is None else (verdict.paper_value,)
