from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
import pytest

from skiplab.figures.style import new_figure
from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2017.figure_6.evidence import U_FASTER, raced
from skiplab.studies.orhan2017.figure_6.plot import Portrait, portrait_panel
from skiplab.studies.orhan2017.figure_6.study import STUDY, Settings
from skiplab.studies.orhan2017.figure_6.trials import NETWORKS


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    return carried_out(STUDY, dataclasses.replace(STUDY.settings["smoke"], runs=5))


@pytest.fixture(scope="module")
def verdicts(results: Results) -> dict[tuple[str, str], Verdict]:
    return {(v.claim, v.condition): v for v in judge(STUDY, results, "quick")}


def test_saddles_are_where_the_paper_says_but_for_true_dense_skips(
    verdicts: dict[tuple[str, str], Verdict],
) -> None:
    rows = {condition: v for (claim, condition), v in verdicts.items() if claim == "saddles"}
    held = {condition for condition, v in rows.items() if v.verdict == "holds"}
    assert held == {"plain at (0, 0)", "residual at (−1, −1)", "hyper-residual by eq 7 at (−1, −2)"}
    dense = rows["true dense skips at (−1, −2)"]
    assert (dense.verdict, dense.statistic, dense.headline) == ("contradicted", pytest.approx(1.0), False)


def test_the_order_of_times_holds_and_that_of_steps_does_not(
    verdicts: dict[tuple[str, str], Verdict],
) -> None:
    def verdict(condition: str) -> str:
        return verdicts["order-of-times", condition].verdict

    assert verdict("plain − residual, 10 layers, spread 0.0001") == "holds"
    assert verdict("residual − hyper-residual, 10 layers, spread 0.0001") == "holds"
    steps = "residual − hyper-residual, 10 layers, spread 0.0001, time × sharpest curvature"
    assert verdict(steps) == "contradicted"
    headlines = [v for v in verdicts.values() if v.claim == "order-of-times" and v.headline]
    assert len(headlines) == 2


def test_the_speed_at_the_origin_depends_on_s(verdicts: dict[tuple[str, str], Verdict]) -> None:
    """√2|s − 1| and √5|s − 2|, so that the paper's claim has no verdict on one against the other."""
    origin = "hyper-faster-at-the-origin"
    three = verdicts[origin, "weights, hyper-residual over residual, s = 3"]
    assert (three.verdict, three.headline) == ("contradicted", False)
    assert three.statistic == pytest.approx(np.log10(np.sqrt(5) / np.sqrt(8)), abs=1e-3)
    assert verdicts[origin, "weights, hyper-residual over residual, s = 1.5"].verdict == "holds"
    for s in (3, 1.5):
        learned = verdicts[origin, f"time until learned, residual over hyper-residual, s = {s}"]
        assert (learned.verdict, learned.headline) == ("holds", False)
    silent = verdicts[origin, "the paper's s and speed"]
    assert (silent.verdict, silent.headline) == ("undecided", True)
    assert "below 1.61 or above 3.72" in silent.detail
    assert "below 1.71 or above 2.67" in silent.detail
    faster = [v for v in verdicts.values() if v.claim == "faster-at-the-origin"]
    headlines = {v.condition: v.verdict for v in faster if v.headline}
    assert headlines == {
        f"{network} over plain, s = {s}": "holds"
        for network in ("residual", "hyper-residual")
        for s in (3, 1.5)
    }
    interval = [v for v in verdicts.values() if v.claim == "residual-faster-for-some-s"]
    assert {v.verdict for v in interval} == {"holds"}
    assert {v.detail for v in interval} == {"between 1.61 and 3.72"}


def test_the_product_is_faster_between_other_values_of_s() -> None:
    """u̇ from one small step of descent on ½(s − (a + c)(b + d))² from the origin."""

    def rise(s: float, c: float, d: float, step: float = 1e-7) -> float:
        u = c * d
        return float(((c + step * (s - u) * d) * (d + step * (s - u) * c) - u) / step)

    low, high = U_FASTER
    for s, residual in ((low - 0.01, False), (low + 0.01, True), (high - 0.01, True), (high + 0.01, False)):
        assert (abs(rise(s, 1, 1)) > abs(rise(s, 1, 2))) == residual


