"""The study of path lengths: what its rows say, and what would contradict each claim."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from tests.oracles.path_subsets import path_parts

from skiplab.architectures.path_toys import BlockToy
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.reproduction import Results
from skiplab.reproduction.judgement import judgements
from skiplab.reproduction.runner import results_of
from skiplab.reproduction.store import StudyRun
from skiplab.reproduction.study import Study
from skiplab.reproduction.verdict import judge
from skiplab.studies.littwin2017 import figure_1d, figure_2, resnets, toy_settings, toys
from skiplab.studies.littwin2017.path_measures import (
    DEPTH,
    GRADIENT_DEPTH,
    GRADIENT_SHARE,
    SHARE,
    first_blocks,
    path_rows,
)
from skiplab.studies.littwin2017.paths import STUDY
from skiplab.studies.littwin2017.paths.evidence import (
    crossing,
    depths,
    early_gradients,
    main_mechanism,
    shorter_than_half,
)
from skiplab.studies.littwin2017.paths.networks import (
    FROZEN,
    SMALL,
    WITH,
    WITHOUT,
    path_epochs,
    resnet_sizes,
    toy_group,
)
from skiplab.studies.littwin2017.resnet_settings import LIMITS, NETWORKS
from skiplab.studies.littwin2017.start_paths import start_paths

WithRows = Callable[[Results, pd.DataFrame], Results]


@pytest.fixture
def results(smoke_run: Callable[[Study], StudyRun]) -> Results:
    return results_of(STUDY, smoke_run(STUDY))


def test_rows_are_those_of_all_subsets_of_blocks() -> None:
    nets = [
        BlockToy(6, 3, 5, 4, generator=torch_generator(seed), norm="after", dtype=torch.float64)
        for seed in range(2)
    ]
    inputs = torch.randn(12, 6, generator=torch_generator("x"), dtype=torch.float64)
    labels = torch.arange(12) % 3
    ensemble = Ensemble.of(nets)
    assert first_blocks(ensemble) == ("blocks.0",)
    frame = pd.DataFrame(path_rows(ensemble, inputs, labels))
    for place, net in enumerate(nets):
        parts = path_parts(net, inputs)
        energy = (parts - parts.mean(-1, keepdim=True)).square().sum((1, 2))
        own = frame[frame["network"] == place]
        shares = own[own["quantity"] == SHARE].sort_values("length")
        assert shares["value"].tolist() == pytest.approx((energy / energy.sum()).tolist())
        assert shares["length"].tolist() == [0, 1, 2, 3, 4]
        depth = float(energy @ torch.arange(5, dtype=torch.float64) / energy.sum())
        assert own[own["quantity"] == DEPTH]["value"].item() == pytest.approx(depth)
    few = pd.DataFrame(path_rows(nets[0], inputs, labels, at_once=5))
    alone = pd.DataFrame(path_rows(nets[0], inputs[:5], labels[:5]))
    for quantity in (GRADIENT_DEPTH, GRADIENT_SHARE):
        ours, theirs = (each[each["quantity"] == quantity]["value"].tolist() for each in (few, alone))
        assert ours == pytest.approx(theirs)
    assert GRADIENT_DEPTH not in set(pd.DataFrame(path_rows(nets[0], inputs))["quantity"])


def test_small_networks_are_figure_1ds_and_resnets_figure_2s_own_trials() -> None:
    settings = STUDY.settings["paper"]
    calls = STUDY.stages[0](Results(settings))
    own = next(call.settings for call in calls if call.stage == WITH)
    (theirs, *_) = figure_1d.STUDY.stages[0](Results(figure_1d.STUDY.settings["paper"]))
    for name in ("seeds", "norm", "width", "blocks", "gain", "mixture", "training", "at"):
        assert getattr(own, name) == getattr(theirs.settings, name)
    assert own.paths_at == (0, 1, 2, 5, 10, 25, 50, 75, 100, 125, 150, 175, 200)
    others = set(figure_2.STUDY.stages[0](Results(figure_2.STUDY.settings["paper"])))
    mine = {call for call in calls if call.trial is resnets.train}
    assert mine
    assert mine <= others


def test_fewer_resnets_are_the_first_of_figure_2s() -> None:
    settings = dataclasses.replace(STUDY.settings["paper"], resnet_runs=5)
    mine = [call for call in STUDY.stages[0](Results(settings)) if call.trial is resnets.train]
    theirs = dataclasses.replace(figure_2.STUDY.settings["paper"], runs=5, controls=("frozen",))
    assert mine == figure_2.STUDY.stages[0](Results(theirs))


def test_quick_scale_trains_no_resnet() -> None:
    calls = STUDY.stages[0](Results(STUDY.settings["quick"]))
    assert {call.trial for call in calls} == {toys.train}
    assert path_epochs(24) == (0, 1, 6, 12, 18, 24)
    assert toy_settings.QUICK["epochs"] == 24


def as_described(results: Results) -> pd.DataFrame:
    """Ten networks per kind in which everything is as the paper has it: paths grow from .2 to .6 of the depth."""
    frame = pd.concat([results.frame.assign(seed=results.frame["seed"] + 10 * k) for k in range(5)])
    frame = frame.reset_index(drop=True)
    frame["quantity"] = frame["quantity"].astype(str)
    noise = np.random.default_rng(0).normal(0, 1e-3, len(frame))
    p = results.settings
    blocks = 3.0  # of toys and of ResNets at smoke scale
    trained = frame["trial"] != start_paths.name
    last = frame.groupby(["trial", "stage"], observed=True)["epoch"].transform("max")
    way = (frame["epoch"] / last).fillna(0)
    frozen = frame["stage"].isin([FROZEN, "frozen"])
    depth = blocks * (0.2 + np.where(frozen, 0.05, 0.4) * way**2)
    scales = frame["gain"].fillna(1) * frame["scale"].fillna(1)
    depth = np.where(trained, depth, blocks * (0.2 + 0.1 * scales)) + noise
    frame["value"] = np.where(frame["quantity"] == DEPTH, depth, frame["value"])
    short = frame["layer"].fillna(0) < blocks / 2
    frame["value"] = np.where(
        frame["quantity"] == GRADIENT_SHARE, np.where(short, 0.4, 0.1) + noise, frame["value"]
    )
    falling = np.exp(-20 * way) + 1e-3 * noise
    frame["value"] = np.where(frame["quantity"].isin(["loss", "test_loss"]), falling, frame["value"])
    assert p.runs == 2
    return frame


def decided(results: Results, with_rows: WithRows, frame: pd.DataFrame) -> dict[str, str]:
    found: dict[str, set[str]] = {}
    for row in judge(STUDY, with_rows(results, frame), "quick"):
        if row.headline:
            found.setdefault(row.claim, set()).add(row.verdict)
    return {
        claim: "contradicted" if "contradicted" in each else sorted(each)[-1] for claim, each in found.items()
    }


def test_all_claims_hold_of_networks_as_the_paper_describes_them(
    results: Results, with_rows: WithRows
) -> None:
    found = decided(results, with_rows, as_described(results))
    assert found == dict.fromkeys([claim.id for claim in STUDY.claims], "holds")


@pytest.mark.parametrize(
    ("quantity", "stage", "new", "claims"),
    [
        (DEPTH, NETWORKS, 1.2, {"deeper-in-training", "deeper-and-deeper"}),
        (DEPTH, WITH, 1.2, set()),
        (GRADIENT_SHARE, WITH, 0.1, {"early-gradients-short"}),
        (GRADIENT_SHARE, WITHOUT, 0.1, set()),
        (DEPTH, FROZEN, None, {"bn-main-mechanism"}),
        ("loss", WITH, 1.0, {"low-loss-before-deep"}),
    ],
)
def test_networks_that_differ_contradict(
    results: Results, with_rows: WithRows, quantity: str, stage: str, new: float | None, claims: set[str]
) -> None:
    frame = as_described(results)
    chosen = (frame["quantity"] == quantity) & (frame["stage"] == stage)
    noise = np.random.default_rng(1).normal(0, 1e-3, len(frame))
    if new is None:  # λ that stays 1 grows as deep as λ that is trained
        free = frame[(frame["quantity"] == quantity) & (frame["stage"] == WITH)]
        frame.loc[chosen, "value"] = free["value"].to_numpy()
    else:
        late = frame["epoch"] == frame.loc[chosen, "epoch"].max()
        chosen &= ~late if quantity == "loss" else True  # a loss that falls in the last epoch only
        frame.loc[chosen, "value"] = (new + noise)[chosen]
    found = decided(results, with_rows, frame)
    assert {claim for claim, verdict in found.items() if verdict == "contradicted"} == claims


def test_nothing_is_judged_of_a_rise_that_is_none(results: Results, with_rows: WithRows) -> None:
    frame = as_described(results)
    flat = (frame["quantity"] == DEPTH) & frame["epoch"].notna()
    frame.loc[flat, "value"] = 1.0
    rows = judge(STUDY, with_rows(results, frame), "quick")
    of_rise = [row for row in rows if row.claim in ("bn-main-mechanism", "low-loss-before-deep")]
    assert {row.verdict for row in of_rise} == {"undecided"}
    assert all("premise not met: D does not rise (+0.00 of 3, " in row.detail for row in of_rise)
    assert {row.condition for row in of_rise if row.headline} == {"ResNet, digits"}
    assert {WITH, WITHOUT} <= {row.condition for row in of_rise if not row.headline}
    tested = [row.detail for row in of_rise if row.claim == "bn-main-mechanism"]
    assert all("test errors" in detail and "with scales that stay 1" in detail for detail in tested)


def test_networks_with_and_without_trained_scales_are_paired_by_seed(
    results: Results, with_rows: WithRows
) -> None:
    frame = as_described(results)
    chosen = (frame["quantity"] == DEPTH) & (frame["stage"] == WITH) & (frame["epoch"] > 0)
    frame.loc[chosen, "value"] += 0.03 * frame.loc[chosen, "seed"] % 0.3
    both = (frame["stage"] == FROZEN) & (frame["seed"] == frame.loc[chosen, "seed"].min())
    rows = main_mechanism(with_rows(results, frame[~both]))
    toys = next(row for row in rows if row.condition == WITH)
    wide = frame[frame["quantity"] == DEPTH].pivot_table(
        index=["stage", "seed"], columns="epoch", values="value", observed=True
    )
    rise, held = ((wide.loc[stage][2] - wide.loc[stage][0]).iloc[1:] / 3 for stage in (WITH, FROZEN))
    assert toys.samples[0].tolist() == pytest.approx((rise / 2 - held).tolist())


def test_half_the_depth_is_on_neither_side_of_it() -> None:
    shares = np.array([[0.0, 0.2, 0.4, 0.3, 0.1]])
    assert shorter_than_half(shares, 4).tolist() == pytest.approx([0.2 + 0.4 / 2])
    assert shorter_than_half(shares[:, :4], 3).tolist() == pytest.approx([0.2])


def test_early_in_training_is_after_an_epoch_and_with_bn(results: Results) -> None:
    rows = list(early_gradients(results))
    headline = {row.condition for row in rows if row.headline}
    assert headline == {f"{WITH}, epoch 1"}  # ResNets of the smoke run are not measured so early
    assert 1 in resnet_sizes(STUDY.settings["paper"]).paths_at
    further = {row.condition for row in rows if not row.headline}
    assert {f"{WITH}, epoch 0", f"{WITHOUT}, epoch 1", "ResNet, digits, epoch 0"} <= further


def test_without_resnets_their_conditions_wait_for_a_run_that_a_command_makes(results: Results) -> None:
    alone = dataclasses.replace(results.settings, resnets=False)
    toys_only = [part for part in results.parts if part.trial != resnets.train.name]
    found = judgements(judge(STUDY, Results(alone, toys_only), "quick"))
    waiting = {each.claim: row for each in found for row in each.rows if row.missing == "not run"}
    assert set(waiting) >= {"deeper-in-training", "bn-main-mechanism", "low-loss-before-deep"}
    assert all("skiplab run littwin2017/paths --scale paper" in row.detail for row in waiting.values())
    assert "resnets" in vars(alone)
    assert STUDY.settings["paper"].resnets


def test_networks_worse_than_the_papers_are_not_judged(
    results: Results, with_rows: WithRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data,) = results.settings.data
    monkeypatch.setitem(LIMITS, data, 0.0)
    strict = dataclasses.replace(results.settings, limited=True)
    frame = as_described(results)
    changed = Results(strict, with_rows(results, frame).parts)
    rows = [
        row for row in judge(STUDY, changed, "quick") if row.claim == "deeper-in-training" and row.headline
    ]
    assert {row.verdict for row in rows} == {"undecided"}


def test_a_curve_crosses_between_epochs_on_a_straight_line() -> None:
    epochs = np.array([0, 1, 5])
    assert crossing(epochs, np.array([0.0, 1.0, 2.0]), 0.5) == pytest.approx(1.0)
    assert crossing(epochs, np.array([2.0, 1.0, 0.0]), 0.75) == pytest.approx(3.0)
    assert crossing(epochs, np.array([0.0, 3.0, 2.0]), 0.5) == pytest.approx(1 / 3)


def test_depths_are_in_the_order_of_epochs_and_networks(results: Results) -> None:
    epochs, found = depths(results, toy_group(results, WITH))
    assert epochs.tolist() == sorted(epochs.tolist())
    assert epochs[0] == 0
    assert found.shape == (2, len(epochs))
    assert ((found > 0) & (found < 1)).all()


def test_the_figure_has_every_kind_of_network(results: Results) -> None:
    over, shares, scales, ratios = STUDY.figure(results).axes
    assert len(over.get_legend().get_texts()) == 5
    assert len(shares.get_legend().get_texts()) == 4
    assert [len(ax.get_legend().get_texts()) for ax in (scales, ratios)] == [3, 3]


def test_one_sentence_is_counted_once_and_our_control_not_at_all() -> None:
    sources: dict[str, Any] = {claim.id: claim.source for claim in STUDY.claims}
    ours = [claim for claim, source in sources.items() if source == "ours"]
    assert ours == ["deeper-and-deeper", "common-scale-changes-nothing"]


def test_only_rows_at_another_scale_of_weights_say_so(results: Results) -> None:
    rows = [row for claim in STUDY.claims for row in claim.evidence(results)]
    assert {row.condition for row in rows if row.other_scale} == {SMALL, "no BN, He's weights"}
