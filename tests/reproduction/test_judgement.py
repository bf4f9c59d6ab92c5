"""A claim's one verdict from its conditions."""

from __future__ import annotations

import dataclasses

import pytest

from oracles.example_row import row
from skiplab.reproduction.claim import NOT_RUN, NOT_SAID
from skiplab.reproduction.judgement import conjunction, judgements, paid, tally


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        (["holds", "holds"], "holds"),
        (["holds", "undecided"], "undecided"),
        (["undecided", "contradicted", "holds"], "contradicted"),
        (["undecided"], "undecided"),
        ([], "undecided"),
    ],
)
def test_a_conjunction(verdicts: list[str], expected: str) -> None:
    assert conjunction(verdicts) == expected


def test_further_rows_have_no_say() -> None:
    (judged,) = judgements([row(), row(condition="gain .3", verdict="contradicted", headline=False)])
    assert judged.verdict == "holds"
    assert [each.condition for each in judged.further] == ["gain .3"]
    assert (judged.study, judged.claim, judged.text) == ("paper2000/figure-1", "rises", "It rises.")
    assert (judged.source, judged.ours, judged.p_adjusted) == ("section 2", False, 0.02)
    assert judgements([row(headline=False)]) == []  # nothing was judged


def test_rows_at_another_initial_scale_tell_whether_a_claim_depends_on_it() -> None:
    reverse = row(
        condition="weights × .3", verdict="contradicted", headline=False, low=-9.0, high=-3.0, statistic=-6.0
    )
    (alone,) = judgements([row(), dataclasses.replace(reverse, condition="no gain in width")])
    assert (alone.turned, alone.depends) == ([], "")
    (judged,) = judgements([row(), dataclasses.replace(reverse, other_scale=True)])
    assert (
        judged.depends
        == "depends on the initial scale: contradicted in 1 of 1 further conditions, such as weights × .3"
    )


def test_a_claim_waits_where_nothing_but_declared_runs_is_missing() -> None:
    absent = row(verdict="undecided", runs=0, missing=NOT_RUN, p=None)
    (waiting,) = judgements([row(), absent])
    assert waiting.waits
    assert waiting.p_adjusted is None  # one condition has no test, so the claim has none
    for other in (row(verdict="undecided"), dataclasses.replace(absent, missing=NOT_SAID)):
        assert not judgements([absent, other])[0].waits
    assert not judgements([absent, row(verdict="contradicted")])[0].waits
    assert not judgements([row()])[0].waits


def test_all_rows_bear_a_claim_so_the_least_clear_decides_but_the_clearest_one_contradicts() -> None:
    against = [
        row(condition=name, verdict="contradicted", p=p) for name, p in (("close", 0.02), ("clear", 0.001))
    ]
    assert judgements([row(p=0.5), *against])[0].deciding.condition == "clear"
    rows = [row(p=0.001), row(condition="close", p=0.02), row(condition="open", verdict="undecided", p=0.9)]
    assert judgements(rows)[0].deciding.condition == "open"
    assert judgements(rows[:2])[0].deciding.condition == "close"
    exact = row(condition="exact", kind="exact", p=None, p_adjusted=None)
    assert judgements([exact])[0].deciding is exact
    assert judgements([exact])[0].p_adjusted is None


def test_why_a_claim_is_contradicted() -> None:
    small = row(verdict="contradicted", statistic=0.1, low=-0.1, high=0.3)
    opposite = row(verdict="contradicted", statistic=-2.0, low=-3.0, high=-1.0)
    assert judgements([row(), small])[0].reason == "no difference worth having"
    assert judgements([opposite])[0].reason == ""
    assert judgements([small, opposite])[0].reason == ""
    assert judgements([row()])[0].reason == ""


def test_a_tally_counts_claims() -> None:
    rows = [
        row(),
        row(condition="more"),
        row(claim="falls", verdict="contradicted"),
        row(claim="own", source="ours"),
    ]
    judged = judgements(rows)
    assert tally(judged) == {"holds": 2, "contradicted": 1, "undecided": 0}
    assert [each.ours for each in judged] == [False, False, True]


def test_an_effect_too_small_is_told_apart_from_a_reverse_one() -> None:
    small = row(condition="b", verdict="contradicted", statistic=0.1, low=-0.1, high=0.3)
    reverse = row(condition="c", verdict="contradicted", statistic=-2.0, low=-3.0, high=-1.0)
    assert [each.too_small for each in judgements([row(), small])] == [True]
    assert [each.too_small for each in judgements([row(), small, reverse])] == [False]
    assert [each.too_small for each in judgements([row()])] == [False]


def test_a_contradiction_may_be_paid_for_by_the_number_of_its_conditions() -> None:
    against = row(condition="b", verdict="contradicted", p=0.01)  # at level .025
    open_, clear = judgements([row(), against, row(condition="c")]), judgements([row(), against])
    assert [paid(each) for each in (*open_, *clear)] == [False, True]
    exact = row(verdict="contradicted", p=None, level=None, kind="exact")
    assert [paid(each) for each in judgements([exact, row(condition="b")])] == [True]
