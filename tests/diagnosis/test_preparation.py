"""Data that are not centred or scaled are told, but only where they reach the output of a network yet to learn."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.diagnosis.diagnose import diagnose
from skiplab.diagnosis.finding import Finding
from skiplab.diagnosis.patient import Patient
from skiplab.diagnosis.preparation import Preparation, prepared, variation
from skiplab.randomness import torch_generator

N = 32
STREAM = torch_generator(11, "test preparation")
X = torch.randn(N, 12, generator=STREAM)
NUMBERS = torch.randn(N, 1, generator=STREAM)
LABELS = torch.randint(3, (N,), generator=STREAM)
IDS = {"off-centre-inputs", "unequal-inputs", "off-centre-targets", "wide-targets"}


def mlp(inputs: int = 12, outputs: int = 3, width: int = 32) -> nn.Sequential:
    network = nn.Sequential(nn.Linear(inputs, width), nn.ReLU(), nn.Linear(width, outputs))
    for layer in (network[0], network[2]):
        layer.weight.data.normal_(
            0, layer.in_features**-0.5, generator=torch_generator(1, "test preparation")
        )
        layer.bias.data.zero_()
    return network


def blamed(network: nn.Module, inputs: Any, targets: Tensor | None = None, **loss: Any) -> dict[str, Finding]:
    """What is said of the data, by id."""
    batch = inputs if targets is None else (inputs, targets)
    report = diagnose(network, batch, examinations=["layer_signals"], budget=20, **loss)
    return {each.id: each for each in report.findings if each.id in IDS}


def seen(network: nn.Module, inputs: Tensor, targets: Tensor, **loss: Any) -> Preparation:
    return prepared(Patient.of(network, (inputs, targets), **loss))


def wide(factor: float, column: int = 5) -> Tensor:
    scales = torch.ones(12)
    scales[column] = factor
    return X * scales


# What is measured ----------------------------------------------------------------------------------------------


def test_the_share_that_differs_is_the_variance_over_the_mean_square() -> None:
    values = torch.tensor([[1.0, 10.0], [3.0, 10.0]])
    assert variation(values) == pytest.approx((1 + 0) / (1 + 9 + 100 + 100) * 2)
    assert torch.isnan(torch.tensor(variation(torch.ones(4, 2))))


def test_a_column_s_influence_is_its_slope_times_its_deviation() -> None:
    network, inputs = nn.Linear(12, 1), wide(40.0)
    network.weight.data = 1.0 + torch.arange(12.0)[None]
    deviations = inputs.double().std(0)
    moved = deviations * network.weight.data[0].double()
    found = seen(network, inputs, NUMBERS, criterion=nn.MSELoss())
    assert found.widest == 5
    for value, each in ((found.spread, deviations), (found.influence, moved)):
        narrower = each.sort().values[:6].square().sum().sqrt()
        assert value == pytest.approx(float(each[5] / narrower), rel=1e-5)


def test_a_column_counts_as_often_as_it_is_not_0_where_half_of_the_data_are_sought() -> None:
    # Two columns that always say something and four that do so once in eight samples: half of 2.5 are the rare ones.
    inputs = torch.zeros(N, 6)
    inputs[:, 0] = 100 * X[:, 0]
    inputs[:, 1] = X[:, 1]
    for column in range(2, 6):
        inputs[column::8, column] = 1.0
    network = nn.Linear(6, 1)
    network.weight.data.fill_(1.0)
    deviations = inputs.double().std(0)
    found = seen(network, inputs, NUMBERS, criterion=nn.MSELoss())
    assert found.spread == pytest.approx(
        float(deviations[0] / deviations[2:].square().sum().sqrt()), rel=1e-5
    )


def test_the_start_and_the_targets_are_told_over_the_targets_variance() -> None:
    network, targets = mlp(outputs=1), NUMBERS + 7
    found = seen(network, X, targets, criterion=nn.MSELoss())
    variance = targets.var(0, unbiased=False)
    assert found.start == pytest.approx(float(F.mse_loss(network(X), targets).detach() / variance), rel=1e-5)
    assert found.targets == pytest.approx(float(targets.square().mean() / variance), rel=1e-5)


def test_how_far_outputs_have_to_reach_is_told_by_standard_deviations() -> None:
    network, targets = mlp(outputs=2), 1e4 * torch.cat([NUMBERS, NUMBERS.flip(0)], 1)
    found = seen(network, X, targets, criterion=nn.MSELoss())
    deviations = [each.detach().var(0, unbiased=False).mean().sqrt() for each in (targets, network(X))]
    own = float(deviations[0])
    assert found.reach == pytest.approx(min(own, float(deviations[0] / deviations[1])), rel=1e-5)
    network[-1].weight.data.zero_()  # a head that starts at 0 has nothing to divide by
    assert seen(network, X, targets, criterion=nn.MSELoss()).reach == pytest.approx(own, rel=1e-5)
    assert math.isnan(seen(mlp(), X, LABELS).reach)


# What is warned of ---------------------------------------------------------------------------------------------


def test_inputs_far_from_0_are_named_and_centred_ones_are_not() -> None:
    found = blamed(mlp(), X + 100, LABELS)
    assert found["off-centre-inputs"].where == ("the input",)
    assert found["off-centre-inputs"].severity == "severe"
    assert found["off-centre-inputs"].told_by == ()
    assert not blamed(mlp(), X, LABELS)
    assert not blamed(mlp(), 255 * X, LABELS)


def test_of_a_network_that_normalises_too_late_it_is_a_warning() -> None:
    network = nn.Sequential(nn.Linear(12, 12), nn.LayerNorm(12), nn.ReLU(), nn.Linear(12, 3))
    assert blamed(network, X + 100, LABELS)["off-centre-inputs"].severity == "warning"


def test_an_unscaled_column_is_named_by_its_number() -> None:
    found = blamed(mlp(), wide(1000.0), LABELS)
    assert found["unequal-inputs"].severity == "warning"
    assert found["unequal-inputs"].words.startswith("column 5 of the inputs varies")


@pytest.mark.parametrize("factor", [1e4, 1e6])
def test_targets_of_huge_scale_are_named(factor: float) -> None:
    found = blamed(mlp(outputs=1), X, factor * NUMBERS, criterion=nn.MSELoss())
    assert found["wide-targets"].where == ("the targets",)
    assert found["wide-targets"].severity == "warning"
    assert "divide the targets by their standard deviation" in found["wide-targets"].words
    assert not blamed(mlp(outputs=1), X, factor * NUMBERS, criterion=nn.L1Loss())


def test_targets_of_usual_scale_are_in_reach_of_a_head_of_zeros_and_of_small_and_large_outputs() -> None:
    for factor in (0.0, 1e-6, 1.0):
        network = mlp(outputs=1)
        network[-1].weight.data.mul_(factor)
        network[-1].bias.data.zero_()
        for scale in (1e-3, 1.0, 100.0):
            found = blamed(network, X, scale * NUMBERS, criterion=nn.MSELoss())
            assert "wide-targets" not in found, (factor, scale)
    large = mlp(outputs=1)
    large[-1].weight.data.mul_(1e6)  # whose outputs are as wide as the targets
    assert "wide-targets" not in blamed(large, X, 1e6 * NUMBERS, criterion=nn.MSELoss())


@pytest.mark.parametrize("criterion", [nn.MSELoss(), F.mse_loss])
def test_targets_far_from_0_are_named_unless_the_last_layer_starts_there(criterion: Any) -> None:
    network, targets = mlp(outputs=1), 40 * NUMBERS + 2000
    assert blamed(network, X, targets, criterion=criterion)["off-centre-targets"].where == ("the targets",)
    network[-1].bias.data.fill_(2000.0)
    network[-1].weight.data.mul_(40)
    assert not blamed(network, X, targets, criterion=criterion)


def test_images_whose_loss_is_inferred_for_many_labels_are_looked_at() -> None:
    network = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 3, 1))
    images = torch.randn(N, 1, 6, 6, generator=torch_generator(2, "test preparation"))
    labels = torch.randint(3, (N, 6, 6), generator=torch_generator(3, "test preparation"))
    assert set(blamed(network, 50 + images, labels)) == {"off-centre-inputs"}


def test_a_network_that_changes_its_input_in_place_is_looked_at_and_its_input_stays() -> None:
    class InPlace(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = mlp()

        def forward(self, x: Tensor) -> Tensor:
            return self.layers(x.mul_(2))

    inputs = X + 100
    assert set(blamed(InPlace(), inputs, LABELS)) == {"off-centre-inputs"}
    assert torch.equal(inputs, X + 100)


@pytest.mark.parametrize("wide_columns", [1, 3, 5])
def test_columns_are_named_while_they_are_fewer_than_half_of_all(wide_columns: int) -> None:
    scales = torch.ones(12)
    scales[:wide_columns] = 1000.0
    assert set(blamed(mlp(), X * scales, LABELS)) == {"unequal-inputs"}
    scales[:7] = 1000.0
    assert not blamed(mlp(), X * scales, LABELS)


def test_an_unscaled_column_beside_rare_flags_is_named() -> None:
    inputs = torch.cat([3000 * X[:, :1], X[:, 1:4], _flags(0.1, 40)], 1)
    assert set(blamed(mlp(44), inputs, LABELS)) == {"unequal-inputs"}


# What is left alone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("samples", [1, 2, 3])
def test_nothing_is_said_of_fewer_than_four_samples(samples: int) -> None:
    numbers = torch.tensor([[5.0], [5.5], [4.6]])[:samples]
    assert not blamed(mlp(outputs=1), wide(1e3)[:samples] + 100, numbers, criterion=nn.MSELoss())


def test_a_network_that_normalises_is_not_warned_of_its_data() -> None:
    network = nn.Sequential(nn.BatchNorm1d(12), mlp())
    assert not blamed(network, wide(1e4) + 1e3, LABELS)


def test_a_head_of_zeros_does_not_show_whether_the_network_normalises() -> None:
    network = nn.Sequential(nn.BatchNorm1d(12), mlp())
    network[1][-1].weight.data.zero_()
    network[1][-1].bias.data.fill_(0.1)
    assert not blamed(network, X + 100, LABELS)


def test_samples_that_are_all_the_same_are_no_data_to_be_centred() -> None:
    assert not blamed(mlp(), torch.ones(8, 12))


def test_an_output_that_explodes_is_no_trouble_of_the_targets() -> None:
    network = mlp(outputs=1)
    network[-1].weight.data.mul_(1e3)
    assert not blamed(network, X, NUMBERS, criterion=nn.MSELoss())


def test_a_column_that_a_network_uses_most_is_no_trouble_where_all_vary_much_alike() -> None:
    network = nn.Linear(12, 3)
    network.weight.data.fill_(1e-3)
    network.weight.data[:, 5] = 1.0
    assert not blamed(network, wide(3.0), LABELS)


@pytest.mark.parametrize("criterion", [nn.MSELoss(), nn.L1Loss(), nn.SmoothL1Loss()])
def test_a_network_that_has_learned_raw_numbers_is_left_alone_whatever_its_loss(criterion: Any) -> None:
    network = nn.Linear(12, 1)
    network.weight.data.fill_(1 / 12)
    network.bias.data.zero_()
    kelvin = 290 + 10 * X
    assert not blamed(network, kelvin, kelvin.mean(1, keepdim=True), criterion=criterion)


def test_a_loss_function_of_the_user_s_may_prepare_the_batch_itself() -> None:
    def loss(model: nn.Module, batch: Any) -> Tensor:
        return F.cross_entropy(model(batch[0] - 100), batch[1])

    assert not blamed(mlp(), X + 100, LABELS, loss_fn=loss)


def _counts() -> Tensor:
    rates = 20 / torch.arange(1, 201.0)
    return torch.poisson(rates.expand(N, -1), generator=torch_generator(4, "test preparation"))


def _flags(share: float, columns: int) -> Tensor:
    stream = torch_generator(5, "test preparation")
    return (torch.rand(N, columns, generator=stream) < share).float()


def _pixels() -> Tensor:
    return torch.rand(N, 48, generator=torch_generator(6, "test preparation"))


def _documents(words: int, longest: float) -> Tensor:
    """Counts of words by Zipf's law in documents whose lengths are log-normal."""
    stream = torch_generator(8, "test preparation")
    lengths = longest * torch.randn(N, 1, generator=stream).exp()
    shares = 1 / torch.arange(1, words + 1.0)
    return torch.poisson(lengths * shares / shares.sum(), generator=stream)


