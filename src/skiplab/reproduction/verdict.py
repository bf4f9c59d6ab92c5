"""From a study's table to verdicts: each claim tested in each condition, Holm over a study's claims.

A statistical claim is a region of its statistic. In one condition it holds if the interval lies inside the region, is
contradicted if the interval lies outside (or below the smallest effect worth having), and is undecided otherwise.
The interval inverts the very test behind the verdict, at the level that Holm gave the claim, so test and interval
always say the same. Which region, which test and in which words is the kind's own: see ``kinds``. What the conditions
say together is the claim's one verdict: see ``judgement``.

The store reads verdicts for every command, so numpy and scipy are imported only where something is judged.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.checks import one_of, require
from skiplab.reproduction.claim import OURS, Claim, Evidence, Kind
from skiplab.reproduction.kinds import Finding, named
from skiplab.reproduction.kinds.base import CONTRADICTED, HOLDS, NO_RUNS, UNDECIDED, Region
from skiplab.reproduction.power import runs_to_settle
from skiplab.reproduction.results import Results
from skiplab.reproduction.study import Study
from skiplab.reproduction.validation import check_fields

if TYPE_CHECKING:
    from skiplab.reproduction.statistics import Array

VERDICTS = (HOLDS, CONTRADICTED, UNDECIDED)
SIGNS = dict(zip(VERDICTS, "✓✗?", strict=True))
EDGE = (
    "left open: a search ended at the edge of its grid, and one more step might add as much as the last did, "
)
_NUMBERS = (
    "statistic", "low", "high", "margin", "p", "p_adjusted", "level", "paper_value", "worth", "spread",
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """A claim in one condition.

    ``level`` is the probability of error at which the row was tested (Holm's for its claim; alpha for a further row),
    and [low, high] has coverage 1 − level. ``p`` is the row's own, ``p_adjusted`` the claim's after Holm. ``spread``
    is the standard error times the root of the number of runs. A number that does not exist is None: the p-value of
    an exact claim, the interval of too few runs, an interval's end at infinity, a mean over diverged runs.
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
    source: str = ""
    worth: float | None = None
    spread: float | None = None
    paired: bool = False
    needs: int | None = (
        None  # runs that would settle an undecided row, if statistic and spread stayed as they are
    )
    other_scale: bool = False
    missing: str = ""

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            object.__setattr__(self, name, _finite(getattr(self, name)))
        object.__setattr__(self, "means", tuple(_finite(mean) for mean in self.means))

    @property
    def meaning(self) -> type[Kind]:
        """The kind of claim, which knows its region, words and drawing."""
        return named(self.kind)

    @property
    def statistic_unit(self) -> str:
        """The unit of the statistic and its interval, which need not be that of the samples."""
        return self.meaning.of_statistic(self.unit)

    @property
    def ours(self) -> bool:
        """Whether the claim is ours, and so counts neither for nor against the paper."""
        return self.source == OURS

    @property
    def reason(self) -> str:
        """Why a contradicted row is contradicted, where there is more to say."""
        return self.meaning.reason(self) if self.verdict == CONTRADICTED else ""

    @property
    def region(self) -> Region:
        """The statistic's values for which the claim holds; an end may be infinite."""
        return self.meaning.region(self.margin, self.paper_value)

    @property
    def refuted_below(self) -> float:
        """Where an interval that stays below contradicts: the region's end, and the effect worth having above it."""
        return self.region[0] + (self.worth or 0.0)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as strict JSON takes them."""
        return {**dataclasses.asdict(self), "means": list(self.means)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any], *, checked: bool = False) -> Verdict:
        """Rebuild a verdict from ``to_dict``; fields of a later skiplab are ignored, new kinds of claim refused.

        ``checked``: it is known to be as our code wrote it.
        """
        known = _fields()
        if checked:
            return cls(**{name: value for name, value in fields.items() if name in known})
        missing = [name for name, field in known.items() if name not in fields and _is_required(field)]
        require(not missing, f"a stored verdict lacks {', '.join(missing)}.")
        check_fields("a stored verdict", fields, known)
        one_of("Verdict", fields["verdict"], VERDICTS)
        named(fields["kind"])
        return cls(**{name: value for name, value in fields.items() if name in known})


@functools.cache  # the scoreboard reads thousands of rows
def _fields() -> dict[str, dataclasses.Field[Any]]:
    """The fields of a verdict by name."""
    return {field.name: field for field in dataclasses.fields(Verdict)}


def _is_required(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING


def _finite(value: float | None) -> float | None:
    return float(value) if value is not None and math.isfinite(value) else None


@dataclass(frozen=True)
class _Row:
    """A claim in one condition before Holm; ``pair`` has the p-values for and against it, if there is a test."""

    claim: Claim
    kind: Kind
    evidence: Evidence
    samples: list[Array]
    finding: Finding
    pair: tuple[float, float] | None

    def verdict(self, level: float) -> str:
        """What the test says at a level. Against comes first: a difference above 0 may be too small to matter."""
        if self.pair is None:
            return self.finding.settled
        holds, contradicted = self.pair
        if contradicted <= level / 2:
            return CONTRADICTED
        return HOLDS if holds <= level / 2 else self.finding.settled


@dataclass(frozen=True)
class _Level:
    """The probability of error at which Holm tests a claim, and the claim's p-value after Holm."""

    level: float
    p_adjusted: float | None


def judge(study: Study, results: Results, scale: str) -> list[Verdict]:
    """Judge every claim of a study in every condition.

    Claims are Holm-adjusted over the study's claims, the paper's and ours apart, with a familywise error of at most
    alpha. A claim is a conjunction of its headline rows, each tested at the claim's level: so its p-value for is the
    largest of theirs, and against the smallest. Further rows only show how much a condition matters, at alpha.
    Exact claims and rows with too few or diverged runs have no test and take no part in Holm.
    """
    rows = [_row(study.id, claim, evidence) for claim in study.claims for evidence in claim.evidence(results)]
    headlines = [row for row in rows if row.evidence.headline and row.pair is not None]
    levels: dict[str, _Level] = {}
    for ours in (False, True):
        levels |= _levels([row for row in headlines if (row.claim.source == OURS) == ours], study.alpha)
    besides = _Level(study.alpha, None)
    return [
        _verdict(
            study.id, scale, row, levels.get(row.claim.id, besides) if row.evidence.headline else besides
        )
        for row in rows
    ]


def _levels(rows: Sequence[_Row], alpha: float) -> dict[str, _Level]:
    """What Holm's procedure says of a family of claims, by their ids."""
    from skiplab.reproduction import statistics

    pairs: dict[str, list[tuple[float, float]]] = {}
    for row in rows:
        assert row.pair is not None, "only tested rows are adjusted"
        pairs.setdefault(row.claim.id, []).append(row.pair)
    p_values = [
        statistics.two_sided(max(holds for holds, _ in each), min(against for _, against in each))
        for each in pairs.values()
    ]
    levels, adjusted = statistics.holm_levels(p_values, alpha)
    return dict(zip(pairs, map(_Level, levels.tolist(), adjusted.tolist()), strict=True))


def _verdict(study: str, scale: str, row: _Row, at: _Level) -> Verdict:
    from skiplab.reproduction import statistics

    found, evidence = row.finding, row.evidence
    low, high, runs = found.low, found.high, min(len(sample) for sample in row.samples)
    if found.test is not None:
        low, high = statistics.inverted(found.test, (*found.region, *(found.refuted or ())), at.level)
    verdict, notes = row.verdict(at.level), found.notes
    if evidence.detail and notes == (NO_RUNS,):  # the study says why
        notes = ()
    at_an_edge = (
        verdict != UNDECIDED
        and any(evidence.to_gain)
        and not _stands(verdict, found, evidence.to_gain, low, high)
    )
    if at_an_edge:
        brought = " and ".join(f"{step:.3g}" for step in evidence.to_gain)
        verdict, notes = UNDECIDED, (*notes, f"{EDGE}{brought}")
    judged = Verdict(
        study=study,
        claim=row.claim.id,
        condition=evidence.condition,
        verdict=verdict,
        statistic=found.statistic,
        low=low,
        high=high,
        margin=found.margin,
        p=None if row.pair is None else statistics.two_sided(*row.pair),
        p_adjusted=None if row.pair is None else at.p_adjusted,
        level=None if row.pair is None else at.level,
        paper_value=evidence.paper_value,
        runs=runs,
        scale=scale,
        kind=row.kind.name(),
        text=row.claim.text,
        unit=row.claim.unit or "",
        headline=evidence.headline,
        detail="; ".join(note for note in (evidence.detail, *notes) if note),
        means=tuple(
            None if statistics.diverged([sample]) else statistics.mean_of(sample) for sample in row.samples
        ),
        source=row.claim.source or "",
        worth=row.kind.worth_having(),
        spread=None if found.test is None else found.test.error * math.sqrt(runs),
        paired=evidence.paired and len(row.samples) > 1,
        other_scale=evidence.other_scale,
        missing=evidence.missing,
    )
    # More runs at the same gain settle nothing there.
    return judged if at_an_edge else dataclasses.replace(judged, needs=runs_to_settle(judged))


def _stands(verdict: str, found: Finding, to_gain: tuple[float, ...], low: float, high: float) -> bool:
    """Whether a verdict on a difference, first minus second, stays though either gains what it might by tuning."""
    first, second = to_gain
    low, high = low - second, high + first
    least, most = found.refuted or found.region
    if verdict == CONTRADICTED:
        return high < least or low > most
    return found.region[0] < low and high < found.region[1]


def _row(study: str, claim: Claim, evidence: Evidence) -> _Row:
    from skiplab.reproduction import statistics

    assert claim.kind is not None, "the claims of a study are filled"
    samples = [statistics.numbers(sample) for sample in evidence.samples]
    where = f"claim {claim.id!r} of {study} in condition {evidence.condition!r}"
    claim.kind.check(where, len(samples), evidence.paper_value)
    sizes = {len(sample) for sample in samples}
    require(not evidence.paired or len(sizes) == 1, f"{where} pairs samples of {sorted(sizes)} runs.")
    found = claim.kind.find(samples, evidence.paper_value, evidence.paired)
    test, pair = found.test, None
    if test is not None:
        pair = statistics.opposing_p_values(test, found.region, found.refuted)
    return _Row(claim, claim.kind, evidence, samples, found, pair)
