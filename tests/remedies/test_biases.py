"""Biases drawn towards targets: the penalty, its gradient, and the targets that ensembles in training have."""

from __future__ import annotations

import pickle

import pytest
import torch
from networks_to_treat import mlp, normal
from torch import nn

from skiplab.architectures.fully_connected import PlainNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.remedies import bias_regularisation
from skiplab.training.regularisers import bias_targets


def test_the_penalty_draws_hidden_biases_to_their_targets() -> None:
    net, x = mlp(), normal(7, 5)
    treated = bias_regularisation(net, x, sigma=0.5, strength=0.2, mean=1.0, seed=3)
    at_targets = bias_regularisation(net, x, sigma=0.5, strength=0.2, mean=1.0, seed=3, start=True)
    assert treated.penalty is not None
    hidden = [f"{place}.bias" for place in range(0, 10, 2)]
    away = [treated.model.get_parameter(name) - at_targets.model.get_parameter(name) for name in hidden]
    expected = 0.2 * sum(each.square().sum() for each in away)
    torch.testing.assert_close(treated.penalty(treated.model), expected)
    treated.penalty(treated.model).backward()
    for name, each in zip(hidden, away, strict=True):
        torch.testing.assert_close(treated.model.get_parameter(name).grad, 2 * 0.2 * each.detach())
        assert not treated.model.get_parameter(name).any()  # both papers' biases start at 0
    assert treated.model[10].bias.grad is None
    assert torch.equal(treated.model[10].bias, net[10].bias)


def test_targets_have_their_mean_and_deviation() -> None:
    net = mlp(depth=2, width=3000)
    treated = bias_regularisation(net, normal(2, 5), sigma=0.3, mean=-1.0, strength=0.0, start=True)
    biases = torch.cat([treated.model[place].bias for place in (0, 2, 4)])
    assert biases.mean().item() == pytest.approx(-1, abs=0.02)
    assert biases.std().item() == pytest.approx(0.3, abs=0.01)
    assert treated.penalty is None


def test_a_network_of_ours_has_the_targets_of_its_ensemble() -> None:
    def build(seed: int) -> nn.Module:
        return PlainNet(5, 6, 3, 2, generator=torch_generator(seed), dtype=torch.float64)

    ensemble = Ensemble.of([build(4)])
    treated = bias_regularisation(build(4), normal(7, 5), sigma=0.5, strength=0.2, seed=9)
    assert treated.penalty is not None
    ours = bias_targets(ensemble, 0.2, 0.5, [9]).value(ensemble.rows)
    torch.testing.assert_close(treated.penalty(build(4)), ours[0])


def test_where_chooses_layers_whose_targets_do_not_depend_on_it() -> None:
    net, x = mlp(), normal(7, 5)
    some = bias_regularisation(net, x, start=True, where=["4"])
    every = bias_regularisation(net, x, start=True)
    assert torch.equal(some.model[4].bias, every.model[4].bias)
    assert torch.equal(some.model[2].bias, net[2].bias)
    again = pickle.loads(pickle.dumps(some.penalty))
    assert torch.equal(again(every.model), some.penalty(every.model))  # type: ignore[misc]


@pytest.mark.parametrize(
    ("net", "settings", "words"),
    [
        (nn.Linear(5, 3).double(), {}, "has no weight layer with biases before its last one"),
        (mlp(), {"sigma": -1.0}, "sigma is -1.0, but must be at least 0"),
        (mlp(), {"strength": 0.0}, "nothing would change"),
        (mlp(), {"where": ["10"]}, "'10' is no layer with biases that can be treated"),
    ],
)
def test_what_has_no_hidden_biases_is_refused(net: nn.Module, settings: dict, words: str) -> None:
    with pytest.raises(Refused, match=words):
        bias_regularisation(net, normal(7, 5), **settings)
