"""Figure 12's study on made-up shares of dominant flows, on which its claims are right or wrong."""

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
from skiplab.reproduction.verdict import judge
from skiplab.studies.yu2019.figure_12 import STUDY
from skiplab.studies.yu2019.figure_12.evidence import (
    FIRST,
    FULL,
    LAST,
    SIMPLIFIED,
    layers,
    over_training,
    rise,
)
from skiplab.studies.yu2019.full_networks import PREFIX, train_full
from skiplab.studies.yu2019.interlayer_cushion import STUDY as INTERLAYER
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, train_pairs
from skiplab.studies.yu2019.table_1 import STUDY as TABLE_1

ABOVE, BY_POINTS = "residual-above-plain", "residual-above-plain-by-two-points"
KEEPS_FALLING = "keeps-falling"  # which σ does not that is at its end after the first epoch
HELD = dict.fromkeys([claim.id for claim in STUDY.claims], "holds") | {KEEPS_FALLING: "contradicted"}
SETTINGS = dataclasses.replace(
    STUDY.settings["paper"], runs=10, full_runs=8, flows_at=(0, 1, 200), full_flows_at=(0, 1, 179)
)
# Plain and residual σ in the first and the last layer, at the start and the end of training.
SIMPLE = {PLAIN: ((0.2, 0.16), (0.1, 0.08)), RESIDUAL: ((0.25, 0.8), (0.124, 0.325))}
WHOLE = {PLAIN: ((0.3, 0.2), (0.03, 0.03)), RESIDUAL: ((0.3, 0.7), (0.0297, 0.0921))}


def made_up(simple: dict[str, Any] | None = None, whole: dict[str, Any] | None = None) -> Results:
    """σ that is linear in the layer, and jumps from its start to its end after the first measured epoch."""
    stages: dict[str, list[Row]] = {}
    kinds = (
        (train_pairs.__name__, SIMPLIFIED, "", SIMPLE | (simple or {}), SETTINGS.flows_at, 10),
        (train_full.__name__, FULL, PREFIX, WHOLE | (whole or {}), SETTINGS.full_flows_at, 8),
    )
    for stage, kind, prefix, own, epochs, runs in kinds:
        at = layers(Results(SETTINGS), kind)
        rows: list[Row] = []
        for model, (start, end) in own.items():
            for epoch in epochs:
                low, high = start if epoch == 0 else end
                for place, part in enumerate((at - at[0]) / (at[-1] - at[0]), 1):
                    near = [0.001 * wiggle(seed + place + (model == PLAIN)) for seed in range(runs)]
                    values = [low + (high - low) * part + each for each in near]
                    for quantity in ("flow", "flow_median", "flow_positions", "flow_eval", "flow_train"):
                        rows += rows_of(prefix + model, 20, quantity, values, epoch=epoch, layer=place)
        stages[stage] = rows
    return results_with(SETTINGS, stages)


def test_on_shares_as_the_paper_says_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == HELD


