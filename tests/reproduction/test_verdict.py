"""Verdicts: what each kind says, that test and interval never disagree, and what is refused."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from skiplab.checks import Refused
from skiplab.randomness import numpy_generator
from skiplab.reproduction.claim import Claim, Equivalent, Evidence, Exact, Greater, Kind, Ordered, Value
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict, judge

Rows = Sequence[tuple[Kind, Sequence[Any], float | None]]
NAN = math.nan


def study_of(rows: Rows) -> Study:
    """A study whose claims carry their numbers with them."""

    def claim(number: int, kind: Kind, samples: Sequence[Any], paper: float | None) -> Claim:
        evidence = Evidence("all", samples, paper_value=paper)
        return Claim(f"claim-{number}", "text", kind, lambda table, settings: [evidence], unit="%")

    claims = [claim(number, *row) for number, row in enumerate(rows)]
    return Study(
        "paper/item", "item", "title", "caption", {}, [], lambda *_: None, lambda *_: None, claims, {}
    )


def verdicts(rows: Rows, alpha: float = 0.05) -> list[Verdict]:
    return judge(study_of(rows), None, None, "quick", alpha)


def verdict(kind: Kind, samples: Sequence[Any], paper: float | None = None) -> Verdict:
    (found,) = verdicts([(kind, samples, paper)])
    return found


LOW, HIGH = np.arange(8.0), np.arange(8.0) + 20
MIDDLE = np.arange(8.0) + 10
NOISE = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]


@pytest.mark.parametrize(
    ("kind", "samples", "paper", "expected"),
    [
        (Greater(), [HIGH, LOW], None, "holds"),
        (Greater(), [LOW, HIGH], None, "contradicted"),
        (Greater(), [LOW, LOW + 0.1], None, "undecided"),
        (Greater(margin=5.0), [LOW, LOW + 0.1], None, "holds"),
        (Greater(margin=-5.0), [LOW, LOW + 0.1], None, "contradicted"),
        (Greater(), [HIGH], None, "holds"),
        (Greater(), [-HIGH], None, "contradicted"),
        (Greater(), [NOISE], None, "undecided"),
        (Ordered(), [LOW, MIDDLE, HIGH], None, "holds"),
        (Ordered(), [HIGH, MIDDLE, LOW], None, "contradicted"),
        (Ordered(), [LOW, LOW, LOW], None, "undecided"),
        (Ordered(), [LOW, HIGH], None, "holds"),
        (Equivalent(5.0), [LOW, LOW + 0.1], None, "holds"),
        (Equivalent(5.0), [LOW, HIGH], None, "contradicted"),
        (Equivalent(5.0), [HIGH, LOW], None, "contradicted"),
        (Equivalent(0.2), [LOW, LOW + 0.1], None, "undecided"),
        (Equivalent(3.0), [NOISE], None, "holds"),
        (Value(0.1), [100 + LOW], 100.0, "holds"),
        (Value(0.1), [100 + LOW], -100.0, "contradicted"),
        (Value(0.1), [100 + LOW], 90.0, "contradicted"),
        (Value(0.001), [100 + LOW], 103.0, "undecided"),
        (Value(0.1, spread="range"), [LOW], 3.0, "holds"),
        (Value(0.1, spread="range"), [LOW], 7.7, "holds"),
        (Value(0.1, spread="range"), [LOW], 7.8, "contradicted"),
        (Value(0.1, spread="range"), [LOW + 1], 0.9, "contradicted"),
        (Value(0.1, spread="range"), [LOW + 1], 0.95, "holds"),
        (Exact(), [[0.0, 0.0]], None, "holds"),
        (Exact(), [[0.0, 1e-300]], None, "contradicted"),
        (Exact(1e-9), [[-1e-9], [1e-10]], None, "holds"),
        (Exact(1e-9), [[-2e-9], [0.0]], None, "contradicted"),
        (Exact(1.0), [[0.0, NAN]], None, "contradicted"),
        (Exact(math.inf), [[0.0, math.inf]], None, "contradicted"),
        (Exact(), [[]], None, "undecided"),
    ],
)
def test_each_kind_can_go_either_way(
    kind: Kind, samples: Sequence[Any], paper: float | None, expected: str
) -> None:
    assert verdict(kind, samples, paper).verdict == expected


def random_rows(generator: np.random.Generator) -> list[tuple[Kind, list[Any], float | None]]:
    """A study of every statistical kind on data that are continuous, tied, or without spread."""

    def sample() -> np.ndarray:
        size, shift = int(generator.integers(5, 11)), float(generator.choice([0.0, 0.0, 0.5, 1.0, 3.0]))
        match generator.integers(4):
            case 0:
                return generator.integers(0, 3, size) + np.round(shift)
            case 1:
                return np.full(size, np.round(shift))
            case _:
                return generator.normal(shift, 1.0, size)

    margin = float(generator.choice([0.0, 0.5, 1.0, -1.0]))
    rows: list[tuple[Kind, list[Any], float | None]] = [
        (Greater(margin), [sample(), sample()], None),
        (Greater(margin), [sample()], None),
        (Ordered(), [sample() for _ in range(int(generator.integers(2, 5)))], None),
        (Equivalent(float(generator.choice([0.5, 1.0, 3.0]))), [sample(), sample()], None),
        (Equivalent(1.0), [sample()], None),
        (
            Value(float(generator.choice([0.0, 0.5, 2.0]))),
            [sample()],
            float(generator.choice([0.0, 1.0, 3.0])),
        ),
    ]
    chosen = generator.permutation(len(rows))[: int(generator.integers(1, len(rows) + 1))]
    return [rows[i] for i in chosen]


def region(kind: Kind, paper: float | None) -> tuple[float, float, bool]:
    """Where the claim holds, written anew from the claim's words: its ends, and whether they belong to it."""
    if isinstance(kind, Greater):
        return -kind.margin, math.inf, False
    if isinstance(kind, Ordered):
        return 0.5, math.inf, False
    if isinstance(kind, Equivalent):
        return -kind.margin, kind.margin, False
    assert isinstance(kind, Value)
    assert paper is not None
    return paper - kind.tolerance * abs(paper), paper + kind.tolerance * abs(paper), True


