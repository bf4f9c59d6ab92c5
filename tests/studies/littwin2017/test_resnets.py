"""The ResNets' trial: absorbed norms against absorbed networks, branches against trainings from scratch."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from torch import nn

from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.remedies.absorbed_norms import normalised_layers, without_norms
from skiplab.reproduction import Bench, Results
from skiplab.reproduction.arithmetic import steady_arithmetic
from skiplab.reproduction.results import matching
from skiplab.studies.littwin2017 import path_measures
from skiplab.studies.littwin2017.figure_2 import STUDY
from skiplab.studies.littwin2017.recording import path_lengths
from skiplab.studies.littwin2017.resnet_measures import branch_shares, scales_of, sizes
from skiplab.studies.littwin2017.resnet_settings import FLOAT32, FROZEN, NO_DECAY, PLAIN, networks
from skiplab.studies.littwin2017.resnets import (
    MAIN,
    RATE_KEPT,
    SCALES_SPARED,
    ImageTraining,
    ResNets,
    build,
    plan_of,
    samples_of,
    train,
)

TINY = ResNets(
    "digits",
    seeds=(0, 1),
    training=ImageTraining(images=40, epochs=3, drops=(1, 2), batch_size=20, padding=1, mixed=False),
    blocks=1,
    filters=(2, 2, 4),
    test_images=20,
    forks=(RATE_KEPT, SCALES_SPARED),
    forked=1,
    fork_at=1,
    fork_epochs=2,
    layers_at=(0, 3),
)
ORDER = ["quantity", "epoch", "layer", "seed"]


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    samples = samples_of("digits", "train", 40, None, "cpu")
    nets = [build(TINY, samples, seed) for seed in TINY.seeds]
    for place, net in enumerate(nets):
        for part in net.modules():
            if isinstance(part, nn.BatchNorm2d):
                nn.init.uniform_(part.running_var, 0.5, 2, generator=torch_generator("variance", place))
                nn.init.uniform_(part.weight, 0.5, 2, generator=torch_generator("scale", place))
    return Ensemble.of(nets)


def test_paths_are_never_measured_in_tf32(ensemble: Ensemble, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def rows(*_: object, **__: object) -> list[dict[str, object]]:
        seen.append(torch.backends.cudnn.allow_tf32)
        return []

    monkeypatch.setattr(path_measures, "path_rows", rows)
    callback = path_lengths((0,), 1, samples_of("digits", "train", 40, None, "cpu"), 4, 2)
    with steady_arithmetic():
        assert torch.backends.cudnn.allow_tf32  # as trials on a GPU train
        callback.measure(ensemble, 0)
        assert torch.backends.cudnn.allow_tf32
    assert seen == [False]


def test_absorbed_norms_are_those_of_absorbed_networks(ensemble: Ensemble) -> None:
    chains = normalised_layers(ensemble.skeleton)
    found = sizes(ensemble, chains)
    for place, net in enumerate(ensemble.members()):
        absorbed = without_norms(net)
        for number, (layer, norm) in enumerate(chains.items()):
            expected = absorbed.get_submodule(layer).weight.norm().item()
            assert found["absorbed"][number, place].item() == pytest.approx(expected, rel=1e-6)
            part = net.get_submodule(norm)
            assert found["scale"][number, place].item() == pytest.approx(part.weight.norm().item(), rel=1e-6)
            inverse = (1 / (part.running_var + part.eps)).mean().sqrt().item()
            assert found["inverse"][number, place].item() == pytest.approx(inverse, rel=1e-6)


def test_the_variance_of_the_branch_is_compared_with_that_of_the_skip(ensemble: Ensemble) -> None:
    images = samples_of("digits", "train", 40, None, "cpu").inputs
    shares = branch_shares(ensemble, images)
    net = ensemble.member(1).eval()
    with torch.no_grad():
        x = net.stem(images)
        for block, share in zip(net.blocks, shares[:, 1], strict=True):
            skip = block.shortcut(x)
            spread = torch.stack([skip[:, channel].var() for channel in range(skip.shape[1])]).mean()
            assert share.item() == pytest.approx(
                (block.norm2.weight.square().mean() / spread).item(), rel=1e-5
            )
            x = block(x)


def test_branches_are_trainings_with_other_settings_from_an_epoch_on() -> None:
    """Networks that branch off after epoch 1 without a drop are those trained from scratch without drops."""
    table = train.function(TINY, Bench())
    assert set(table["branch"]) == {MAIN, RATE_KEPT, SCALES_SPARED}
    scratch = dataclasses.replace(TINY, forks=(), seeds=(0,), layers_at=())
    scratch = dataclasses.replace(scratch, training=dataclasses.replace(TINY.training, epochs=2, drops=()))
    expected = train.function(scratch, Bench())
    for epoch in (1, 2):
        own = matching(table, branch=RATE_KEPT, epoch=epoch, layer=0).sort_values(ORDER)
        other = expected[(expected["epoch"] == epoch) & expected["quantity"].isin(own["quantity"].unique())]
        assert len(own) > 0
        assert own["value"].tolist() == pytest.approx(other.sort_values(ORDER)["value"].tolist(), rel=1e-6)
    kept, lowered = (
        matching(table, branch=branch, epoch=2, layer=0, quantity="absorbed", seed=0)["value"].item()
        for branch in (RATE_KEPT, MAIN)
    )
    assert kept != lowered


def test_spared_scales_do_not_decay_and_everything_else_does(ensemble: Ensemble) -> None:
    samples = samples_of("digits", "train", 40, None, "cpu")
    names = scales_of(ensemble)
    assert len(names) == 7
    for branch, decays in ((MAIN, True), (SCALES_SPARED, False)):
        plan = plan_of(TINY, branch, ensemble, samples, "cpu")
        gradient = torch.zeros_like(ensemble.rows)
        plan.penalties[0].add_gradient_(ensemble.rows, gradient)
        expected = 1e-4 * ensemble.rows
        if not decays:
            for part in ensemble.layout.columns(names):
                expected[:, part] = 0
        torch.testing.assert_close(gradient, expected)


def test_frozen_scales_stay_one() -> None:
    table = train.function(dataclasses.replace(TINY, forks=(), frozen=True, layers_at=()), Bench())
    scale = matching(table, quantity="scale")
    assert scale.groupby("seed")["value"].nunique().eq(1).all()


def test_the_schedule_is_the_public_codes() -> None:
    """Rate .1 to epoch 80, .01 from 81, .001 from 122 to 164, counted from 1."""
    plain = ImageTraining()
    settings = ResNets("digits", (0,), plain, blocks=1, filters=(2, 2, 4))
    samples = samples_of("digits", "train", 40, None, "cpu")
    nets = Ensemble.of([build(settings, samples, 0)])
    plan = plan_of(settings, MAIN, nets, samples, "cpu")
    rates = [plan.rate * plan.schedule.factor(epoch) for epoch in range(plan.epochs)]  # type: ignore[operator]
    assert len(rates) == 164
    assert [rates[number - 1] for number in (1, 80, 81, 121, 122, 164)] == pytest.approx(
        [0.1, 0.1, 0.01, 0.01, 0.001, 0.001]
    )
    assert (plan.optimiser.momentum, plan.optimiser.nesterov) == (0.9, True)  # type: ignore[union-attr]
    assert (plan.batch_size, plan.augmentation.padding) == (128, 4)  # type: ignore[union-attr]
    kept = plan_of(settings, RATE_KEPT, nets, samples, "cpu")
    assert {kept.schedule.factor(epoch) for epoch in (0, 90, 130)} == {1.0}


def test_one_data_set_alone_names_the_same_trials_as_both() -> None:
    """So that each can be trained in a command of its own, and a last one judges all."""
    whole = STUDY.settings["paper"]
    both = networks(Results(whole))
    parts = [networks(Results(dataclasses.replace(whole, data=(name,)))) for name in whole.data]
    assert sorted(map(repr, both)) == sorted(repr(call) for part in parts for call in part)


def test_paper_scale_is_resnet_32_on_both_sets_with_controls() -> None:
    calls = networks(Results(STUDY.settings["paper"]))
    main = [call.settings for call in calls if call.stage == "networks"]
    assert [settings.data for settings in main] == ["cifar10"] * 2 + ["cifar100-fine"] * 2
    assert [settings.seeds for settings in main[:2]] == [(0, 1, 2, 3, 4), (5, 6, 7, 8, 9)]
    assert all((settings.blocks, settings.training) == (5, ImageTraining()) for settings in main)
    assert [settings.forked for settings in main] == [5, 0, 0, 0]
    assert (main[0].fork_at, main[0].fork_epochs) == (80, 121)
    controls = {call.stage: call.settings for call in calls if call.stage != "networks"}
    assert set(controls) == {FROZEN, PLAIN, NO_DECAY, FLOAT32}
    assert controls[FROZEN].frozen
    assert not controls[PLAIN].skips
    assert controls[NO_DECAY].training.decay == 0
    assert not controls[FLOAT32].training.mixed
    assert (len(controls[FLOAT32].seeds), controls[FLOAT32].training.epochs) == (2, 20)
    assert controls[PLAIN].training.epochs == 121
    settings = STUDY.settings["paper"]
    assert (settings.early, settings.late) == ((41, 80), (83, 121))
