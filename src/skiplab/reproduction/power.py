"""Power: what a number of runs can see, before a run and for what stayed undecided after it.

Both need the spread of a row's statistic, the standard error times √runs, which an earlier run has measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction.kinds.base import UNDECIDED

if TYPE_CHECKING:
    from skiplab.reproduction.verdict import Verdict

ENOUGH = 0.8  # of studies that would see an effect that is there
MOST_RUNS = 1_000  # more is no remedy: nobody makes them


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


def foreseen(rows: Sequence[Verdict], declared: int | None = None, planned: int | None = None) -> list[Power]:
    """The power of each claim's least powerful headline row, from the spread that an earlier run found.

    Rows of that run which had its ``declared`` number of runs will have the ``planned`` one, all others as many as
    they had.
    """
    found: dict[str, Power] = {}
    for row in rows:
        effect = effect_of(row)
        if not row.headline or effect is None or row.spread is None or row.level is None:
            continue
        runs = planned if planned is not None and row.runs == declared else row.runs
        both = all(map(math.isfinite, row.region))
        chance = power(effect, row.spread, runs, row.level, two_sided=both)
        if row.claim not in found or chance < found[row.claim].power:
            found[row.claim] = Power(row.claim, row.condition, effect, row.statistic_unit, runs, chance)
    return list(found.values())


def smallest_seen(runs: int, level: float = 0.05) -> float:
    """The effect, in standard deviations, that so many runs see with enough power; ∞ below two runs."""
    from scipy.optimize import brentq

    if runs < 2:
        return math.inf
    return float(brentq(lambda effect: power(effect, 1.0, runs, level) - ENOUGH, 1e-6, 1e3))


def runs_to_settle(row: Verdict) -> int | None:
    """The runs that would settle an undecided row if statistic and spread stayed as they are; None beyond 1,000."""
    from scipy import stats

    if row.verdict != UNDECIDED or None in (row.statistic, row.spread, row.level):
        return None
    assert row.level is not None
    reach, spread = _reach(row), row.spread or 0.0
    if reach <= 0 or spread == 0:
        return None
    level = row.level

    def settled(runs: int) -> bool:
        return float(stats.t.isf(level / 2, runs - 1)) * spread / math.sqrt(runs) < reach

    # Half-widths shrink with every run, so the least number is found by halving.
    fewer, enough = 1, max(row.runs, MOST_RUNS)
    if not settled(enough):
        return None
    while enough - fewer > 1:
        middle = (fewer + enough) // 2
        fewer, enough = (fewer, middle) if settled(middle) else (middle, enough)
    return enough


def _reach(row: Verdict) -> float:
    """The largest half-width at which an interval around the statistic settles the row."""
    assert row.statistic is not None
    low, high = row.region
    inside = min(row.statistic - low, high - row.statistic)
    outside = max(row.refuted_below - row.statistic, row.statistic - high)
    return max(inside, outside)