def _positions(columns: int) -> Tensor:
    """Twenty steps of one signal beside sines and cosines of the step, the same in all samples, in a row."""
    steps = 2 * torch.pi * torch.arange(20.0)[:, None] * (1 + torch.arange(columns // 2) % 8) / 20
    fixed = torch.cat([steps.sin(), steps.cos()], 1).expand(N, -1, -1)
    signal = torch.randn(N, 20, 1, generator=torch_generator(9, "test preparation"))
    return torch.cat([0.4 * signal, fixed], 2).flatten(1)


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(_counts(), id="bag of words, Zipf's counts"),
        pytest.param(_documents(20_000, 1000), id="counts of 20,000 words"),
        pytest.param(_positions(64), id="a signal beside 64 columns of positions"),
        pytest.param(F.one_hot(torch.arange(N) % 4).float(), id="one-hot"),
        pytest.param(_flags(0.03, 100), id="rare flags"),
        pytest.param(_pixels(), id="pixels in [0, 1]"),
        pytest.param((255 * _pixels()).round(), id="pixels from 0 to 255"),
        pytest.param(1 - _flags(0.2, 48) * _pixels(), id="drawings on white"),
        pytest.param(_pixels() * 80 - 80, id="decibels from -80 to 0"),
        pytest.param(torch.cumsum(X, 1) / 12**0.5, id="windows of a random walk"),
        pytest.param(torch.cat([45 + 15 * X[:, :1], _flags(0.3, 6)], 1), id="age and flags"),
    ],
)
def test_usual_data_raise_no_alarm(inputs: Tensor) -> None:
    network = mlp(inputs.shape[1])
    assert not blamed(network, inputs, LABELS)


def test_tokens_and_shares_raise_no_alarm() -> None:
    network = nn.Sequential(nn.Embedding(50, 8), nn.Flatten(), mlp(32))
    tokens = torch.randint(50, (N, 4), generator=torch_generator(7, "test preparation"))
    assert not blamed(network, tokens, LABELS)
    shares = _pixels()[:, :3].softmax(1)
    assert not blamed(mlp(), X, shares, criterion=nn.MSELoss())
