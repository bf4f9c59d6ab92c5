"""Table 4's study on made-up weights, on which the paper is right or wrong, and at smoke scale."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.yu2019.networks import Training
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL
from skiplab.studies.yu2019.table_1.evidence import LOSSES
from skiplab.studies.yu2019.table_4 import STUDY
from skiplab.studies.yu2019.table_4.evidence import ACTING, DECAY_AFTER, DECAY_BEFORE, LOGGED, LOSS_BEFORE
from skiplab.studies.yu2019.untrained import FAN_IN

PAPER = STUDY.settings["paper"]
MODELS = (PLAIN, RESIDUAL)
DEPTHS = (20, 32, 44)
ACTS = "loss-outweighs-acting-decay"


def made_up(
    settings: Any = PAPER,
    *,
    before: float = 1.0,
    after: float = 1.0,
    losses: float = 1.0,
    without: tuple[float, float] = (0.4, 0.012),
) -> Results:
    """Networks whose decay is the printed one times ``before`` and ``after``, and whose losses are, times ``losses``.

    Plain and residual networks are apart by .5 in ln L and .013 in error with decay, and ``without`` by these.
    """
    stages: dict[str, list[Row]] = {"before": [], "train_pairs": [], "without_decay": []}
    for model in MODELS:
        for depth in DEPTHS:
            start, end = LOSS_BEFORE[model][depth], losses * LOSSES[model][depth]
            trained = settings.runs_at(depth)
            for stage, epoch, runs, table, scale, loss in (
                ("before", 0, settings.untrained_runs, DECAY_BEFORE, before, ("clean_loss", start)),
                ("train_pairs", settings.epochs, trained, DECAY_AFTER, after, ("loss", end)),
            ):
                if stage == "train_pairs" and not settings.trained:
                    continue
                squares = scale * table[model][depth] / LOGGED
                for quantity, number in (("squares", squares), loss):
                    values = [number * (1 + 0.004 * wiggle(seed)) for seed in range(runs)]
                    stages[stage] += rows_of(model, depth, quantity, values, epoch=epoch)
                    if (stage, model) == ("before", RESIDUAL):
                        stages[stage] += rows_of(FAN_IN, depth, quantity, values, epoch=epoch)
        for decay, (loss_gap, error_gap) in ((Training.decay, (0.5, 0.013)), (0.0, without)):
            sign = 0.5 if model == PLAIN else -0.5
            runs = range(settings.control_runs if settings.trained else 0)
            own: dict[str, Any] = {"epoch": settings.control_epochs, "decay": decay}
            gaps = [1 + 0.02 * wiggle(seed) for seed in runs]
            numbers = [math.exp(sign * loss_gap * each) for each in gaps]
            stages["without_decay"] += rows_of(model, 20, "loss", numbers, **own)
            numbers = [0.12 + sign * error_gap * each for each in gaps]
            stages["without_decay"] += rows_of(model, 20, "test_error", numbers, **own)
    return results_with(settings, stages)


def test_on_the_papers_numbers_the_decay_that_acts_is_not_small() -> None:
    """The one claim that the paper's own numbers contradict is ours: it logs a 128th of the decay that acts."""
    expected = {claim.id: "holds" for claim in STUDY.claims} | {ACTS: "contradicted"}
    assert verdicts(STUDY, made_up()) == expected
    assert {claim.source for claim in STUDY.claims if claim.id == ACTS} == {"ours"}
    rows = rows_by_condition(STUDY, made_up(), ACTS)
    row = rows["residual, 20 layers, after training"]
    assert row.statistic == pytest.approx(math.log(0.04287 / (128 * 0.0005122)), abs=0.01)
    assert row.verdict == "contradicted"
    assert {r.verdict for r in rows.values() if "before" in r.condition} == {"holds"}
    logged = rows_by_condition(STUDY, made_up(), "loss-outweighs-decay")
    least = logged["residual, 20 layers, after training"]
    assert least.statistic is not None
    assert math.exp(least.statistic) == pytest.approx(0.04287 / 0.0005122, rel=0.01)
    assert least.detail.endswith("81 in the paper")
    assert "4,281 in the paper" in logged["plain, 20 layers, before training"].detail


def test_losses_below_eighty_times_the_printed_decay_contradict() -> None:
    found = verdicts(STUDY, made_up(losses=0.8))
    assert found["loss-outweighs-decay"] == "contradicted"


def test_claims_on_all_depths_wait_for_a_depth_that_is_left_out() -> None:
    results = made_up(dataclasses.replace(PAPER, depths=(20, 32)))
    found = {each.claim for each in judgements(judge(STUDY, results, "paper")) if each.waits}
    assert found == {"loss-outweighs-decay", "decay-after", "residual-weights-smaller"}


