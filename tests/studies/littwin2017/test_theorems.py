from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from skiplab.reproduction.results import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench
from skiplab.studies.littwin2017.theorems import STUDY, cross_entropy, evidence
from skiplab.studies.littwin2017.theorems.cross_entropy import Normalised, forces
from skiplab.studies.littwin2017.theorems.trials import FEWEST, ONE_BLOCK, Steps, _drawn, scale_steps

SMALL = {"step": 1e-7}
BLOCK = evidence.BLOCKS[0]


@pytest.fixture
def results(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_the_papers_claims_hold(verdicts_of: Callable[..., dict[str, str]], results: Results) -> None:
    found = verdicts_of(STUDY, results)
    assert found.pop("cross-entropy") == "undecided"  # two networks
    # Six networks per shape may have none in which skipped layers should shrink.
    assert found.pop("and-only-then") in ("holds", "undecided")
    assert set(found.values()) == {"holds"}


@pytest.mark.parametrize(
    ("column", "value", "where", "claims"),
    [
        ("apart", 1e-6, {"trial": "littwin2017/slope-of-size"}, {"equation-21"}),
        ("found", 0.5, {**SMALL, "trial": "littwin2017/size-steps"}, {"theorem-4"}),
        ("found", -1.0, {**SMALL, "shape": BLOCK, "inside": False}, {"theorem-3-unskipped", "sizes"}),
        ("found", -1.0, {**SMALL, "shape": evidence.ALL_SKIPPED, "inside": False}, {"several-blocks"}),
    ],
)
def test_one_case_against_contradicts(
    contradicted_by: Callable[..., set[str]],
    column: str,
    value: float,
    where: dict[str, Any],
    claims: set[str],
) -> None:
    assert contradicted_by(STUDY, column, value, **where) == claims


def test_skipped_layers_that_shrink_although_they_should_not(
    verdicts_of: Callable[..., dict[str, str]], results: Results, with_rows: Callable[..., Results]
) -> None:
    frame = results.frame.copy()
    chosen = (frame["trial"] == scale_steps.name) & (frame["inside"] == True) & (frame["step"] == 1e-7)  # noqa: E712
    pushed = frame[chosen & (frame["predicted"] > 0) & (frame["shape"] == BLOCK)].index[0]
    frame.loc[pushed, ["found", "through", "beside"]] = (-0.2, 2.0, 1.0)
    found = verdicts_of(STUDY, with_rows(results, frame))
    against = {claim for claim, verdict in found.items() if verdict == "contradicted"}
    assert against == {"theorem-3-skipped", "longer-paths-push", "sizes"}


def test_a_scale_that_shrinks_between_is_no_contradiction(
    verdicts_of: Callable[..., dict[str, str]], results: Results, with_rows: Callable[..., Results]
) -> None:
    """‖g_m‖ between ‖g_p‖ and (p/m)‖g_p‖ dominates nothing."""
    frame = results.frame.copy()
    row = frame[(frame["trial"] == "littwin2017/size-steps") & (frame["step"] == 1e-7)].index[0]
    m, p = frame.loc[row, ["m", "p"]]
    for beside, verdict in (((1 + p / m) / 2, "holds"), (1.1 * p / m, "contradicted"), (0.9, "contradicted")):
        frame.loc[row, ["found", "predicted", "through", "beside"]] = (-0.1, -0.1, 1.0, beside)
        assert verdicts_of(STUDY, with_rows(results, frame))["dominant-gradients"] == verdict


def test_networks_have_paths_scales_of_either_sign_and_both_kinds_of_balance() -> None:
    nets = _drawn(Steps(*ONE_BLOCK[0], (1e-7,), tuple(range(60))))
    assert min(int(gate.sum(1).min()) for gate in nets.gates()) >= FEWEST
    assert 0.3 < float((nets.scales > 0).double().mean()) < 0.7
    through, beside = nets.split_gradient(0)
    longer = (through.norm(dim=1) > beside.norm(dim=1)).double().mean()
    assert 0.1 < float(longer) < 0.9


def test_a_networks_numbers_do_not_depend_on_its_company() -> None:
    own = (*ONE_BLOCK[1], (1e-7,))
    alone, together = (scale_steps.function(Steps(*own, seeds), Bench()) for seeds in ((3,), (2, 3)))
    same = together[together["seed"] == 3].reset_index(drop=True)
    assert same["predicted"].tolist() == pytest.approx(alone["predicted"].tolist(), rel=1e-10)


def test_pushes_with_cross_entropy_are_changes_of_the_force_after_a_small_step() -> None:
    settings = Normalised(depth=3, width=6, samples=40, seeds=(0,))
    weights, inputs, labels = cross_entropy._drawn(settings, 0)
    force, push = cross_entropy._push(weights, inputs, labels)
    slopes, gradients = cross_entropy._slopes(weights, inputs, labels)
    torch.testing.assert_close(force, -slopes)
    norm, rate = sum(each.square().sum() for each in gradients), 1e-6
    after = [each - rate * slope for each, slope in zip(weights, gradients, strict=True)]
    change = slopes - cross_entropy._slopes(after, inputs, labels)[0]
    torch.testing.assert_close(push, change / (rate * norm), rtol=1e-3, atol=1e-4)


def test_forces_are_noted_before_and_after_training(results: Results) -> None:
    rows = results.rows(forces)
    assert rows.groupby("when")["layer"].nunique().tolist() == [3, 3]
    before, after = (
        rows[rows["when"] == when]["push"].to_numpy() for when in (cross_entropy.START, cross_entropy.TRAINED)
    )
    assert abs(before - after).max() > 1e-3


def test_the_figure_has_four_panels(results: Results) -> None:
    assert len(STUDY.figure(results).axes) == 4
