from __future__ import annotations

import pandas as pd
import pytest

from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2017.notes import STUDY, Settings
from skiplab.studies.orhan2017.singular_points import SHAPES


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(runs=2, samples=100, ratios=(0.5, 1.0))


@pytest.fixture(scope="module")
def table(settings: Settings) -> pd.DataFrame:
    tables = [call.trial.function(call.settings, Bench()) for call in STUDY.stages[0](settings, [])]
    return STUDY.table(settings, [pd.concat(tables, ignore_index=True)])


@pytest.fixture(scope="module")
def verdicts(table: pd.DataFrame, settings: Settings) -> list[Verdict]:
    return judge(STUDY, table, settings, "quick")


def of(verdicts: list[Verdict], claim: str) -> dict[str, str]:
    return {each.condition: each.verdict for each in verdicts if each.claim == claim}


def test_every_corrected_statement_holds(verdicts: list[Verdict]) -> None:
    against = [(each.claim, each.condition) for each in verdicts if each.verdict != "holds"]
    assert {claim for claim, _ in against} == {
        "note-1-rows-printed",
        "note-1-degenerate-printed",
        "note-2-columns-printed",
        "note-2-singular-printed",
        "note-2-residual-printed",
        "note-3-columns-printed",
        "note-3-degenerate-printed",
        "note-3-hyper-printed",
    }


def test_the_printed_ones_fail_where_they_should(verdicts: list[Verdict]) -> None:
    assert of(verdicts, "note-1-degenerate-printed") == {
        "tanh": "contradicted",
        "ReLU": "contradicted",
        "tanh, fewer inputs": "holds",
    }
    assert set(of(verdicts, "note-2-columns-printed").values()) == {"contradicted"}
    residual = of(verdicts, "note-2-residual-printed")
    assert {name for name, verdict in residual.items() if verdict != "holds"} == {
        f"{case}, optimum" for case in SHAPES
    }
    assert of(verdicts, "note-3-degenerate-printed") == {
        "u = 0.429 s": "holds",
        "u = 0.5 s": "contradicted",
        "u = s": "holds",
    }
    assert of(verdicts, "note-3-hyper-printed") == {
        "u = 0.429 s": "contradicted",
        "u = 0.5 s": "holds",
        "u = s": "contradicted",
    }


@pytest.mark.parametrize(
    ("quantity", "value", "claims"),
    [
        ("flat", 1e-6, {"flat"}),
        ("along", 1e-6, {"not-curved"}),
        ("push", 0.0, {"pushed"}),
        ("gauss-newton", 10.0, {"gauss-newton-gains", "zeros-by-rank"}),
        ("a-block", 1.0, {"block-gains", "zeros-by-rank"}),
        ("eq 30", 1e-6, {"note-2-derivatives"}),
    ],
)
def test_one_network_that_disobeys_contradicts_its_claims(
    table: pd.DataFrame,
    settings: Settings,
    verdicts: list[Verdict],
    quantity: str,
    value: float,
    claims: set[str],
) -> None:
    changed = table.copy()
    rows = (table["network"] == "plain") & (table["case"] == "n = m") & (table["point"] == "b overlaps")
    changed.loc[rows & (table["quantity"] == quantity) & (table["draw"] == 1), "value"] = value
    before = {(each.claim, each.condition) for each in verdicts if each.verdict == "contradicted"}
    after = {
        (each.claim, each.condition)
        for each in judge(STUDY, changed, settings, "quick")
        if each.verdict == "contradicted"
    }
    assert {claim for claim, _ in after - before} == claims


def test_the_figure_has_two_panels_a_note(table: pd.DataFrame, settings: Settings) -> None:
    figure = STUDY.figure(table, settings)
    assert len(figure.axes) == 6
    written = [text.get_text() for text in figure.axes[2].texts]
    assert written.count("17") == 1  # both overlap, plain, n = m
    assert len(written) == 31  # six networks at five points, and the panel's letter


def test_trials_hold_ten_networks_of_each_note() -> None:
    calls = STUDY.stages[0](Settings(runs=25, seed=3), [])
    assert len(calls) == 9
    assert calls[-1].settings.seeds == tuple(range(3_000_020, 3_000_025))
