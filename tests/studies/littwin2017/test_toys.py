"""The small networks' trial: what it records, against networks looked at one by one."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from skiplab.reproduction import Bench
from skiplab.reproduction.results import matching
from skiplab.studies.littwin2017.toy_settings import SMOKE, ToySettings, strip_toys, toys, trend_epochs
from skiplab.studies.littwin2017.toys import Mixture, Toys, ToyTraining, build, samples_of, train
from skiplab.training.loop import shuffles

TINY = Toys(
    seeds=(0, 1),
    width=4,
    blocks=3,
    mixture=Mixture(classes=3, dimensions=5, samples=30),
    training=ToyTraining(epochs=2, batch_size=10, rate=0.05),
    at=(0, 1, 2),
)


def test_scales_and_norms_before_training_are_those_of_the_modules() -> None:
    table = train.function(dataclasses.replace(TINY, scale_init="uniform"), Bench())
    start = matching(table, epoch=0, seed=1)
    net = build(dataclasses.replace(TINY, scale_init="uniform"), 1)
    for layer, block in enumerate(net.blocks, 1):
        own = matching(start, layer=layer).set_index("quantity")["value"]
        scale = block.norm.weight.double()
        assert own["scale"] == pytest.approx(scale.abs().mean().item())
        assert own["scale_rms"] == pytest.approx(scale.square().mean().sqrt().item())
        assert own["shift_rms"] == 0
        assert own["weight_norm"] == pytest.approx(block.linear.weight.norm().item(), rel=1e-6)
    whole = matching(start, layer=0).set_index("quantity")["value"]
    every = [block.linear.weight for block in net.blocks]
    assert whole["hidden_norm"] == pytest.approx(
        torch.cat([w.flatten() for w in every]).norm().item(), rel=1e-6
    )
    every.append(net.output.weight)
    assert whole["weight_norm"] == pytest.approx(
        torch.cat([w.flatten() for w in every]).norm().item(), rel=1e-6
    )


def test_a_network_does_not_depend_on_its_company() -> None:
    together = train.function(TINY, Bench())
    alone = train.function(dataclasses.replace(TINY, seeds=(1,)), Bench())
    order = ["quantity", "epoch", "layer"]
    kept = together[together["seed"] == 1].sort_values(order)
    assert kept["value"].tolist() == pytest.approx(alone.sort_values(order)["value"].tolist(), rel=1e-4)


def test_frozen_scales_stay() -> None:
    table = train.function(dataclasses.replace(TINY, frozen=True), Bench())
    assert matching(table, quantity="scale")["value"].eq(1).all()
    assert matching(table, quantity="shift_rms", epoch=2)["value"].gt(0).all()


def test_force_and_noise_are_those_of_every_step() -> None:
    """A loop with torch.optim, from Δ‖w‖² = −2μwᵀg + μ²‖g‖² step by step."""
    settings = dataclasses.replace(TINY, norm=None, forces=True, seeds=(1,))
    table = train.function(settings, Bench())
    net, (seen, _) = build(settings, 1), samples_of(settings.mixture)
    rate = settings.training.rate
    weights = [*(block.linear.weight for block in net.blocks), net.output.weight]
    optimiser = torch.optim.SGD(net.parameters(), lr=rate)
    for epoch in range(2):
        force = noise = 0.0
        order = shuffles((1,), epoch, 30, torch.device("cpu"))[0]
        for place, batch in enumerate(order.split(10)):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(net(seen.inputs[batch]), seen.labels[batch]).backward()
            if place < 2:  # the last step of an epoch is left out
                force -= sum(2 * rate * (w * w.grad).sum().item() for w in weights)
                noise += sum(rate**2 * w.grad.square().sum().item() for w in weights)
            optimiser.step()
        own = matching(table, epoch=epoch + 1, layer=0).set_index("quantity")["value"]
        assert own["noise"] == pytest.approx(noise, rel=1e-3)
        assert own["force"] == pytest.approx(force, rel=1e-3, abs=1e-4)


def test_path_lengths_are_measured_on_the_way() -> None:
    table = train.function(dataclasses.replace(TINY, paths_at=(0, 2), path_samples=20), Bench())
    depth = matching(table, quantity="effective depth")
    assert sorted(depth["epoch"].unique()) == [0, 2]
    assert depth["value"].between(1, 3).all()
    shares = matching(table, quantity="share", epoch=2, seed=0)
    assert shares["value"].sum() == pytest.approx(1)


def test_training_and_test_samples_are_of_one_mixture() -> None:
    mixture = Mixture(classes=3, dimensions=5, samples=3000, separation=3.0)
    seen, unseen = samples_of(mixture)
    assert len(seen) == len(unseen) == 3000
    assert not torch.equal(seen.inputs, unseen.inputs)
    for label in range(3):
        means = [each.inputs[each.labels == label].mean(0) for each in (seen, unseen)]
        torch.testing.assert_close(*means, atol=0.3, rtol=0)


def test_paper_scale_is_appendix_c() -> None:
    found = toys(ToySettings())
    assert (found.blocks, found.width, found.norm, found.scale_init) == (10, 20, "after", 1.0)
    assert (found.mixture.classes, found.mixture.dimensions, found.mixture.samples) == (10, 50, 10_000)
    assert (found.training.batch_size, found.training.momentum) == (50, 0.0)
    assert found.seeds == tuple(range(20))
    assert {0, *trend_epochs(200)} <= set(found.at)
    assert trend_epochs(200) == (1, 25, 50, 75, 100, 125, 150, 175, 200)
    other = strip_toys(ToySettings(), rate=0.5, classes=50, norm="before")
    assert (other.training.rate, other.mixture.classes, other.norm) == (0.5, 50, "before")
    assert (len(other.seeds), other.training.epochs, max(other.at)) == (5, 50, 50)
    assert toys(ToySettings(seed=3)).mixture.draw == 3
    assert ToySettings(**SMOKE).epochs == 2
