"""Pairs of yu2019's networks in float64: on the same batches they stay together, unless driven apart."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.initialisers import KWI, standard_normal
from skiplab.architectures.resnet import ResNet
from skiplab.architectures.simplified import SimplifiedResNet
from skiplab.architectures.transfer import id_entries, to_plain
from skiplab.checks import Refused, TimeIsUp
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.experiments.equivalent_pairs import EquivalentPair
from skiplab.randomness import torch_generator
from skiplab.reproduction.results import matching
from skiplab.reproduction.trial import Bench
from skiplab.training import Plan, train
from skiplab.training.optimisers import SGD
from skiplab.training.regularisers import weight_decay

SEEDS = (3, 5)
X = standard_normal((44, 3, 8, 8), torch_generator("images"))
Y = torch.randint(3, (44,), generator=torch_generator("labels"))
DATA = TensorSet(X, Y, 3, "noise", "noise")
PROBE = (X[:8], Y[:8])
PLAN = Plan(4, 10, SEEDS, rate=0.02, optimiser=SGD(momentum=0.9))  # 5 steps per epoch
LAYERS = ["blocks.0", "blocks.3"]


def networks() -> Ensemble:
    nets = [
        SimplifiedResNet(
            2, filters=(4, 8), outputs=3, generator=torch_generator(seed), init=KWI(), dtype=torch.float64
        )
        for seed in SEEDS
    ]
    return Ensemble.of(nets)


def trained(*, matching_decay: bool = True, **options: Any) -> pd.DataFrame:
    pair = EquivalentPair.of(networks(), to_plain, PROBE)
    around = id_entries(pair.second.skeleton) if matching_decay else None
    decays = ([weight_decay(pair.first, 0.1)], [weight_decay(pair.second, 0.1, around=around)])
    settings: dict[str, Any] = {"probe": PROBE, "penalties": decays, "at": (0, 1, 20), "layers": LAYERS}
    return pair.train(DATA, PLAN, **(settings | options))


def values(frame: pd.DataFrame, **where: Any) -> Tensor:
    found = matching(frame, **where)
    assert len(found)
    return torch.tensor(found["value"].to_numpy())


def test_a_pair_stays_together_to_rounding() -> None:
    frame = trained(losses_at=range(21))
    for quantity in ("output", "activity", "parameters", "loss"):
        assert values(frame, kind="difference", quantity=quantity).max() < 1e-9
    assert set(matching(frame, kind="difference", quantity="activity")["layer"]) == set(LAYERS)
    # Rounding does drive them apart: the two compute other numbers, not the same ones twice.
    assert values(frame, kind="difference", quantity="parameters", step=20).max() > 1e-17
    for step in (0, 7, 20):
        ours, theirs = (values(frame, kind=kind, quantity="loss", step=step) for kind in ("first", "second"))
        torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_the_first_networks_are_trained_as_by_themselves() -> None:
    frame = trained()
    alone = networks()
    plan = dataclasses.replace(PLAN, penalties=[weight_decay(alone, 0.1)])
    history = train(alone, DATA, plan)
    for member, seed in enumerate(SEEDS):
        found = matching(frame, kind="first", quantity="epoch_loss", seed=seed).sort_values("step")
        assert found["step"].tolist() == [5, 10, 15, 20]
        assert found["value"].tolist() == history.loss[:, member].tolist()


def test_another_decay_drives_a_pair_apart() -> None:
    frame = trained(matching_decay=False)
    parted = [values(frame, kind="difference", quantity="parameters", step=step) for step in (0, 1, 20)]
    assert parted[0].max() < 1e-14
    assert (parted[1] > 1e-6).all()
    assert (parted[2] > 10 * parted[1]).all()


def test_an_interrupted_pair_goes_on_where_it_was(tmp_path: Path) -> None:
    whole = trained()
    for _ in range(6):  # each time one epoch of one kind, then time is up
        with pytest.raises(TimeIsUp):
            trained(bench=Bench(checkpoints=tmp_path, deadline=0.0))
        if (tmp_path / "second" / "training.safetensors").exists():
            break
    again = trained(bench=Bench(checkpoints=tmp_path))
    pd.testing.assert_frame_equal(again, whole)


def test_a_map_that_changes_the_function_is_refused() -> None:
    def halved(net: nn.Module) -> nn.Module:
        plain = to_plain(net)
        plain.get_parameter("output.weight").data.mul_(0.5)
        return plain

    with pytest.raises(
        Refused, match=r"the outputs of a pair differ by .* more than rounding's 1e-09; give a map"
    ):
        EquivalentPair.of(networks(), halved, PROBE)
    full = Ensemble.of(
        [ResNet(1, filters=(4,), outputs=3, generator=torch_generator(0), dtype=torch.float64)]
    )
    with pytest.raises(
        Refused, match="the networks keep running statistics, by which pairs are not compared"
    ):
        EquivalentPair.of(full, lambda net: net, PROBE)
