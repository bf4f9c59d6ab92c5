"""From a study's table to verdicts: each claim tested in each condition, Holm over a study's headlines.

A statistical claim is a region of its statistic. It holds if the interval lies inside the region, is
contradicted if the interval lies outside, and is undecided if the interval touches an end of the region.
The interval inverts the very test whose p-value Holm judged, at the level Holm used, so test and interval
always say the same. Which region, which test and in which words is the kind's own: see ``kinds``.

The store reads verdicts for every command, so numpy and scipy are imported only where something is judged.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.checks import one_of, require
from skiplab.reproduction.claim import Claim, Evidence, Kind
from skiplab.reproduction.kinds import Finding, named
from skiplab.reproduction.kinds.base import CONTRADICTED, HOLDS, UNDECIDED, Region
from skiplab.reproduction.results import Results
from skiplab.reproduction.study import Study

if TYPE_CHECKING:
    from skiplab.reproduction.statistics import Array

VERDICTS = (HOLDS, CONTRADICTED, UNDECIDED)


@dataclass(frozen=True)
class Verdict:
    """One row of the scoreboard: a claim in one condition.

    ``level`` is the probability of error at which Holm tested the row, and [low, high] has coverage
    1 − level. A number that does not exist is None: the p-value of an exact claim, the interval of too few
    runs, an interval's end at infinity, a mean over diverged runs.
    """

    study: str
    claim: str
    condition: str
    verdict: str
    statistic: float | None
    low: float | None
    high: float | None
    margin: float | None
    p: float | None
    p_adjusted: float | None
    level: float | None
    paper_value: float | None
    runs: int
    scale: str
    kind: str
    text: str
    unit: str = ""
    headline: bool = True
    detail: str = ""
    means: tuple[float | None, ...] = ()
    stale: bool = False

    def __post_init__(self) -> None:
        for name in ("statistic", "low", "high", "margin", "p", "p_adjusted", "level", "paper_value"):
            object.__setattr__(self, name, _finite(getattr(self, name)))
        object.__setattr__(self, "means", tuple(_finite(mean) for mean in self.means))

    @property
    def meaning(self) -> type[Kind]:
        """The kind of claim, which knows its region, words and drawing."""
        return named(self.kind)

    @property
    def region(self) -> Region:
        """The statistic's values for which the claim holds; an end may be infinite."""
        return self.meaning.region(self.margin, self.paper_value)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as strict JSON takes them."""
        return {**dataclasses.asdict(self), "means": list(self.means)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Verdict:
        """Rebuild a verdict from ``to_dict``; fields of a later skiplab are ignored, new kinds of claim refused."""
        known = {field.name: field for field in dataclasses.fields(cls)}
        missing = [name for name, field in known.items() if name not in fields and _is_required(field)]
        require(not missing, f"a stored verdict lacks {', '.join(missing)}.")
        one_of("Verdict", fields["verdict"], VERDICTS)
        named(fields["kind"])
        return cls(**{name: value for name, value in fields.items() if name in known})


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class _Row:
    """A claim in one condition before Holm."""

    claim: Claim
    kind: Kind
    evidence: Evidence
    samples: list[Array]
    finding: Finding


def judge(study: Study, results: Results, scale: str) -> list[Verdict]:
    """Judge every claim of a study in every condition.

    Headline rows are one family, with a familywise error of at most alpha, and further rows are another: what is
    looked at besides must not change what is said of the claims. A family is its rows that have a test: not exact
    claims, ranges, or rows with too few or diverged runs.
    """
    rows = [_row(study.id, claim, evidence) for claim in study.claims for evidence in claim.evidence(results)]
    headlines = _tested([row for row in rows if row.evidence.headline], study.alpha)
    further = _tested([row for row in rows if not row.evidence.headline], study.alpha)
    return [
        _verdict(study.id, scale, row, next(headlines if row.evidence.headline else further)) for row in rows
    ]


def _tested(rows: list[_Row], alpha: float) -> Iterator[_Tested | None]:
    """What Holm's procedure says of a family, row by row; None for rows without a test."""
    from skiplab.reproduction import statistics

    findings = [row.finding for row in rows]
    pairs = [
        statistics.opposing_p_values(each.test, each.region) for each in findings if each.test is not None
    ]
    p_values = [statistics.two_sided(*pair) for pair in pairs]
    levels, adjusted = statistics.holm_levels(p_values, alpha)
    tested = map(_Tested, pairs, p_values, levels.tolist(), adjusted.tolist())
    return (None if each.test is None else next(tested) for each in findings)


@dataclass(frozen=True)
class _Tested:
    """What its family's tests said of one row."""

    pair: tuple[float, float]
    p: float
    level: float
    p_adjusted: float

    @property
    def verdict(self) -> str:
        holds, contradicted = self.pair
        if holds <= self.level / 2:
            return HOLDS
        return CONTRADICTED if contradicted <= self.level / 2 else UNDECIDED


def _verdict(study: str, scale: str, row: _Row, tested: _Tested | None) -> Verdict:
    from skiplab.reproduction import statistics

    found, evidence = row.finding, row.evidence
    low, high = found.low, found.high
    if found.test is not None and tested is not None:
        low, high = statistics.inverted(found.test, found.region, tested.level)
    return Verdict(
        study=study,
        claim=row.claim.id,
        condition=evidence.condition,
        verdict=found.settled if tested is None else tested.verdict,
        statistic=found.statistic,
        low=low,
        high=high,
        margin=found.margin,
        p=None if tested is None else tested.p,
        p_adjusted=None if tested is None else tested.p_adjusted,
        level=None if tested is None else tested.level,
        paper_value=evidence.paper_value,
        runs=min(len(sample) for sample in row.samples),
        scale=scale,
        kind=row.kind.name(),
        text=row.claim.text,
        unit=row.claim.unit or "",
        headline=evidence.headline,
        detail="; ".join(note for note in (evidence.detail, *found.notes) if note),
        means=tuple(
            None if statistics.diverged([sample]) else statistics.mean_of(sample) for sample in row.samples
        ),
    )


def _row(study: str, claim: Claim, evidence: Evidence) -> _Row:
    from skiplab.reproduction import statistics

    assert claim.kind is not None, "the claims of a study are filled"
    samples = [statistics.numbers(sample) for sample in evidence.samples]
    where = f"claim {claim.id!r} of {study} in condition {evidence.condition!r}"
    claim.kind.check(where, len(samples), evidence.paper_value)
    return _Row(claim, claim.kind, evidence, samples, claim.kind.find(samples, evidence.paper_value))
