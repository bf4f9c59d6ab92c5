"""Proposition A1's study: its moments, and what contradicts it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017.proposition_a1.study import STUDY, Nets, Settings, by_run, gradients
from skiplab.theory.shattering.brownian import eigenvalues


@pytest.fixture(scope="module")
def settings() -> Settings:
    return Settings(runs=10, nets=800, neurons=100, points=4, components=4, inputs=32)


@pytest.fixture(scope="module")
def table(settings: Settings) -> pd.DataFrame:
    tables = [call.trial.function(call.settings, Bench()) for call in STUDY.stages[0](settings, [])]
    return STUDY.table(settings, [pd.concat(tables, ignore_index=True)])


def test_no_claim_is_contradicted_and_the_exact_one_holds(table: pd.DataFrame, settings: Settings) -> None:
    verdicts = judge(STUDY, table, settings, "quick")
    assert "contradicted" not in {each.verdict for each in verdicts}
    firm = {each.verdict for each in verdicts if each.claim in ("derivative", "covariance")}
    assert firm == {"holds"}


@pytest.mark.parametrize(
    ("quantity", "claim"),
    [
        ("covariance", "covariance"),
        ("component", "eigenvalues"),
        ("x covariance", "in-x"),
        ("largest", "largest"),
    ],
)
def test_moments_a_third_larger_are_contradicted(
    table: pd.DataFrame, settings: Settings, quantity: str, claim: str
) -> None:
    changed = table.copy()
    changed.loc[table["quantity"] == quantity, "value"] *= 4 / 3
    found = {each.verdict for each in judge(STUDY, changed, settings, "quick") if each.claim == claim}
    assert found == {"contradicted"}


def test_correlated_components_are_contradicted(table: pd.DataFrame, settings: Settings) -> None:
    changed = table.copy()
    mixed = (table["quantity"] == "component") & (table["s"] != table["t"])
    changed.loc[mixed, "value"] += 0.5 * np.sqrt(
        eigenvalues(4)[table.loc[mixed, "s"].astype(int) - 1]
        * eigenvalues(4)[table.loc[mixed, "t"].astype(int) - 1]
    )
    found = {
        each.verdict for each in judge(STUDY, changed, settings, "quick") if each.claim == "uncorrelated"
    }
    assert found == {"contradicted"}


@pytest.mark.parametrize(
    ("correlation", "verdict"), [(0.0, "holds"), (0.008, "holds"), (0.05, "contradicted")]
)
def test_the_margin_of_no_correlation_is_in_r(
    table: pd.DataFrame, settings: Settings, correlation: float, verdict: str
) -> None:
    """Every r² is 1/n + correlation², and the runs' mean of r² − 1/n is exact."""
    changed = table.copy()
    rows = table["quantity"] == "component"
    off = table.loc[rows, "s"] != table.loc[rows, "t"]
    changed.loc[rows, "value"] = np.where(off, np.sqrt(1 / settings.nets + correlation**2), 1.0)
    found = [each for each in judge(STUDY, changed, settings, "quick") if each.claim == "uncorrelated"]
    assert {each.verdict for each in found} == {verdict}
    assert [each.statistic for each in found] == pytest.approx([correlation**2] * 2, abs=1e-15)
    assert {each.margin for each in found} == {0.01**2}


def test_components_have_the_walks_variances(table: pd.DataFrame) -> None:
    found = by_run(table, "normal", "component")
    exact = eigenvalues(4, 100)
    for k in range(1, 5):
        sample = found[(float(k), float(k))]
        assert (
            abs(sample.mean() - exact[k - 1]) < 4 * sample.std() / np.sqrt(len(sample)) + 0.02 * exact[k - 1]
        )


def test_signs_have_unit_steps() -> None:
    """After all 16 neurons f′² is (an even number / 4)²."""
    frame = gradients.function(Nets("signs", 1, 1, 16, 4, 2, 8), Bench())
    last = frame[(frame["quantity"] == "covariance") & (frame["s"] == 1)]["value"].item()
    assert 2 * np.sqrt(last) == pytest.approx(round(2 * np.sqrt(last)))
    assert set(frame["quantity"]).isdisjoint({"path", "in x"})


def test_normal_nets_are_kept_to_be_drawn() -> None:
    frame = gradients.function(Nets("normal", 2, 3, 16, 4, 2, 8), Bench())
    paths = frame[frame["quantity"] == "path"]
    assert sorted(paths["run"].unique()) == [0, 1, 2]
    assert (paths.loc[paths["s"] == 0, "value"] == 0).all()
    assert len(frame[frame["quantity"] == "in x"]) == 2 * 8


def test_the_figure_has_six_panels_and_says_what_is_measured_and_what_is_expected(
    table: pd.DataFrame, settings: Settings
) -> None:
    axes = STUDY.figure(table, settings).axes
    assert len(axes) == 6
    legends = [ax.get_legend() for ax in axes[:4]]
    assert all(legend is not None for legend in legends)
    assert [text.get_text() for text in legends[1].get_texts()] == ["nets", r"$\min(s, t)$"]
    assert [text.get_text() for text in legends[3].get_texts()] == [
        "nets",
        r"$\sqrt{2}\,\sin((k-\frac{1}{2})\pi t)$",
    ]
