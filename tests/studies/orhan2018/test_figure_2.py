from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import judge
from skiplab.studies.orhan2018.figure_2.evidence import STATED
from skiplab.studies.orhan2018.figure_2.study import STUDY, Settings
from skiplab.studies.orhan2018.figure_2.trials import (
    FORMS,
    SIGNATURES,
    _plateau,
    agreement,
    portrait,
    stability,
)


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    smoke = STUDY.settings["smoke"]
    settings = dataclasses.replace(smoke, runs=5, ratios=(STATED[0],), distances=(STATED[1],))
    return carried_out(STUDY, settings)


def test_every_part_is_there(results: Results) -> None:
    assert len(results.rows(agreement)) == 5 * len(FORMS) * 2 * 2
    assert set(results.rows(stability)["condition"]) == set(SIGNATURES)
    assert np.isfinite(results.frame["value"]).all()


def test_the_verdicts(results: Results) -> None:
    """The relaxed flow holds; Wei's ż does not; the short form is off at small z, and says so in a further row."""
    verdicts = {(v.claim, v.condition): v.verdict for v in judge(STUDY, results, "quick")}
    by_claim = {claim: {v for (c, _), v in verdicts.items() if c == claim} for claim, _ in verdicts}
    assert by_claim["stable-segment"] == by_claim["stability-by-curvature"] == {"holds"}
    assert by_claim["dependence-blind"] == {"holds"}
    assert verdicts["slow-flow-agrees", "z rate at z = 0.2"] == "holds"
    assert verdicts["slow-flow-agrees", "z rate at z = 0.2, relaxed, w held"] == "contradicted"
    assert verdicts["frozen-flow-agrees", "z rate at z = 0.9"] == "contradicted"
    assert verdicts["frozen-flow-agrees", "u rate at z = 0.2"] == "holds"


def test_the_papers_claims_are_of_its_example_and_its_trajectory(results: Results) -> None:
    rows = [row for row in judge(STUDY, results, "quick") if row.headline and not row.ours]
    assert [(row.claim, row.condition) for row in rows] == [
        ("stable-segment", "H negative definite"),
        ("plateau", "two units, 2 % outside the basin"),
    ]


def test_starts_inside_fall_in_and_starts_outside_pass_the_elimination(results: Results) -> None:
    end = results.rows(portrait)["x"].max()
    for name, falls in (("inside", True), ("near", False), ("far", False)):
        heights = results.sample(portrait, by="run", condition=name, quantity="h", x=end)
        assert len(heights) == 5
        assert ((heights < 1e-6) == falls).all()


def test_a_plateau_is_a_slowing_that_ends() -> None:
    falling = np.array([4.0, 3.0, 2.0, 1.0, 0.0])
    assert _plateau(np.array([1.0, 1e-3, 1e-1, 1e-2, 1e-9]), falling) == pytest.approx(2)
    assert _plateau(np.array([1.0, 0.5, 0.2, 0.1, 1e-9]), falling) == 0
    # Noise once the loss has arrived is no plateau.
    assert _plateau(np.array([1.0, 0.5, 1e-20, 1e-12, 1e-20]), np.array([1.0, 0.5, 0.0, 0.0, 0.0])) == 0


def test_the_figure_has_nine_panels_and_a_colour_bar(results: Results) -> None:
    figure = STUDY.figure(results)
    assert len(figure.axes) == 10
    assert [ax.get_xlabel() for ax in figure.axes[1:3]] == ["$z$", "$z$"]


def test_five_runs_share_a_trial() -> None:
    calls = STUDY.stages[0](Results(Settings(runs=12, seed=2)))
    units = [call.settings.seeds for call in calls if call.trial is agreement]
    assert [len(seeds) for seeds in units] == [5, 5, 2]
    assert units[-1][-1] == 2_000_011
