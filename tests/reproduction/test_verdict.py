"""Verdicts: that Holm, test and interval never disagree, and what a row carries; kinds/ has what each kind says."""

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
from skiplab.reproduction.claim import (
    NOT_RUN,
    Claim,
    Equivalent,
    Evidence,
    Exact,
    Greater,
    Kind,
    Ordered,
    Value,
)
from skiplab.reproduction.results import Results
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import Verdict, judge

Rows = Sequence[tuple[Kind, Sequence[Any], float | None]]
NAN = math.nan


def study_of(rows: Rows) -> Study:
    """A study whose claims carry their numbers with them."""

    def claim(number: int, kind: Kind, samples: Sequence[Any], paper: float | None) -> Claim:
        evidence = Evidence("all", samples, paper_value=paper)
        return Claim(f"claim-{number}", "text", lambda results: [evidence], kind, unit="%")

    claims = [claim(number, *row) for number, row in enumerate(rows)]
    return Study("paper/item", __file__, {}, [], lambda *_: None, claims, {})


def verdicts(rows: Rows, alpha: float = 0.05) -> list[Verdict]:
    return judge(dataclasses.replace(study_of(rows), alpha=alpha), Results(None), "quick")


def verdict(kind: Kind, samples: Sequence[Any], paper: float | None = None) -> Verdict:
    (found,) = verdicts([(kind, samples, paper)])
    return found


