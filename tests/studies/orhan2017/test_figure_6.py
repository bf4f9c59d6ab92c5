from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2017.figure_6 import STUDY, Settings
from skiplab.studies.orhan2017.mode_flows import NETWORKS, Contest, raced


@pytest.fixture(scope="module")
def settings() -> Settings:
    return dataclasses.replace(STUDY.settings["smoke"], runs=5)


@pytest.fixture(scope="module")
def table(settings: Settings) -> pd.DataFrame:
    calls = STUDY.stages[0](settings, [])
    tables = [call.trial.function(call.settings, Bench()) for call in calls]
    return STUDY.table(settings, [pd.concat(tables, ignore_index=True)])


@pytest.fixture(scope="module")
def verdicts(table: pd.DataFrame, settings: Settings) -> dict[tuple[str, str], Verdict]:
    return {(v.claim, v.condition): v for v in judge(STUDY, table, settings, "quick")}


def test_saddles_are_where_the_paper_says_but_for_true_dense_skips(
    verdicts: dict[tuple[str, str], Verdict],
) -> None:
    rows = {condition: v for (claim, condition), v in verdicts.items() if claim == "saddles"}
    held = {condition for condition, v in rows.items() if v.verdict == "holds"}
    assert held == {"plain at (0, 0)", "residual at (−1, −1)", "hyper-residual at (−1, −2)"}
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
    """√2|s − 1| and √5|s − 2|."""
    three = verdicts["faster-at-the-origin", "hyper-residual − residual, s = 3"]
    assert three.verdict == "contradicted"
    assert three.statistic == pytest.approx(np.sqrt(5) - np.sqrt(8), abs=1e-3)
    assert verdicts["faster-at-the-origin", "hyper-residual − residual, s = 1.5"].verdict == "holds"


def test_eqs_22_and_23_are_descent_under_each_others_labels(
    verdicts: dict[tuple[str, str], Verdict],
) -> None:
    for network in NETWORKS:
        assert verdicts["modes-are-descent", network].verdict == "holds"
    for network in ("residual", "hyper-residual"):
        assert verdicts["modes-are-descent", f"{network}, labels as printed"].verdict == "contradicted"


def test_our_own_statements(verdicts: dict[tuple[str, str], Verdict]) -> None:
    for claim in ("starts-far-above", "skip-is-a-start", "solver"):
        assert {v.verdict for (name, _), v in verdicts.items() if name == claim} == {"holds"}


def test_starts_are_the_same_in_every_network(table: pd.DataFrame, settings: Settings) -> None:
    """At zero strengths ∂u/∂a is known, so the first answers tell the starts."""
    deep = Contest(settings.layers - 1, settings.spreads[0], settings.s)
    residual = raced(table, "initial answer", "residual", deep)
    assert len(residual) == 5
    assert residual.nunique() == 5
    np.testing.assert_allclose(raced(table, "initial answer", "hyper-residual", deep) / 362_880, 1, atol=2e-3)


def test_a_shallower_setting_names_no_race_twice() -> None:
    calls = STUDY.stages[0](Settings(runs=12, layers=3), [])
    assert len(set(calls)) == len(calls)


def test_the_figure_has_nine_panels(table: pd.DataFrame, settings: Settings) -> None:
    figure = STUDY.figure(table, settings)
    titles = [ax.get_title(loc="left") for ax in figure.axes]
    assert len(titles) == 9
    assert titles[:4] == ["Plain", "Residual", "Hyper-residual, eq 7", "True dense skips"]


def test_another_item_can_share_the_study() -> None:
    alias = dataclasses.replace(STUDY, id="orhan2018/figure-S5", item="Figure S5")
    assert alias.paper == "orhan2018"
    assert alias.stages[0](alias.settings["quick"], []) == STUDY.stages[0](STUDY.settings["quick"], [])
