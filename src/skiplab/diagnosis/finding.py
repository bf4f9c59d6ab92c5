"""What a diagnosis says: a finding with its evidence, the papers it rests on, and what would help."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

SEVERITIES = ("severe", "warning", "info")  # the worst first
WHOLE = "the network"  # in words, where a network that is one layer has no name for it
MARKS = {"severe": "✗", "warning": "!", "info": "·"}


@dataclass(frozen=True)
class Finding:
    """One trouble, or one fact worth knowing, of a network.

    ``where`` names layers, the one to look at first, and is empty where the whole network is meant. ``statistic``
    lies between ``low`` and ``high``, NaN where there is none. ``reference`` says what other networks have and how
    that is known, ``support`` what our own verdicts say of the paper's claim; ``remedy`` are ids of
    ``skiplab.remedies``. ``weight`` ranks findings of one severity: by how many natural logarithms the statistic is
    over its limit.
    ``usual`` are the ends of the range that ``reference`` speaks of, infinite where it has one end alone, NaN where
    there is no range. ``told_by`` are the examinations without which the finding could not be made.
    """

    id: str
    severity: str
    where: tuple[str, ...]
    words: str
    statistic: float
    unit: str
    reference: str
    paper: str
    remedy: tuple[str, ...] = ()
    support: str = ""
    low: float = math.nan
    high: float = math.nan
    weight: float = 0.0
    usual: tuple[float, float] = (math.nan, math.nan)
    told_by: tuple[str, ...] = ()

    @property
    def rank(self) -> tuple[int, float]:
        """What findings are sorted by: severity, then weight."""
        return SEVERITIES.index(self.severity), -self.weight

    def to_dict(self) -> dict[str, Any]:
        """The finding as JSON has it; numbers that are not finite are written as null."""
        names = ("id", "severity", "where", "words", "unit", "reference", "paper", "support", "remedy")
        found = {name: getattr(self, name) for name in names}
        found |= {"where": list(self.where), "remedy": list(self.remedy)}
        numbers = {name: getattr(self, name) for name in ("statistic", "low", "high")}
        numbers |= {"usual_low": self.usual[0], "usual_high": self.usual[1]}
        return found | {name: value if math.isfinite(value) else None for name, value in numbers.items()}


def ranked(findings: list[Finding]) -> tuple[Finding, ...]:
    """The worst first; of one id and place the worst alone."""
    kept: dict[tuple[str, tuple[str, ...]], Finding] = {}
    for finding in sorted(findings, key=lambda each: each.rank):
        kept.setdefault((finding.id, finding.where[:1]), finding)
    return tuple(kept.values())
