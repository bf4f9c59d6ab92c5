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

from skiplab.checks import Refused
from skiplab.reproduction.kinds import Equivalent, Exact, Greater, Kind, Ordered, Value

# A study declares claims with one import.
__all__ = [
    "NOT_RUN", "NOT_SAID", "OURS", "Claim", "Equivalent", "Evidence", "Exact", "Greater", "Kind", "Ordered", "Value",
]  # fmt: skip

# The source of our own checks, readings and approximations, which count neither for nor against a paper.
OURS = "ours"
# Why a condition of which a claim speaks has no numbers: its run is still to be made, or the paper is silent on it.
NOT_RUN, NOT_SAID = "not run", "not said"
PLACES = (
    "abstract", "appendix", "caption", "corollary", "equation", "figure", "footnote", "lemma", "note", "proposition",
    "remark", "section", "supplement", "table", "theorem",
)  # fmt: skip


@dataclass(frozen=True)
class Evidence:
    """The numbers behind a claim in one condition: samples over independent runs, in the claim's order."""

    condition: str
    samples: Sequence[Any]  # each a sequence of numbers; a declaration must not import numpy to say so
    paper_value: float | None = None
    headline: bool = True  # False: a further row, which shows how much a condition matters and is not judged
    detail: str = ""
    paired: bool = False  # run i of every sample shares a seed, and so initial weights and batches
    # What each sample's mean might gain by a longer search, where the best of its search is the edge of its grid.
    to_gain: tuple[float, ...] = ()
    other_scale: bool = False  # a further row that differs from the headline in the initial scale of weights
    missing: str = ""  # NOT_RUN or NOT_SAID where there are no numbers

    @classmethod
    def without(cls, condition: str, missing: str, why: str, samples: int = 1) -> Evidence:
        """A headline condition without numbers, which leaves its claim open, and why there are none."""
        return cls(condition, [[] for _ in range(samples)], detail=why, missing=missing)


@dataclass(frozen=True)
class Claim:
    """One statement; ``evidence(results)`` draws its numbers from what the study's trials left.

    It gets one verdict: it holds where every headline condition does, and one contradicted condition contradicts it.
    ``source`` says whose it is: a place in the paper ("section 5.1", "caption"), or "ours". Where ``kind``, ``unit``
    or ``source`` is None, the study's own stands in; the claims of a study have them all.
    """

    id: str
    text: str
    evidence: Callable[..., Iterable[Evidence]] = field(repr=False)
    kind: Kind | None = None
    unit: str | None = None
    source: str | None = None

    def filled(self, kind: Kind | None, unit: str, source: str) -> Claim:
        """Return the claim with a study's defaults where it leaves something open."""
        if self.kind is None and kind is None:
            raise Refused(f"claim {self.id!r} has no kind; name one, or one for the whole study.")
        return dataclasses.replace(
            self,
            kind=kind if self.kind is None else self.kind,
            unit=unit if self.unit is None else self.unit,
            source=_source(self.id, self.source or source),
        )


def is_place(source: str) -> bool:
    """Whether words name a place in a paper, such as "sections 3.1 and 5"."""
    return bool(source) and source.split()[0].lower().rstrip(",s") in PLACES


def _source(claim: str, source: str) -> str:
    """A source that names a place in a paper, or us."""
    if source != OURS and not is_place(source):
        places = ", ".join(PLACES)
        raise Refused(
            f"claim {claim!r} has source {source!r}; write 'ours' or a place that starts with {places}."
        )
    return source