@pytest.mark.slow
@pytest.mark.parametrize(
    ("simple", "whole", "claims"),
    [
        # Below plain in the first layers at the end of training, as the ratio there then is too.
        ({RESIDUAL: ((0.25, 0.8), (0.08, 0.325))}, {}, {ABOVE, BY_POINTS, "printed-ratios"}),
        ({RESIDUAL: ((0.21, 0.8), (0.124, 0.325))}, {}, {BY_POINTS}),  # by less than .02 of the channels
        ({PLAIN: ((0.2, 0.16), (0.11, 0.08)), RESIDUAL: ((0.25, 0.8), (0.124, 0.325))}, {}, {BY_POINTS}),
        ({}, {RESIDUAL: ((0.3, 0.7), (0.0297, 0.05))}, {"printed-ratios"}),
        ({RESIDUAL: ((0.7, 0.25), (0.124, 0.325))}, {}, {"rises-in-residual", "steeper-at-first"}),
        ({RESIDUAL: ((0.4, 0.5), (0.124, 0.325))}, {}, {"steeper-at-first"}),
        ({PLAIN: ((0.12, 0.2), (0.1, 0.08))}, {}, {"plain-does-not-rise"}),
        ({PLAIN: ((0.1, 0.08), (0.1, 0.08))}, {}, {"falls-with-training"}),
        # Falls with the layer at the end: ours alone asks for more.
        ({RESIDUAL: ((0.25, 0.8), (0.2, 0.15))}, {}, {"printed-ratios", "rises-in-residual-at-the-end"}),
        ({}, {RESIDUAL: ((0.2, 0.3), (0.0297, 0.0921))}, {"full-above-plain-at-first"}),
        ({}, {RESIDUAL: ((0.7, 0.3), (0.0297, 0.0921))}, {"full-as-simplified"}),
        ({}, {PLAIN: ((0.03, 0.03), (0.03, 0.03))}, {"full-as-simplified"}),
        ({}, {PLAIN: ((0.3, 0.2), (0.018, 0.03))}, {"full-closer-in-shallow-layers", "printed-ratios"}),
        (
            {PLAIN: SIMPLE[PLAIN]},
            {RESIDUAL: ((0.3, 0.7), (0.0297, 0.3))},
            {"full-alike-at-the-end", "printed-ratios"},
        ),
    ],
)
def test_other_shares_contradict(simple: dict[str, Any], whole: dict[str, Any], claims: set[str]) -> None:
    found = verdicts(STUDY, made_up(simple, whole))
    wrong = {claim for claim, verdict in found.items() if verdict == "contradicted"}
    assert wrong - {KEEPS_FALLING} == claims


def test_every_layer_is_asked_for_at_both_ends_of_training() -> None:
    rows = rows_by_condition(STUDY, made_up(), "residual-above-plain")
    at_ends = [f"layer {layer}, {when}" for when in (FIRST, LAST) for layer in range(1, 19)]
    assert [name for name, row in rows.items() if row.headline] == [*at_ends, "all layers, epoch 1"]
    assert rows["layer 1, first iteration"].statistic == pytest.approx(np.log(0.25 / 0.2), abs=0.01)
    assert rows["all layers, epoch 1"].detail == "larger, as a mean over networks, in 18 of 18 layers"
    rows = rows_by_condition(STUDY, made_up(), BY_POINTS)
    assert [name for name, row in rows.items() if row.headline] == at_ends
    assert "all layers, share of positions, last iteration" in rows


def test_a_rise_in_the_last_layers_alone_is_told() -> None:
    """σ is level but for its last two layers: the line over all layers rises, those over fewer do not."""
    results = made_up()
    table = results.parts[0].table.copy()
    end = (table["epoch"] == 200) & (table["model"] == RESIDUAL) & (table["quantity"] == "flow")
    table.loc[end, "value"] = np.where(
        table.loc[end, "layer"] > 16, 0.3, 0.12 - 0.001 * table.loc[end, "layer"]
    )
    changed = Results(SETTINGS, [dataclasses.replace(results.parts[0], table=table), results.parts[1]])
    rows = rows_by_condition(STUDY, changed, "rises-in-residual-at-the-end")
    assert rows["last iteration"].statistic > 0.05
    assert rows["last iteration, layers 1 to 16"].statistic == pytest.approx(-0.015)
    assert rows["last iteration, layers 1 to 14"].statistic == pytest.approx(-0.013)
    assert [name for name, row in rows.items() if row.headline] == [LAST, "last iteration, layers 1 to 16"]
    found = verdicts(STUDY, changed)
    assert (found["rises-in-residual"], found["rises-in-residual-at-the-end"]) == ("holds", "contradicted")


def test_a_fall_that_is_undone_is_told() -> None:
    results = made_up()
    table = results.parts[0].table.copy()
    table.loc[(table["epoch"] == 1) & (table["model"] == PLAIN), "value"] *= 0.5
    changed = Results(SETTINGS, [dataclasses.replace(results.parts[0], table=table), results.parts[1]])
    row = rows_by_condition(STUDY, changed, "falls-with-training")[
        "simplified plain networks, epochs 1 and 200"
    ]
    assert (row.headline, row.detail) == (False, "least at epoch 1; larger at the end in 10 of 10 networks")
    assert row.statistic < 0


