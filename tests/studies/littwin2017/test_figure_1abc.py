from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.littwin2017.figure_1abc import STUDY, evidence
from skiplab.studies.littwin2017.figure_1abc.trials import listed_peaks
from skiplab.theory.path_ensembles import multipliers


@pytest.fixture
def results(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_listed_peaks_are_the_figures() -> None:
    assert [listed_peaks(100, Fraction(beta)) for beta in ("1/10", "1/2", "2")] == [(10,), (34,), (67,)]
    assert listed_peaks(99, Fraction(1, 2)) == (33, 34)


@pytest.mark.parametrize(
    ("column", "value", "where", "claim"),
    [
        ("elsewhere", 1.0, {"case": "any"}, "peak-formula"),
        ("too_far", 0.5, {"case": "any"}, "theorem-1"),
        ("value", 1.0, {"quantity": "elsewhere"}, "peak-formula"),
        ("value", 0.5, {"quantity": "too far"}, "theorem-1"),
        ("value", 1e-6, {"quantity": "above", "p": 100_000, "delta": 0.02}, "theorem-2"),
        ("value", 1e-6, {"quantity": "below", "p": 100_000, "delta": 0.02}, "theorem-2"),
        ("value", 1.0, {"quantity": "missed"}, "lemma-4"),
        ("value", 1.0, {"quantity": "blunt"}, "sharp-ranges"),
        ("peaks", 1, {"case": "whole"}, "tie"),
        ("value", 1.02, {"quantity": "deviation"}, "width-of-the-band"),
    ],
    ids=str,
)
def test_one_number_that_is_off_contradicts(
    contradicted_by: Callable[..., set[str]], column: str, value: float, where: dict[str, Any], claim: str
) -> None:
    assert contradicted_by(STUDY, column, value, **where) == {claim}


def test_every_claim_holds(verdicts_of: Callable[..., dict[str, str]], results: Results) -> None:
    assert verdicts_of(STUDY, results) == {claim.id: "holds" for claim in STUDY.claims}


def test_the_limit_is_judged_at_the_largest_depth_only(results: Results) -> None:
    rows = list(evidence.concentrated(results))
    assert {each.condition.split("p = ")[-1] for each in rows if each.headline} == {"100,000"}
    assert any(not each.headline for each in rows)
    paper = STUDY.settings["paper"]
    assert max(paper.depths) == 10**6


def test_wide_networks_need_a_fixed_scale(results: Results) -> None:
    *fixed, usual = evidence.wide(results)
    assert all(each.headline and not any(each.samples[0]) for each in fixed)
    assert not usual.headline
    assert set(usual.samples[0]) == {66.0}  # the peak stays at 34 of 100 at any width


def test_the_usual_initialisation_is_below_half_unless_every_gate_is_open(results: Results) -> None:
    rows = {each.condition: each for each in evidence.start(results)}
    judged = [each for each in rows.values() if each.headline]
    assert len(judged) == len(evidence.OPEN)
    assert not any(each.samples[0][0] for each in judged)
    assert rows["ρ = 1, p = 100"].samples[0] == [1.0]
    assert rows["ρ = 0.9, p = 10"].samples[0] == [1.0]


def test_mostly_is_judged_at_a_hundred_layers_too(results: Results) -> None:
    rows = list(evidence.start_mass(results))
    judged = {each.condition.split("p = ")[-1] for each in rows if each.headline}
    assert judged == {"100", "100,000"}
    assert {each.condition: each for each in rows}["ρ = 0.9, p = 10"].samples[0][0] > 0.2


def test_a_wrong_polynomial_would_be_seen(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    proper = multipliers.squared_binomials
    monkeypatch.setattr(multipliers, "squared_binomials", lambda p, beta: proper(p, beta) - 1)  # from r = 1
    assert max(abs(value) for each in evidence.legendre(results) for value in each.samples[0]) > 1e-3


def test_the_figure_has_the_papers_three_panels_and_three_more(results: Results) -> None:
    axes = STUDY.figure(results).axes
    assert len(axes) == 6
    assert [ax.texts[0].get_text() for ax in axes[:3]] == ["10", "34", "67"]
    assert [len(ax.patches) for ax in axes[:3]] == [100] * 3
