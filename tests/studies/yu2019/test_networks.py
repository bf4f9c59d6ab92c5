"""The shared trial of yu2019: what is built, how pairs share, and that a network does not depend on its company."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from skiplab.architectures.simplified import SimplifiedPlnNet, SimplifiedResNet
from skiplab.architectures.transfer import id_entries
from skiplab.checks import Refused
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.reproduction import Bench
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.yu2019.measures import diagonal_only
from skiplab.studies.yu2019.networks import (
    MODELS,
    Measures,
    Networks,
    Training,
    build,
    enlarged,
    plan_of,
    samples_of,
    train,
)
from skiplab.studies.yu2019.pairs import PairSettings, steps

TINY = Training(images=30, epochs=2, drops=(1,), batch_size=10, padding=1)
SMALL = Networks("digits", "plain", 5, (0, 1), TINY, filters=(2, 4, 8))
IMAGES = TensorSet(torch.zeros(2, 3, 32, 32), torch.zeros(2, dtype=torch.int64), 10, "made up", "")


@pytest.mark.parametrize("model", MODELS)
def test_every_model_can_be_built_and_answers(model: str) -> None:
    depth = 8  # 3N + 2 and 6n + 2
    net = build(dataclasses.replace(SMALL, model=model, depth=depth, share=0.5), IMAGES, 0)
    assert net(IMAGES.inputs).shape == (2, 10)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(Refused, match="model 'residul' is unknown"):
        build(dataclasses.replace(SMALL, model="residul"), IMAGES, 0)


def test_a_pair_shares_its_draws() -> None:
    """Plain kernels are √(2/9C), residual ones 1/(9D) times the same standard normal numbers."""
    plain, residual = (
        dict(build(dataclasses.replace(SMALL, model=model), IMAGES, 3).named_parameters())
        for model in ("plain", "residual")
    )
    assert list(plain) == list(residual)
    for name, kernel in plain.items():
        if kernel.ndim == 4:
            filters, channels = kernel.shape[:2]
            drawn = kernel / (2 / (9 * channels)) ** 0.5
            torch.testing.assert_close(drawn, residual[name] * 9 * filters)
        else:
            torch.testing.assert_close(kernel, residual[name])


def test_a_dose_is_added_to_id_entries_or_to_as_many_others() -> None:
    bare, dosed, shuffled = (
        build(dataclasses.replace(SMALL, model="dosed", share=share, shuffled=mixed), IMAGES, 1)
        for share, mixed in ((0.0, False), (0.5, False), (0.5, True))
    )
    for name, entries in id_entries(bare).items():
        own, other = (net.get_parameter(name) - bare.get_parameter(name) for net in (dosed, shuffled))
        torch.testing.assert_close(own, 0.5 * entries)
        assert other.sum().item() == pytest.approx(0.5 * float(entries.sum()), abs=1e-5)
    assert isinstance(dosed, SimplifiedPlnNet)


def test_a_network_does_not_depend_on_its_company() -> None:
    together = train.function(SMALL, Bench())
    alone = train.function(dataclasses.replace(SMALL, seeds=(1,)), Bench())
    kept = matching(together, seed=1)
    order = ["quantity", "epoch", "layer"]
    one, other = (each.sort_values(order)["value"].tolist() for each in (kept, alone))
    assert one == pytest.approx(other, rel=1e-5)
    assert set(kept["network_id"]) == set(alone["network_id"])
    assert set(kept["quantity"]) == {"loss", "error", "test_loss", "test_error"}


def test_measurements_do_not_change_training() -> None:
    plain = train.function(dataclasses.replace(SMALL, measures=Measures(test_every=0)), Bench())
    wanted = Measures(
        clean=(0, 2), weights=(0, 1, 2), cushions=(0, 2), diagonals=(2,), flows=(0, 2), noise=(2,),
        cushion_images=5, noise_images=5, noise_draws=1, flow_images=2,
    )  # fmt: skip
    measured = train.function(dataclasses.replace(SMALL, measures=wanted), Bench())
    for quantity in ("loss", "error"):
        losses = [sample_of(matching(each, quantity=quantity, epoch=2)) for each in (plain, measured)]
        assert losses[0].tolist() == losses[1].tolist()
    assert set(matching(plain, epoch=2)["quantity"]) == {"loss", "error"}
    assert set(matching(measured, epoch=0)["quantity"]) > {
        "test_error",
        "clean_loss",
        "mass",
        "cushion",
        "flow",
    }


def test_without_epochs_only_what_precedes_training_is_measured() -> None:
    none = dataclasses.replace(TINY, epochs=0, drops=())
    measures = Measures(test_every=0, clean=(0,), weights=(0,))
    table = train.function(dataclasses.replace(SMALL, training=none, measures=measures), Bench())
    assert set(table["epoch"]) == {0}
    assert {"clean_loss", "squares"} <= set(table["quantity"])


def test_running_and_clean_numbers_are_told_apart() -> None:
    """At a rate of 0 nothing moves, so that the running mean without crops is the loss on the images as they are."""
    still = dataclasses.replace(TINY, padding=None)
    settings = dataclasses.replace(SMALL, training=still, rate=0.0, measures=Measures(clean=(2,)))
    table = train.function(settings, Bench())
    for running, clean in (("loss", "clean_loss"), ("error", "clean_error")):
        one, other = (sample_of(matching(table, quantity=each, epoch=2)) for each in (running, clean))
        assert one.tolist() == pytest.approx(other.tolist(), rel=1e-5)


def test_decay_is_half_lambda_times_squares_of_all_parameters() -> None:
    samples = samples_of("digits", "train", 30, None, "cpu")
    ensemble = Ensemble.of([build(SMALL, samples, seed) for seed in SMALL.seeds])
    plan = plan_of(SMALL, ensemble)
    (penalty,) = plan.penalties
    expected = [
        5e-5 * sum(float(each.detach().square().sum()) for each in net.parameters())
        for net in ensemble.members()
    ]
    assert penalty.value(ensemble.rows).tolist() == pytest.approx(expected)
    free = dataclasses.replace(SMALL, training=dataclasses.replace(TINY, decay=0.0))
    assert not plan_of(free, ensemble).penalties


def test_small_images_are_enlarged_by_repeating_pixels() -> None:
    image = torch.arange(64.0).reshape(1, 1, 8, 8)
    large = enlarged(TensorSet(image, torch.zeros(1, dtype=torch.int64), 10, "made up", "")).inputs
    assert large.shape == (1, 1, 16, 16)
    torch.testing.assert_close(large[..., ::2, ::2], image)
    torch.testing.assert_close(large[..., 1::2, 1::2], image)


def test_zeroed_kernels_are_those_of_diagonal_networks() -> None:
    """What is left of a residual network's kernels are the entries (d, c) with d = c or d = c + C."""
    net = build(dataclasses.replace(SMALL, model="residual"), IMAGES, 0)
    assert isinstance(net, SimplifiedResNet)
    left = diagonal_only(net)
    for name, kernel in net.named_parameters():
        kept = left.get_parameter(name)
        if kernel.ndim == 4 and name.startswith("blocks."):
            for d in range(kernel.shape[0]):
                for c in range(kernel.shape[1]):
                    expected = kernel[d, c] if d % kernel.shape[1] == c else torch.zeros(3, 3)
                    torch.testing.assert_close(kept[d, c], expected)
        else:
            torch.testing.assert_close(kept, kernel)


def test_the_papers_rates_and_numbers_of_runs() -> None:
    settings = PairSettings()
    rates = {(m, d): settings.rate_of(m, d) for m in ("plain", "residual") for d in settings.depths}
    assert {key for key, rate in rates.items() if rate == 1e-3} == {("plain", 44)}
    assert [settings.runs_at(depth) for depth in settings.depths] == [13, 6, 6]
    own = settings.networks("plain", 44, (0,))
    assert own.training == Training(mixed=True)
    assert own.measures.weights == (0, 50, 100, 150, 200)
    assert not own.measures.flows
    assert settings.networks("plain", 20, (0,)).measures.flows


def test_steps_go_from_shallow_to_deep() -> None:
    assert steps((44, 20, 32)) == [(20, 32), (20, 44), (32, 44)]
