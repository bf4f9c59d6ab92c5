"""The interlayer cushion's study: made-up cushions, and which ways of measuring make a plain block's vanish."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from oracles.made_up_networks import Row, rows_by_condition, rows_of, verdicts, wiggle
from skiplab.architectures.resnet import ResNet
from skiplab.measurements.noise_stability import interlayer_cushions
from skiplab.randomness import torch_generator
from skiplab.reproduction import Results
from skiplab.reproduction.results import Part
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.studies.yu2019.full_networks import PREFIX, train_full
from skiplab.studies.yu2019.interlayer_cushion import STUDY
from skiplab.studies.yu2019.interlayer_cushion.trials import (
    BATCH,
    CONSTANT,
    EVAL,
    SAMPLE,
    TRAIN,
    untrained_cushions,
)
from skiplab.studies.yu2019.networks import train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL

HELD = dict.fromkeys([claim.id for claim in STUDY.claims], "holds")
RIGHT: dict[str, Any] = {
    "ratio": 1.5,
    "fifth": 1.5,
    "residual": 0.2,
    "plain": 2.7e-7,
    "alone": 1e-6,
    "start": 1.4,
}


def made_up(scale: str = "paper", pairs: int = 8, **changes: Any) -> Results:
    """Cushions as claimed but for what is changed: ratios after training, printed values, and before training."""
    own = RIGHT | changes
    settings = dataclasses.replace(STUDY.settings[scale], runs=pairs)
    trained: list[Row] = []
    grid: list[dict[str, Any]] = []
    end, blocks = settings.cushions_between_at[-1], settings.full_blocks
    for model in (PLAIN, RESIDUAL):
        near = np.array([1 + 0.01 * wiggle(seed + (model == PLAIN)) for seed in range(pairs)])
        for epoch in settings.cushions_between_at:
            for block in range(1, blocks + 1):
                ratio = own["fifth" if block == blocks // 2 + 1 else "ratio"] if model == RESIDUAL else 1.0
                trained += rows_of(
                    PREFIX + model, 20, "interlayer", 0.8 * ratio * near, epoch=epoch, layer=block
                )
        for quantity in ("interlayer_alone", "interlayer_joint"):
            where: dict[str, Any] = {"epoch": end, "layer": blocks // 2 + 1}
            trained += rows_of(PREFIX + model, 20, quantity, own[model] * near, **where)
        cells = [(EVAL, SAMPLE, 16)]
        for size in settings.batch_sizes:
            cells += [(CONSTANT, SAMPLE, size), (TRAIN, SAMPLE, size), (TRAIN, BATCH, size)]
        for mode, over, size in cells:
            vanishes = model == PLAIN and mode == TRAIN and (size == 1 or over == BATCH)
            value = own["alone"] if vanishes else own["start"] if model == RESIDUAL else 1.0
            grid += [
                {
                    "model": PREFIX + model,
                    "seed": seed,
                    "mode": mode,
                    "over": over,
                    "size": size,
                    "value": each,
                }
                for seed, each in enumerate((value * near).tolist())
            ]
    parts = [
        Part(untrained_cushions.name, "draw_untrained", pd.DataFrame(grid)),
        Part(train.name, train_full.__name__, pd.DataFrame(trained)),
    ]
    return Results(settings, parts)


def test_on_cushions_as_claimed_every_claim_holds() -> None:
    assert verdicts(STUDY, made_up()) == HELD


@pytest.mark.parametrize(
    ("changes", "claim"),
    [
        ({"ratio": 0.6}, "residual-larger-cushion"),
        ({"ratio": 1.0, "fifth": 1.0}, "residual-larger-cushion"),
        ({"fifth": 0.9}, "residual-larger-cushion"),
        ({"residual": 0.3}, "printed-residual"),
        ({"residual": 0.1}, "printed-residual"),
        ({"plain": 1e-3}, "printed-plain"),
        ({"plain": 1e-8}, "printed-plain"),
        ({"alone": 0.3}, "vanishes-only-alone"),
        ({"start": 1.0}, "larger-before-training"),
        ({"start": 0.7}, "larger-before-training"),
    ],
)
def test_other_cushions_contradict(changes: dict[str, float], claim: str) -> None:
    assert verdicts(STUDY, made_up(**changes)) == HELD | {claim: "contradicted"}


def test_printed_numbers_are_asked_of_the_papers_networks_alone() -> None:
    found = verdicts(STUDY, made_up("quick", residual=0.9, plain=0.1))
    assert found["printed-residual"] == found["printed-plain"] == "undecided"
    rows = rows_by_condition(STUDY, made_up(), "printed-plain")
    assert [name for name, row in rows.items() if row.headline] == ["training mode, a batch as one"]
    assert rows["evaluation mode"].verdict == "contradicted"


def test_the_fifth_block_and_all_of_them_decide() -> None:
    rows = rows_by_condition(STUDY, made_up(), "residual-larger-cushion")
    assert [name for name, row in rows.items() if row.headline] == ["block 5", "all blocks, a mean"]
    assert len(rows) == 11  # eight other blocks, and before training


@pytest.mark.slow
def test_a_plain_blocks_cushion_vanishes_with_one_image_or_a_whole_batch_in_training_mode_alone() -> None:
    """The erratum, on an untrained block in float64: what ε leaves of 0, and what two images make of it."""
    sizes: dict[str, Any] = {"filters": (4, 4, 4), "dtype": torch.float64}
    x = torch.randn(4, 3, 16, 16, generator=torch_generator("x"), dtype=torch.float64)
    found = {}
    for skips in (False, True):
        net = ResNet(1, generator=torch_generator(0), skips=skips, **sizes)

        def cushion(mode: str, size: int, over: str = SAMPLE, net: ResNet = net) -> float:
            batches = [(each,) for each in x.split(size)]
            own: dict[str, Any] = {"mode": mode, "over": over, "probes": 0}
            return interlayer_cushions(net, batches, layers=["blocks.0"], **own).cushions.mean().item()

        found[skips] = [cushion(TRAIN, 1), cushion(TRAIN, 4, BATCH), cushion(TRAIN, 2), cushion(EVAL, 4)]
    assert max(found[False][:2]) < 1e-4
    assert min(found[False][2:]) > 0.1
    assert min(found[True]) > 0.1


def test_trials_measure_each_mode_once_and_the_same_networks(smoke_run: Callable[[Study], StudyRun]) -> None:
    results = results_of(STUDY, smoke_run(STUDY))
    rows = results.rows(untrained_cushions, model="full-plain", seed=0)
    assert len(rows) == 6  # evaluation; constants of 2; training of 1 and 2, each per image and as one
    assert not rows.duplicated(["mode", "over", "size"]).any()
    of_one, vanishing, trained = STUDY.figure(results).axes
    assert trained.get_xlabel() == "block"
    assert (of_one.get_yscale(), vanishing.get_yscale()) == ("linear", "log")
    bare = Results(dataclasses.replace(results.settings, fully_fledged=False), results.parts)
    assert len(STUDY.figure(bare).axes) == 2


def test_paper_scale_is_the_papers() -> None:
    calls = [call.settings for call in train_full(Results(STUDY.settings["paper"]))]
    assert [each.model for each in calls] == ["full-plain", "full-residual"]
    for each in calls:
        assert (each.depth, each.rate, each.filters, len(each.seeds)) == (20, 0.1, (16, 32, 64), 5)
        assert (each.training.epochs, each.training.drops) == (180, (90, 135))
        assert (each.measures.interlayer, each.measures.interlayer_images) == ((0, 180), 32)
    for scale in ("quick", "paper"):
        grid = [call.settings for call in STUDY.stages[0](Results(STUDY.settings[scale]))]
        assert {each.depth for each in grid} == {20}
        assert {each.filters for each in grid} == {(16, 32, 64)}
