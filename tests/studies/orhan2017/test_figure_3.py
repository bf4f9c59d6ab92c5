from __future__ import annotations

import pandas as pd
import pytest
from matplotlib.patches import FancyArrowPatch

from skiplab.architectures.toy import TOY_NETS
from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2017.figure_3 import ARCHITECTURES, STUDY, Settings, expected_skips, factor


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(runs=2)


@pytest.fixture(scope="module")
def table(settings: Settings) -> pd.DataFrame:
    (call,) = STUDY.stages[0](settings, [])
    return STUDY.table(settings, [call.trial.function(call.settings, Bench())])


def test_architectures_are_the_toy_networks() -> None:
    assert set(ARCHITECTURES) == set(TOY_NETS)


def test_expected_skips_and_factors_are_those_of_the_equations() -> None:
    assert [len(expected_skips(name, 5)) for name in ARCHITECTURES] == [0, 10, 30, 20]
    assert (1, 2, 6, 2) in expected_skips("hyper-residual", 5)
    assert (1, 1, 2, 2) in expected_skips("path-residual", 5)
    assert [factor(name, 4) for name in ARCHITECTURES] == [1, 2 / 3, 2 / 5, 2 / 4]


def test_only_the_printed_number_of_weights_is_wrong(table: pd.DataFrame, settings: Settings) -> None:
    for each in judge(STUDY, table, settings, "quick"):
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
    table: pd.DataFrame, settings: Settings, kind: str, claims: set[str]
) -> None:
    rows = table[(table["architecture"] == "residual") & (table["kind"] == kind) & (table["draw"] == 1)]
    verdicts = judge(STUDY, table.drop(rows.index[0]), settings, "quick")
    against = {(v.claim, v.condition) for v in verdicts if v.verdict == "contradicted"}
    assert {(claim, at) for claim, at in against if claim != "weights-printed"} == {
        (claim, "residual") for claim in claims
    }


def test_another_factor_is_seen(table: pd.DataFrame, settings: Settings) -> None:
    rows = (table["architecture"] == "path-residual") & (table["after"] == 3)
    changed = table.assign(strength=table["strength"].where(~rows, table["strength"] * 1.01))
    verdicts = judge(STUDY, changed, settings, "quick")
    against = {v.claim for v in verdicts if v.verdict == "contradicted" and v.condition == "path-residual"}
    assert against == {"weights-printed", "factors", "equalised"}


def test_every_connection_is_drawn(table: pd.DataFrame, settings: Settings) -> None:
    figure = STUDY.figure(table, settings)
    drawn = [sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) for ax in figure.axes]
    assert drawn == [22, 32, 52, 42]
