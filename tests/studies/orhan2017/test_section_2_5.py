from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2017.section_2_5.evidence import changes, class_counts
from skiplab.studies.orhan2017.section_2_5.study import STUDY, Settings
from skiplab.studies.orhan2017.section_2_5.trials import ACTIVATIONS, CHANGES, MATRICES, classes
from skiplab.theory.symmetries import recurrent as theory

Judge = Callable[[pd.DataFrame], list[Verdict]]


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    return carried_out(STUDY, Settings(runs=4, units=6, steps=5, neurons=16, counted=6))


@pytest.fixture(scope="module")
def table(results: Results) -> pd.DataFrame:
    return results.frame


@pytest.fixture(scope="module")
def judged(results: Results, with_rows: Callable[..., Results]) -> Judge:
    """Judge the claims on a changed table."""
    return lambda frame: judge(STUDY, with_rows(results, frame), "quick")


def test_names_are_those_of_the_theory() -> None:
    assert set(ACTIVATIONS) == set(theory.ACTIVATIONS)


def test_every_network_is_changed_in_every_way(results: Results) -> None:
    for way in CHANGES:
        for activation in ACTIVATIONS:
            for matrix in MATRICES:
                assert len(changes(results, way, activation, matrix)) == 4
    counted = results.rows(classes, quantity="miscount")
    assert list(zip(counted["draw"], counted["x"], strict=True)) == [(4, 2), (6, 2), (6, 3)]


def test_verdicts(results: Results) -> None:
    for each in judge(STUDY, results, "quick"):
        rows_only, scales = (
            CHANGES["rows permuted"] in each.condition,
            CHANGES["units rescaled"] in each.condition,
        )
        wrong = (
            (each.claim == "permutation-printed" and not rows_only)
            or (each.claim == "symmetric-printed" and rows_only)
            or (each.claim == "rescaling-literal" and not each.condition.startswith("tanh"))
        )
        kept = each.condition.startswith("K!(d!)^K less the permutations of which each keeps every neuron")
        assert each.verdict == ("contradicted" if wrong or kept else "holds"), (each.claim, each.condition)
        further = each.claim.endswith(("-printed", "-literal")) and (rows_only or scales)
        further = further or each.condition.startswith("K!(d!)^K less")
        assert each.headline != further, (each.claim, each.condition)


@pytest.mark.parametrize(
    ("way", "claims"),
    [
        ("units permuted", {"permutation", "symmetric-printed"}),
        ("ends rescaled", {"rescaling"}),
        ("permuted at each step", {"untied"}),
    ],
)
def test_one_network_whose_function_changes_contradicts_the_symmetry(
    table: pd.DataFrame, judged: Judge, way: str, claims: set[str]
) -> None:
    changed = table.copy()
    rows = (table["quantity"] == "change") & (table["way"] == way) & (table["draw"] == 1)
    changed.loc[rows & (table["matrix"] == MATRICES[1]) & (table["activation"] == "ReLU"), "value"] = 1e-6
    before, after = (
        {(v.claim, v.condition) for v in judged(frame) if v.verdict == "contradicted"}
        for frame in (table, changed)
    )
    assert {claim for claim, _ in after - before} == claims


def test_one_network_that_stays_the_same_contradicts_a_broken_symmetry(
    table: pd.DataFrame, judged: Judge
) -> None:
    changed = table.copy()
    rows = (table["quantity"] == "change") & (table["way"] == "recurrence rescaled") & (table["draw"] == 1)
    changed.loc[rows & (table["activation"] == "linear"), "value"] = 0.0
    verdicts = judged(changed)
    against = {v.condition for v in verdicts if v.claim == "sharing" and v.verdict == "contradicted"}
    assert against == {"linear, any W", "linear, symmetric W"}


def test_a_violation_of_the_class_count_is_seen(table: pd.DataFrame, judged: Judge) -> None:
    changed = table.copy()
    changed.loc[(table["quantity"] == "violation") & (table["draw"] == 12), "value"] = 1.0
    verdicts = {v.claim: v.verdict for v in judged(changed) if v.headline}
    assert (verdicts["classes"], verdicts["classes-kept"]) == ("contradicted", "holds")


def test_the_papers_number_counts_classes_that_change_places(results: Results) -> None:
    """K!(d!)^K of four neurons in two classes is 8; 4 of these keep every neuron in its class."""
    judged, onto, kept = class_counts(results)
    assert (judged.headline, onto.headline, kept.headline) == (True, False, False)
    assert onto.samples[0] == [0.0, 0.0, 0.0]
    assert kept.samples[0] == [8 - 4, 72 - 36, 48 - 8]  # (n, K): (4, 2), (6, 2), (6, 3)


def test_the_figure_has_three_panels(results: Results) -> None:
    figure = STUDY.figure(results)
    assert len(figure.axes) == 3
    assert len(figure.axes[-1].get_yticklabels()) == len(CHANGES)
