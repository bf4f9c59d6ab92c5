"""Figure 9's study on made-up curves, on which the paper is right or wrong, and at smoke scale."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from oracles.made_up_networks import Row, results_with, rows_by_condition, verdicts, wiggle
from skiplab.reproduction import Results
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.yu2019.figure_9 import STUDY
from skiplab.studies.yu2019.figure_9.evidence import MEANS, gap, peaks
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL

PAPER = STUDY.settings["paper"]
EPOCHS = np.arange(1, 201)
ENDS = {PLAIN: {20: 0.072} | MEANS[PLAIN], RESIDUAL: {20: 0.043} | MEANS[RESIDUAL]}


def made_up(
    settings: Any = PAPER, *, peak: float = 15.0, height: float = 0.4, slower: float = 0.5, ends: float = 1.0
) -> Results:
    """Losses that fall to the marked means times ``ends``; the gap has its ``height`` at the ``peak``.

    Plain networks of 32 layers at the slow rate have L lower by ``slower`` in ln than those of 44.
    """
    stages: dict[str, list[Row]] = {"train_pairs": [], "slow_start": []}
    hump = EPOCHS / peak * np.exp(1 - EPOCHS / peak)

    def add(stage: str, model: str, depth: int, losses: np.ndarray, runs: int) -> None:
        for seed in range(runs):
            own = losses * math.exp(0.01 * wiggle(seed))
            row = {"seed": seed, "model": model, "depth": depth, "quantity": "loss", "layer": 0}
            stages[stage] += [{**row, "epoch": epoch, "value": value} for epoch, value in enumerate(own, 1)]

    for depth in settings.depths:
        residual = ends * ENDS[RESIDUAL][depth] * (1 + 30 * np.exp(-EPOCHS / 20))
        plain = residual + ends * (ENDS[PLAIN][depth] - ENDS[RESIDUAL][depth]) + height * (hump - hump[-1])
        plain[-1], residual[-1] = ends * ENDS[PLAIN][depth], ends * ENDS[RESIDUAL][depth]
        add("train_pairs", PLAIN, depth, plain, settings.runs_at(depth))
        add("train_pairs", RESIDUAL, depth, residual, settings.runs_at(depth))
        if depth == 44:
            add("slow_start", PLAIN, 32, plain[:15] * math.exp(-slower), settings.deep_runs)
    return results_with(settings, stages)


def test_on_the_papers_numbers_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == {claim.id: "holds" for claim in STUDY.claims}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"peak": 40.0}, {"gap-peaks"}),
        ({"peak": 6.0}, {"gap-peaks"}),
        ({"slower": 0.0}, {"deeper-plain-slower"}),
        ({"slower": -0.5}, {"deeper-plain-slower"}),
        ({"ends": 1.5}, {"printed-means"}),
        ({"ends": 0.6}, {"printed-means"}),
    ],
)
def test_other_numbers_contradict(changes: dict[str, float], wrong: set[str]) -> None:
    found = verdicts(STUDY, made_up(**changes))
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == wrong


def test_a_gap_that_narrows_contradicts() -> None:
    found = verdicts(STUDY, made_up(height=-0.3))
    assert found["gap-peaks"] == found["residual-ahead"] == "contradicted"
    row = rows_by_condition(STUDY, made_up(height=-0.3), "gap-peaks")["20 layers"]
    assert row.detail.endswith("in 0 of 13 pairs")


def test_one_epoch_at_one_depth_contradicts_residual_ahead() -> None:
    results = made_up()
    table = results.parts[0].table.copy()
    here = (table["model"] == PLAIN) & (table["depth"] == 32) & (table["epoch"] == 50)
    other = (table["model"] == RESIDUAL) & (table["depth"] == 32) & (table["epoch"] == 50)
    table.loc[here, "value"] = table.loc[other, "value"].to_numpy() * 0.9
    changed = Results(PAPER, [dataclasses.replace(results.parts[0], table=table), results.parts[1]])
    rows = rows_by_condition(STUDY, changed, "residual-ahead")
    assert [words for words, row in rows.items() if row.verdict == "contradicted"] == ["32 layers, epoch 50"]
    assert len(rows) == 15


def test_the_gap_is_judged_at_every_depth_of_the_figure_and_slowness_at_equal_rates() -> None:
    results = made_up()
    rows = rows_by_condition(STUDY, results, "gap-peaks")
    assert [words for words, row in rows.items() if row.headline] == ["20 layers", "32 layers", "44 layers"]
    assert rows["20 layers"].detail.startswith("wider after 15 epochs than after one by 0.332")
    rows = rows_by_condition(STUDY, results, "deeper-plain-slower")
    headline = [words for words, row in rows.items() if row.headline]
    assert headline == ["32 → 44 layers, rate 0.001, epochs 1 to 15"]
    assert rows[headline[0]].statistic == pytest.approx(0.5)
    assert not rows["32 → 44 layers, the paper's rates"].headline


def test_a_run_without_44_layers_leaves_open_what_is_said_of_them() -> None:
    results = made_up(dataclasses.replace(PAPER, depths=(20, 32)))
    found = {each.claim for each in judgements(judge(STUDY, results, "paper")) if each.waits}
    assert found == {"residual-ahead", "printed-means", "gap-peaks", "deeper-plain-slower"}
    rows = rows_by_condition(STUDY, results, "deeper-plain-slower")
    assert [words for words, row in rows.items() if row.headline] == [
        "32 → 44 layers, rate 0.001, epochs 1 to 15"
    ]
    assert rows["20 → 32 layers, rate 0.01, epochs 1 to 15"].runs == 6


def test_the_peak_is_the_middle_of_the_widest_five_epochs() -> None:
    curve = np.zeros((2, 30))
    curve[0, 10:15] = 1.0  # epochs 11 to 15
    curve[0, 20] = 3.0  # one epoch alone does not make a peak
    curve[1, 5:10] = 1.0
    assert peaks(curve).tolist() == [13.0, 8.0]


def test_the_gap_is_taken_pair_by_pair() -> None:
    found = gap(made_up(), 32)
    assert found.shape == (6, 200)
    assert found[:, -1].mean() == pytest.approx(0.13 - 0.055, abs=1e-3)


def test_neither_peak_nor_first_epochs_are_asked_for_in_short_runs() -> None:
    short = verdicts(STUDY, made_up(dataclasses.replace(PAPER, images=1000), slower=0.0))
    assert short["gap-peaks"] == short["deeper-plain-slower"] == "undecided"


def test_plain_networks_of_faster_depths_are_also_started_slowly() -> None:
    calls = STUDY.stages[1](Results(PAPER))
    assert [(call.settings.depth, call.settings.rate, call.settings.training.epochs) for call in calls] == [
        (32, 1e-3, 15),
        (20, 1e-3, 15),
    ]
    assert {call.settings.seeds for call in calls} == {(0, 1, 2, 3, 4, 5)}
    assert not STUDY.stages[1](Results(STUDY.settings["quick"]))


@pytest.fixture
def smoke(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_the_figure_has_losses_and_gaps(smoke: Results) -> None:
    losses, gaps = STUDY.figure(smoke).axes
    words = [text.get_text() for text in losses.get_legend().get_texts()]
    assert words == ["Plain", "Residual", "5 layers", "8 layers", "Plain, 5 layers at 0.001"]
    assert [text.get_text() for text in gaps.get_legend().get_texts()] == ["5 layers", "8 layers"]
    papers = STUDY.figure(made_up())
    assert papers.axes[0].get_yscale() == "log"
    assert papers.axes[0].get_legend().get_texts()[-1].get_text() == "paper"
