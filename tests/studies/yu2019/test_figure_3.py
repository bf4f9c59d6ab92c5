"""Figure 3's study on made-up cushions, on which its claims are right or wrong."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.yu2019.figure_3 import STUDY
from skiplab.studies.yu2019.figure_3.plot import over_images
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, train_pairs
from skiplab.studies.yu2019.table_1 import STUDY as TABLE_1

KINDS = ("cushion", "cushion_kept", "cushion_bare", "cushion_least")
HELD = dict.fromkeys([claim.id for claim in STUDY.claims], "holds")


def made_up(
    *,
    ratio: float = 2.0,
    kept: float = 1.2,
    lost: tuple[int, ...] = (1, 20, 32),
    pairs: int = 13,
    also: int = 0,
) -> Results:
    """Cushions that are ``ratio`` times as large in residual networks, ``kept`` times with the 1 in the norm.

    In the first layer, the last, and ``also`` others plain networks have the larger cushion.
    """
    settings = dataclasses.replace(STUDY.settings["paper"], runs=pairs, deep_runs=pairs)
    rows: list[Row] = []
    for depth in settings.depths:
        for layer in range(1, depth + 1):
            worse = layer in (1, depth) or layer in range(2, 2 + also)
            for quantity in KINDS:
                for epoch in (0, settings.epochs):
                    own = 0.5 if worse else kept if quantity == "cushion_kept" else ratio
                    plain = [0.2 * np.exp(0.02 * wiggle(seed)) for seed in range(pairs)]
                    residual = [
                        own * each * np.exp(0.02 * wiggle(seed + 2)) for seed, each in enumerate(plain)
                    ]
                    where: dict[str, Any] = {"epoch": epoch, "layer": layer}
                    rows += rows_of(PLAIN, depth, quantity, plain, **where)
                    rows += rows_of(RESIDUAL, depth, quantity, residual, **where)
    return results_with(settings, {train_pairs.__name__: rows})


def test_on_cushions_as_the_paper_says_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == HELD


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"ratio": 0.8}, {"tenth-layer": "contradicted", "all-but-two-layers": "contradicted"}),
        ({"ratio": 1.025}, {"tenth-layer": "contradicted"}),  # larger, but by less than is worth having
        ({"also": 1}, {"all-but-two-layers": "contradicted"}),
        ({"kept": 1.0}, {"more-than-a-norm": "contradicted"}),
        ({"kept": 0.7}, {"more-than-a-norm": "contradicted"}),
    ],
)
def test_other_cushions_contradict(changes: dict[str, Any], expected: dict[str, str]) -> None:
    found = verdicts(STUDY, made_up(**changes))
    assert found == HELD | expected


def test_two_exceptions_are_allowed_and_named() -> None:
    rows = rows_by_condition(STUDY, made_up(), "all-but-two-layers")
    assert rows["20 layers"].statistic == 1.0  # of three
    assert rows["20 layers"].detail == "exceptions in most pairs: 1 (stem), 20 (output)"
    assert rows["32 layers"].detail == "exceptions in most pairs: 1 (stem), 32 (output)"
    assert rows["20 layers, 1 in the norm too"].headline is False


def test_neighbours_and_other_cushions_are_further_rows() -> None:
    rows = rows_by_condition(STUDY, made_up(), "tenth-layer")
    assert [name for name, row in rows.items() if row.headline] == [
        "20 layers, layer 10",
        "32 layers, layer 10",
    ]
    assert {"20 layers, layer 9", "20 layers, layer 11", "20 layers, layer 10, before training"} < set(rows)
    assert rows["20 layers, layer 10"].statistic == pytest.approx(np.log(2), abs=0.02)


def test_networks_are_those_of_table_1() -> None:
    for scale, settings in STUDY.settings.items():
        others = TABLE_1.stages[0](Results(TABLE_1.settings[scale]))
        assert set(train_pairs(Results(settings))) <= set(others)
    assert {call.settings.depth for call in train_pairs(Results(STUDY.settings["paper"]))} == {20, 32}


def test_the_figure_has_a_column_per_depth(smoke_run: Callable[[Study], StudyRun]) -> None:
    results = results_of(STUDY, smoke_run(STUDY))
    axes = STUDY.figure(results).axes
    assert [ax.get_title(loc="left") for ax in axes[:2]] == ["5 layers, layer 5", "8 layers, layer 8"]
    assert [ax.get_ylabel() for ax in axes] == ["share of images"] * 2 + ["median cushion"] * 2
    spread = over_images(results, PLAIN, 5)
    assert spread.shape == (2, 51)
    assert (np.diff(spread, axis=1) >= 0).all()