def test_sigma_that_falls_to_the_end_keeps_falling() -> None:
    settings = dataclasses.replace(SETTINGS, flows_at=(0, 100, 200))
    results = made_up()
    table = results.parts[0].table.copy()
    table["epoch"] = table["epoch"].replace({1: 100})
    table.loc[table["epoch"] == 100, "value"] += 0.05
    changed = Results(settings, [dataclasses.replace(results.parts[0], table=table), results.parts[1]])
    rows = rows_by_condition(STUDY, changed, KEEPS_FALLING)
    assert {name: row.verdict for name, row in rows.items()} == {
        f"simplified {model} networks, epochs 100 and 200": "holds" for model in (PLAIN, RESIDUAL)
    }


def test_layers_count_convolutions() -> None:
    assert layers(Results(SETTINGS), SIMPLIFIED).tolist() == list(range(1, 19))
    assert layers(Results(SETTINGS), FULL).tolist() == [1, 3, 5, 7, 9, 11, 13, 15, 17]


def test_a_rise_is_that_of_the_line_over_all_layers() -> None:
    found = rise(made_up(), SIMPLIFIED, RESIDUAL)
    assert found[FIRST].mean() == pytest.approx(0.55, abs=2e-3)
    assert found[LAST].mean() == pytest.approx(0.201, abs=2e-3)


def test_averages_over_training_weigh_epochs_and_not_measurements() -> None:
    """σ falls from the start to the end within the first epoch, half of which counts."""
    found = over_training(made_up(), SIMPLIFIED, RESIDUAL)[:, 0].mean()
    assert found == pytest.approx((0.5 * (0.25 + 0.124) + 199 * 0.124) / 200, abs=1e-3)


def test_printed_ratios_are_asked_of_the_papers_networks_alone() -> None:
    rows = rows_by_condition(STUDY, made_up(), "printed-ratios")
    assert {name: row.paper_value for name, row in rows.items()} == {
        "simplified, layer 1": 1.24,
        "simplified, layer 18": 4.06,
        "full, layer 1": 0.99,
        "full, layer 17": 3.07,
    }
    assert rows["full, layer 17"].statistic == pytest.approx(3.07, rel=0.03)
    shorter = dataclasses.replace(SETTINGS, images=1000)
    results = Results(shorter, made_up().parts)
    assert verdicts(STUDY, results)["printed-ratios"] == "undecided"


def test_networks_are_those_of_table_1_and_of_the_interlayer_cushion() -> None:
    for scale, settings in STUDY.settings.items():
        pairs = set(train_pairs(Results(settings)))
        assert pairs <= set(TABLE_1.stages[0](Results(TABLE_1.settings[scale])))
        assert set(train_full(Results(settings))) == set(train_full(Results(INTERLAYER.settings[scale])))


def test_the_figure_has_the_papers_panels(smoke_run: Callable[[Study], StudyRun]) -> None:
    axes = STUDY.figure(results_of(STUDY, smoke_run(STUDY))).axes
    assert [ax.get_title(loc="left") for ax in axes] == [
        "simplified, 5 layers",
        "simplified, positions",
        "over training",
        "full, 8 layers",
    ]
    assert np.asarray(axes[0].get_lines()[0].get_xdata()).tolist() == [1, 2, 3]
    assert np.asarray(axes[3].get_lines()[0].get_xdata()).tolist() == [1, 3, 5]


def test_without_full_networks_nothing_is_drawn_or_named_of_them() -> None:
    simplified = Results(dataclasses.replace(SETTINGS, fully_fledged=False), made_up().parts[:1])
    axes = STUDY.figure(simplified).axes
    assert [ax.get_title(loc="left") for ax in axes] == [
        "simplified, 20 layers", "simplified, positions", "over training",
    ]  # fmt: skip
    assert [text.get_text() for text in axes[2].get_legend().get_texts()] == ["Plain", "Residual"]
    rows = judge(STUDY, simplified, "paper")
    assert all(row.runs or row.missing for row in rows)
    assert not any("full" in row.condition for row in rows if not row.headline)
