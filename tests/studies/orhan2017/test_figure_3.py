from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest
from matplotlib.patches import FancyArrowPatch

from skiplab.architectures.toy import TOY_NETS
from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2017.figure_3.evidence import expected_skips, factor
from skiplab.studies.orhan2017.figure_3.study import STUDY, Settings
from skiplab.studies.orhan2017.figure_3.trials import ARCHITECTURES

Judge = Callable[[pd.DataFrame], list[Verdict]]


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    return carried_out(STUDY, Settings(runs=2))


@pytest.fixture(scope="module")
def table(results: Results) -> pd.DataFrame:
    return results.frame


@pytest.fixture(scope="module")
def verdicts(results: Results, with_rows: Callable[..., Results]) -> Judge:
    """Judge the claims on a changed table."""
    return lambda frame: judge(STUDY, with_rows(results, frame), "quick")


def test_architectures_are_the_toy_networks() -> None:
    assert set(ARCHITECTURES) == set(TOY_NETS)


def test_expected_skips_and_factors_are_those_of_the_equations() -> None:
    assert [len(expected_skips(name, 5)) for name in ARCHITECTURES] == [0, 10, 30, 20]
    assert (1, 2, 6, 2) in expected_skips("hyper-residual", 5)
    assert (1, 1, 2, 2) in expected_skips("path-residual", 5)
    assert [factor(name, 4) for name in ARCHITECTURES] == [1, 2 / 3, 2 / 5, 2 / 4]


def test_only_the_printed_number_of_weights_is_wrong(results: Results) -> None:
    for each in judge(STUDY, results, "quick"):
        expected = "contradicted" if each.claim == "weights-printed" else "holds"
        assert each.verdict == expected, (each.claim, each.condition)


@pytest.mark.parametrize(
    ("kind", "claims"),
    [
        ("weight", {"weights", "equalised"}),
        ("skip", {"skips", "equalised", "skips-after-the-units"}),
    ],
)
def test_a_connection_that_is_missing_contradicts_its_claims(
    table: pd.DataFrame, verdicts: Judge, kind: str, claims: set[str]
) -> None:
    rows = table[(table["architecture"] == "residual") & (table["kind"] == kind) & (table["draw"] == 1)]
    found = verdicts(table.drop(rows.index[0]))
    against = {(v.claim, v.condition) for v in found if v.verdict == "contradicted"}
    assert {(claim, at) for claim, at in against if claim != "weights-printed"} == {
        (claim, "residual") for claim in claims
    }


def test_another_factor_is_seen(table: pd.DataFrame, verdicts: Judge) -> None:
    rows = (table["architecture"] == "path-residual") & (table["after"] == 3)
    changed = table.assign(strength=table["strength"].where(~rows, table["strength"] * 1.01))
    found = verdicts(changed)
    against = {v.claim for v in found if v.verdict == "contradicted" and v.condition == "path-residual"}
    assert against == {"weights-printed", "factors", "equalised"}


def test_every_connection_is_drawn(results: Results) -> None:
    figure = STUDY.figure(results)
    drawn = [sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) for ax in figure.axes]
    assert drawn == [22, 32, 52, 42]
