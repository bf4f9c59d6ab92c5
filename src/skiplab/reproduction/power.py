"""Power: what a number of runs can see, before a run and for what stayed undecided after it.

Both need the spread of a row's statistic, the standard error times √runs, which an earlier run has measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from skiplab.reproduction.kinds.base import UNDECIDED
from skiplab.reproduction.verdict import Verdict

ENOUGH = 0.8  # of studies that would see an effect that is there
MOST_RUNS = 100_000  # more is no remedy


@dataclass(frozen=True)
class Power:
    """The probability that a row of a claim holds if the effect worth having (or the paper's value) is true."""

    claim: str
    condition: str
    effect: float
    unit: str
    runs: int
    power: float


def power(effect: float, spread: float, runs: int, level: float, *, two_sided: bool = False) -> float:
    """The probability that the interval leaves out a threshold that lies ``effect`` away from the truth.

    Student's t with runs − 1 degrees of freedom. ``two_sided``: the interval must leave out thresholds on both
    sides, as in an equivalence test.
    """
    from scipy import stats

    if runs < 2:
        return 0.0
    if spread == 0:
        return 1.0
    degrees = runs - 1
    quantile = stats.t.isf(level / 2, degrees)
    found = float(stats.nct.sf(quantile, degrees, effect * math.sqrt(runs) / spread))
    return max(2 * found - 1, 0.0) if two_sided else found


def effect_of(row: Verdict) -> float | None:
    """How far the truth that a claim states lies from its nearest threshold; None where it states no such truth."""
    if row.worth is not None:
        return row.worth
    if row.margin is None or row.margin <= 0 or not row.meaning.statistical:
        return None
    return row.margin


def foreseen(rows: Sequence[Verdict], runs: int | None = None) -> list[Power]:
    """The power of each headline row of an earlier run, for as many runs or for another number of them."""
    found = []
    for row in rows:
        effect = effect_of(row)
        if not row.headline or effect is None or row.spread is None or row.level is None:
            continue
        count = runs or row.runs
        both = all(map(math.isfinite, row.region))
        chance = power(effect, row.spread, count, row.level, two_sided=both)
        found.append(Power(row.claim, row.condition, effect, row.unit, count, chance))
    return found


def runs_to_settle(row: Verdict) -> int | None:
    """The runs that would settle an undecided row if statistic and spread stayed as they are; None if none would."""
    from scipy import stats

    if row.verdict != UNDECIDED or None in (row.statistic, row.spread, row.level):
        return None
    assert row.level is not None
    reach, spread = _reach(row), row.spread or 0.0
    if reach <= 0 or spread == 0:
        return None
    runs = max(row.runs, 2)
    while runs <= MOST_RUNS:
        needed = (float(stats.t.isf(row.level / 2, runs - 1)) * spread / reach) ** 2
        if needed < runs:
            return runs
        runs = max(runs + 1, math.ceil(needed))
    return None


def _reach(row: Verdict) -> float:
    """The largest half-width at which an interval around the statistic settles the row."""
    assert row.statistic is not None
    low, high = row.region
    inside = min(row.statistic - low, high - row.statistic)
    refuted_below = (
        low if row.worth is None else row.meaning.region(row.margin, row.paper_value)[0] + row.worth
    )
    outside = max(refuted_below - row.statistic, row.statistic - high)
    return max(inside, outside)
