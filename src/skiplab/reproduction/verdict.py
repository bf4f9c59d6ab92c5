"""From a study's table to verdicts: each claim tested in each condition, Holm over a study's headlines.

A statistical claim is a region of its statistic. It holds if the interval lies inside the region, is
contradicted if the interval lies outside, and is undecided if the interval touches an end of the region.
The interval inverts the very test whose p-value Holm judged, at the level Holm used, so test and interval
always say the same.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from skiplab.checks import Refused, at_least, one_of, require
from skiplab.reproduction import statistics
from skiplab.reproduction.claim import Claim, Equivalent, Evidence, Exact, Greater, Kind, Ordered, Value
from skiplab.reproduction.statistics import Array, Region, StudentTest
from skiplab.reproduction.study import Study

HOLDS, CONTRADICTED, UNDECIDED = "holds", "contradicted", "undecided"
LEAST_RUNS = 5  # design.md, idea 5
LARGEST = 1e150  # squares of larger numbers overflow, so such runs count as diverged

# How many samples each kind takes.
SAMPLES = {Greater: (1, 2), Ordered: (2, math.inf), Equivalent: (1, 2), Value: (1, 1), Exact: (1, math.inf)}


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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as strict JSON takes them."""
        return {**dataclasses.asdict(self), "means": list(self.means)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Verdict:
        """Rebuild a verdict from ``to_dict``; fields of a later skiplab are ignored."""
        known = {field.name: field for field in dataclasses.fields(cls)}
        missing = [name for name, field in known.items() if name not in fields and _is_required(field)]
        require(not missing, f"A stored verdict lacks {', '.join(missing)}; run the study's check again.")
        return cls(**{name: value for name, value in fields.items() if name in known})


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class _Row:
    """A claim in one condition before Holm: either a test and its region, or a settled verdict."""

    claim: Claim
    evidence: Evidence
    samples: list[Array]
    statistic: float
    margin: float | None
    notes: tuple[str, ...]
    test: StudentTest | None = None
    region: Region = (-math.inf, math.inf)
    settled: str = UNDECIDED
    low: float = math.nan
    high: float = math.nan


def judge(study: Study, table: Any, settings: Any, scale: str, alpha: float | None = None) -> list[Verdict]:
    """Judge every claim of a study in every condition.

    Headline rows are one family, with a familywise error of at most alpha, and further rows are another: what is
    looked at besides must not change what is said of the claims. A family is its rows that have a test: not exact
    claims, ranges, or rows with too few or diverged runs.
    """
    rows = [
        _row(study.id, claim, evidence)
        for claim in study.claims
        for evidence in claim.evidence(table, settings)
    ]
    alpha = study.alpha if alpha is None else alpha
    headlines = _tested([row for row in rows if row.evidence.headline], alpha)
    further = _tested([row for row in rows if not row.evidence.headline], alpha)
    return [
        _verdict(study.id, scale, row, next(headlines if row.evidence.headline else further)) for row in rows
    ]


def _tested(rows: list[_Row], alpha: float) -> Iterator[_Tested | None]:
    """What Holm's procedure says of a family, row by row; None for rows without a test."""
    pairs = [statistics.opposing_p_values(row.test, row.region) for row in rows if row.test is not None]
    p_values = [statistics.two_sided(*pair) for pair in pairs]
    levels, adjusted = statistics.holm_levels(p_values, alpha)
    tested = map(_Tested, pairs, p_values, levels.tolist(), adjusted.tolist())
    return (None if row.test is None else next(tested) for row in rows)


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
    low, high = row.low, row.high
    if row.test is not None and tested is not None:
        low, high = statistics.inverted(row.test, row.region, tested.level)
    return Verdict(
        study=study,
        claim=row.claim.id,
        condition=row.evidence.condition,
        verdict=row.settled if tested is None else tested.verdict,
        statistic=row.statistic,
        low=low,
        high=high,
        margin=row.margin,
        p=None if tested is None else tested.p,
        p_adjusted=None if tested is None else tested.p_adjusted,
        level=None if tested is None else tested.level,
        paper_value=row.evidence.paper_value,
        runs=min(len(sample) for sample in row.samples),
        scale=scale,
        kind=type(row.claim.kind).__name__.lower(),
        text=row.claim.text,
        unit=row.claim.unit,
        headline=row.evidence.headline,
        detail="; ".join(note for note in (row.evidence.detail, *row.notes) if note),
        means=tuple(
            statistics.mean_of(sample) if _diverged([sample]) == 0 else None for sample in row.samples
        ),
    )


def _row(study: str, claim: Claim, evidence: Evidence) -> _Row:
    """Turn evidence into a test, or into a settled verdict where no test applies."""
    where = f"claim {claim.id!r} of {study} in condition {evidence.condition!r}"
    samples = [statistics.numbers(sample) for sample in evidence.samples]
    kind = claim.kind
    _check(where, kind, evidence, len(samples))
    margin = _margin(kind, evidence)
    if isinstance(kind, Exact):
        return _exact(claim, evidence, samples, kind.rounding)
    runs, diverged = min(len(sample) for sample in samples), _diverged(samples)
    if diverged:
        total = sum(len(sample) for sample in samples)
        note = f"{diverged} of {total} runs were not finite"
        return _Row(claim, evidence, samples, math.nan, margin, (note,))
    if runs == 0:
        return _Row(claim, evidence, samples, math.nan, margin, ("a sample has no runs",))
    notes = _adjacent(samples) if isinstance(kind, Ordered) else ()
    if runs < LEAST_RUNS:
        notes = (*notes, f"{runs} runs, but a verdict needs {LEAST_RUNS}")
        return _Row(claim, evidence, samples, _estimate(kind, samples), margin, notes)
    if isinstance(kind, Value) and kind.spread == "range":
        return _range(claim, evidence, samples, margin)
    test, region = _test(kind, samples, evidence.paper_value, margin)
    return _Row(claim, evidence, samples, test.estimate, margin, notes, test, region)


def _test(
    kind: Kind, samples: list[Array], paper: float | None, margin: float | None
) -> tuple[StudentTest, Region]:
    """Return the test of a kind and the open region of its statistic in which the claim holds."""
    if isinstance(kind, Ordered):
        return statistics.jonckheere(samples), (0.5, math.inf)
    assert margin is not None
    test = statistics.one_sample(samples[0]) if len(samples) == 1 else statistics.welch(*samples)
    if isinstance(kind, Greater):
        return test, (-margin, math.inf)
    if isinstance(kind, Equivalent):
        return test, (-margin, margin)
    assert paper is not None
    # "Within" includes the ends: in floating point that is the open interval one step wider.
    return test, (math.nextafter(paper - margin, -math.inf), math.nextafter(paper + margin, math.inf))


def _exact(claim: Claim, evidence: Evidence, samples: list[Array], rounding: float) -> _Row:
    values = np.abs(np.concatenate(samples))
    if values.size == 0:
        return _Row(claim, evidence, samples, math.nan, rounding, ("there are no numbers to check",))
    worst = float(values.max())  # NaN if any is NaN, and then no comparison holds
    lost = int(np.count_nonzero(~np.isfinite(values)))
    notes = (f"{lost} of {values.size} numbers are not finite",) if lost else ()
    settled = HOLDS if worst <= rounding and not lost else CONTRADICTED
    return _Row(claim, evidence, samples, worst, rounding, notes, settled=settled, low=worst, high=worst)


def _range(claim: Claim, evidence: Evidence, samples: list[Array], margin: float | None) -> _Row:
    paper = evidence.paper_value
    assert paper is not None
    assert margin is not None
    low, high = float(samples[0].min()), float(samples[0].max())
    settled = HOLDS if paper - margin <= high and low <= paper + margin else CONTRADICTED
    notes = ("the interval is the range of the runs",)
    mean = statistics.mean_of(samples[0])
    return _Row(claim, evidence, samples, mean, margin, notes, settled=settled, low=low, high=high)


def _margin(kind: Kind, evidence: Evidence) -> float | None:
    if isinstance(kind, Value):
        assert evidence.paper_value is not None
        return kind.tolerance * abs(evidence.paper_value)
    if isinstance(kind, Exact):
        return kind.rounding
    return None if isinstance(kind, Ordered) else kind.margin


def _estimate(kind: Kind, samples: list[Array]) -> float:
    if isinstance(kind, Ordered):
        return statistics.superiority(samples)
    means = [statistics.mean_of(sample) for sample in samples]
    return means[0] - means[1] if len(means) == 2 else means[0]


def _adjacent(samples: list[Array]) -> tuple[str, ...]:
    steps = np.diff([statistics.mean_of(sample) for sample in samples])
    return ("adjacent differences of means " + ", ".join(f"{step:+.3g}" for step in steps),)


def _diverged(samples: Iterable[Array]) -> int:
    # NaN fails every comparison, so this counts NaN, infinities and what would overflow.
    return sum(int(np.count_nonzero(~(np.abs(sample) < LARGEST))) for sample in samples)


def _check(where: str, kind: Kind, evidence: Evidence, count: int) -> None:
    """Refuse a declaration or evidence that no test could judge."""
    least, most = SAMPLES[type(kind)]
    if not least <= count <= most:
        wanted = f"{least} to {most}" if least != most else f"{least}"
        wanted = f"at least {least}" if math.isinf(most) else wanted
        raise Refused(f"{where} gives {count} samples, but {type(kind).__name__} takes {wanted}.")
    if isinstance(kind, Greater):
        require(math.isfinite(kind.margin), f"{where} has margin {kind.margin}; give a finite one.")
    elif isinstance(kind, Equivalent):
        require(
            0 < kind.margin < math.inf, f"{where} has margin {kind.margin}; equivalence needs a positive one."
        )
    elif isinstance(kind, Value):
        one_of(f"Spread of {where}", kind.spread, ("mean", "range"))
        at_least(f"Tolerance of {where}", kind.tolerance, 0.0)
        paper = evidence.paper_value
        require(
            paper is not None and math.isfinite(paper),
            f"{where} has paper_value {paper}, but a Value claim needs the paper's number.",
        )
    elif isinstance(kind, Exact):
        at_least(f"Rounding of {where}", kind.rounding, 0.0)
