"""Training by the kernels is training by torch's own operations: optimisers, penalties, checkpoints, divergence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from skiplab.architectures.fully_connected import HyperResidualNet, PlainNet, ResidualNet
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


def joined_and_apart(
    ensembles: tuple[Ensemble, Ensemble], batches: list[torch.Tensor], *, mixed: bool = False, **options: Any
) -> list[tuple[Ensemble, Step]]:
    """Steps with Adam as the end of the weight gradients, and with Adam after them, on the same samples."""
    found = []
    for joined, ensemble in zip((True, False), ensembles, strict=True):
        penalties = [bias_targets(ensemble, (0.1, 0.2), 0.5, SEEDS)]
        data = options.get("data", samples(ensemble.rows.dtype))
        step = Step(ensemble, data, Adam(), F.cross_entropy, penalties, None, mixed, True, joined=joined)
        assert step.fused is not None
        step.fused.budget = 0  # one member at a time
        step.rate.copy_(torch.tensor(options.get("rate", (0.01, 0.02)), dtype=torch.float64))
        for batch in batches:
            step(batch.to(DEVICE))
        found.append((ensemble, step))
    return found


def same(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Equal bits where kernels are interpreted; a compiler may round otherwise in another kernel."""
    if DEVICE == "cpu":
        assert torch.equal(ours, theirs)
    else:
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-5)


BATCHES = [torch.arange(9).expand(2, 9) + k for k in range(3)]


@pytest.mark.parametrize("kind", [PlainNet, HyperResidualNet])
@pytest.mark.parametrize(("dtype", "mixed"), [(DTYPE, False), (torch.float32, False), (torch.float32, True)])
def test_adam_at_the_end_of_the_gradients_is_adam_after_them(
    kind: Any, dtype: torch.dtype, mixed: bool
) -> None:
    (one, ours), (_, theirs) = joined_and_apart(
        (stack(kind, dtype), stack(kind, dtype)), BATCHES, mixed=mixed
    )
    for name, tensor in ours.tensors.items():
        same(tensor, theirs.tensors[name])
    assert ours.fused is not None
    assert theirs.fused is not None
    # Not those of the other: where parameters differ in their last bit, bfloat16 may differ by 2⁻⁸ of them.
    assert torch.equal(ours.fused.weights, ours.fused.arithmetic.parts_of(one.rows))
    first = ours.fused.first_bias
    assert not ours.fused.gradient[:, :first].any()  # never written, which is what it is for
    assert theirs.fused.gradient[:, :first].any()
    assert not torch.equal(one.rows, stack(kind, dtype).rows)


def test_adam_waits_for_gradients_that_penalties_change_and_is_not_sgd() -> None:
    ensemble = stack()
    for optimiser, penalties in ((Adam(), [weight_decay(ensemble, 0.1)]), (SGD(), [])):
        step = Step(ensemble, samples(), optimiser, F.cross_entropy, penalties, None, fused=True, joined=True)
        assert step.adam_at_end is None
    assert Step(ensemble, samples(), Adam(), F.cross_entropy, (), None, joined=True).adam_at_end is None


def test_a_loss_that_is_not_finite_freezes_a_member_however_adam_is_reached() -> None:
    with np.errstate(all="ignore"):
        (one, ours), (other, theirs) = joined_and_apart((stack(), stack()), BATCHES, rate=(0.01, HUGE))
    assert ours.alive.tolist() == theirs.alive.tolist() == [True, False]
    assert bool(one.rows.isfinite().all())
    same(one.rows, other.rows)


def test_a_gradient_that_is_not_finite_takes_one_step_at_most_with_adam_at_its_end() -> None:
    data = samples(torch.float32)
    data.inputs[-9:] *= 1e20  # the squares of gradients overflow, losses do not
    far = torch.stack([torch.arange(9), torch.arange(SAMPLES - 9, SAMPLES)])
    ensembles = stack(dtype=torch.float32), stack(dtype=torch.float32)
    start = ensembles[0].rows.clone()
    with np.errstate(all="ignore"):
        (one, ours), (other, _) = joined_and_apart(ensembles, [far], data=data)
        assert ours.alive.tolist() == [True, False]
        assert torch.equal(other.rows[1], start[1])
        assert bool(one.rows.isfinite().all())
        same(one.rows[0], other.rows[0])
        after = one.rows[1].clone()
        ours(BATCHES[0].to(DEVICE))
    assert torch.equal(one.rows[1], after)
    assert not torch.equal(one.rows[0], other.rows[0])


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
