"""Constant biases against the equation, against loops, and against biases that start there."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from skiplab.architectures.fully_connected import PlainNet, ResidualNet
from skiplab.architectures.initialisers import Glorot
from skiplab.checks import Refused
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.experiments.bias_profiles import add_bias_profile_, profile, start_at_profile_
from skiplab.measurements.symmetry import permutation_symmetry
from skiplab.randomness import torch_generator
from skiplab.reproduction.trial import Bench
from skiplab.studies.orhan2017.figure_12.trials import Start, constant_or_start, folded
from skiplab.training import Plan, train

LINES = ((0.0, 0.0), (-0.1, 0.3), (0.05, 0.0))
INPUTS = torch.randn(30, 6, generator=torch_generator(1), dtype=torch.float64)
LABELS = torch.randint(3, (30,), generator=torch_generator(2))


def network(seed: int, **options: Any) -> PlainNet:
    kept: dict[str, Any] = {"generator": torch_generator(seed), "init": Glorot(gain=2**0.5)}
    return PlainNet(6, 8, 4, 3, **kept, dtype=torch.float64, **options)


def with_profile(seed: int, slope: float, offset: float) -> PlainNet:
    made = network(seed)
    add_bias_profile_(made, slope, offset)
    return made


def trained(modules: list[PlainNet], seeds: tuple[int, ...]) -> Ensemble:
    ensemble = Ensemble.of(modules)
    samples = TensorSet(INPUTS, LABELS, 3, "random", "")
    train(ensemble, samples, Plan(epochs=4, batch_size=6, seeds=seeds, rate=1e-2))
    return ensemble


def test_layers_count_from_one() -> None:
    assert profile(3, -0.25, 1.0) == [0.75, 0.5, 0.25]


def test_the_network_computes_the_equation() -> None:
    made = with_profile(0, -0.1, 0.3)
    with torch.no_grad():
        x = INPUTS
        for number, layer in enumerate(made.hidden, 1):
            layer.linear.bias.normal_(generator=torch_generator(number))
            linear = layer.linear
            x = torch.relu(x @ linear.weight.T + linear.bias + (-0.1 * number + 0.3))
        expected = x @ made.output.weight.T + made.output.bias
        torch.testing.assert_close(made(INPUTS), expected, rtol=1e-13, atol=1e-13)


def test_constants_are_no_parameters() -> None:
    made = with_profile(0, -0.1, 0.3)
    assert [name for name, _ in made.named_parameters()] == [
        name for name, _ in network(0).named_parameters()
    ]
    assert {name for name, _ in made.named_buffers()} == {f"hidden.{k}.norm.constant" for k in range(4)}


def test_a_zero_profile_is_the_plain_network() -> None:
    assert torch.equal(with_profile(3, 0.0, 0.0)(INPUTS), network(3)(INPUTS))


def test_members_with_their_own_profiles_train_as_they_would_alone() -> None:
    seeds = (0, 1, 2)
    together = trained([with_profile(seed, *line) for seed, line in zip(seeds, LINES, strict=True)], seeds)
    for index, (seed, line) in enumerate(zip(seeds, LINES, strict=True)):
        alone = trained([with_profile(seed, *line)], (seed,))
        torch.testing.assert_close(together.rows[index], alone.rows[0], rtol=1e-9, atol=1e-9)


def test_constants_train_as_biases_that_start_there() -> None:
    for seed, line in enumerate(LINES):
        started = network(seed)
        start_at_profile_(started, *line)
        constant, start = trained([with_profile(seed, *line)], (seed,)), trained([started], (seed,))
        torch.testing.assert_close(folded(constant).rows, start.rows, rtol=1e-9, atol=1e-9)
        assert torch.equal(constant.rows, start.rows) == (line == (0.0, 0.0))


def test_the_trial_says_so_and_no_network_in_it_is_dead() -> None:
    frame = constant_or_start.function(Start((0, 1), -0.02, 0.1, depth=5, width=8, steps=10), Bench())
    assert frame["seed"].tolist() == [0, 1]
    assert 0 < frame["value"].max() < 1e-10
    # A profile far below zero silences every unit, and then nothing was compared.
    dead = constant_or_start.function(Start((0,), -50.0, 0.0, depth=5, width=8, steps=2), Bench())
    assert dead["value"].isna().all()


def test_folding_constants_into_biases_leaves_the_function_alone() -> None:
    ensemble = Ensemble.of([with_profile(seed, *line) for seed, line in enumerate(LINES)])
    before = ensemble.rows.clone()
    whole = folded(ensemble)
    torch.testing.assert_close(whole(INPUTS), ensemble(INPUTS), rtol=1e-13, atol=1e-13)
    assert all(not bool(constant.any()) for constant in whole.fixed.values())
    assert torch.equal(ensemble.rows, before)
    assert bool(ensemble.fixed["hidden.0.norm.constant"].any())


def test_units_may_still_be_permuted() -> None:
    found = permutation_symmetry(with_profile(0, -0.1, 0.3), (INPUTS, LABELS))
    assert found.change.max() < 1e-13


def test_other_networks_are_refused() -> None:
    residual = ResidualNet(6, 8, 4, 3, generator=torch_generator(0))
    with pytest.raises(Refused, match="a bias profile belongs to a PlainNet without batch normalisation"):
        add_bias_profile_(residual, 0.1, 0.0)  # type: ignore[arg-type]
    with pytest.raises(Refused, match="not to this PlainNet"):
        start_at_profile_(network(0, batch_norm_at=2), 0.1, 0.0)
