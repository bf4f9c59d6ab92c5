"""What every kind of claim must satisfy: judged, stored and drawn, it means the same."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from skiplab.checks import Refused
from skiplab.reporting import forest
from skiplab.reproduction import numerals, statistics
from skiplab.reproduction.kinds import KINDS, Equivalent, Exact, Greater, Kind, Ordered, Value, named
from skiplab.reproduction.verdict import Verdict

Judge = Callable[..., Verdict]
RISE = np.arange(8.0)
NARROW = RISE / 1e3
MANY = np.arange(39.0) / 1e4  # as many as a range needs to contradict at .05


@dataclass(frozen=True)
class Case:
    """A kind with samples on which it holds, and some on which it is contradicted."""

    kind: Kind
    inside: Sequence[Any]
    outside: Sequence[Any]
    paper: float | None = None


CASES = (
    Case(Greater(worth=0.5), [NARROW + 1, NARROW], [NARROW - 1, NARROW]),
    Case(Greater(worth=0.5), [NARROW + 1], [NARROW - 1]),
    Case(Greater(margin=2.0), [NARROW - 1, NARROW], [NARROW - 3, NARROW]),
    Case(Greater(margin=-2.0), [NARROW + 3, NARROW], [NARROW + 1, NARROW]),
    Case(Ordered(), [RISE, RISE + 20, RISE + 40], [RISE, RISE - 20, RISE - 40]),
    Case(Ordered(), [RISE, RISE + 20], [RISE, RISE - 20]),
    Case(Equivalent(0.5), [NARROW + 0.3, NARROW], [NARROW + 0.7, NARROW]),
    Case(Equivalent(0.5), [NARROW - 0.3], [NARROW - 0.7]),
    Case(Value(0.1), [NARROW + 10.9], [NARROW + 11.1], 10.0),
    Case(Value(0.1), [NARROW - 9.1], [NARROW + 9.1], -10.0),
    Case(Value(0.1, spread="range"), [MANY + 10.9], [MANY + 11.1], 10.0),
    Case(Exact(), [[0.0, 0.0]], [[0.0, 1e-9]]),
    Case(Exact(1e-6), [[1e-7], [-1e-6]], [[1e-7], [-2e-6]]),
)
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: repr(case.kind))
runs_count = pytest.mark.parametrize(
    "case", [case for case in CASES if case.kind.statistical], ids=lambda case: repr(case.kind)
)


def test_no_kind_is_left_out() -> None:
    assert {type(case.kind) for case in CASES} == set(KINDS)
    assert {named(kind.name()) for kind in KINDS} == set(KINDS)
    assert [kind.name() for kind in KINDS] == ["greater", "ordered", "equivalent", "value", "exact"]
    with pytest.raises(Refused, match=r"Kind of claim 'grater' is unknown.*Did you mean greater"):
        named("grater")


@every_case
def test_a_statistic_inside_the_region_holds_and_one_outside_is_contradicted(
    case: Case, judged: Judge
) -> None:
    for samples, expected in ((case.inside, "holds"), (case.outside, "contradicted")):
        row = judged(case.kind, samples, case.paper)
        assert row.verdict == expected
        low, high = row.region
        assert None not in (row.statistic, row.low, row.high)
        assert all(low <= each <= high for each in (row.statistic, row.low, row.high)) == (
            expected == "holds"
        )


@every_case
def test_the_drawn_region_is_the_tested_one(case: Case, judged: Judge) -> None:
    row = judged(case.kind, case.inside, case.paper)
    found = case.kind.find([statistics.numbers(sample) for sample in case.inside], case.paper)
    if isinstance(found.test, statistics.StudentTest):
        # Where the ends belong to the region, the test's open interval is one step wider.
        assert row.region == pytest.approx(found.region, rel=1e-15)
    stored = Verdict.from_dict(json.loads(json.dumps(row.to_dict())))
    assert stored.meaning is type(case.kind)
    assert stored.region == row.region
    domain = (-20.0, 20.0)
    drawing = forest.draw(stored, domain)
    x, width = map(float, re.search(r'class="region" x="([\d.]+)" y="3" width="([\d.]+)"', drawing).groups())
    ends = [min(max((end + 20) / 40, 0), 1) * forest.WIDTH for end in row.region]
    assert (x, x + width) == pytest.approx(ends, abs=0.02)
    assert drawing.count('class="paper"') == len(stored.meaning.marks(stored))
    assert drawing.count('class="threshold"') == sum(map(math.isfinite, row.region))


@every_case
def test_the_words_name_the_region(case: Case, judged: Judge) -> None:
    row = judged(case.kind, case.inside, case.paper, unit="points")
    rule = row.meaning.rule(row)
    assert rule.startswith("Holds ")
    assert rule.endswith(".")
    spoken = forest.spoken(row)
    for end in row.region:
        assert math.isinf(end) or numerals.limit(end) in spoken
    assert row.meaning.written_interval("[1, 2]") == ("[1, 2]" if row.meaning.statistical else "exact")
    assert row.meaning.written_runs(8) == ("8" if row.meaning.statistical else "–")


@every_case
def test_another_number_of_samples_is_refused(case: Case, judged: Judge) -> None:
    least, most = case.kind.takes
    for count in (least - 1, most + 1):
        if count < math.inf:
            with pytest.raises(
                Refused,
                match=f"^claim 'claim' of paper/item in condition 'all' gives {count} samples, but "
                f"{type(case.kind).__name__} takes ",
            ):
                judged(case.kind, [RISE] * count, case.paper)


@runs_count
def test_few_missing_or_diverged_runs_leave_a_claim_undecided(case: Case, judged: Judge) -> None:
    *others, last = case.inside
    four = judged(case.kind, [*others, last[:4]], case.paper)
    assert (four.verdict, four.runs, four.p, four.low, four.high) == ("undecided", 4, None, None, None)
    assert "4 runs, but a verdict needs 5" in four.detail
    assert four.statistic is not None
    none = judged(case.kind, [*others, []], case.paper)
    assert (none.verdict, none.runs, none.statistic) == ("undecided", 0, None)
    assert "there are no such runs" in none.detail
    lost = judged(case.kind, [*others, [1.0, math.nan, math.inf, 4.0, 5.0, 1e200]], case.paper)
    assert (lost.verdict, lost.runs, lost.statistic, lost.means[-1]) == ("undecided", 6, None, None)
    assert f"3 of {6 + 8 * len(others)} runs were not finite" in lost.detail


def test_declaring_and_reading_import_nothing_heavy() -> None:
    code = (
        "import sys, skiplab.reproduction.kinds, skiplab.reproduction.claim, skiplab.reproduction.verdict; "
        "print([name for name in ('torch', 'scipy', 'pandas', 'numpy') if name in sys.modules])"
    )
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
