"""Proposition A1's study: its moments, and what contradicts it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction import Bench, Results
from skiplab.reproduction.results import matching
from skiplab.reproduction.verdict import judge
from skiplab.studies.balduzzi2017.proposition_a1.evidence import by_run
from skiplab.studies.balduzzi2017.proposition_a1.study import STUDY, Settings
from skiplab.studies.balduzzi2017.proposition_a1.trials import OneLayerNets, gradients
from skiplab.theory.shattering.brownian import eigenvalues

SETTINGS = Settings(runs=10, nets=800, neurons=100, points=4, components=4, inputs=32)
Change = Callable[..., Results]


@pytest.fixture(scope="module")
def results(ran: Callable[..., Results]) -> Results:
    return ran(STUDY, SETTINGS)


def test_no_claim_is_contradicted_and_the_exact_one_holds(results: Results) -> None:
    verdicts = judge(STUDY, results, "quick")
    assert "contradicted" not in {each.verdict for each in verdicts}
    firm = {each.verdict for each in verdicts if each.claim == "derivative" or "covariance" in each.condition}
    assert firm == {"holds"}
    assert {each.claim for each in verdicts if not each.ours} == {"brownian-motion"}


@pytest.mark.parametrize(
    ("quantity", "claim", "where"),
    [
        ("covariance", "brownian-motion", "covariance"),
        ("component", "eigenvalues", ""),
        ("x covariance", "in-x", ""),
        ("largest", "brownian-motion", "largest value"),
    ],
)
def test_moments_a_third_larger_are_contradicted(
    results: Results, changed: Change, quantity: str, claim: str, where: str
) -> None:
    other = changed(results, lambda rows: rows["value"] * 4 / 3, quantity=quantity)
    rows = [each for each in judge(STUDY, other, "quick") if each.claim == claim and where in each.condition]
    assert {each.verdict for each in rows} == {"contradicted"}
    assert {each.condition.split(",")[0] for each in rows} == {"normal weights", "weights ±1/√N"}


def test_correlated_components_are_contradicted(results: Results, changed: Change) -> None:
    def mixed(rows: pd.DataFrame) -> pd.Series:
        s, t = (eigenvalues(4)[rows[name].astype(int) - 1] for name in ("s", "t"))
        return rows["value"] + np.where(rows["s"] != rows["t"], 0.5 * np.sqrt(s * t), 0.0)

    other = changed(results, mixed, quantity="component")
    found = {each.verdict for each in judge(STUDY, other, "quick") if each.claim == "uncorrelated"}
    assert found == {"contradicted"}


@pytest.mark.parametrize(
    ("correlation", "verdict"), [(0.0, "holds"), (0.008, "holds"), (0.05, "contradicted")]
)
def test_the_margin_of_no_correlation_is_in_r(
    results: Results, changed: Change, correlation: float, verdict: str
) -> None:
    """Every r² is 1/n + correlation², and the runs' mean of r² − 1/n is exact."""

    def correlated(rows: pd.DataFrame) -> np.ndarray:
        return np.where(rows["s"] != rows["t"], np.sqrt(1 / SETTINGS.nets + correlation**2), 1.0)

    other = changed(results, correlated, quantity="component")
    found = [each for each in judge(STUDY, other, "quick") if each.claim == "uncorrelated"]
    assert {each.verdict for each in found} == {verdict}
    assert [each.statistic for each in found] == pytest.approx([correlation**2] * 2, abs=1e-15)
    assert {each.margin for each in found} == {0.01**2}


def test_components_have_the_walks_variances(results: Results) -> None:
    found = by_run(results, "normal", "component")
    exact = eigenvalues(4, 100)
    for k in range(1, 5):
        sample = found[(float(k), float(k))]
        assert (
            abs(sample.mean() - exact[k - 1]) < 4 * sample.std() / np.sqrt(len(sample)) + 0.02 * exact[k - 1]
        )


def test_signs_have_unit_steps() -> None:
    """After all 16 neurons f′² is (an even number / 4)²."""
    frame = gradients.function(OneLayerNets("signs", 1, 1, 16, 4, 2, 8), Bench())
    last = matching(frame, quantity="covariance", s=1)["value"].item()
    assert 2 * np.sqrt(last) == pytest.approx(round(2 * np.sqrt(last)))
    assert set(frame["quantity"]).isdisjoint({"path", "in x"})


def test_normal_nets_are_kept_to_be_drawn() -> None:
    frame = gradients.function(OneLayerNets("normal", 2, 3, 16, 4, 2, 8), Bench())
    paths = matching(frame, quantity="path")
    assert sorted(paths["run"].unique()) == [0, 1, 2]
    assert (paths.loc[paths["s"] == 0, "value"] == 0).all()
    assert len(matching(frame, quantity="in x")) == 2 * 8


def test_the_figure_has_six_panels_and_says_what_is_measured_and_what_is_expected(
    results: Results,
) -> None:
    axes = STUDY.figure(results).axes
    assert len(axes) == 6
    legends = [ax.get_legend() for ax in axes[:4]]
    assert all(legend is not None for legend in legends)
    assert [text.get_text() for text in legends[1].get_texts()] == ["nets", r"$\min(s, t)$"]
    assert [text.get_text() for text in legends[3].get_texts()] == [
        "nets",
        r"$\sqrt{2}\,\sin((k-\frac{1}{2})\pi t)$",
    ]
