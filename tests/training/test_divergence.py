"""A member that diverges is marked and frozen with finite parameters; the others go on as if alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from skiplab.architectures.fully_connected import ResidualNet
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.training import History, Plan, train
from skiplab.training.loop import Callback
from skiplab.training.optimisers import SGD, Adam, Optimiser
from skiplab.training.regularisers import weight_decay

SEEDS = (0, 1, 2)
EPOCHS = 4
RATES = (0.01, 1e200, 0.02)
both = pytest.mark.parametrize("backend", ["batched", "loop"])
# Why not the default ε: see tests/ensembles/test_members_equal_lone_networks.py.
OPTIMISERS = [Adam(eps=1e-6), SGD(), SGD(momentum=0.9), SGD(momentum=0.9, nesterov=True)]


def samples(dtype: torch.dtype = torch.float64) -> TensorSet:
    draw = torch_generator("samples")
    inputs = torch.randn(12, 6, generator=draw, dtype=torch.float64).to(dtype)
    return TensorSet(inputs, torch.randint(3, (12,), generator=draw), 3, "noise", "noise")


def stack(members: list[int], backend: str, **options: Any) -> Ensemble:
    settings = {"dtype": torch.float64} | options
    nets = [ResidualNet(6, 8, 3, 3, generator=torch_generator(SEEDS[k]), **settings) for k in members]
    return Ensemble.of(nets, backend=backend)


def run(members: list[int], backend: str, optimiser: Optimiser, **options: Any) -> tuple[Ensemble, History]:
    ensemble = stack(members, backend, **options)
    seeds, rates = tuple(SEEDS[k] for k in members), tuple(RATES[k] for k in members)
    return ensemble, train(ensemble, samples(), Plan(EPOCHS, 4, seeds, rate=rates, optimiser=optimiser))


@both
@pytest.mark.parametrize("batch_norm_at", [None, 2])
@pytest.mark.parametrize("optimiser", OPTIMISERS, ids=str)
def test_a_huge_rate(optimiser: Optimiser, batch_norm_at: int | None, backend: str) -> None:
    ensemble, history = run([0, 1, 2], backend, optimiser, batch_norm_at=batch_norm_at)
    assert history.diverged.tolist() == [False, True, False]
    assert bool(ensemble.rows.isfinite().all())
    assert bool(history.loss[:, 1].isnan().all())
    assert bool(history.accuracy[:, 1].isnan().all())
    for index in (0, 2):
        alone, lone_history = run([index], backend, optimiser, batch_norm_at=batch_norm_at)
        if backend == "loop":  # the very same operations, so the very same numbers
            assert torch.equal(ensemble.rows[index], alone.rows[0])
            assert torch.equal(history.loss[:, index], lone_history.loss[:, 0])
        torch.testing.assert_close(ensemble.rows[index], alone.rows[0], rtol=1e-9, atol=1e-9)
        torch.testing.assert_close(history.loss[:, index], lone_history.loss[:, 0], rtol=1e-9, atol=1e-9)


@both
def test_a_batched_neighbour_does_not_notice_at_all(backend: str) -> None:
    healthy = stack([0, 1, 2], backend)
    plan = Plan(EPOCHS, 4, SEEDS, rate=(0.01, 0.01, 0.02), optimiser=Adam())
    expected = train(healthy, samples(), plan)
    ensemble, history = run([0, 1, 2], backend, Adam())
    assert torch.equal(ensemble.rows[[0, 2]], healthy.rows[[0, 2]])
    assert torch.equal(history.loss[:, [0, 2]], expected.loss[:, [0, 2]])


@both
def test_a_diverged_member_stays_where_it_was_from_that_step_on(backend: str) -> None:
    kept: dict[int, Tensor] = {}

    def look(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
        kept[step] = ensemble.rows.clone()
        return []

    ensemble = stack([0, 1, 2], backend)

    def criterion(output: Tensor, target: Tensor) -> Tensor:
        # The one network whose output has grown beyond 1e100 has no loss; all is well before.
        return F.cross_entropy(output, target) + 0 * torch.where(output.abs().max() > 1e100, torch.inf, 0.0)

    plan = Plan(
        EPOCHS,
        4,
        SEEDS,
        rate=RATES,
        optimiser=SGD(),
        criterion=criterion,
        callbacks=[Callback(frozenset(range(13)), look)],
    )
    history = train(ensemble, samples(), plan)
    assert history.diverged.tolist() == [False, True, False]
    assert not torch.equal(kept[0][1], kept[1][1])  # the step that took it away
    assert all(torch.equal(kept[1][1], kept[step][1]) for step in range(2, 13))
    assert all(not torch.equal(kept[step][0], kept[step + 1][0]) for step in range(12))


@both
def test_a_gradient_too_large_for_a_step_is_divergence_before_the_step(backend: str) -> None:
    # In float32 a finite gradient of 1e30 times a rate of 1e10 would make parameters infinite.
    ensemble = stack([0, 1, 2], backend, dtype=torch.float32)
    before = ensemble.rows.clone()
    penalty = weight_decay(ensemble, (0.0, 1e30, 0.0))
    plan = Plan(1, 4, SEEDS, rate=(0.01, 1e10, 0.01), optimiser=SGD(), penalties=[penalty])
    history = train(ensemble, samples(torch.float32), plan)
    assert history.diverged.tolist() == [False, True, False]
    assert torch.equal(ensemble.rows[1], before[1])
    assert bool(ensemble.rows.isfinite().all())


@both
def test_a_network_that_starts_with_nan_is_marked_and_the_others_learn(backend: str) -> None:
    ensemble, healthy = stack([0, 1, 2], backend), stack([0, 1, 2], backend)
    ensemble.parameters["output.bias"][1] = torch.nan
    plan = Plan(EPOCHS, 4, SEEDS, rate=0.01)
    history, expected = train(ensemble, samples(), plan), train(healthy, samples(), plan)
    assert history.diverged.tolist() == [False, True, False]
    assert torch.equal(ensemble.rows[[0, 2]], healthy.rows[[0, 2]])
    assert torch.equal(history.accuracy[:, [0, 2]], expected.accuracy[:, [0, 2]])


def test_metrics_before_the_divergence_are_kept() -> None:
    calls = 0

    def criterion(output: Tensor, target: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return F.cross_entropy(output, target) * (torch.nan if calls > 3 else 1.0)

    ensemble = stack([0], "loop")
    history = train(ensemble, samples(), Plan(3, 4, (0,), criterion=criterion))
    assert history.loss[:, 0].isnan().tolist() == [False, True, True]
    assert history.diverged.tolist() == [True]