def test_an_s_on_the_wrong_side_contradicts_the_interval(
    results: Results, with_rows: Callable[..., Results]
) -> None:
    table = results.frame
    changed = table.copy()
    rows = (table["quantity"] == "initial speed") & (table["network"] == "residual") & (table["layers"] == 2)
    changed.loc[rows & (table["s"] == 3.0) & (table["run"] == 1), "value"] = 0.1
    found = judge(STUDY, with_rows(results, changed), "quick")
    against = {row.condition for row in found if row.verdict == "contradicted" and row.source == "ours"}
    assert against == {"s = 3"}


def test_deeper_networks_gain_more(verdicts: dict[tuple[str, str], Verdict]) -> None:
    rows = [v for v in verdicts.values() if v.claim == "more-in-deeper-networks"]
    assert [(v.verdict, v.paired) for v in rows] == [("holds", True)] * 2
    gaps = [
        verdicts["order-of-times", f"plain − residual, {layers} layers, spread 0.0001"] for layers in (10, 3)
    ]
    assert rows[0].statistic == pytest.approx((gaps[0].statistic or 0) - (gaps[1].statistic or 0))


def test_eqs_22_and_23_are_descent_under_each_others_labels(
    verdicts: dict[tuple[str, str], Verdict],
) -> None:
    for network in NETWORKS:
        assert verdicts["modes-are-descent", network].verdict == "holds"
    for network in ("residual", "hyper-residual"):
        assert verdicts["modes-are-descent", f"{network}, labels as printed"].verdict == "contradicted"


def test_no_network_with_dense_skips_computes_eq_7(verdicts: dict[tuple[str, str], Verdict]) -> None:
    """At zero weights ten layers of true dense skips give 2⁸, eq 7 gives 9!."""
    row = verdicts["equation-7", "10 layers"]
    assert (row.verdict, row.headline) == ("contradicted", True)
    assert row.statistic == pytest.approx(1 - 2**8 / math.factorial(9), abs=1e-5)
    for claim in ("saddles", "modes-are-descent"):
        judged = {where for (name, where), v in verdicts.items() if name == claim and v.headline}
        assert not any("hyper" in where or "dense" in where for where in judged)


def test_our_own_statements(verdicts: dict[tuple[str, str], Verdict]) -> None:
    for claim in ("starts-far-above", "skip-is-a-start", "solver"):
        assert {v.verdict for (name, _), v in verdicts.items() if name == claim} == {"holds"}


def test_starts_are_the_same_in_every_network(results: Results) -> None:
    """At zero strengths ∂u/∂a is known, so the first answers tell the starts."""
    residual = raced(results, "initial answer", "residual")
    assert len(residual) == 5
    assert len(set(residual)) == 5
    np.testing.assert_allclose(raced(results, "initial answer", "hyper-residual") / 362_880, 1, atol=2e-3)


def test_a_shallower_setting_names_no_race_twice() -> None:
    calls = STUDY.stages[0](Results(Settings(runs=12, layers=3)))
    assert len(set(calls)) == len(calls)


def test_the_figure_has_nine_panels(results: Results) -> None:
    figure = STUDY.figure(results)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert len(titles) == 9
    assert titles[:4] == ["Plain", "Residual", "Hyper-residual, eq 7", "True dense skips"]


@pytest.mark.parametrize("printed", [(-1.0, -1.0), (-1.0, -2.0)])
def test_the_printed_saddle_is_ringed_only_if_it_is_elsewhere(printed: tuple[float, float]) -> None:
    _, axes = new_figure()

    def field(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        left = 2 - (a + 1) * (b + 1)
        return left * (b + 1), left * (a + 1)

    portrait_panel(axes[0, 0], Portrait("dense", field, (-1.0, -1.0), printed, 2.0, []))
    rings = [line for line in axes[0, 0].get_lines() if line.get_markerfacecolor() == "none"]
    assert len(rings) == (printed != (-1.0, -1.0))
    # Both branches of the solutions satisfy (a + 1)(b + 1) = 2.
    for branch in axes[0, 0].get_lines()[:2]:
        a, b = (np.asarray(data, dtype=float) for data in branch.get_data())
        np.testing.assert_allclose((a + 1) * (b + 1), 2)


def test_another_item_can_share_the_study() -> None:
    alias = dataclasses.replace(STUDY, id="orhan2018/figure-S5", item="Figure S5")
    assert alias.paper == "orhan2018"
    quick = Results(STUDY.settings["quick"])
    assert alias.stages[0](quick) == STUDY.stages[0](quick)
