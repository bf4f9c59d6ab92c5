"""What every kind of claim must say: its samples, margin, region, test, words and drawing.

A kind is met twice. When a run is judged, it is an object with settings (a margin, a tolerance) that turns samples
into a ``Finding``. When a verdict is shown, perhaps years later, only the kind's name, the margin and the paper's
value are stored; so whatever pages and drawings need is a class method of those.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from skiplab.checks import Refused

if TYPE_CHECKING:
    from skiplab.reproduction.statistics import Array, Test
    from skiplab.reproduction.verdict import Verdict

HOLDS, CONTRADICTED, UNDECIDED = "holds", "contradicted", "undecided"
LEAST_RUNS = 5  # design.md, idea 5
NO_RUNS = "there are no such runs"

Region = tuple[float, float]  # an open interval of the statistic; an end may be infinite
EVERYWHERE: Region = (-math.inf, math.inf)


@dataclass(frozen=True)
class Finding:
    """What a kind makes of one condition's samples: a test of its regions, or a settled verdict where none applies.

    The claim holds where the interval lies inside ``region`` and is contradicted where it lies outside ``refuted``
    (None: the region itself). ``settled`` is the verdict where the test says neither.
    """

    statistic: float
    margin: float | None
    notes: tuple[str, ...] = ()
    test: Test | None = None
    region: Region = EVERYWHERE
    refuted: Region | None = None
    settled: str = UNDECIDED
    low: float = math.nan
    high: float = math.nan


class Kind(ABC):
    """One kind of claim. The defaults are those of a claim about the mean of a sample, or the difference of two."""

    takes: ClassVar[tuple[float, float]] = (1, 2)  # the least and the largest number of samples
    statistical: ClassVar[bool] = True  # False: tables show neither runs nor p-values
    shares_axis: ClassVar[bool] = True  # whether a claim's rows are drawn on one scale

    @classmethod
    def name(cls) -> str:
        """The kind's name in stored verdicts."""
        return cls.__name__.lower()

    @classmethod
    def of_statistic(cls, unit: str) -> str:
        """The statistic's unit, from the unit of the samples."""
        return unit

    # Judging --------------------------------------------------------------------------------------------

    def check(self, where: str, count: int, paper: float | None) -> None:
        """Refuse settings or evidence that could not be judged; ``where`` names the claim and its condition."""
        least, most = self.takes
        if not least <= count <= most:
            wanted = f"{least} to {most}" if least != most else f"{least}"
            wanted = f"at least {least}" if math.isinf(most) else wanted
            raise Refused(f"{where} gives {count} samples, but {type(self).__name__} takes {wanted}.")

    @abstractmethod
    def margin_for(self, paper: float | None) -> float | None:
        """The margin in the unit of the statistic, or None where the kind has none."""

    def worth_having(self) -> float | None:
        """The smallest effect worth having, in the unit of the statistic, where the kind has one."""
        return None

    def find(self, samples: Sequence[Array], paper: float | None, paired: bool = False) -> Finding:
        """Turn samples into a finding; diverged, missing or too few runs leave it undecided.

        ``paired``: run i of every sample shares a seed.
        """
        from skiplab.reproduction import statistics

        margin = self.margin_for(paper)
        runs, diverged = min(len(sample) for sample in samples), statistics.diverged(samples)
        if diverged:
            total = sum(len(sample) for sample in samples)
            return Finding(math.nan, margin, (f"{diverged} of {total} runs were not finite",))
        if runs == 0:
            return Finding(math.nan, margin, (NO_RUNS,))
        if runs < LEAST_RUNS:
            few = f"{runs} runs, but a verdict needs {LEAST_RUNS}"
            return Finding(self.estimate(samples), margin, (*self.notes(samples), few))
        return self.decide(samples, margin, paper, paired)

    def decide(
        self, samples: Sequence[Array], margin: float | None, paper: float | None, paired: bool
    ) -> Finding:
        """Test enough finite runs against the region."""
        test, region = self.test(samples, paired), self.tested_region(margin, paper)
        refuted = self.refuted_region(margin, paper)
        return Finding(test.estimate, margin, self.notes(samples), test, region, refuted)

    def test(self, samples: Sequence[Array], paired: bool) -> Test:
        """The test whose inversion is the interval shown: Welch's across independent draws, else Student's."""
        from skiplab.reproduction import statistics

        if len(samples) == 1:
            return statistics.one_sample(samples[0])
        return statistics.paired(*samples) if paired else statistics.welch(*samples)

    def estimate(self, samples: Sequence[Array]) -> float:
        """The statistic of samples too small to test."""
        from skiplab.reproduction import statistics

        means = [statistics.mean_of(sample) for sample in samples]
        return means[0] - means[1] if len(means) == 2 else means[0]

    def notes(self, samples: Sequence[Array]) -> tuple[str, ...]:
        """What else a reader should know of the samples."""
        return ()

    def tested_region(self, margin: float | None, paper: float | None) -> Region:
        """The open interval that is tested: the region, which for most kinds is open itself."""
        return self.region(margin, paper)

    def refuted_region(self, margin: float | None, paper: float | None) -> Region | None:
        """Outside of which the claim is contradicted, where that is not the tested region."""
        return None

    # Showing --------------------------------------------------------------------------------------------

    @classmethod
    @abstractmethod
    def region(cls, margin: float | None, paper: float | None) -> Region:
        """The values of the statistic for which the claim holds, as they are shaded; all where none is known."""

    @classmethod
    @abstractmethod
    def rule(cls, verdict: Verdict) -> str:
        """Say where a claim of this kind holds, in the unit of its statistic."""

    @classmethod
    def reason(cls, verdict: Verdict) -> str:
        """Why a contradicted row is contradicted, where the region alone does not say so."""
        return ""

    @classmethod
    def marks(cls, verdict: Verdict) -> tuple[float, ...]:
        """The values that a drawing marks beside region and interval."""
        return ()

    @classmethod
    def written_interval(cls, interval: str) -> str:
        """What a table in a terminal writes as the interval."""
        return interval

    @classmethod
    def written_runs(cls, runs: int) -> str:
        """What a table in a terminal writes as the number of runs."""
        return str(runs)


def quantity(verdict: Verdict) -> str:
    """What a claim about means looks at, in words."""
    return "the difference of means" if len(verdict.means) == 2 else "the mean"