@pytest.mark.usefixtures("no_collection")
def test_holm_and_the_interval_never_disagree() -> None:
    generator = numpy_generator("agreement")
    seen = {"holds": 0, "contradicted": 0, "undecided": 0}
    for number in range(60):
        rows = random_rows(generator)
        found = verdicts(rows)
        reject, adjusted, *_ = multipletests([row.p for row in found], 0.05, method="holm")
        for (kind, _, paper), row, rejected, p_adjusted in zip(rows, found, reject, adjusted, strict=True):
            low, high, closed = region(kind, paper)
            least = -math.inf if row.low is None else row.low
            most = math.inf if row.high is None else row.high
            inside = low <= least and most <= high if closed else low < least and most < high
            outside = most < low or least > high
            by_interval = "holds" if inside else "contradicted" if outside else "undecided"
            assert row.statistic is not None
            estimate_inside = low < row.statistic < high or (closed and row.statistic in (low, high))
            by_test = ("holds" if estimate_inside else "contradicted") if rejected else "undecided"
            assert row.verdict == by_interval == by_test, (number, kind, row)
            assert row.p is not None
            assert row.level is not None
            assert (row.p <= row.level) == rejected
            assert row.p_adjusted == pytest.approx(p_adjusted)
            assert least <= row.statistic <= most
            seen[row.verdict] += 1
    assert min(seen.values()) >= 20  # all three verdicts were put to the test


def test_holm_runs_over_the_study_and_leaves_out_what_has_no_test() -> None:
    sample = [0.1, 1.0, 1.2, 0.4, 2.0, 0.9]
    alone = verdict(Greater(), [sample])
    untested: Rows = [
        (Exact(), [[0.0]], None),
        (Value(0.1, "range"), [LOW], 3.0),
        (Greater(), [[1.0, 2.0, 3.0, 4.0]], None),
        (Ordered(), [LOW, [NAN] * 8], None),
    ]
    beside = verdicts([*untested, (Greater(), [sample], None)])
    assert [(row.p, row.p_adjusted, row.level) for row in beside[:4]] == [(None, None, None)] * 4
    assert beside[4].p == beside[4].p_adjusted == alone.p
    assert beside[4].level == 0.05
    three = verdicts([(Greater(), [sample], None), (Greater(), [NOISE], None), (Greater(), [HIGH], None)])
    assert [row.level for row in three] == pytest.approx([0.05 / 2, 0.05, 0.05 / 3])
    assert three[0].p_adjusted == pytest.approx(2 * alone.p)
    assert three[0].low is not None
    assert alone.low is not None
    assert three[0].low < alone.low  # a stricter level, a wider interval
    strict = verdicts([(Greater(), [sample], None)], alpha=0.001)[0]
    assert (alone.verdict, strict.verdict) == ("holds", "undecided")


