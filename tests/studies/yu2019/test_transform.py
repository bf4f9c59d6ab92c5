"""The transform's study: what holds of real pairs, and what would contradict each claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pandas as pd
import pytest
import torch

from skiplab.ensembles import Ensemble
from skiplab.reproduction import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.yu2019.transferred import MATCHING, NO_DECAY, USUAL, penalties_of, shade_of
from skiplab.studies.yu2019.transform import STUDY
from skiplab.studies.yu2019.transform.trials import FAMILIES, relative, same_function, same_steps

WithRows = Callable[[Results, pd.DataFrame], Results]


@pytest.fixture
def results(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def verdicts(results: Results) -> dict[str, str]:
    """Verdicts by claim, with five pairs made of two, since fewer decide no comparison."""
    several = []
    for part in results.parts:
        extra = [part.table.assign(seed=part.table["seed"] + 10 * k) for k in range(3)]
        several.append(dataclasses.replace(part, table=pd.concat(extra, ignore_index=True)))
    found: dict[str, set[str]] = {}
    for row in judge(STUDY, Results(results.settings, several), "quick"):
        found.setdefault(row.claim, set()).add(row.verdict)
    return {claim: "contradicted" if "contradicted" in each else each.pop() for claim, each in found.items()}


def test_every_claim_holds_of_real_pairs(results: Results) -> None:
    assert verdicts(results) == dict.fromkeys([claim.id for claim in STUDY.claims], "holds")


def test_the_control_and_what_is_so_by_construction_are_ours() -> None:
    ours = [claim.id for claim in STUDY.claims if claim.source == "ours"]
    assert ours == ["inverse", "equal-parameters", "another-decay-parts"]


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"quantity": "residual"}, "inverse"),
        ({"quantity": "plain"}, "inverse"),
        ({"quantity": "block", "resizes": True}, "same-blocks"),
        ({"quantity": "block", "resizes": False}, "same-blocks"),
        ({"quantity": "output", "trial": same_function.name}, "same-function"),
        ({"quantity": "parameters", "trial": same_function.name}, "equal-parameters"),
        ({"quantity": "gradient"}, "equal-gradients"),
        ({"quantity": "cost gradient"}, "equal-costs"),
        ({"quantity": "cost"}, "equal-costs"),
        ({"quantity": "parameters", "decay": NO_DECAY}, "same-training"),
        ({"quantity": "loss", "decay": MATCHING}, "same-training-with-decay"),
    ],
    ids=str,
)
def test_one_pair_that_differs_contradicts(
    results: Results, with_rows: WithRows, changes: dict[str, object], claim: str
) -> None:
    frame = results.frame.copy()
    chosen = pd.Series(True, index=frame.index)
    for column, value in changes.items():
        chosen &= frame[column] == value
    frame.loc[frame[chosen].index[-1], "value"] = 1e-8
    found = verdicts(with_rows(results, frame))
    assert [each for each, verdict in found.items() if verdict == "contradicted"] == [claim]


def test_pairs_that_stay_together_under_the_usual_decay_contradict_the_control(
    results: Results, with_rows: WithRows
) -> None:
    frame = results.frame.copy()
    frame.loc[frame["decay"] == USUAL, "value"] = 1.1e-9
    found = verdicts(with_rows(results, frame))
    assert [each for each, verdict in found.items() if verdict == "contradicted"] == ["another-decay-parts"]


def test_the_plain_networks_have_the_matching_penalty() -> None:
    """Section 4.1's ‖T⁻¹(p)‖² belongs to the plain network; the residual one keeps ‖r‖²."""
    from skiplab.architectures.simplified import SimplifiedResMLP
    from skiplab.architectures.transfer import to_plain
    from skiplab.randomness import torch_generator

    net = SimplifiedResMLP(3, (4, 4, 2), 2, generator=torch_generator(0), dtype=torch.float64)
    residual = Ensemble.of([net])
    plain = residual.mapped(to_plain)
    (ours,), (theirs,) = penalties_of(residual, plain, 2.0)
    squares = sum(float(p.detach().square().sum()) for p in net.parameters())
    assert ours.value(residual.rows).item() == pytest.approx(squares)
    assert theirs.value(plain.rows).item() == pytest.approx(squares)
    _, (usual,) = penalties_of(residual, plain, 2.0, USUAL)
    ones = sum(float(p.detach().square().sum()) for p in to_plain(net).parameters())
    assert usual.value(plain.rows).item() == pytest.approx(ones)
    assert penalties_of(residual, plain, 2.0, NO_DECAY) == ([], [])


def test_relative_differences_are_of_the_largest_value() -> None:
    ours, theirs = torch.tensor([[1.0, 4.0], [0.0, 2.0]]), torch.tensor([[1.0, 2.0], [0.5, 2.0]])
    assert relative(ours, theirs).tolist() == [1.0, 0.25]


def test_both_kinds_of_network_have_blocks_of_every_sort(results: Results) -> None:
    rows = results.rows(same_function, quantity="block")
    assert sorted(rows["layer"].unique()) == [2, 3, 4]
    resized = rows[rows["resizes"]].groupby("family")["layer"].unique()
    assert {family: sorted(resized[family]) for family in FAMILIES} == {family: [3, 4] for family in FAMILIES}


def test_paper_scale_trains_twenty_steps_at_the_papers_depths() -> None:
    settings = STUDY.settings["paper"]
    calls = [call.settings for call in STUDY.stages[0](Results(settings)) if call.trial is same_steps]
    assert {call.epochs * call.images // call.batch_size for call in calls} == {20}
    assert {(call.depth, call.momentum, call.strength, call.rate) for call in calls} == {
        (depth, 0.9, 1e-4, 1e-2) for depth in (20, 32, 44)
    }


def test_the_figure_draws_every_pair_and_both_decays(results: Results) -> None:
    before, training = STUDY.figure(results).axes
    assert [text.get_text() for text in before.get_xticklabels()] == [
        "blocks",
        "logits",
        "gradients",
        "cost gradients",
    ]
    dots = sum(len(line.get_xdata()) for line in before.get_lines()[:-1])
    assert dots == 4 * 2 * 2 * 2  # quantities, families, pairs, initialisations
    assert len(training.get_legend().get_texts()) == 2
    assert shade_of(44, (20, 32, 44)) != shade_of(20, (20, 32, 44))
