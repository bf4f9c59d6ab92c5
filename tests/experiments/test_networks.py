"""The training trial of figures 7 to 12: who is trained, what is recorded, and how members are named."""

from __future__ import annotations

import dataclasses
from typing import Any

import pandas as pd
import pytest
import torch

from skiplab import data
from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.checks import Refused
from skiplab.experiments import building, networks
from skiplab.experiments.networks import GainSettings, Member, Networks, Training, train
from skiplab.reproduction.results import Results
from skiplab.reproduction.store import published
from skiplab.reproduction.trial import Bench
from skiplab.studies.orhan2017 import figure_8
from skiplab.training.memory import footprint

TINY = Training(depth=4, width=8, images=60, epochs=2, batch_size=20)


def settings_of(model: str, count: int = 2, **changes: Any) -> Networks:
    biased = networks.MODELS[model][1] != "free"
    members = [Member(seed, 1.0, 0.5 if biased else 0.0, 0.1 if biased else 0.0) for seed in range(count)]
    call = networks.call(TINY, "digits", model, members, norms_at=(0, 1))
    return dataclasses.replace(call.settings, **changes)


@pytest.mark.parametrize("model", networks.MODELS)
def test_a_trial_records_accuracy_each_epoch_and_norms_by_layer(model: str) -> None:
    table = train.function(settings_of(model), Bench())
    accuracy = table[table["quantity"] == "accuracy"]
    assert sorted(zip(accuracy["seed"], accuracy["epoch"], strict=True)) == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert accuracy["value"].between(0, 1).all()
    norms = table[table["quantity"] == "gradient_norm"]
    assert sorted(norms["layer"].unique()) == [1, 2, 3, 4]
    assert sorted(norms["epoch"].unique()) == [0, 1]
    assert (norms["value"] > 0).all()
    assert table["network_id"].nunique() == 2
    assert not table["diverged"].any()


def test_a_member_equals_the_network_trained_alone() -> None:
    both = train.function(settings_of("bias-symm-break"), Bench())
    alone = train.function(
        settings_of("bias-symm-break", seeds=(1,), gains=(1.0,), sigmas=(0.5,), strengths=(0.1,)), Bench()
    )
    columns = ["network_id", "epoch", "quantity", "layer"]
    member = both[both["seed"] == 1].set_index(columns)["value"].sort_index()
    lone = alone.set_index(columns)["value"].sort_index()
    assert list(member.index) == list(lone.index)
    # float32 training: the same numbers up to the order of sums.
    assert (member - lone).abs().max() < 1e-5


def test_the_same_trial_gives_the_same_table() -> None:
    settings = settings_of("residual")
    pd.testing.assert_frame_equal(
        train.function(settings, Bench()), train.function(settings, Bench()), check_exact=True
    )


def test_models_are_what_they_are_called() -> None:
    samples = data.tensors("digits", images=60)

    def build(model: str, skip: str = "identity") -> torch.nn.Module:
        network = building.build(settings_of(model, skip=skip), samples, 3, 1.0)
        assert isinstance(network, torch.nn.Module)
        return network

    assert isinstance(build("plain"), PlainNet)
    assert isinstance(build("bias-symm-break"), PlainNet)
    assert isinstance(build("residual"), ResidualNet)
    assert isinstance(build("residual", "folded-2"), ResidualNet)
    normalised = [m for m in build("bias-symm-break-bn").modules() if "Norm" in type(m).__name__]
    assert len(normalised) == 1
    assert not [m for m in build("bias-symm-break").modules() if "Norm" in type(m).__name__]
    one, same, other = build("plain"), build("plain"), building.build(settings_of("plain"), samples, 4, 1.0)
    assert torch.equal(next(one.parameters()), next(same.parameters()))
    assert not torch.equal(next(one.parameters()), next(other.parameters()))


def test_a_network_has_one_name_whatever_shares_its_trial() -> None:
    alone = Networks("digits", "plain", (7,), (0.3,), TINY)
    among = Networks("digits", "plain", (6, 7), (0.3, 0.3), TINY, norms_at=(0,))
    assert networks.network_id(alone, 0) == networks.network_id(among, 1)
    others = [
        dataclasses.replace(alone, seeds=(8,)),
        dataclasses.replace(alone, gains=(0.4,)),
        dataclasses.replace(alone, model="residual"),
        dataclasses.replace(alone, skip="orthogonal"),
        dataclasses.replace(alone, sigmas=(0.1,)),
        dataclasses.replace(alone, strengths=(0.1,)),
        dataclasses.replace(alone, rate=1e-3),
        dataclasses.replace(alone, training=dataclasses.replace(TINY, epochs=3)),
    ]
    names = {networks.network_id(each, 0) for each in (alone, *others)}
    assert len(names) == 9