def test_the_table_logs_a_128th_of_the_decay_that_acts() -> None:
    """Before training ‖w‖² is known in closed form (test_weights), and the printed term is ½λ‖w‖²/128."""
    assert LOGGED * 128 == ACTING == 5e-5
    for depth, squares in {20: 1379, 32: 2275, 44: 3171}.items():
        assert LOGGED * squares == pytest.approx(DECAY_BEFORE[PLAIN][depth], rel=0.002)
    ends = [128 * DECAY_AFTER[model][depth] for model in MODELS for depth in DEPTHS]
    assert (min(ends), max(ends)) == (pytest.approx(0.066, abs=0.001), pytest.approx(0.151, abs=0.001))


@pytest.mark.parametrize(
    ("changes", "claims"),
    [
        ({"before": 1.1}, {"decay-before", "residual-decay-before"}),
        ({"before": 0.9}, {"decay-before", "residual-decay-before"}),
        ({"without": (0.2, 0.012)}, {"gap-without-decay"}),
        ({"without": (0.4, 0.003)}, {"gap-without-decay"}),
        ({"without": (-0.4, 0.012)}, {"gap-without-decay"}),
    ],
)
def test_other_numbers_contradict(changes: dict[str, Any], claims: set[str]) -> None:
    found = verdicts(STUDY, made_up(**changes))
    wrong = {each for each, verdict in found.items() if verdict == "contradicted"}
    assert wrong - {ACTS} == claims


def test_what_was_chosen_to_meet_the_table_is_ours() -> None:
    """Equation 4's channels and the output layer make up a residual network's decay, not a plain one's."""
    ours = {claim.id for claim in STUDY.claims if claim.source == "ours"}
    assert {"residual-decay-before", "ratio-before"} <= ours
    assert {name.split(",")[0] for name in rows_by_condition(STUDY, made_up(), "decay-before")} == {PLAIN}
    rows = rows_by_condition(STUDY, made_up(), "residual-decay-before")
    assert [row.headline for row in rows.values()] == [True, False] * len(DEPTHS)


def test_the_real_term_is_judged_only_where_norms_are_the_papers() -> None:
    found = made_up(after=1.3)
    rows = rows_by_condition(STUDY, found, ACTS)
    ends = [row for row in rows.values() if "after" in row.condition]
    assert {row.verdict for row in ends} == {"undecided"}
    assert all(row.detail.startswith("L ") and "‖w‖² is not Table 4's" in row.detail for row in ends)
    assert verdicts(STUDY, found)[ACTS] == "undecided"
    assert verdicts(STUDY, found)["decay-after"] == "contradicted"
    # With such norms and losses a hundredfold the claim would hold.
    assert verdicts(STUDY, made_up(losses=100.0))[ACTS] == "holds"


def test_without_training_only_what_precedes_it_is_judged() -> None:
    found = verdicts(STUDY, made_up(dataclasses.replace(PAPER, trained=False)))
    assert {claim for claim, verdict in found.items() if verdict == "holds"} == {
        "decay-before",
        "residual-decay-before",
        "ratio-before",
        "loss-before",
    }
    assert set(found.values()) == {"holds", "undecided"}


def test_no_gap_with_decay_leaves_nothing_to_keep() -> None:
    parts = [
        dataclasses.replace(part, table=part.table.assign(value=1.0))
        if part.stage == "without_decay"
        else part
        for part in made_up().parts
    ]
    rows = rows_by_condition(STUDY, Results(PAPER, parts), "gap-without-decay")
    assert {row.verdict for row in rows.values()} == {"undecided"}
    assert all("there is no gap to keep" in row.detail for row in rows.values())


def test_the_control_trains_pairs_with_and_without_decay() -> None:
    calls = STUDY.stages[2](Results(PAPER))
    assert [(call.settings.model, call.settings.training.decay) for call in calls] == [
        (model, decay) for decay in (1e-4, 0.0) for model in MODELS
    ]
    assert {(call.settings.depth, call.settings.rate, call.settings.training.epochs) for call in calls} == {
        (20, 1e-2, 100)
    }
    assert STUDY.stages[2](Results(dataclasses.replace(PAPER, trained=False))) == []


@pytest.fixture
def smoke(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_the_figure_has_decay_before_and_after_and_ratios(smoke: Results) -> None:
    before, after, ratios = STUDY.figure(smoke).axes
    assert [text.get_text() for text in before.get_xticklabels()] == ["5", "8"]
    assert after.get_title(loc="left") == "after training"
    assert [text.get_text() for text in ratios.get_xticklabels()] == [
        "5\nstart",
        "8\nstart",
        "5\nend",
        "8\nend",
    ]
    papers = STUDY.figure(made_up()).axes[0]
    assert sum(line.get_marker() == "*" for line in papers.get_lines()) == 6
