"""What a paper says, as statements that can hold, be contradicted, or stay undecided.

What the five kinds of statement mean stands in ``kinds``, one file each. Margins are written before the run: one
point of accuracy or 10 % of the paper's value unless the item says otherwise. A declaration imports neither numpy
nor scipy.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from skiplab.checks import one_of
from skiplab.reproduction.kinds import Equivalent, Exact, Greater, Kind, Ordered, Value

# A study declares claims with one import.
__all__ = ["SOURCES", "Claim", "Equivalent", "Evidence", "Exact", "Greater", "Kind", "Ordered", "Value"]

SOURCES = ("paper", "caption", "ours")  # who says it: the paper's text, a figure's caption, or we


@dataclass(frozen=True)
class Evidence:
    """The numbers behind a claim in one condition: samples over independent runs, in the claim's order."""

    condition: str
    samples: Sequence[Any]  # each a sequence of numbers; a declaration must not import numpy to say so
    paper_value: float | None = None
    headline: bool = True  # False: a further row, such as another initial gain
    detail: str = ""


@dataclass(frozen=True)
class Claim:
    """One statement; ``evidence(results)`` draws its numbers from what the study's trials left.

    Where ``kind``, ``unit`` or ``source`` is None, the study's own stands in; the claims of a study have them all.
    """

    id: str
    text: str
    evidence: Callable[..., Iterable[Evidence]] = field(repr=False)
    kind: Kind | None = None
    unit: str | None = None
    source: str | None = None

    def filled(self, kind: Kind, unit: str, source: str) -> Claim:
        """Return the claim with a study's defaults where it leaves something open."""
        return dataclasses.replace(
            self,
            kind=kind if self.kind is None else self.kind,
            unit=unit if self.unit is None else self.unit,
            source=one_of(f"Source of claim {self.id!r}", self.source or source, SOURCES),
        )
