"""Table 5's study on made-up networks, on which the paper is right or wrong, and at smoke scale."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.yu2019.pairs import RESIDUAL
from skiplab.studies.yu2019.table_1 import STUDY as TABLE_1
from skiplab.studies.yu2019.table_2.evidence import PRINTED
from skiplab.studies.yu2019.table_2.trials import SECOND
from skiplab.studies.yu2019.table_5 import STUDY
from skiplab.studies.yu2019.table_5.evidence import (
    BASELINE,
    DENSE,
    DENSE_ERROR,
    DIAGONAL,
    ERRORS,
    LOSSES,
    ONES,
    SHIFTED,
    VARIANTS,
    WIDE_START,
)

PAPER = STUDY.settings["paper"]
RIGHT = {DENSE: DENSE_ERROR, ONES: 0.2, WIDE_START: 0.4, SHIFTED: 0.3152, "zeroed": 0.8}


def made_up(
    settings: Any = PAPER,
    *,
    errors: dict[int, float] = ERRORS,
    losses: dict[int, float] = LOSSES,
    residual: dict[int, float] = BASELINE,
    **variants: float,
) -> Results:
    """Networks with the table's errors and losses, and the variants' errors."""
    own = RIGHT | variants
    stages: dict[str, list[Row]] = {"train_pairs": [], "train_diagonals": []}
    at = {"epoch": settings.epochs}
    runs = range(settings.diagonal_runs)

    def near(number: float) -> list[float]:
        return [number + 0.002 * wiggle(seed) for seed in runs]

    for depth in settings.depths:
        for quantity, number in (
            ("test_error", residual[depth]),
            ("diagonal_test_error", own["zeroed"]),
            ("loss", 0.05),
        ):
            # More residual networks than networks with T′ were trained; the first seeds are shared.
            numbers = [*near(number), 1.0, 1.0]
            stages["train_pairs"] += rows_of(RESIDUAL, depth, quantity, numbers, **at)
        stages["train_diagonals"] += rows_of(DIAGONAL, depth, "test_error", near(errors[depth]), **at)
        stages["train_diagonals"] += rows_of(DIAGONAL, depth, "loss", near(losses[depth]), **at)
    for model in VARIANTS:
        stages["train_diagonals"] += rows_of(model, 20, "test_error", near(own[model]), **at)
    return results_with(settings, stages)


def test_on_the_papers_numbers_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == {claim.id: "holds" for claim in STUDY.claims}


def everywhere(number: float) -> dict[int, float]:
    return dict.fromkeys((20, 32, 44), number)


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"errors": ERRORS | {32: 0.35}}, {"printed-errors", "keep-most-accuracy"}),
        ({"errors": ERRORS | {32: 0.28}}, {"printed-errors"}),
        ({"losses": everywhere(1.1)}, {"printed-losses"}),
        ({"losses": LOSSES | {44: 1.02}}, {"no-degradation"}),
        ({"losses": LOSSES | {44: 0.87}}, {"no-degradation"}),
        ({"residual": everywhere(0.05)}, {"keep-most-accuracy"}),
        ({DENSE: 0.3152}, {"printed-errors", "dense-half-better"}),
        ({DENSE: 0.25}, {"printed-errors"}),
        ({"zeroed": 0.3}, {"zeroed-residual-worse"}),
        ({WIDE_START: 0.3}, {"kwi-worse"}),
        ({SHIFTED: 0.35}, {"a-permutation-does-as-well"}),
        ({SHIFTED: 0.25}, {"a-permutation-does-as-well"}),
    ],
)
def test_other_numbers_contradict(changes: dict[str, Any], wrong: set[str]) -> None:
    found = verdicts(STUDY, made_up(**changes))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == wrong


def test_guessing_contradicts() -> None:
    assert verdicts(STUDY, made_up(errors=everywhere(0.89)))["better-than-guessing"] == "contradicted"


def test_accuracy_is_compared_by_the_seeds_that_both_have() -> None:
    row = rows_by_condition(STUDY, made_up(), "keep-most-accuracy")["20 layers"]
    assert row.statistic == pytest.approx((1 - 0.3152) / (1 - 0.1121) - 0.76, abs=1e-4)
    assert row.paper_value == pytest.approx(0.7713 - 0.76, abs=1e-4)
    assert row.runs == 5


def test_the_residual_column_is_table_2s_plain_one() -> None:
    """So is the 77.13 % that the text computes from it."""
    assert {depth: error for depth, (_, error) in PRINTED[SECOND].items()} == BASELINE
    assert (1 - ERRORS[20]) / (1 - BASELINE[20]) == pytest.approx(0.7713, abs=5e-5)
    assert math.exp(math.log(LOSSES[44] / LOSSES[20])) == pytest.approx(1.001, abs=5e-4)


def _stuck(table: pd.DataFrame) -> pd.Series:
    return table["value"].where(table["quantity"] != "loss", 2.0)


def test_networks_that_have_not_learnt_compare_nothing() -> None:
    parts = [
        dataclasses.replace(part, table=part.table.assign(value=_stuck(part.table)))
        for part in made_up().parts
    ]
    found = verdicts(STUDY, Results(PAPER, parts))
    assert found["dense-half-better"] == found["keep-most-accuracy"] == found["kwi-worse"] == "undecided"
    assert found["better-than-guessing"] == "holds"


def test_printed_levels_are_judged_at_the_papers_length_alone() -> None:
    shorter = verdicts(STUDY, made_up(dataclasses.replace(PAPER, images=1000), losses=everywhere(2.0)))
    assert shorter["printed-errors"] == shorter["printed-losses"] == "undecided"
    assert shorter["dense-half-better"] == "holds"


def test_paper_scale_is_the_papers() -> None:
    residual, diagonal = (stage(Results(PAPER)) for stage in STUDY.stages)
    shared = {
        call
        for call in TABLE_1.stages[0](Results(TABLE_1.settings["paper"]))
        if call.settings.model == RESIDUAL
    }
    assert set(residual) == shared
    rates = {(call.settings.model, call.settings.depth): call.settings.rate for call in diagonal}
    assert rates == {(DIAGONAL, 20): 1e-2, (DIAGONAL, 32): 1e-2, (DIAGONAL, 44): 5e-3} | {
        (model, 20): 1e-2 for model in VARIANTS
    }
    assert {call.settings.seeds for call in diagonal} == {(0, 1, 2, 3, 4)}


@pytest.fixture
def smoke(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_the_figure_has_depths_and_variants(smoke: Results) -> None:
    error, loss, variants = STUDY.figure(smoke).axes
    assert [text.get_text() for text in error.get_legend().get_texts()] == ["Residual", "T′"]
    assert loss.get_ylabel() == "training loss $L$"
    assert len(variants.get_xticklabels()) == 6
    papers = STUDY.figure(made_up())
    stars = [line for line in papers.axes[2].get_lines() if line.get_marker() == "*"]
    assert [list(line.get_ydata()) for line in stars] == [[ERRORS[20], DENSE_ERROR]]
