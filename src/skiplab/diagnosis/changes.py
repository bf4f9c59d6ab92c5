"""Two reports beside each other, such as before and after a remedy: what went, came, got better or worse."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from skiplab.diagnosis.finding import MARKS, SEVERITIES, Finding
from skiplab.reproduction import numerals

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.diagnosis.report import Report

GONE, BETTER, SAME, WORSE, NEW, UNKNOWN = "gone", "better", "the same", "worse", "new", "not examined again"
FACT = "a fact"  # information on both sides, or on the one there is: neither better nor worse
ORDER = (NEW, WORSE, SAME, UNKNOWN, BETTER, GONE, FACT)  # what needs a look first
SIGNS = {GONE: "✓", BETTER: "✓", SAME: "=", WORSE: "✗", NEW: "✗", UNKNOWN: "?", FACT: "·"}
MOST_FINDINGS, MOST_NUMBERS, WIDTH = 12, 8, 100


@dataclass(frozen=True)
class Change:
    """One finding in both reports or in one of them; of equal ids and places."""

    kind: str
    before: Finding | None
    after: Finding | None

    @property
    def either(self) -> Finding:
        """The finding as it is now, or as it was."""
        found = self.after or self.before
        assert found is not None
        return found


@dataclass(frozen=True)
class Moved:
    """A quantity of one examination: its middle layer's value with that one's interval, before and after."""

    what: str
    before: tuple[float, float, float]
    after: tuple[float, float, float]

    @property
    def apart(self) -> bool:
        """Whether the two intervals have nothing in common."""
        return _apart(self.before, self.after)


class Changes:
    """What changed from one report to another; ``findings`` has what needs a look first."""

    def __init__(self, before: Report, after: Report) -> None:
        self.before, self.after = before, after
        self.findings = _changed(before, after)
        self.numbers = _moved(before, after)

    def of(self, kind: str) -> tuple[Change, ...]:
        """The findings that are "gone", "better", "the same", "worse", "new", "not examined again" or "a fact"."""
        from skiplab.checks import one_of

        one_of("kind of change", kind, ORDER)
        return tuple(each for each in self.findings if each.kind == kind)

    def to_frame(self) -> pd.DataFrame:
        """One row per finding of either report."""
        import pandas as pd

        rows = [
            {
                "change": each.kind,
                "id": each.either.id,
                "where": ", ".join(each.either.where),
                "unit": each.either.unit,
                **_columns("before", each.before),
                **_columns("after", each.after),
            }
            for each in self.findings
        ]
        names = ["change", "id", "where", "unit", *_columns("before", None), *_columns("after", None)]
        return pd.DataFrame(rows, columns=names)

    def __repr__(self) -> str:
        lines = [self.title]
        told = [_told(each) for each in self.findings[:MOST_FINDINGS]]
        lines += [f"  {line if len(line) <= WIDTH else line[: WIDTH - 1] + '…'}" for line in told]
        if (more := len(self.findings) - MOST_FINDINGS) > 0:
            lines.append(f"  and {more} more: to_frame() has all")
        if self.numbers:
            lines.append("  numbers of the middle layer; * where the intervals have nothing in common")
        lines += [f"    {_number_line(each)}" for each in self.numbers[:MOST_NUMBERS]]
        return "\n".join(lines)

    @property
    def title(self) -> str:
        """The whole in a sentence."""
        counts = {kind: len(self.of(kind)) for kind in ORDER if kind != FACT}
        told = (
            ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "no troubles in either"
        )
        names = (
            f"{self.before.name} → {self.after.name}"
            if self.before.name != self.after.name
            else self.after.name
        )
        return f"{names}: {told}"

    def _repr_html_(self) -> str:
        """The findings and the numbers as two tables."""
        findings = "".join(
            _row(
                f"{SIGNS[each.kind]} {each.kind}", each.either.id, ", ".join(each.either.where), *_sides(each)
            )
            for each in self.findings
        )
        numbers = "".join(
            _row(each.what, _spread(each.before), _spread(each.after), "*" * each.apart)
            for each in self.numbers
        )
        heads = [
            "".join(f"<th>{name}</th>" for name in names)
            for names in (
                ("change", "finding", "where", "before", "after"),
                ("middle layer", "before", "after", "apart"),
            )
        ]
        tables = [
            f"<table><tr>{head}</tr>{rows}</table>"
            for head, rows in zip(heads, (findings, numbers), strict=True)
            if rows
        ]
        return f"<p><b>{escape(self.title)}</b></p>{''.join(tables)}"


def _changed(before: Report, after: Report) -> tuple[Change, ...]:
    """Pair findings by id and first place; what has no partner is new, gone, or was not examined again.

    Facts are paired by id alone: the layer that they name is the most telling one, not one in trouble.
    """
    only_facts = {each.id for each in (*before.findings, *after.findings)}
    only_facts -= {each.id for each in (*before.findings, *after.findings) if each.severity != SEVERITIES[-1]}

    def key(finding: Finding) -> tuple[str, tuple[str, ...]]:
        return finding.id, () if finding.id in only_facts else finding.where[:1]

    old, new = ({key(each): each for each in report.findings} for report in (before, after))
    examined = {each.name for each in after.measured}
    found = []
    for place in dict.fromkeys((*new, *old)):
        was, now = old.get(place), new.get(place)
        if all(each is None or each.severity == SEVERITIES[-1] for each in (was, now)):
            kind = FACT
        elif was is None:
            kind = NEW
        elif now is None:
            kind = GONE if set(was.told_by) <= examined else UNKNOWN
        else:
            kind = _direction(was, now)
        found.append(Change(kind, was, now))
    # Of one kind, the worst first, as reports have it.
    return tuple(sorted(found, key=lambda each: (ORDER.index(each.kind), each.either.rank)))


def _direction(was: Finding, now: Finding) -> str:
    """Severity decides; within one, the weight where the intervals are apart."""
    places = SEVERITIES.index(was.severity), SEVERITIES.index(now.severity)
    if places[0] != places[1]:
        return BETTER if places[1] > places[0] else WORSE
    apart = _apart(*((each.statistic, each.low, each.high) for each in (was, now)))
    if not apart or was.weight == now.weight:
        return SAME
    return BETTER if now.weight < was.weight else WORSE


def _moved(before: Report, after: Report) -> tuple[Moved, ...]:
    """The first quantity of every examination that both have."""
    old, new = ({each.name: each.result for each in report.measured} for report in (before, after))
    found = []
    for name in (each for each in old if each in new):
        quantity, estimate = next(iter(old[name].estimates.items()))
        other = new[name].estimates.get(quantity)
        if other is not None:
            found.append(Moved(f"{name}: {quantity}", _middle(estimate), _middle(other)))
    return tuple(found)


def _apart(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Whether two intervals have nothing in common; a value without one stands for itself."""
    (value, low, high), (second, least, most) = one, other
    low, high = (value if math.isnan(end) else end for end in (low, high))
    least, most = (second if math.isnan(end) else end for end in (least, most))
    return low > most or high < least


