"""Table 1's study on made-up networks, on which the paper is right or wrong, and at smoke scale."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.yu2019.controls import PILOTS, common_rate, higher_rates
from skiplab.studies.yu2019.networks import Training
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL
from skiplab.studies.yu2019.table_1 import STUDY
from skiplab.studies.yu2019.table_1.evidence import ERRORS, FACTORS, LOSSES

PAPER = STUDY.settings["paper"]
MODELS = (PLAIN, RESIDUAL)


def made_up(
    losses: dict[str, dict[int, float]] = LOSSES,
    errors: dict[str, dict[int, float]] = ERRORS,
    *,
    slow_losses: dict[str, dict[int, float]] | None = None,
    slow_errors: dict[str, dict[int, float]] | None = None,
    dead: int | dict[float, int] = 13,
    dead_pairs: int = 0,
    settings: Any = PAPER,
) -> Results:
    """Networks that end with these losses and errors, at the paper's rates and at the slow one.

    ``dead`` of 13 plain networks learn nothing at the higher rates (or at each by itself), ``dead_pairs`` at the
    paper's and 32 layers.
    """
    stages: dict[str, list[Row]] = {"train_pairs": [], common_rate.__name__: [], higher_rates.__name__: []}
    slow_losses, slow_errors = slow_losses or losses, slow_errors or errors
    for model in MODELS:
        for depth in settings.depths:
            runs = range(settings.runs_at(depth))
            never = [model == PLAIN and depth == 32 and seed < dead_pairs for seed in runs]
            for quantity, numbers in {
                "loss": [losses[model][depth] * math.exp(0.03 * wiggle(seed)) for seed in runs],
                "clean_loss": [0.8 * losses[model][depth] * math.exp(0.03 * wiggle(seed)) for seed in runs],
                "test_error": [errors[model][depth] + 0.001 * wiggle(seed) for seed in runs],
                "error": [0.9 if each else 0.02 for each in never],
            }.items():
                stages["train_pairs"] += rows_of(model, depth, quantity, numbers, epoch=settings.epochs)
        for depth in (20, 44):
            slow = range(settings.control_runs)
            where: dict[str, Any] = {"epoch": settings.control_epochs, "rate": settings.slow_rate}
            for quantity, numbers in {
                "loss": [slow_losses[model][depth] * math.exp(0.03 * wiggle(seed)) for seed in slow],
                "test_error": [slow_errors[model][depth] + 0.001 * wiggle(seed) for seed in slow],
                "error": [0.02 for _ in slow],
            }.items():
                stages[common_rate.__name__] += rows_of(model, depth, quantity, numbers, **where)
    for rate in settings.higher_rates:
        many = dead[rate] if isinstance(dead, dict) else dead
        ends = [math.nan if seed == 0 else 0.9 if seed < many else 0.6 for seed in range(settings.rate_runs)]
        stages[higher_rates.__name__] += rows_of(PLAIN, 44, "error", ends, epoch=5, rate=rate)
    for words in PILOTS:
        for quantity, number in (("loss", 0.045), ("test_error", 0.115), ("squares", 1234.4)):
            rows = rows_of(RESIDUAL, 20, quantity, [number] * 3, epoch=settings.epochs)
            stages.setdefault(f"pilot, {words}", []).extend(rows)
    return results_with(settings, stages)


def changed(numbers: dict[str, dict[int, float]], **changes: dict[int, float]) -> dict[str, dict[int, float]]:
    return {model: numbers[model] | changes.get(model, {}) for model in MODELS}


def test_on_the_papers_numbers_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == {claim.id: "holds" for claim in STUDY.claims}


LEVEL = {"printed-losses", "printed-errors"}


@pytest.mark.parametrize(
    ("results", "wrong"),
    [
        (
            {"losses": changed(LOSSES, plain={32: 0.04847})},
            {"residual-lower-loss", "plain-degrades-more", "plain-degrades-more-at-equal-rates"},
        ),
        ({"losses": changed(LOSSES, residual={20: 0.08})}, {"residual-lower-loss"}),
        (
            {"errors": changed(ERRORS, plain={32: 0.1143})},
            {"residual-lower-error", "error-gap-grows", "plain-error-rises"},
        ),
        ({"errors": changed(ERRORS, plain={32: 0.127})}, {"error-gap-grows", "plain-error-rises"}),
        ({"errors": changed(ERRORS, residual={44: 0.135})}, {"residual-error-stays"}),
        ({"errors": changed(ERRORS, residual={44: 0.09})}, {"residual-error-stays"}),
        ({"losses": changed(LOSSES, plain={44: 0.125}), "slow_losses": LOSSES}, {"plain-degrades-more"}),
        ({"dead": 2}, {"higher-rates-fail", "every-higher-rate-fails"}),
        ({"dead": {1e-2: 13, 5e-3: 13, 3e-3: 2}}, {"every-higher-rate-fails"}),
        # At equal rates nothing remains of what 44 layers show at unequal ones.
        (
            {"slow_losses": changed(LOSSES, plain={20: 0.043, 44: 0.074})},
            {"residual-lower-loss-at-equal-rates", "plain-degrades-more-at-equal-rates"},
        ),
        (
            {"slow_errors": changed(ERRORS, plain={20: 0.1131, 44: 0.1182})},
            {"residual-lower-error-at-equal-rates"},
        ),
    ],
)  # fmt: skip
def test_other_numbers_contradict(results: dict[str, Any], wrong: set[str]) -> None:
    found = verdicts(STUDY, made_up(**results))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} - LEVEL == wrong


def test_levels_are_judged_beside_the_printed_ones_at_the_papers_length_alone() -> None:
    twice = {model: {depth: 2 * each for depth, each in LOSSES[model].items()} for model in MODELS}
    worse = {model: {depth: each + 0.02 for depth, each in ERRORS[model].items()} for model in MODELS}
    found = verdicts(STUDY, made_up(twice, worse))
    assert {claim for claim, verdict in found.items() if verdict != "holds"} == LEVEL
    shorter = verdicts(STUDY, made_up(twice, worse, settings=dataclasses.replace(PAPER, images=1000)))
    assert {shorter[claim] for claim in LEVEL} == {"undecided"}


def test_statistics_are_those_of_the_paper() -> None:
    rows = rows_by_condition(STUDY, made_up(), "plain-degrades-more")
    assert rows["20 → 44 layers"].statistic == pytest.approx(math.log(6.85 / 1.73), abs=0.005)
    assert rows["20 → 44 layers"].detail.startswith("L grows 6.85 and 1.73 times")
    assert rows["32 → 44 layers"].paper_value == pytest.approx(math.log(3.54 / 1.51))
    assert FACTORS[20, 44] == (
        pytest.approx(0.4950 / 0.07227, abs=0.005),
        pytest.approx(0.07397 / 0.04287, abs=0.005),
    )
    gaps = rows_by_condition(STUDY, made_up(), "error-gap-grows")
    assert gaps["20 → 32 layers"].statistic == pytest.approx(0.0074, abs=1e-6)
    assert [row.condition for row in gaps.values() if row.headline] == ["20 → 32 layers"]
    assert all(row.runs == 6 and row.paired for row in gaps.values())


def test_networks_that_have_not_learnt_say_nothing_of_depth() -> None:
    stuck = {model: {depth: 2.1 * (1 + depth / 200) for depth in LOSSES[model]} for model in MODELS}
    found = verdicts(STUDY, made_up(stuck))
    about_depth = ("error-gap-grows", "plain-degrades-more", "plain-error-rises")
    assert {found[claim] for claim in (*about_depth, "residual-error-stays")} == {"undecided"}
    assert found["residual-lower-loss"] == "contradicted"
    row = rows_by_condition(STUDY, made_up(stuck), "plain-degrades-more")["20 → 44 layers"]
    assert row.detail.startswith("residual networks end at L = 2.3")


def test_claims_on_all_depths_wait_for_a_depth_that_is_left_out() -> None:
    results = made_up(settings=dataclasses.replace(PAPER, depths=(20, 32)))
    found = judgements(judge(STUDY, results, "paper"))
    of_44 = {
        "residual-lower-loss",
        "residual-lower-error",
        "residual-lower-loss-at-equal-rates",
        "residual-lower-error-at-equal-rates",
        "plain-degrades-more",
        "plain-degrades-more-at-equal-rates",
        "plain-error-rises",
        "residual-error-stays",
        "printed-losses",
        "printed-errors",
    }
    assert {each.claim for each in found if each.waits} == of_44
    assert {each.verdict for each in found if each.claim not in of_44} == {"holds"}
    rows = rows_by_condition(STUDY, results, "residual-lower-loss")
    missing = [words for words, row in rows.items() if row.missing]
    assert missing == ["44 layers"]
    assert {row.verdict for words, row in rows.items() if words not in missing} == {"holds"}
    rows = rows_by_condition(STUDY, results, "residual-error-stays")
    assert {words: row.headline for words, row in rows.items()} == {
        "20 → 32 layers": False,
        "20 → 44 layers": True,
    }


def test_the_gap_and_degradation_are_one_claim_of_the_papers() -> None:
    rows = rows_by_condition(STUDY, made_up(), "plain-degrades-more")
    assert [words for words, row in rows.items() if row.headline] == [
        "20 → 32 layers", "20 → 44 layers", "32 → 44 layers",
    ]  # fmt: skip


def test_controls_and_the_literal_reading_of_larger_rates_are_ours() -> None:
    assert [claim.id for claim in STUDY.claims if claim.source == "ours"] == [
        "residual-lower-loss-at-equal-rates",
        "residual-lower-error-at-equal-rates",
        "plain-degrades-more-at-equal-rates",
        "every-higher-rate-fails",
    ]
    rows = rows_by_condition(STUDY, made_up(), "residual-lower-error")
    assert [words for words, row in rows.items() if row.headline] == ["20 layers", "32 layers", "44 layers"]
    rows = rows_by_condition(STUDY, made_up(), "residual-lower-error-at-equal-rates")
    assert [words for words, row in rows.items() if row.headline] == ["44 layers, both at 0.001, 100 epochs"]
    rows = rows_by_condition(STUDY, made_up(), "higher-rates-fail")
    assert list(rows) == ["44 layers, rate 0.01, 5 epochs"]


def test_networks_that_diverge_count_as_dead() -> None:
    row = rows_by_condition(STUDY, made_up(dead=13), "higher-rates-fail")["44 layers, rate 0.01, 5 epochs"]
    assert (row.statistic, row.runs) == (1.0, 13)
    assert row.detail.startswith("dead: 13 of 13")


def test_pairs_that_never_learn_are_told_and_left_out_in_a_further_row() -> None:
    rows = rows_by_condition(STUDY, made_up(dead_pairs=2), "residual-lower-loss")
    assert rows["32 layers"].detail.startswith("never learn: 2 of 6")
    further = rows["32 layers, those that learn"]
    assert (further.headline, further.runs) == (False, 4)
    assert "20 layers, those that learn" not in rows


def test_the_pilot_only_shows_levels() -> None:
    rows = rows_by_condition(STUDY, made_up(), "printed-errors")
    pilots = [row for row in rows.values() if row.condition.startswith("pilot")]
    assert len(pilots) == 3
    assert not any(row.headline for row in pilots)


def test_the_pilot_tells_its_norms_beside_table_4s() -> None:
    rows = rows_by_condition(STUDY, made_up(), "printed-losses")
    details = {row.detail for row in rows.values() if row.condition.startswith("pilot")}
    assert {each.partition(";")[0] for each in details} == {"‖r‖² 1,234, 1,311 in the paper"}


# Plans ---------------------------------------------------------------------------------------------------------


def test_controls_differ_from_the_pairs_in_what_they_control() -> None:
    (_, common, higher, pilot) = (stage(Results(PAPER)) for stage in STUDY.stages)
    assert {(call.settings.model, call.settings.depth, call.settings.rate) for call in common} == {
        (model, depth, 1e-3) for model in MODELS for depth in (20, 44)
    }
    for call in common:
        assert call.settings.training == Training(epochs=100, drops=(60, 80), mixed=True)
        assert call.settings.seeds == (0, 1, 2, 3, 4, 5)
    assert [call.settings.rate for call in higher] == [1e-2, 5e-3, 3e-3]
    assert {
        (call.settings.depth, call.settings.training.epochs, len(call.settings.seeds)) for call in higher
    } == {(44, 5, 13)}
    assert [(call.settings.training.momentum, call.settings.training.padding) for call in pilot] == [
        (0.9, 4),
        (0.0, 4),
        (0.9, None),
    ]
    pairs = STUDY.stages[0](Results(PAPER))
    assert not {seed for call in pilot for seed in call.settings.seeds} & {
        seed for call in pairs for seed in call.settings.seeds
    }


def test_where_all_depths_have_one_rate_nothing_is_controlled() -> None:
    quick = Results(STUDY.settings["quick"])
    assert [len(stage(quick)) for stage in STUDY.stages] == [4, 0, 0, 0]


@pytest.fixture
def smoke(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_the_figure_has_ends_controls_and_factors(smoke: Results) -> None:
    loss, error, factors = STUDY.figure(smoke).axes
    assert [text.get_text() for text in loss.get_xticklabels()] == ["5", "8", "8\n0.001"]
    assert error.get_ylabel() == "test error"
    assert [text.get_text() for text in factors.get_xticklabels()] == ["5→8", "5→8\n0.001"]
    papers = STUDY.figure(made_up()).axes[0]
    stars = [
        float(np.asarray(line.get_ydata())[0]) for line in papers.get_lines() if line.get_marker() == "*"
    ]
    assert sorted(stars) == sorted(number for model in MODELS for number in LOSSES[model].values())
