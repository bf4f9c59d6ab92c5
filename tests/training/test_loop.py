"""The loop: metrics, shuffles, per-member settings, penalties, schedules, callbacks, refusals."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from skiplab.architectures.fully_connected import PlainNet
from skiplab.architectures.initialisers import Glorot
from skiplab.architectures.resnet import ResNet
from skiplab.checks import Refused
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.measurements.gradient_norms import gradient_norms
from skiplab.randomness import torch_generator
from skiplab.training import History, Plan, train
from skiplab.training.augmentation import CropAndFlip
from skiplab.training.loop import Callback, Shuffles, shuffles
from skiplab.training.optimisers import SGD
from skiplab.training.regularisers import bias_targets, start_biases_at_targets_, weight_decay
from skiplab.training.schedules import Steps

CPU = torch.device("cpu")
SEEDS = (7, 8, 9)
both = pytest.mark.parametrize("backend", ["batched", "loop"])


def samples(count: int = 13, *shape: int) -> TensorSet:
    draw = torch_generator("samples")
    inputs = torch.randn(count, *(shape or (6,)), generator=draw, dtype=torch.float64)
    return TensorSet(inputs, torch.randint(3, (count,), generator=draw), 3, "noise", "noise")


def net(seed: int, gain: float = 1.0, **options: Any) -> PlainNet:
    return PlainNet(
        6, 8, 3, 3, generator=torch_generator(seed), init=Glorot(gain=gain), dtype=torch.float64, **options
    )


def stack(seeds: tuple[int, ...] = SEEDS, **options: Any) -> Ensemble:
    backend = options.pop("backend", "auto")
    return Ensemble.of([net(seed, **options) for seed in seeds], backend=backend)


def close(one: Tensor, other: Tensor) -> None:
    torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


# Metrics and shuffles --------------------------------------------------------------------------------------


def test_accuracy_and_loss_are_running_means_over_the_epochs_batches() -> None:
    data, module = samples(), net(7)
    history = train(stack((7,)), data, Plan(2, 5, (7,), rate=0.05, optimiser=SGD()))
    theirs = torch.optim.SGD(module.parameters(), lr=0.05)
    for epoch in range(2):
        loss_sum, hits = 0.0, 0
        for indices in shuffles((7,), epoch, 13, CPU)[0].split(5):
            theirs.zero_grad()
            output = module(data.inputs[indices])
            loss = F.cross_entropy(output, data.labels[indices])
            loss.backward()
            theirs.step()
            loss_sum += F.cross_entropy(output, data.labels[indices], reduction="sum").item()
            hits += int((output.argmax(1) == data.labels[indices]).sum())
        assert history.loss[epoch, 0].item() == pytest.approx(loss_sum / 13, rel=1e-12)
        assert history.accuracy[epoch, 0].item() == hits / 13
    assert history.accuracy.shape == history.loss.shape == (2, 1)
    assert history.diverged.tolist() == [False]


def test_networks_learn() -> None:
    history = train(stack(), samples(), Plan(150, 13, SEEDS, rate=0.02))
    assert bool((history.accuracy[-1] == 1).all())
    assert bool((history.loss[-1] < 0.1 * history.loss[0]).all())


def test_a_regression_has_a_loss_and_no_accuracy() -> None:
    data = samples()
    data = TensorSet(data.inputs, data.inputs[:, :3], 0, "regression", "regression")
    history = train(stack(), data, Plan(3, 5, SEEDS, criterion=F.mse_loss))
    assert bool(history.accuracy.isnan().all())
    assert bool(history.loss.isfinite().all())


def test_every_epoch_shows_every_sample_once_in_each_members_own_order() -> None:
    orders = shuffles(SEEDS, 4, 50, CPU)
    assert orders.shape == (3, 50)
    assert bool((orders.sort(1).values == torch.arange(50)).all())
    assert not torch.equal(orders[0], orders[1])
    assert not torch.equal(orders, shuffles(SEEDS, 5, 50, CPU))
    assert torch.equal(orders[1:], shuffles(SEEDS[1:], 4, 50, CPU))


def test_shuffles_are_those_of_their_epoch_whether_begun_or_not() -> None:
    orders = Shuffles(SEEDS, 50, CPU)
    for epoch, begun in ((0, 1), (1, 3), (2, 3)):  # the fourth epoch's are begun where the third's are wanted
        assert torch.equal(orders.of(epoch), shuffles(SEEDS, epoch, 50, CPU))
        orders.begin(begun)


def test_no_epochs_leave_the_networks_as_they_were() -> None:
    ensemble = stack()
    before = ensemble.rows.clone()
    callback = Callback(frozenset({0}), lambda ensemble, step: [{"step": step}])
    history = train(ensemble, samples(), Plan(0, 5, SEEDS, callbacks=[callback]))
    assert torch.equal(ensemble.rows, before)
    assert history.accuracy.shape == (0, 3)
    assert history.rows == [{"step": 0}]


def test_progress_is_told_after_every_epoch() -> None:
    told: list[tuple[float, str]] = []
    train(stack(), samples(), Plan(4, 5, SEEDS), tell=lambda *news: told.append(news))
    assert told == [(k / 4, f"epoch {k}/4") for k in (1, 2, 3, 4)]


def test_the_global_generator_is_left_alone() -> None:
    before = torch.random.get_rng_state()
    images = samples(8, 3, 8, 8)
    nets = [ResNet(1, filters=(2, 4), outputs=3, generator=torch_generator(0), dtype=torch.float64)]
    train(Ensemble.of(nets), images, Plan(2, 4, (0,), augmentation=CropAndFlip(1)))
    assert torch.equal(before, torch.random.get_rng_state())


# A grid search is one batch --------------------------------------------------------------------------------


@both
def test_per_member_rate_gain_and_regulariser_equal_separate_runs(backend: str) -> None:
    rates, gains = (0.1, 0.01, 0.3), (0.3, 1.0, 2**0.5)
    sigmas, strengths, decays = (1.0, 0.0, 0.3), (0.01, 0.1, 0.0), (0.0, 0.1, 0.01)
    data = samples()

    def run(members: list[int]) -> tuple[Ensemble, History]:
        seeds = tuple(SEEDS[k] for k in members)
        ensemble = Ensemble.of([net(SEEDS[k], gains[k]) for k in members], backend=backend)
        penalties = [
            bias_targets(ensemble, [strengths[k] for k in members], [sigmas[k] for k in members], seeds),
            weight_decay(ensemble, [decays[k] for k in members]),
        ]
        rate = tuple(rates[k] for k in members)
        return ensemble, train(
            ensemble, data, Plan(4, 5, seeds, rate=rate, optimiser=SGD(0.9), penalties=penalties)
        )

    together, history = run([0, 1, 2])
    for index in range(3):
        alone, lone_history = run([index])
        close(together.rows[index], alone.rows[0])
        close(history.loss[:, index], lone_history.loss[:, 0])
    # Nor does it matter which others share the ensemble, or where in it a member sits.
    pair, _ = run([2, 0])
    close(pair.rows, together.rows[[2, 0]])


@both
def test_augmented_members_equal_separate_runs(backend: str) -> None:
    data = samples(10, 3, 8, 8)

    def run(seeds: tuple[int, ...]) -> Ensemble:
        nets = [
            ResNet(1, filters=(2, 4), outputs=3, generator=torch_generator(seed), dtype=torch.float64)
            for seed in seeds
        ]
        ensemble = Ensemble.of(nets, backend=backend)
        train(ensemble, data, Plan(3, 5, seeds, rate=0.01, augmentation=CropAndFlip(2)))
        return ensemble

    together = run(SEEDS)
    for index, seed in enumerate(SEEDS):
        alone = run((seed,))
        close(together.rows[index], alone.rows[0])
        for name, tensor in together.fixed.items():
            close(tensor[index], alone.fixed[name][0])


def test_penalties_are_those_of_torch_optims_weight_decay() -> None:
    data, module = samples(), net(7)
    ensemble = stack((7,))
    plan = Plan(3, 5, (7,), rate=0.1, optimiser=SGD(0.9), penalties=[weight_decay(ensemble, 0.05)])
    train(ensemble, data, plan)
    vectors = [p for p in module.parameters() if p.ndim == 1]
    groups = [
        {"params": [p for p in module.parameters() if p.ndim == 2], "weight_decay": 0.05},
        {"params": vectors},
    ]
    theirs = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    for epoch in range(3):
        for indices in shuffles((7,), epoch, 13, CPU)[0].split(5):
            theirs.zero_grad()
            F.cross_entropy(module(data.inputs[indices]), data.labels[indices]).backward()
            theirs.step()
    for name, parameter in module.named_parameters():
        close(ensemble.parameters[name][0], parameter.detach())


def test_a_strong_bias_penalty_takes_the_biases_to_their_targets_and_bias_init_starts_there() -> None:
    ensemble, started = stack(), stack()
    penalty = bias_targets(ensemble, 50.0, 0.5, SEEDS)
    start = penalty.value(ensemble.rows)
    train(ensemble, samples(), Plan(20, 5, SEEDS, rate=5e-3, optimiser=SGD(), penalties=[penalty]))
    assert bool((penalty.value(ensemble.rows) < 1e-3 * start).all())
    start_biases_at_targets_(started, 0.5, SEEDS)
    assert penalty.value(started.rows).tolist() == [0.0, 0.0, 0.0]


def test_steps_in_the_schedule_scale_the_rate_from_their_epoch_on() -> None:
    data = samples()
    stepped, whole, rest = stack(), stack(), stack()
    train(stepped, data, Plan(3, 13, SEEDS, rate=0.1, optimiser=SGD(), schedule=Steps((2,), 0.0)))
    train(whole, data, Plan(2, 13, SEEDS, rate=0.1, optimiser=SGD()))
    assert torch.equal(stepped.rows, whole.rows)  # a factor of 0 stops all learning after two epochs
    train(rest, data, Plan(3, 13, SEEDS, rate=0.1, optimiser=SGD()))
    assert not torch.equal(rest.rows, whole.rows)


# Callbacks -------------------------------------------------------------------------------------------------


def test_callbacks_run_before_their_step_and_after_the_last_one() -> None:
    seen: dict[int, Tensor] = {}

    def look(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
        seen[step] = ensemble.rows.clone()
        return [{"step": step, "member": member} for member in range(ensemble.size)]

    ensemble = stack()
    before = ensemble.rows.clone()
    history = train(
        ensemble, samples(), Plan(2, 5, SEEDS, callbacks=[Callback(frozenset({0, 1, 3, 6, 99}), look)])
    )
    assert [row["step"] for row in history.rows] == [0, 0, 0, 1, 1, 1, 3, 3, 3, 6, 6, 6]
    assert torch.equal(seen[0], before)
    assert torch.equal(seen[6], ensemble.rows)
    one_epoch = stack()
    train(one_epoch, samples(), Plan(1, 5, SEEDS))
    assert torch.equal(seen[3], one_epoch.rows)


def test_a_callback_may_run_any_measurement_without_changing_the_training() -> None:
    data = samples()

    def measure(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
        batch = (data.inputs, data.labels)
        norms = gradient_norms(ensemble, batch, criterion=F.cross_entropy, mode="train")
        return [{"step": step, "norms": norms.mean.tolist()}]

    watched, alone = stack(batch_norm_at=2), stack(batch_norm_at=2)
    history = train(watched, data, Plan(2, 5, SEEDS, callbacks=[Callback(frozenset({0, 2, 6}), measure)]))
    unwatched = train(alone, data, Plan(2, 5, SEEDS))
    assert [row["step"] for row in history.rows] == [0, 2, 6]
    assert torch.equal(watched.rows, alone.rows)
    assert torch.equal(history.loss, unwatched.loss)
    for name, tensor in watched.fixed.items():
        assert torch.equal(tensor, alone.fixed[name])


def test_a_callback_may_leave_the_networks_in_evaluation_mode() -> None:
    def evaluate(ensemble: Ensemble, step: int) -> list[dict[str, Any]]:
        return [{"outputs": ensemble.train(False)(samples().inputs).sum().item()}]

    watched, alone = stack(batch_norm_at=2), stack(batch_norm_at=2)
    train(watched, samples(), Plan(2, 5, SEEDS, callbacks=[Callback(frozenset({1}), evaluate)]))
    train(alone, samples(), Plan(2, 5, SEEDS))
    assert torch.equal(watched.rows, alone.rows)


def test_networks_train_in_training_mode_and_come_back_in_evaluation_mode() -> None:
    class Watch(nn.Linear):
        modes: list[bool] = []  # noqa: RUF012 - shared on purpose: the ensemble works on a copy

        def forward(self, x: Tensor) -> Tensor:
            self.modes.append(self.training)
            return super().forward(x)

    ensemble = Ensemble.of([Watch(6, 3).double().eval()])
    train(ensemble, samples(), Plan(1, 5, (0,)))
    assert Watch.modes == [True] * 3
    assert not ensemble.member(0).training


# Refusals --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["batched", "loop"])
def test_mixed_precision_is_nearly_the_same_and_not_the_same(backend: str) -> None:
    images = torch.randn(2, 12, 3, 8, 8, generator=torch_generator("images"))
    labels = torch.randint(3, (2, 12), generator=torch_generator("labels"))
    nets = [
        ResNet(1, filters=(4, 8), outputs=3, generator=torch_generator(seed), dtype=torch.float32)
        for seed in range(2)
    ]
    ensemble = Ensemble.of(nets, backend=backend).train()
    exact = ensemble.gradients(images, labels, F.cross_entropy)
    mixed = ensemble.gradients(images, labels, F.cross_entropy, mixed=True)
    for one, other in zip(exact, mixed, strict=True):
        assert one.dtype == other.dtype == torch.float32
        difference = float((one - other).norm() / one.norm())
        assert 1e-5 < difference < 0.2, difference  # 8 bits a number, and a few rectifiers switch


def test_a_whole_number_will_do_as_a_rate() -> None:
    one, other = stack(), stack()
    train(one, samples(), Plan(1, 5, SEEDS, rate=1, optimiser=SGD()))
    train(other, samples(), Plan(1, 5, SEEDS, rate=1.0, optimiser=SGD()))
    assert torch.equal(one.rows, other.rows)


def test_wrong_plans_are_refused() -> None:
    with pytest.raises(Refused, match="epochs is -1, but must be at least 0"):
        Plan(-1, 5, SEEDS)
    with pytest.raises(Refused, match="batch_size is 0, but must be at least 1"):
        Plan(1, 0, SEEDS)
    with pytest.raises(Refused, match="2 seeds were given for 3 members"):
        train(stack(), samples(), Plan(1, 5, (0, 1)))
    with pytest.raises(
        Refused, match=r"\(0\.1, 0\.2\) was given as rate; give one number, or one for each of 3"
    ):
        train(stack(), samples(), Plan(1, 5, SEEDS, rate=(0.1, 0.2)))
