"""Training by the kernels is training by torch's own operations: optimisers, penalties, checkpoints, divergence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from skiplab.architectures.fully_connected import HyperResidualNet, ResidualNet
from skiplab.checks import Refused, TimeIsUp
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import torch_generator
from skiplab.training import History, Plan, train
from skiplab.training.augmentation import CropAndFlip
from skiplab.training.checkpoints import Checkpoints
from skiplab.training.loop import Callback
from skiplab.training.optimisers import SGD, Adam, Optimiser
from skiplab.training.regularisers import Penalty, bias_targets, weight_decay
from skiplab.training.step import Step

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
DTYPE = torch.float32 if DEVICE == "cuda" else torch.float64
EXACT = 1e-4 if DEVICE == "cuda" else 1e-10
HUGE = 1e30 if DEVICE == "cuda" else 1e200  # a rate that no number of DTYPE survives
SEEDS = (3, 4)
SAMPLES, BATCH, EPOCHS = 22, 9, 2  # three steps per epoch, the last on four samples


def samples(dtype: torch.dtype = DTYPE) -> TensorSet:
    draw = torch_generator("samples")
    inputs = torch.randn(SAMPLES, 20, generator=draw, dtype=torch.float64).to(dtype)
    labels = torch.randint(3, (SAMPLES,), generator=draw)
    return TensorSet(inputs.to(DEVICE), labels.to(DEVICE), 3, "noise", "noise")


def stack(kind: Any = ResidualNet, dtype: torch.dtype = DTYPE, **options: Any) -> Ensemble:
    nets = [kind(20, 16, 3, 3, generator=torch_generator(seed), dtype=dtype, **options) for seed in SEEDS]
    return Ensemble.of(nets, device=DEVICE)


def run(ensemble: Ensemble, *, epochs: int = EPOCHS, **options: Any) -> History:
    where = {key: options.pop(key) for key in ("checkpoints", "deadline") if key in options}
    options = {"rate": (0.01, 0.02), "fused": True} | options
    return train(ensemble, samples(ensemble.rows.dtype), Plan(epochs, BATCH, SEEDS, **options), **where)


@pytest.mark.parametrize(
    "optimiser", [Adam(eps=1e-6), SGD(), SGD(momentum=0.9), SGD(momentum=0.9, nesterov=True)], ids=str
)
def test_training_with_penalties_is_that_of_the_portable_path(optimiser: Optimiser) -> None:
    found = []
    for fused in (True, False):
        ensemble = stack(HyperResidualNet)
        penalties = [bias_targets(ensemble, (0.1, 0.2), 0.5, SEEDS), weight_decay(ensemble, 0.01)]
        history = run(ensemble, optimiser=optimiser, penalties=penalties, fused=fused)
        found.append((ensemble.rows, history.loss, history.accuracy))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=EXACT, atol=EXACT)


@pytest.mark.parametrize("mixed", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "optimiser", [Adam(), pytest.param(SGD(momentum=0.9), marks=pytest.mark.slow)], ids=str
)
def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(
    optimiser: Optimiser, mixed: bool, tmp_path: Path
) -> None:
    def one(**options: Any) -> tuple[Ensemble, History]:
        ensemble = stack(dtype=torch.float32)
        return ensemble, run(ensemble, optimiser=optimiser, mixed=mixed, **options)

    whole, expected = one()
    with pytest.raises(TimeIsUp):
        one(checkpoints=Checkpoints(tmp_path), deadline=0.0)
    resumed, history = one(checkpoints=Checkpoints(tmp_path))
    assert torch.equal(resumed.rows, whole.rows)
    assert torch.equal(history.loss, expected.loss)
    assert torch.equal(history.accuracy, expected.accuracy)


def test_mixed_precision_learns() -> None:
    history = run(stack(dtype=torch.float32), epochs=4, rate=0.03, mixed=True)
    assert bool((history.loss[-1] < 0.5 * history.loss[0]).all())


@pytest.mark.parametrize(
    "optimiser", [Adam(), pytest.param(SGD(momentum=0.9), marks=pytest.mark.slow)], ids=str
)
def test_a_member_that_diverges_is_frozen_and_its_neighbour_does_not_notice(optimiser: Optimiser) -> None:
    healthy = stack()
    run(healthy, optimiser=optimiser)
    ensemble = stack()
    with np.errstate(all="ignore"):
        history = run(ensemble, optimiser=optimiser, rate=(0.01, HUGE))
    assert history.diverged.tolist() == [False, True]
    assert bool(ensemble.rows.isfinite().all())
    assert bool(history.loss[:, 1].isnan().all())
    assert torch.equal(ensemble.rows[0], healthy.rows[0])


def test_a_penalty_that_is_not_finite_is_a_divergence_too() -> None:
    ensemble = stack()
    weights = Penalty((slice(0, 5),), torch.tensor([0.0, torch.inf], dtype=DTYPE, device=DEVICE))
    history = run(ensemble, penalties=[weights])
    assert history.diverged.tolist() == [False, True]


@pytest.mark.parametrize("mixed", [True, False])
def test_products_take_the_parameters_that_adam_wrote(mixed: bool) -> None:
    ensemble, data = stack(dtype=torch.float32), samples(torch.float32)
    step = Step(ensemble, data, Adam(), F.cross_entropy, (), None, mixed, fused=True)
    step.rate.fill_(0.1)
    start = ensemble.rows.clone()
    for k in range(2):
        step(torch.arange(6, device=DEVICE).expand(2, 6) + k)
    assert step.fused is not None
    weights = step.fused.weights
    assert torch.equal(weights[0], ensemble.rows.bfloat16())
    if not mixed:
        assert torch.equal(weights[1], (ensemble.rows - weights[0].float()).bfloat16())
    assert not torch.equal(ensemble.rows, start)


def test_a_callback_may_change_parameters() -> None:
    def change(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
        ensemble.rows.mul_(0.5)
        return []

    halved = stack(dtype=torch.float32)
    halved.rows.mul_(0.5)
    expected = run(halved, epochs=1, mixed=True)
    changed = run(
        stack(dtype=torch.float32), epochs=1, mixed=True, callbacks=[Callback(frozenset({0}), change)]
    )
    assert torch.equal(changed.loss, expected.loss)


def test_nothing_is_fused_on_a_cpu_unless_it_is_asked_for() -> None:
    ensemble = Ensemble.of([ResidualNet(20, 16, 3, 3, generator=torch_generator(0))], device="cpu")
    data = TensorSet(torch.ones(3, 20), torch.zeros(3, dtype=torch.int64), 3, "ones", "ones")
    assert Step(ensemble, data, Adam(), F.cross_entropy, (), None).fused is None


def test_what_cannot_be_fused_is_refused_where_it_is_asked_for() -> None:
    with pytest.raises(Refused, match="need a fully connected network of ReLUs up to 128 wide, not this Res"):
        run(stack(batch_norm_at=2))
    with pytest.raises(Refused, match="need cross-entropy without augmentation"):
        run(stack(), criterion=F.multi_margin_loss)
    with pytest.raises(Refused, match="need cross-entropy without augmentation"):
        run(stack(), augmentation=CropAndFlip(1))
    images = TensorSet(torch.ones(3, 4, 5), torch.zeros(3, dtype=torch.int64), 3, "ones", "ones")
    with pytest.raises(Refused, match="takes 20 features in the last axis"):
        train(stack(), images, Plan(1, 3, SEEDS, fused=True))
