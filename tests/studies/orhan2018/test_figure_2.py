from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest

from skiplab.reproduction.trial import Bench
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018.figure_2 import STATED, STUDY, Settings
from skiplab.studies.orhan2018.reduced_flows import FORMS, SIGNATURES, _plateau


@pytest.fixture(scope="module")
def settings() -> Settings:
    smoke = STUDY.settings["smoke"]
    return dataclasses.replace(smoke, runs=5, ratios=(STATED[0],), distances=(STATED[1],))


@pytest.fixture(scope="module")
def table(settings: Settings) -> pd.DataFrame:
    tables = [call.trial.function(call.settings, Bench()) for call in STUDY.stages[0](settings, [])]
    return STUDY.table(settings, [pd.concat(tables, ignore_index=True)])


def test_every_part_is_there(table: pd.DataFrame, settings: Settings) -> None:
    agreement = table[table["part"] == "agreement"]
    assert len(agreement) == 5 * len(FORMS) * 2 * 2
    assert set(table.loc[table["part"] == "stability", "condition"]) == set(SIGNATURES)
    assert np.isfinite(table["value"]).all()


def test_the_verdicts(table: pd.DataFrame, settings: Settings) -> None:
    """The relaxed flow holds; Wei's ż does not; the short form is off at small z, and says so in a further row."""
    verdicts = {(v.claim, v.condition): v.verdict for v in judge(STUDY, table, settings, "quick")}
    by_claim = {claim: {v for (c, _), v in verdicts.items() if c == claim} for claim, _ in verdicts}
    assert by_claim["stable-segment"] == {"holds"}
    assert by_claim["dependence-blind"] == {"holds"}
    assert verdicts["slow-flow-agrees", "z rate at z = 0.2"] == "holds"
    assert verdicts["slow-flow-agrees", "z rate at z = 0.2, relaxed, w held"] == "contradicted"
    assert verdicts["frozen-flow-agrees", "z rate at z = 0.9"] == "contradicted"
    assert verdicts["frozen-flow-agrees", "u rate at z = 0.2"] == "holds"


def test_starts_inside_fall_in_and_starts_outside_pass_the_elimination(table: pd.DataFrame) -> None:
    portrait = table[table["part"] == "portrait"]
    for name, falls in (("inside", True), ("near", False), ("far", False)):
        paths = portrait[(portrait["condition"] == name) & (portrait["x"] == portrait["x"].max())]
        heights = paths.loc[paths["quantity"] == "h", "value"]
        assert len(heights) == 5
        assert ((heights < 1e-6) == falls).all()


def test_a_plateau_is_a_slowing_that_ends() -> None:
    falling = np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    assert _plateau(np.array([1.0, 1e-3, 1e-1, 1e-2, 1e-9]), falling) == pytest.approx(2)
    assert _plateau(np.array([1.0, 0.5, 0.2, 0.1, 1e-9]), falling) == 0
    # Noise once the loss has arrived is no plateau.
    assert _plateau(np.array([1.0, 0.5, 1e-20, 1e-12, 1e-20]), np.array([1.0, 0.5, 0.0, 0.0, 0.0])) == 0


def test_the_figure_has_nine_panels_and_a_colour_bar(table: pd.DataFrame, settings: Settings) -> None:
    figure = STUDY.figure(table, settings)
    assert len(figure.axes) == 10
    assert [ax.get_xlabel() for ax in figure.axes[1:3]] == ["$z$", "$z$"]


def test_five_runs_share_a_trial() -> None:
    calls = STUDY.stages[0](Settings(runs=12, seed=2), [])
    units = [call.settings.seeds for call in calls if call.trial.attribute == "agreement"]
    assert [len(seeds) for seeds in units] == [5, 5, 2]
    assert units[-1][-1] == 2_000_011