SEEN = Greater(worth=0.5)
LOW, HIGH = np.arange(8.0), np.arange(8.0) + 20
MIDDLE = np.arange(8.0) + 10
NOISE = [-2.0, -1.0, -0.5, 0.5, 1.0, 2.0]


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

    seen = Greater(worth=float(generator.choice([0.25, 1.0])))
    demanded = Greater(margin=float(generator.choice([0.5, 1.0, -1.0])))
    pair = (sample(), sample())
    shared = min(map(len, pair))
    rows: list[tuple[Kind, list[Any], float | None]] = [
        (demanded, [sample(), sample()], None),
        (demanded, [sample()], None),
        (seen, list(pair), None),
        (seen, [pair[0][:shared] - pair[1][:shared]], None),
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


def refuted_below(kind: Kind, low: float) -> float:
    """Below what an interval contradicts, written anew: the region's end, or the effect worth having above it."""
    return low + kind.worth if isinstance(kind, Greater | Ordered) else low


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
            outside = most < refuted_below(kind, low) or least > high
            by_interval = "contradicted" if outside else "holds" if inside else "undecided"
            assert row.statistic is not None
            assert row.verdict == by_interval, (number, kind, row)
            assert (row.verdict != "undecided") == rejected, (number, kind, row)
            assert row.p is not None
            assert row.level is not None
            assert (row.p <= row.level) == rejected
            assert row.p_adjusted == pytest.approx(p_adjusted)
            assert least <= row.statistic <= most
            seen[row.verdict] += 1
    assert min(seen.values()) >= 20  # all three verdicts were put to the test


def test_holm_runs_over_the_claims_and_leaves_out_what_has_no_test() -> None:
    sample = [0.1, 1.0, 1.2, 0.4, 2.0, 0.9]
    alone = verdict(SEEN, [sample])
    untested: Rows = [
        (Exact(), [[0.0]], None),
        (SEEN, [[1.0, 2.0, 3.0, 4.0]], None),
        (Ordered(), [LOW, [NAN] * 8], None),
    ]
    beside = verdicts([*untested, (SEEN, [sample], None)])
    assert [(row.p, row.p_adjusted, row.level) for row in beside[:3]] == [(None, None, None)] * 3
    assert beside[3].p == beside[3].p_adjusted == alone.p
    assert beside[3].level == 0.05
    three = verdicts([(SEEN, [sample], None), (SEEN, [NOISE], None), (SEEN, [HIGH], None)])
    assert [row.level for row in three] == pytest.approx([0.05 / 2, 0.05, 0.05 / 3])
    assert three[0].p_adjusted == pytest.approx(2 * alone.p)
    assert three[0].p == alone.p
    assert three[0].low is not None
    assert alone.low is not None
    assert three[0].low < alone.low  # a stricter level, a wider interval
    strict = verdicts([(SEEN, [sample], None)], alpha=0.001)[0]
    assert (alone.verdict, strict.verdict) == ("holds", "undecided")


def judged_claims(*claims: Claim) -> list[Verdict]:
    return judge(dataclasses.replace(study_of([]), claims=claims), Results(None), "quick")


def claimed(name: str, *samples: Any, source: str = "caption", headline: bool = True) -> Claim:
    """A claim with one row per sample."""
    rows = [Evidence(f"{name} {k}", [sample], headline=headline) for k, sample in enumerate(samples)]
    return Claim(name, "text", lambda results: rows, SEEN, source=source)


def test_the_rows_of_a_claim_are_tested_at_the_claims_level() -> None:
    sample = [0.1, 1.0, 1.2, 0.4, 2.0, 0.9]
    own = verdict(SEEN, [sample])
    many = judged_claims(claimed("rise", *[sample] * 20))
    # A conjunction of twenty rows is one claim: each row is tested as if it were alone.
    assert [(row.level, row.p, row.p_adjusted, row.verdict) for row in many] == [
        (0.05, own.p, own.p, "holds")
    ] * 20
    mixed = judged_claims(claimed("rise", HIGH, sample, NOISE), claimed("other", HIGH))
    assert [row.verdict for row in mixed] == ["holds", "holds", "undecided", "holds"]
    # For the claim speaks its weakest row, so the claim fails and is tested last, at the whole of alpha.
    assert [row.level for row in mixed] == pytest.approx([0.05, 0.05, 0.05, 0.025])
    weakest = verdict(SEEN, [NOISE]).p
    assert [row.p_adjusted for row in mixed[:3]] == pytest.approx([weakest] * 3)
    # Against it speaks the one row that contradicts, whatever the others say.
    against = judged_claims(claimed("rise", HIGH, -HIGH), claimed("other", NOISE))
    assert [row.verdict for row in against] == ["holds", "contradicted", "undecided"]
    assert against[1].level == 0.025


def test_ours_are_a_family_of_their_own() -> None:
    sample = [0.1, 1.0, 1.2, 0.4, 2.0, 0.9]
    alone = judged_claims(claimed("paper", sample))
    beside = judged_claims(
        claimed("paper", sample), *(claimed(f"{k}", NOISE, source="ours") for k in range(9))
    )
    assert beside[0] == alone[0]
    assert [row.ours for row in beside] == [False] + [True] * 9


def test_further_rows_are_shown_at_alpha_and_change_nothing() -> None:
    sample = [0.1, 1.0, 1.2, 0.4, 2.0, 0.9]
    alone = judged_claims(claimed("claim", sample), claimed("other", HIGH))
    beside = judged_claims(
        claimed("claim", sample), claimed("other", HIGH), claimed("shown", NOISE, sample, headline=False)
    )
    assert beside[:2] == alone
    assert [(row.level, row.p_adjusted) for row in beside[2:]] == [(0.05, None)] * 2
    assert beside[3].p == alone[0].p


@pytest.mark.parametrize(
    ("first", "to_gain", "expected"),
    [
        (LOW + 20, (5.0, 0.0), "holds"),  # the better one may become better still
        (LOW + 20, (0.0, 5.0), "holds"),  # the worse one may gain, and not enough
        (LOW + 20, (0.0, 19.0), "undecided"),
        (LOW - 20, (5.0, 0.0), "contradicted"),
        (LOW - 20, (19.0, 0.0), "undecided"),
        (LOW - 20, (0.0, 50.0), "contradicted"),
    ],
)
def test_a_grids_edge_leaves_open_what_one_more_step_could_change(
    first: np.ndarray, to_gain: tuple[float, float], expected: str
) -> None:
    rows = [Evidence("edge", [first, LOW], to_gain=to_gain), Evidence("inside", [first, LOW])]
    edge, inside = judged_claims(Claim("claim", "text", lambda results: rows, SEEN, source="caption"))
    assert (edge.verdict, inside.verdict) == (expected, "holds" if first[0] > 0 else "contradicted")
    assert (edge.low, edge.high, edge.p) == (inside.low, inside.high, inside.p)
    assert ("a search ended at the edge of its grid" in edge.detail) == (expected == "undecided")
    assert edge.needs is None  # no number of runs would settle it


def test_false_verdicts_are_rarer_than_alpha() -> None:
    generator = numpy_generator("false verdicts")
    studies = 300
    wrong = 0
    for _ in range(studies):
        data = generator.normal(size=(7, 6))
        rows: Rows = [
            (Greater(margin=1.0), [data[0], data[1] + 1], None),
            (SEEN, [data[2] - data[3]], None),
            (Ordered(), [data[4], data[5], data[6]], None),
        ]
        # Every mean lies on the edge of what its claim says, so any row that holds is an error.
        wrong += any(row.verdict == "holds" for row in verdicts(rows))
    assert 0.01 < wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


def test_false_contradictions_are_rarer_than_alpha() -> None:
    generator = numpy_generator("false contradictions")
    studies = 300
    # Every effect is as large as what is worth having, so any contradicted row is an error.
    wrong = sum(
        any(row.verdict == "contradicted" for row in verdicts([(SEEN, [sample], None) for sample in data]))
        for data in generator.normal(SEEN.worth, 1.0, size=(studies, 3, 6))
    )
    assert 0.005 < wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


def test_a_row_carries_what_the_scoreboard_shows() -> None:
    row = verdict(Greater(margin=0.5), [HIGH, LOW])
    assert (row.study, row.claim, row.condition, row.scale) == ("paper/item", "claim-0", "all", "quick")
    assert (row.kind, row.text, row.unit, row.headline, row.stale) == ("greater", "text", "%", True, False)
    assert (row.margin, row.runs, row.means, row.statistic) == (0.5, 8, (23.5, 3.5), 20.0)


def test_a_condition_without_numbers_says_why_and_leaves_the_claim_open() -> None:
    absent = Evidence.without("all of them", NOT_RUN, "10 minutes of one H200", samples=2)
    claim = Claim(
        "more", "there is more", lambda results: [Evidence("some", [HIGH, LOW]), absent], Greater(worth=1.0)
    )
    found = judge(Study("p/i", __file__, {}, [], lambda *_: None, [claim], {}), Results(None), "paper")
    assert [(row.verdict, row.missing, row.runs) for row in found] == [
        ("holds", "", 8),
        ("undecided", NOT_RUN, 0),
    ]
    assert found[1].detail == "10 minutes of one H200"


def test_further_rows_and_details_of_the_evidence_are_kept() -> None:
    rows = [
        Evidence("gain .3", [LOW, MIDDLE], headline=False, detail="10 of 20 runs"),
        Evidence("gain 1", [LOW, HIGH]),
    ]
    claim = Claim("rise", "it rises", lambda results: rows[: results.settings], Ordered())
    study = Study("p/i", __file__, {}, [], lambda *_: None, [claim], {})
    found = judge(study, Results(2), "paper")
    assert [row.condition for row in found] == ["gain .3", "gain 1"]
    assert [row.headline for row in found] == [False, True]
    assert found[0].detail == "10 of 20 runs; adjacent differences of means +10"
    assert judge(study, Results(0), "paper") == []


def test_that_runs_are_missing_is_said_once() -> None:
    def rows(results: Results) -> list[Evidence]:
        return [Evidence("one", [[]], detail="not trained here"), Evidence("two", [[]])]

    claim = Claim("claim", "text", rows, Greater(worth=1.0), unit="%")
    study = Study("paper/item", __file__, {}, [], lambda *_: None, [claim], {})
    told, untold = judge(study, Results(None), "quick")
    assert (told.detail, untold.detail) == ("not trained here", "there are no such runs")


def test_verdicts_pass_through_strict_json() -> None:
    rows: Rows = [
        (SEEN, [HIGH, LOW], None),
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
    with pytest.raises(Refused, match=r"Verdict 'hold' is unknown.*Did you mean holds"):
        Verdict.from_dict({**row.to_dict(), "verdict": "hold"})
    with pytest.raises(Refused, match="Kind of claim 'later' is unknown"):
        Verdict.from_dict({**row.to_dict(), "kind": "later"})


def test_a_claim_takes_from_its_study_what_it_leaves_open() -> None:
    def claim(name: str, *more: Any, **fields: Any) -> Claim:
        return Claim(name, "text", lambda *_: [Evidence("all", [LOW, LOW])], *more, **fields)

    claims = [claim("open"), claim("own", SEEN, "", "ours"), claim("unit", unit="%")]
    study = dataclasses.replace(
        study_of([]), claims=claims, kind=Equivalent(9.0), unit="steps", source="section 3.1"
    )
    assert [(each.kind, each.unit, each.source) for each in study.claims] == [
        (Equivalent(9.0), "steps", "section 3.1"),
        (SEEN, "", "ours"),
        (Equivalent(9.0), "%", "section 3.1"),
    ]
    found = judge(study, Results(None), "quick")
    assert [(row.kind, row.unit, row.source) for row in found] == [
        ("equivalent", "steps", "section 3.1"),
        ("greater", "", "ours"),
        ("equivalent", "%", "section 3.1"),
    ]


@pytest.mark.parametrize(
    ("id", "item", "source"),
    [
        ("paper/figure-7", "", "figure 7"),
        ("paper/table-2", "", "table 2"),
        ("paper/proposition-A1", "", "proposition A1"),
        ("mine/my-block", "", "ours"),  # no place in a paper: a study that speaks for itself
        ("paper/theorems", "Theorems 1 to 3", "theorems 1 to 3"),
    ],
)
def test_a_study_quotes_its_own_item(id: str, item: str, source: str) -> None:
    claim = Claim("claim", "text", lambda *_: [], SEEN)
    study = Study(id, __file__, {}, [], lambda *_: None, [claim], {}, item=item)
    assert study.claims[0].source == source


def test_a_claim_without_kind_or_with_an_odd_source_is_refused() -> None:
    with pytest.raises(Refused, match="claim 'open' has no kind; name one, or one for the whole study"):
        judged_claims(Claim("open", "text", lambda *_: []))
    with pytest.raises(
        Refused, match="claim 'odd' has source 'paper'; write 'ours' or a place that starts with"
    ):
        judged_claims(claimed("odd", source="paper"))
