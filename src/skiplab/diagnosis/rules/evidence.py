"""How a rule says what it found: with what other networks have, the paper, and what our verdicts say of it."""

from __future__ import annotations

import math
from collections.abc import Sequence

from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.references import references
from skiplab.diagnosis.thresholds import Grade, Limits

PAPERS = {
    "dead-layer": "orhan2018",
    "dead-units": "orhan2018",
    "zero-weights": "orhan2017",
    "duplicated-units": "orhan2018",
    "exploding-branch": "balduzzi2017",
    "vanishing-gradients": "orhan2017",
    "exploding-gradients": "balduzzi2017",
    "vanishing-signals": "orhan2017",
    "exploding-signals": "balduzzi2017",
    "shattered-gradients": "balduzzi2017",
    "degenerate-curvature": "orhan2018",
    "negative-curvature": "orhan2018",
    "dependent-units": "orhan2018",
    "overlapping-weights": "orhan2018",
    "noise-sensitive": "yu2019",
    "gradient-leaks": "yu2019",
    "shallow-paths": "littwin2017",
    "deep-paths": "littwin2017",
    "symmetric-units": "orhan2017",
}  # those that no paper speaks of have none


def finding(
    id: str,
    grade: Grade,
    where: Sequence[str],
    words: str,
    statistic: float,
    unit: str,
    *,
    limits: Limits | None = None,
    reference: str = "",
    quantity: str = "",
    remedy: Sequence[str] = (),
    low: float = math.nan,
    high: float = math.nan,
) -> Finding:
    """A finding with what is known of its id; a statistic without an interval is exact on these samples.

    ``quantity`` names what published runs have of the very same statistic.
    """
    words_of_others = limits.words if limits is not None else reference
    known = [words_of_others] if words_of_others else []
    if quantity:
        known.append(f"of our published runs {references().quantities[quantity].reference}")
    support = references().support[id]
    exact = math.isnan(low) and math.isnan(high)
    return Finding(
        id,
        grade.severity,
        tuple(dict.fromkeys(where)),
        words,
        statistic,
        unit,
        "; ".join(known),
        PAPERS.get(id, ""),
        tuple(remedy) if grade.is_bad else (),
        f"{support.words} ({support.count})" if support.claims else support.words,
        statistic if exact else low,
        statistic if exact else high,
        grade.weight,
        (math.nan, math.nan) if limits is None else limits.usual,
    )
