from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest

from skiplab.reproduction.results import Results
from skiplab.reproduction.verdict import Verdict, judge
from skiplab.studies.orhan2017.figure_5.evidence import steps_of
from skiplab.studies.orhan2017.figure_5.study import STUDY
from skiplab.studies.orhan2017.figure_5.terms import _cosine
from skiplab.studies.orhan2017.figure_5.trials import FOLLOWED, ONES, SMALL, start


@pytest.fixture(scope="module")
def results(carried_out: Callable[..., Results]) -> Results:
    settings = dataclasses.replace(STUDY.settings["smoke"], runs=5, most=1500, halvings=4)
    return carried_out(STUDY, settings)


@pytest.fixture(scope="module")
def verdicts(results: Results) -> dict[tuple[str, str], Verdict]:
    return {(v.claim, v.condition): v for v in judge(STUDY, results, "quick")}


def test_the_residual_network_is_faster_but_for_a_start_along_the_modes(
    verdicts: dict[tuple[str, str], Verdict],
) -> None:
    found = {condition: v for (claim, condition), v in verdicts.items() if claim == "residual-faster"}
    assert found["(a) small random weights"].verdict == "holds"
    ones = found["(b) plain a = b = [1, 1]/√2 + noise"]
    assert (ones.verdict, ones.headline) == ("holds", True)
    assert "loss stays at 1.125" in ones.detail
    modes = found["(b) plain a = v, b = u"]
    assert (modes.statistic, modes.verdict, modes.headline) == (0.0, "contradicted", False)
    half = found["(b) plain a = [1, 1]/√2, b = u"]
    assert half.detail == "steps: plain 140, residual 75; as printed, plain 243"


def test_skips_raise_the_initial_velocity(verdicts: dict[tuple[str, str], Verdict]) -> None:
    """From 1e-4 the plain velocity is of that size; the residual one is |S − I| to leading order, √2·√(2² + ½²)."""
    row = verdicts["higher-initial-velocity", "(a) small random weights"]
    assert (row.verdict, row.headline) == ("holds", True)
    assert row.detail.startswith("medians 2.92 and 0.000")


def test_corrected_equations_agree_and_printed_ones_do_not(
    verdicts: dict[tuple[str, str], Verdict],
) -> None:
    for claim, agreeing in (("ode-is-descent", True), ("printed-ode-is-descent", False)):
        rows = {condition: v for (name, condition), v in verdicts.items() if name == claim}
        assert len(rows) == len(FOLLOWED)
        for condition in ("residual, small random weights", "plain, a = [1, 1]/√2, b = u"):
            assert (rows[condition].verdict == "holds") == agreeing
    largest = verdicts["printed-ode-is-descent", "plain, a = [1, 1]/√2, b = u"].statistic
    assert largest == pytest.approx(0.713, abs=0.001)


def test_sets_and_terms(verdicts: dict[tuple[str, str], Verdict]) -> None:
    found = {key: v.verdict for key, v in verdicts.items()}
    assert found["singular-sets-stay", "equal in and out"] == "holds"
    assert found["singular-sets-stay", "silent in and out"] == "holds"
    assert found["printed-singular-sets-stay", "equal in"] == "contradicted"
    assert found["printed-singular-sets-stay", "silent in"] == "contradicted"
    assert found["terms-orthogonal", "residual at zero"] == "holds"
    assert [
        where for (claim, where), v in verdicts.items() if claim == "terms-orthogonal" and v.headline
    ] == ["residual at zero"]
    assert found["terms-orthogonal", "residual at zero, while learning, u = v"] == "holds"
    assert found["terms-orthogonal", "residual at zero, while learning"] == "contradicted"
    assert found["skip-is-a-start", "plain a = v, b = u; residual zero"] == "holds"


def test_a_network_that_never_learns_is_not_a_number(results: Results) -> None:
    assert np.isnan(steps_of(results, "a = b = ones, no noise", "plain")).all()
    steps = steps_of(results, ONES, "plain")
    assert ((steps >= 100) & (steps <= 800)).any()


def test_starts_are_the_captions() -> None:
    a, b = start(SMALL, "plain", 0, 1e-4)
    assert 0 < np.abs(np.stack([a, b])).max() < 1e-3
    assert not np.array_equal(a, start(SMALL, "plain", 1, 1e-4)[0])
    assert not np.stack(start(ONES, "residual", 0, 1e-4)).any()
    np.testing.assert_allclose(start(ONES, "plain", 0, 0.0), np.full((2, 2, 2), 1 / np.sqrt(2)))


def test_a_vanishing_term_is_orthogonal_to_everything() -> None:
    one, other = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1e-14, 0.0], [0.0, 0.0]])
    assert _cosine((one, one), (other, other)) == 0
    assert _cosine((one, one), (one, -one)) == pytest.approx(1)


def test_the_figure_has_nine_panels(results: Results) -> None:
    figure = STUDY.figure(results)
    assert len(figure.axes) == 9
    texts = {text.get_text() for text in figure.axes[5].texts}
    assert "never" in texts


def test_another_item_can_share_the_study() -> None:
    alias = dataclasses.replace(STUDY, id="orhan2018/figure-S4", item="Figure S4")
    assert alias.paper == "orhan2018"
    quick = Results(STUDY.settings["quick"])
    assert alias.stages[0](quick) == STUDY.stages[0](quick)
