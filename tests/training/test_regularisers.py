"""Penalties' gradients against autograd of their values; which columns they act on; where targets come from."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from skiplab.architectures.fully_connected import PlainNet
from skiplab.checks import Refused
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.training.regularisers import (
    Penalty,
    bias_targets,
    draw_bias_targets,
    hidden_biases,
    start_biases_at_targets_,
    weight_decay,
)

SEEDS = (3, 4, 5)


def ensemble(**options: Any) -> Ensemble:
    shape = {"inputs": 6, "width": 8, "depth": 3, "outputs": 2, "dtype": torch.float64} | options
    nets = [PlainNet(**shape, generator=torch_generator(seed)) for seed in SEEDS]
    found = Ensemble.of(nets)
    found.rows[:] = torch.randn(found.rows.shape, generator=torch_generator(0), dtype=found.rows.dtype)
    return found


def gradient_of(penalty: Penalty, rows: Tensor) -> Tensor:
    found = torch.zeros_like(rows)
    penalty.add_gradient_(rows, found)
    return found


@pytest.mark.parametrize("batch_norm_at", [None, 2])
@pytest.mark.parametrize("kind", ["decay", "symm-break", "l2", "reg", "two runs of columns"])
def test_gradients_are_those_of_the_values(kind: str, batch_norm_at: int | None) -> None:
    nets = ensemble(batch_norm_at=batch_norm_at)
    penalty = {
        "decay": lambda: weight_decay(nets, (0.1, 0.0, 3.0)),
        "symm-break": lambda: bias_targets(nets, (0.1, 0.0, 3.0), (1.0, 2.0, 0.5), SEEDS),
        "l2": lambda: bias_targets(nets, 0.3, 0.0, SEEDS),
        "reg": lambda: bias_targets(nets, 0.3, 0.0, SEEDS, mean=1.5),
        "two runs of columns": lambda: Penalty(
            (slice(0, 3), slice(5, 7)),
            torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64),
            torch.arange(15, dtype=torch.float64).reshape(3, 5),
        ),
    }[kind]()
    rows = nets.rows.clone().requires_grad_()
    (expected,) = torch.autograd.grad(penalty.value(rows).sum(), rows)
    found = gradient_of(penalty, nets.rows)
    assert bool((expected != 0).any())
    torch.testing.assert_close(found, expected, rtol=1e-14, atol=1e-14)


def test_gradients_are_added_to_what_is_there() -> None:
    nets = ensemble()
    penalty = weight_decay(nets, 0.5)
    there = torch.ones_like(nets.rows)
    penalty.add_gradient_(nets.rows, there)
    assert torch.equal(there, 1 + gradient_of(penalty, nets.rows))


def test_weight_decay_is_torchs_on_matrices_and_leaves_vectors_alone() -> None:
    nets = ensemble(batch_norm_at=2)
    found = nets.layout.unpack(gradient_of(weight_decay(nets, (0.1, 0.2, 0.4)), nets.rows))
    strength = torch.tensor([0.1, 0.2, 0.4], dtype=torch.float64)
    for name, tensor in nets.parameters.items():
        expected = strength[:, None, None] * tensor if tensor.ndim == 3 else torch.zeros_like(tensor)
        torch.testing.assert_close(found[name], expected, rtol=1e-14, atol=0)


def test_weights_decay_to_what_they_are_asked_to() -> None:
    nets = ensemble(batch_norm_at=2)
    name = "hidden.1.linear.weight"
    away = torch.eye(8, dtype=torch.float64)
    penalty = weight_decay(nets, 0.5, around={name: away}, biases=True)
    found = nets.layout.unpack(gradient_of(penalty, nets.rows))
    for each, tensor in nets.parameters.items():
        expected = 0.5 * (tensor - away if each == name else tensor)
        torch.testing.assert_close(found[each], expected, rtol=1e-14, atol=1e-15)
    away_from = {each: away if each == name else 0.0 for each in nets.parameters}
    distance = sum(
        (tensor - away_from[each]).flatten(1).square().sum(1) for each, tensor in nets.parameters.items()
    )
    torch.testing.assert_close(penalty.value(nets.rows), 0.25 * distance)
    with pytest.raises(
        Refused, match=r"around has 'hidden.1.linear' of shape \(8, 8\), which decays in no network"
    ):
        weight_decay(nets, 0.5, around={"hidden.1.linear": away})


def test_penalties_act_on_hidden_biases_only() -> None:
    nets = ensemble(batch_norm_at=2)
    assert hidden_biases(nets) == [f"hidden.{k}.linear.bias" for k in range(3)]
    found = nets.layout.unpack(gradient_of(bias_targets(nets, 1.0, 1.0, SEEDS), nets.rows))
    touched = {name for name, tensor in found.items() if bool((tensor != 0).any())}
    assert touched == set(hidden_biases(nets))


def test_the_value_is_strength_times_the_squared_distance_to_the_targets() -> None:
    nets = ensemble()
    targets = draw_bias_targets(nets, (1.0, 2.0, 0.5), SEEDS, mean=0.25)
    penalty = bias_targets(nets, (0.1, 0.2, 0.3), (1.0, 2.0, 0.5), SEEDS, mean=0.25)
    biases = torch.cat([nets.parameters[name] for name in hidden_biases(nets)], dim=1)
    distance = (biases - targets).square().sum(1)
    torch.testing.assert_close(penalty.value(nets.rows), torch.tensor([0.1, 0.2, 0.3]).double() * distance)


def test_a_members_targets_depend_on_its_seed_and_sigma_alone() -> None:
    nets = ensemble()
    together = draw_bias_targets(nets, (1.0, 2.0, 0.5), SEEDS)
    for index, (seed, sigma) in enumerate(zip(SEEDS, (1.0, 2.0, 0.5), strict=True)):
        alone = draw_bias_targets(Ensemble.of([nets.member(index)]), sigma, (seed,))
        assert torch.equal(together[index], alone[0])
    unit = draw_bias_targets(nets, 1.0, SEEDS)
    torch.testing.assert_close(together[1], 2 * unit[1], rtol=1e-15, atol=0)
    assert not torch.equal(unit[0], unit[1])


def test_targets_have_the_mean_and_deviation_asked_for() -> None:
    nets = ensemble(width=2000, depth=2, inputs=1)
    targets = draw_bias_targets(nets, 0.5, SEEDS, mean=2.0)
    assert targets.shape == (3, 4000)
    # Within five standard errors, and drawn once and for all.
    assert targets.mean().item() == pytest.approx(2.0, abs=5 * 0.5 / 12000**0.5)
    assert targets.std().item() == pytest.approx(0.5, abs=5 * 0.5 / 24000**0.5)


def test_bias_l2_reg_is_symmetry_breaking_with_sigma_zero() -> None:
    targets = draw_bias_targets(ensemble(), 0.0, SEEDS)
    assert torch.equal(targets, torch.zeros_like(targets))


def test_bias_init_starts_where_symmetry_breaking_would_aim() -> None:
    nets = ensemble(batch_norm_at=2)
    before = nets.rows.clone()
    penalty = bias_targets(nets, 1.0, (1.0, 2.0, 0.5), SEEDS, mean=0.1)
    start_biases_at_targets_(nets, (1.0, 2.0, 0.5), SEEDS, mean=0.1)
    assert torch.equal(penalty.value(nets.rows), torch.zeros(3, dtype=torch.float64))
    (columns,) = nets.layout.columns(hidden_biases(nets)[:1])
    moved = (nets.rows != before).any(0).nonzero().flatten().tolist()
    biases = [i for part in nets.layout.columns(hidden_biases(nets)) for i in range(part.start, part.stop)]
    assert moved == biases
    assert columns.start in biases


def test_wrong_counts_and_networks_without_hidden_biases_are_refused() -> None:
    nets = ensemble()
    with pytest.raises(Refused, match="2 values were given for 3 members"):
        weight_decay(nets, (0.1, 0.2))
    with pytest.raises(Refused, match="2 seeds were given for 3 members"):
        bias_targets(nets, 0.1, 1.0, (0, 1))
    with pytest.raises(Refused, match=r"the network has no biases named 'linear\.bias' in its blocks"):
        bias_targets(Ensemble.of([nn.Sequential(nn.Linear(2, 2))]), 0.1, 1.0, (0,))


def test_named_parameters_do_not_decay() -> None:
    nets = ensemble(batch_norm_at=2)
    norms = [name for name in nets.layout.names if "norm" in name and name.endswith("weight")]
    assert norms
    whole = gradient_of(weight_decay(nets, 0.1, biases=True), nets.rows)
    spared = gradient_of(weight_decay(nets, 0.1, biases=True, but=norms), nets.rows)
    columns = nets.layout.columns(norms)
    for part in columns:
        assert not spared[:, part].any()
        spared[:, part] = whole[:, part]
    assert torch.equal(spared, whole)
