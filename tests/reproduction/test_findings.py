"""What stands of a paper, in sentences made of verdicts alone."""

from __future__ import annotations

from typing import Any

import pytest

from oracles.example_row import row
from skiplab.reproduction.findings import SHORT, findings, in_short
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Paper
from skiplab.studies import CATALOGUE

PAPER = Paper("paper2000", "Title", "A. Author", 2000, "Something.", ("figure-1 rises", "figure-2 falls"))


def run(*changes: dict[str, Any], scale: str = "paper") -> dict[str, StudyRun]:
    rows = [row(**each) for each in changes]
    return {"paper2000/figure-1": StudyRun("paper2000/figure-1", scale, scale, {}, {}, [], [], rows, {}, 1.0)}


def test_a_finding_has_verdict_number_interval_and_condition() -> None:
    (found,) = findings(PAPER, run({}, {"claim": "another", "text": "Else."}))
    assert (found.text, found.verdict) == ("It rises.", "holds")
    assert found.evidence == "Holds (20 layers): 2.04 points (1.0 to 3.1)."


def test_of_several_conditions_the_least_clear_one_is_told() -> None:
    (found,) = findings(PAPER, run({}, {"condition": "44 layers", "p": 0.03, "statistic": 1.5}))
    assert found.evidence.startswith("Holds in both conditions, the least clear being 44 layers: 1.50 points")
    small = {"condition": "44 layers", "verdict": "contradicted", "statistic": 0.1, "low": -0.1, "high": 0.3}
    (found,) = findings(PAPER, run({}, small))
    assert found.evidence.startswith("Contradicted in 1 of 2 conditions, 44 layers: 0.100 points")
    assert found.evidence.endswith("; no difference worth having.")


def test_an_open_question_says_why_and_a_number_of_the_paper_stands_beside_ours() -> None:
    (found,) = findings(
        PAPER, run({"verdict": "undecided", "detail": "where the grid ends", "paper_value": 2.5})
    )
    assert (
        found.evidence
        == "Undecided (20 layers): 2.04 points (1.0 to 3.1); the paper has 2.50; where the grid ends."
    )
    (found,) = findings(PAPER, run({"verdict": "undecided", "statistic": None, "low": None, "high": None}))
    assert found.evidence == "Undecided (20 layers): no runs yet."


def test_differences_of_accuracies_are_told_in_points() -> None:
    change = {"unit": "test accuracy", "means": (0.9, 0.7), "statistic": 0.2, "low": 0.15, "high": 0.25}
    (found,) = findings(PAPER, run(change))
    assert found.evidence == "Holds (20 layers): difference 20.0 points of test accuracy (15 to 25)."


def test_a_claim_that_other_gains_reverse_depends_on_the_initial_scale() -> None:
    def row(condition: str, verdict: str, **more: Any) -> dict[str, Any]:
        scale = "gain" in condition
        return {
            "condition": condition, "verdict": verdict, "headline": False, "other_scale": scale, **more,
        }  # fmt: skip

    reversed_ = row("digits, gain 1", "contradicted", statistic=-2.0, low=-3.0, high=-1.0)
    too_small = row("digits, gain 0.1", "contradicted", statistic=0.0, low=-0.1, high=0.1)
    agreeing, elsewhere = row("digits, gain 0.3", "holds"), row("epoch 0", "contradicted", high=-1.0)
    (found,) = findings(PAPER, run({}, reversed_, too_small, agreeing, elsewhere))
    assert found.evidence.endswith(
        "; depends on the initial scale: contradicted in 1 of 3 further conditions, such as digits, gain 1."
    )
    (found,) = findings(PAPER, run({}, too_small, agreeing, elsewhere))
    assert "initial scale" not in found.evidence


def test_a_contradicted_claim_is_shown_where_a_paper_has_one() -> None:
    against = {"claim": "another", "text": "Else.", "verdict": "contradicted"}
    assert [each.text for each in findings(PAPER, run({}, against))] == ["It rises.", "Else."]
    assert [each.text for each in findings(PAPER, run({}, against | {"source": "ours"}))] == ["It rises."]
    carried = {"verdict": "contradicted"}
    assert [each.text for each in findings(PAPER, run(carried, against))] == ["It rises."]


def test_in_short_a_paper_has_one_claim_for_and_one_against_it() -> None:
    def told(*changes: dict[str, Any]) -> list[str]:
        return [each.judged.claim for each in in_short(PAPER, run(*changes))]

    other, against = {"claim": "other"}, {"claim": "against", "verdict": "contradicted"}
    assert told(other, {}, against) == ["rises", "against"]  # what carries the paper comes first
    assert told({"verdict": "undecided"}, other) == ["other"]
    assert told({"verdict": "undecided", "statistic": None}) == []
    long = {"text": "It rises " + SHORT * "."}
    assert told(long, other) == ["other"]
    assert told(long) == ["rises"]
    exact = {"claim": "counted", "p": None, "kind": "exact"}
    assert told(exact, other) == ["other"]  # a number with an interval says more
    assert told(exact | {"claim": "rises"}, other) == ["rises"]


def test_of_several_contradictions_the_clearest_is_told() -> None:
    against = {"verdict": "contradicted", "statistic": -2.0, "low": -3.0, "high": -1.0}
    (found,) = findings(PAPER, run(against, against | {"condition": "44 layers", "p": 0.001}))
    assert found.number == "−2.00 points (−3.0 to −1.0)"
    assert found.evidence == f"Contradicted in both conditions, the clearest being 44 layers: {found.number}."


def test_smoke_runs_and_studies_that_were_not_run_say_nothing() -> None:
    assert findings(PAPER, run({}, scale="smoke")) == []
    assert findings(PAPER, {}) == []


@pytest.mark.parametrize("paper", CATALOGUE.papers, ids=lambda paper: paper.id)
def test_every_paper_names_claims_that_carry_it_and_exist(paper: Paper) -> None:
    assert 3 <= len(paper.carried_by) <= 6
    for name in paper.carried_by:
        item, _, claim = name.partition(" ")
        own = {each.id: each for each in CATALOGUE[f"{paper.id}/{item}"].claims}
        assert own[claim].source != "ours"