def test_mixed_precision_is_another_trial_of_other_networks() -> None:
    call = networks.call(Training(), "cifar10", "plain", [Member(1, 0.3)])
    mixed = networks.call(Training(mixed=True), "cifar10", "plain", [Member(1, 0.3)])
    assert call.key(str) != mixed.key(str)
    assert networks.network_id(call.settings, 0) != networks.network_id(mixed.settings, 0)
    # As it was in the tables published before there was mixed precision.
    assert networks.network_id(call.settings, 0) == "4761879a71ca"
    assert GainSettings(mixed=True).search.mixed


def test_free_models_carry_no_bias_settings() -> None:
    call = networks.call(TINY, "digits", "plain", [Member(0, 1.0, 0.5, 0.1)])
    assert (call.settings.sigmas, call.settings.strengths) == ((), ())
    assert call.label == "digits, plain, 1 networks"
    folded = networks.call(TINY, "digits", "residual", [Member(0, 1.0)] * 2, skip="folded-1", what="search")
    assert folded.label == "digits, residual (folded-1), search, 2 networks"


def test_profiles_belong_to_their_model_alone() -> None:
    members = [Member(0, 1.0, 0.5, 0.1, slope=-0.1, offset=0.3), Member(0, 1.0, slope=-0.1, offset=0.2)]
    profiled = networks.together(TINY, "digits", "bias-profile", members)
    assert (profiled.slopes, profiled.offsets) == ((-0.1, -0.1), (0.3, 0.2))
    assert (profiled.sigmas, profiled.strengths) == ((), ())
    assert networks.network_id(profiled, 0) != networks.network_id(profiled, 1)
    for model in ("plain", "bias-symm-break"):
        other = networks.together(TINY, "digits", model, members)
        assert (other.slopes, other.offsets) == ((), ())
    table = train.function(profiled, Bench())
    assert set(zip(table["slope"], table["offset"], strict=True)) == {(-0.1, 0.3), (-0.1, 0.2)}
    assert "slope" not in train.function(settings_of("plain"), Bench())


def test_a_zero_profile_trains_as_the_plain_network() -> None:
    plain, zero = (train.function(settings_of(model), Bench()) for model in ("plain", "bias-profile"))
    assert plain["value"].tolist() == zero["value"].tolist()


def test_published_networks_keep_their_keys() -> None:
    """Fields that were added since must not change what settings are called."""
    store = published()
    (run,) = store.runs("orhan2017/figure-8")
    calls = figure_8.EXPERIMENT.search(Results(figure_8.STUDY.settings["paper"]))
    assert len(calls) == 3
    assert all(store.has(call.key(run.provenance["data"].__getitem__)) for call in calls)


def test_search_seeds_are_apart_from_deciding_ones() -> None:
    for seed in (0, 3):
        final, search = networks.final_seeds(seed, 20), networks.search_seeds(seed, 5)
        assert not set(final) & set(search)
    with pytest.raises(Refused, match="runs is 501, but a seed has room for 500 runs that decide"):
        networks.final_seeds(0, 501)


def test_searches_may_be_shorter() -> None:
    settings = GainSettings(epochs=30, search_epochs=15, width=32)
    assert (settings.training.epochs, settings.search.epochs) == (30, 15)
    assert dataclasses.replace(settings.search, epochs=30) == settings.training


def test_digits_keep_their_pixels() -> None:
    reduced = dataclasses.replace(TINY, components=10)
    assert building.components(Networks("digits", "plain", (0,), (1.0,), reduced)) is None
    assert building.components(Networks("cifar10", "plain", (0,), (1.0,), reduced)) == 10


def test_memory_is_that_of_the_networks_that_a_trial_trains() -> None:
    settings = settings_of("residual", count=3)
    samples = building.samples_of("digits", 60, None, "cpu")
    network = building.build(settings, samples, 0, 1.0)
    assert train.memory is not None
    assert train.memory(settings, "cpu") == footprint(network, samples, batch_size=20).total(3)
    twice = train.memory(settings_of("residual", count=6), "cpu")
    assert twice - 2 * train.memory(settings, "cpu") == -(samples.inputs.nbytes + samples.labels.nbytes)