def _middle(estimate: object) -> tuple[float, float, float]:
    """Value, low and high of the layer whose value is the (lower) median; NaN where no layer has one."""
    from skiplab.measurements.estimate import Estimate

    assert isinstance(estimate, Estimate)
    value = estimate.value.flatten()
    known = value.isfinite().nonzero().flatten()
    if not len(known):
        return math.nan, math.nan, math.nan
    place = int(known[value[known].argsort()[(len(known) - 1) // 2]])
    low, high = (float(end.flatten()[place]) for end in (estimate.low, estimate.high))
    return float(value[place]), low, high


def _spread(ends: tuple[float, float, float]) -> str:
    value, low, high = ends
    if not (math.isfinite(low) and math.isfinite(high)) or low == high:
        return numerals.number(value)
    return f"{numerals.number(value)} ({numerals.interval(low, high)})"


def _sides(change: Change) -> list[str]:
    return [
        f"{MARKS[each.severity]} {each.severity}, {_spread((each.statistic, each.low, each.high))}"
        if each
        else "–"
        for each in (change.before, change.after)
    ]


def _told(change: Change) -> str:
    place = f" [{change.either.where[0]}]" if change.either.where else ""
    before, after = _sides(change)
    return f"{SIGNS[change.kind]} {change.kind}: {change.either.id}{place}: {before} → {after}"


def _number_line(moved: Moved) -> str:
    return f"{moved.what}: {_spread(moved.before)} → {_spread(moved.after)}{' *' * moved.apart}"


def _row(*cells: str) -> str:
    return f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in cells)}</tr>"


def _columns(side: str, finding: Finding | None) -> dict[str, object]:
    names = ("severity", "statistic", "low", "high")
    empty = {"severity": "", "statistic": math.nan, "low": math.nan, "high": math.nan}
    return {f"{name}, {side}": getattr(finding, name) if finding else empty[name] for name in names}
