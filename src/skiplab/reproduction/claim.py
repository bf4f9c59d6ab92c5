"""What a paper says, as statements that can hold, be contradicted, or stay undecided.

There are five kinds. Margins are written before the run: one point of accuracy or 10 % of the paper's
value unless the item says otherwise. A declaration imports neither numpy nor scipy; the tests behind each
kind are in verdict.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Greater:
    """The first sample's mean exceeds the second's, or 0 for one sample of differences.

    ``margin`` > 0 weakens it to "not worse by more than the margin" (≥ in the papers); ``margin`` < 0
    demands at least that much more.
    """

    margin: float = 0.0


@dataclass(frozen=True)
class Ordered:
    """The samples rise in the order given: Jonckheere's test of P(later > earlier) + ½ P(equal) > ½."""


@dataclass(frozen=True)
class Equivalent:
    """The means of two samples differ by less than the margin, or one sample's mean is that near 0."""

    margin: float


@dataclass(frozen=True)
class Value:
    """The mean is within ``tolerance`` (relative) of the paper's value; relative to 0 that leaves only 0.

    With ``spread="range"`` each run is an exact answer to a random problem, the paper's value is one more
    such answer, and the question is whether it lies inside our range, widened by the tolerance.
    """

    tolerance: float = 0.1
    spread: str = "mean"  # or "range"


@dataclass(frozen=True)
class Exact:
    """Every number in the sample is 0 up to rounding (violations, differences); no statistics."""

    rounding: float = 0.0


Kind = Greater | Ordered | Equivalent | Value | Exact


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
    """One statement of the paper; ``evidence(table, settings)`` draws its numbers from the study's table."""

    id: str
    text: str
    kind: Kind
    evidence: Callable[[Any, Any], Iterable[Evidence]] = field(repr=False)
    unit: str = ""
