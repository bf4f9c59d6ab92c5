"""Held statistics against training mode, layer by layer and as a whole."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.rescaled import RescaledNet
from skiplab.architectures.shattering_convnets import ShatteringConvNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.measurements.batch_statistics import evaluated, with_batch_statistics
from skiplab.randomness import torch_generator
from skiplab.subjects import Subject


def drawn(*shape: int) -> Tensor:
    return 2 + 3 * torch.randn(*shape, generator=torch_generator("batch"), dtype=torch.float64)


def rows_net(seed: int, normalisation: str) -> nn.Module:
    stream = torch_generator(seed, "net")
    return RescaledNet(3, 6, 4, 2, generator=stream, normalisation=normalisation, dtype=torch.float64)


def images_net(seed: int) -> nn.Module:
    return ShatteringConvNet(4, generator=torch_generator(seed, "net"), filters=4, dtype=torch.float64)


class Last(nn.Module):
    """A user's centring of the last axis, its mean kept as a row."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(1, features, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x - (x.mean((0, 1)) if self.training else self.running_mean)


CASES = {
    "batch": ([rows_net(seed, "batch") for seed in range(2)], drawn(7, 3)),
    "centre": ([rows_net(seed, "centre") for seed in range(2)], drawn(7, 3)),
    "images": ([images_net(seed) for seed in range(2)], drawn(4, 3, 6, 6)),
    "sequences": (
        [nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU()).double() for _ in range(2)],
        drawn(4, 3, 9),
    ),
    "a user's own": ([nn.Sequential(nn.Linear(3, 4).double(), Last(4)) for _ in range(2)], drawn(4, 5, 3)),
    "none": ([nn.Linear(3, 4).double() for _ in range(2)], drawn(4, 3)),
}


@pytest.mark.parametrize("backend", ["batched", "loop"])
@pytest.mark.parametrize("case", CASES)
def test_outputs_are_those_of_training_mode(case: str, backend: str) -> None:
    nets, x = CASES[case]
    held = with_batch_statistics(Subject.of(Ensemble.of(nets, backend=backend)), x)
    assert not held.train_mode
    expected = Subject.of(Ensemble.of(nets, backend=backend), train_mode=True).outputs(x)
    torch.testing.assert_close(held.outputs(x), expected, rtol=1e-12, atol=1e-12)
    for number, net in enumerate(nets):
        lone = with_batch_statistics(Subject.of(net), x)
        torch.testing.assert_close(lone.outputs(x)[0], expected[number], rtol=1e-12, atol=1e-12)
        # A part of the batch is still normalised as the whole.
        torch.testing.assert_close(lone.outputs(x[:1])[0], expected[number, :1], rtol=1e-12, atol=1e-12)


def test_running_statistics_are_those_of_evaluation_whatever_mode_the_subject_has() -> None:
    net, x = rows_net(0, "batch"), drawn(7, 3)
    expected = Subject.of(net).outputs(x)
    assert torch.equal(evaluated(Subject.of(net, train_mode=True), x, "eval").outputs(x), expected)
    assert not torch.allclose(evaluated(Subject.of(net), x, "batch").outputs(x), expected)


def test_dropout_stays_off_and_instance_norm_as_it_is() -> None:
    x = drawn(6, 4, 5)
    dropped = nn.Sequential(nn.Dropout(0.5), nn.BatchNorm1d(4)).double()
    by_hand = (x - x.mean((0, 2), keepdim=True)) / (
        x.var((0, 2), correction=0, keepdim=True) + dropped[1].eps
    ).sqrt()
    found = with_batch_statistics(Subject.of(dropped), x).outputs(x)[0]
    torch.testing.assert_close(found, by_hand, rtol=1e-12, atol=1e-12)
    own = nn.InstanceNorm1d(4, track_running_stats=True).double()
    assert torch.equal(with_batch_statistics(Subject.of(own), x).outputs(x), Subject.of(own).outputs(x))


class Frozen(nn.Module):
    """Normalises with its buffers in training too, as detection networks do; called by keyword below."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.full((features,), 5.0, dtype=torch.float64))
        self.register_buffer("running_var", torch.full((features,), 7.0, dtype=torch.float64))

    def forward(self, *, features: Tensor) -> Tensor:
        return (features - self.running_mean) / self.running_var.sqrt()


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_layers_that_are_frozen_in_training_hold_the_batch_one_after_the_other(backend: str) -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Linear(3, 4).double(), nn.Linear(4, 4).double()
            self.norm1, self.norm2 = Frozen(4), Frozen(4)

        def forward(self, x: Tensor) -> Tensor:
            x = self.norm1(features=self.first(x))
            return self.norm2(features=self.second(x.relu()))

    x, nets = drawn(6, 3), [Net(), Net()]
    held = with_batch_statistics(Subject.of(Ensemble.of(nets, backend=backend)), x)
    for net, found in zip(nets, held.outputs(x), strict=True):
        inner = net.first(x)
        inner = net.second(((inner - inner.mean(0)) / inner.std(0, correction=0)).relu())
        by_hand = (inner - inner.mean(0)) / inner.std(0, correction=0)
        torch.testing.assert_close(found, by_hand.detach(), rtol=1e-11, atol=1e-11)
        assert torch.equal(net.norm1.running_mean, torch.full((4,), 5.0, dtype=torch.float64))


def test_layers_that_are_not_called_keep_what_they_have() -> None:
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.idle = nn.BatchNorm1d(3).double(), nn.BatchNorm1d(3).double()

        def forward(self, x: Tensor) -> Tensor:
            return self.used(x)

    x = drawn(5, 3)
    held = with_batch_statistics(Subject.of(Idle()), x).fixed
    torch.testing.assert_close(held["used.running_mean"][0], x.mean(0))
    assert torch.equal(held["idle.running_mean"], torch.zeros(1, 3, dtype=torch.float64))


def test_what_is_refused() -> None:
    norm = nn.BatchNorm1d(3).double()
    with pytest.raises(Refused, match="a batch of 1 sample have no spread; pass two or more"):
        with_batch_statistics(Subject.of(norm), drawn(1, 3))
    twice = nn.Sequential(norm, nn.Linear(3, 3).double(), norm)
    with pytest.raises(Refused, match="layer '0' is called more than once on this batch"):
        with_batch_statistics(Subject.of(twice), drawn(4, 3))
    untracked = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3, track_running_stats=False)).double()
    with pytest.raises(Refused, match="layer '1' keeps no running statistics"):
        with_batch_statistics(Subject.of(untracked), drawn(4, 3))
    with pytest.raises(
        Refused, match=r"has 4 running means but takes \(2, 5, 3\), so its channels are unknown"
    ):
        with_batch_statistics(Subject.of(Last(4)), drawn(2, 5, 3))