def test_further_rows_are_a_family_of_their_own() -> None:
    sample = [0.1, 1.0, 1.2, 0.4, 2.0, 0.9]

    def judged(further: Sequence[Any]) -> dict[str, Verdict]:
        rows = [
            Evidence("claimed", [sample]),
            *(Evidence(f"{k}", [each], headline=False) for k, each in further),
        ]
        claim = Claim("claim", "text", Greater(), lambda table, settings: rows)
        study = dataclasses.replace(study_of([]), claims=[claim])
        return {row.condition: row for row in judge(study, None, None, "quick")}

    alone = judged([])
    beside = judged(list(enumerate([NOISE, HIGH, sample, NOISE])))
    assert beside["claimed"] == alone["claimed"]  # whatever else is looked at
    assert [beside[f"{k}"].level for k in range(4)] == pytest.approx([0.05 / 3, 0.05 / 4, 0.05 / 3, 0.05 / 3])
    assert beside["2"].p_adjusted == pytest.approx(3 * alone["claimed"].p)


def test_false_verdicts_are_rarer_than_alpha() -> None:
    generator = numpy_generator("false verdicts")
    studies = 300
    wrong = 0
    for _ in range(studies):
        data = generator.normal(size=(7, 6))
        rows: Rows = [
            (Greater(), [data[0], data[1]], None),
            (Greater(), [data[2] - data[3]], None),
            (Ordered(), [data[4], data[5], data[6]], None),
        ]
        # Every null is true, so any decided row is an error.
        wrong += any(row.verdict != "undecided" for row in verdicts(rows))
    assert 0.01 < wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


@pytest.mark.parametrize(
    ("kind", "count", "paper"),
    [
        (Greater(), 2, None),
        (Greater(), 1, None),
        (Ordered(), 3, None),
        (Equivalent(1.0), 2, None),
        (Value(), 1, 3.0),
        (Value(spread="range"), 1, 3.0),
    ],
)
def test_few_missing_or_diverged_runs_leave_a_claim_undecided(
    kind: Kind, count: int, paper: float | None
) -> None:
    others = [LOW] * (count - 1)
    four = verdict(kind, [*others, [1.0, 2.0, 3.0, 4.0]], paper)
    assert (four.verdict, four.runs, four.p, four.low, four.high) == ("undecided", 4, None, None, None)
    assert "4 runs, but a verdict needs 5" in four.detail
    assert four.statistic is not None
    none = verdict(kind, [*others, []], paper)
    assert (none.verdict, none.runs, none.statistic) == ("undecided", 0, None)
    assert "a sample has no runs" in none.detail
    lost = verdict(kind, [*others, [1.0, NAN, math.inf, 4.0, 5.0, 1e200]], paper)
    assert (lost.verdict, lost.runs, lost.statistic, lost.means[-1]) == ("undecided", 6, None, None)
    assert f"3 of {6 + 8 * (count - 1)} runs were not finite" in lost.detail


def test_samples_without_spread_are_points() -> None:
    ahead = verdict(Greater(), [[0.3] * 6, [0.1] * 5])
    assert (ahead.verdict, ahead.p, ahead.low, ahead.high) == ("holds", 0.0, 0.3 - 0.1, 0.3 - 0.1)
    behind = verdict(Greater(), [[0.1] * 6, [0.3] * 5])
    assert (behind.verdict, behind.p) == ("contradicted", 0.0)
    level = verdict(Greater(), [[0.1] * 6, [0.1] * 5])
    assert (level.verdict, level.p, level.low, level.high) == ("undecided", 1.0, 0.0, 0.0)
    assert verdict(Equivalent(0.01), [[0.1] * 6, [0.1] * 5]).verdict == "holds"
    # A tolerance relative to 0 is 0, and "within" includes the end.
    assert verdict(Value(0.1), [[0.0] * 5], 0.0).verdict == "holds"
    assert verdict(Value(0.1), [[0.0, 0.0, 0.0, 0.0, 1.0]], 0.0).verdict == "undecided"
    assert verdict(Value(0.0), [[0.1] * 7], 0.1).verdict == "holds"


def test_a_row_carries_what_the_scoreboard_shows() -> None:
    row = verdict(Greater(margin=0.5), [HIGH, LOW])
    assert (row.study, row.claim, row.condition, row.scale) == ("paper/item", "claim-0", "all", "quick")
    assert (row.kind, row.text, row.unit, row.headline, row.stale) == ("greater", "text", "%", True, False)
    assert (row.margin, row.runs, row.means, row.statistic) == (0.5, 8, (23.5, 3.5), 20.0)
    value = verdict(Value(0.1), [LOW], -3.0)
    assert (value.margin, value.paper_value) == (pytest.approx(0.3), -3.0)
    spread = verdict(Value(0.1, spread="range"), [LOW], 3.0)
    assert (spread.low, spread.high, spread.kind) == (0.0, 7.0, "value")
    assert "range of the runs" in spread.detail
    exact = verdict(Exact(1e-9), [[-2e-9, 1e-9]])
    assert (exact.statistic, exact.low, exact.high, exact.margin) == (2e-9, 2e-9, 2e-9, 1e-9)
    ordered = verdict(Ordered(), [LOW, MIDDLE, LOW])
    assert ordered.detail == "adjacent differences of means +10, -10"
    assert ordered.margin is None


def test_further_rows_and_details_of_the_evidence_are_kept() -> None:
    rows = [
        Evidence("gain .3", [LOW, MIDDLE], headline=False, detail="10 of 20 runs"),
        Evidence("gain 1", [LOW, HIGH]),
    ]
    claim = Claim("rise", "it rises", Ordered(), lambda table, settings: rows[: table + settings])
    study = Study("p/i", "i", "t", "c", {}, [], lambda *_: None, lambda *_: None, [claim], {})
    found = judge(study, 1, 1, "paper")
    assert [row.condition for row in found] == ["gain .3", "gain 1"]
    assert [row.headline for row in found] == [False, True]
    assert found[0].detail == "10 of 20 runs; adjacent differences of means +10"
    assert judge(study, 0, 0, "paper") == []


def test_verdicts_pass_through_strict_json() -> None:
    rows: Rows = [
        (Greater(), [HIGH, LOW], None),
        (Exact(), [[NAN]], None),
        (Ordered(), [LOW, [NAN] * 5], None),
        (Value(), [np.float32([1, 2, 3, 4, 5])], 3.0),
    ]
    for row in verdicts(rows):
        text = json.dumps(row.to_dict(), allow_nan=False)
        assert Verdict.from_dict(json.loads(text)) == row
        assert Verdict.from_dict({**json.loads(text), "from_a_later_version": 1}) == row
    with pytest.raises(Refused, match="lacks study, claim"):
        Verdict.from_dict({"verdict": "holds"})


@pytest.mark.parametrize(
    ("kind", "samples", "paper", "match"),
    [
        (Greater(), [LOW, LOW, LOW], None, "gives 3 samples, but Greater takes 1 to 2"),
        (Ordered(), [LOW], None, "gives 1 samples, but Ordered takes at least 2"),
        (Value(), [LOW, LOW], 1.0, "gives 2 samples, but Value takes 1"),
        (Exact(), [], None, "gives 0 samples, but Exact takes at least 1"),
        (Value(), [LOW], None, "claim 'claim-0' of paper/item in condition 'all' has paper_value None"),
        (Value(-0.1), [LOW], 1.0, "Tolerance of .* is -0.1"),
        (Value(spread="rnage"), [LOW], 1.0, "'rnage' is unknown.*Did you mean range"),
        (Greater(margin=NAN), [LOW], None, "margin nan; give a finite one"),
        (Equivalent(0.0), [LOW], None, "margin 0.0; equivalence needs a positive one"),
        (Exact(-1.0), [LOW], None, "Rounding of .* is -1.0"),
    ],
)
def test_claims_that_no_test_could_judge_are_refused(
    kind: Kind, samples: Sequence[Any], paper: float | None, match: str
) -> None:
    with pytest.raises(Refused, match=match):
        verdict(kind, samples, paper)
