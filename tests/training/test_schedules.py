"""Rates over epochs: against torch's MultiStepLR, and drops that follow each member's own losses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from skiplab.architectures.fully_connected import PlainNet
from skiplab.checks import Refused, TimeIsUp
from skiplab.data import TensorSet
from skiplab.ensembles import Ensemble
from skiplab.randomness import numpy_generator, torch_generator
from skiplab.training import History, Plan, train
from skiplab.training.checkpoints import Checkpoints
from skiplab.training.optimisers import SGD
from skiplab.training.schedules import AutoDrop, Constant, Steps


def test_a_constant_rate() -> None:
    assert [Constant().factor(epoch) for epoch in (0, 1, 1000)] == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(("milestones", "factor"), [((2, 5), 0.1), ((), 0.1), ((0, 3), 0.5)])
def test_steps_fall_after_the_milestones_as_torchs_do(milestones: tuple[int, ...], factor: float) -> None:
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    theirs = torch.optim.lr_scheduler.MultiStepLR(optimiser, list(milestones), gamma=factor)
    ours = Steps(milestones, factor)
    for epoch in range(8):
        assert ours.factor(epoch) == pytest.approx(theirs.get_last_lr()[0], rel=1e-12)
        optimiser.step()
        theirs.step()


# The auto-scheduler ----------------------------------------------------------------------------------------


def factors(schedule: AutoDrop, losses: Tensor) -> Tensor:
    """The factors (epochs + 1, E) of all epochs of a run with these losses (epochs, E)."""
    return torch.stack([schedule.factor(epoch, losses[:epoch]) for epoch in range(len(losses) + 1)])


def column(values: list[float]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


def test_the_speed_of_a_straight_line_is_its_slope_over_its_mean() -> None:
    losses = torch.stack([2.0 - 0.03 * torch.arange(10.0), 1.0 + 0.02 * torch.arange(10.0)], dim=1).double()
    expected = [0.03 / (2 - 0.03 * 4.5), -0.02 / (1 + 0.02 * 4.5)]
    torch.testing.assert_close(AutoDrop().speed(losses).tolist(), expected, rtol=1e-6, atol=0)


def test_a_loss_that_stands_still_halves_the_rate_after_fourteen_epochs_and_then_every_five() -> None:
    found = factors(AutoDrop(), column([2.3] * 30))[:, 0].tolist()
    # The first measurement needs ten losses, the fifth comes after fourteen epochs.
    assert found == [1.0] * 14 + [0.5] * 5 + [0.25] * 5 + [0.125] * 5 + [0.0625] * 2


def test_a_loss_that_falls_fast_enough_leaves_the_rate_alone() -> None:
    steady = column([0.985**epoch for epoch in range(60)])  # 1.5 % an epoch
    slower = column([0.995**epoch for epoch in range(60)])
    assert bool((factors(AutoDrop(), steady) == 1).all())
    assert factors(AutoDrop(), slower)[-1].item() == 0.5**10
    assert bool((factors(AutoDrop(threshold=0.004), slower) == 1).all())


def test_one_fast_measurement_begins_the_count_anew() -> None:
    schedule = AutoDrop(window=2, patience=3)
    losses = column([1.0, 1.0, 1.0, 0.9, 0.9, 0.9, 0.9])
    # Slow after epochs 2 and 3, fast after 4, slow after 5, 6 and 7.
    assert factors(schedule, losses)[:, 0].tolist() == [1.0] * 7 + [0.5]


def test_the_factor_does_not_fall_below_the_least() -> None:
    schedule = AutoDrop(window=2, patience=1, drop=0.1, least=0.03)
    assert factors(schedule, column([1.0] * 5))[:, 0].tolist() == pytest.approx([1, 1, 0.1, 0.03, 0.03, 0.03])


def test_a_diverged_member_keeps_its_rate() -> None:
    losses = torch.full((30, 1), torch.nan, dtype=torch.float64)
    losses[:3] = 2.0
    assert bool((factors(AutoDrop(), losses) == 1).all())


@pytest.mark.parametrize("schedule", [AutoDrop(), AutoDrop(window=4, patience=2, threshold=0.03, drop=0.3)])
def test_each_member_follows_its_own_losses_as_a_plain_count_does(schedule: AutoDrop) -> None:
    noise = numpy_generator("losses").normal(size=(60, 4)) * 0.02
    speeds = np.array([0.0, 0.01, 0.03, 0.1])
    losses = np.exp(-speeds * np.arange(60)[:, None] + noise)
    found = factors(schedule, torch.from_numpy(losses))
    for member in range(4):
        factor, slow = 1.0, 0
        for epoch in range(61):
            if epoch >= schedule.window:
                last = losses[epoch - schedule.window : epoch, member]
                slope = np.polyfit(np.arange(schedule.window), last, 1)[0]
                slow = slow + 1 if -slope / last.mean() < schedule.threshold else 0
                if slow == schedule.patience:
                    factor, slow = max(factor * schedule.drop, schedule.least), 0
            assert found[epoch, member].item() == pytest.approx(factor, rel=1e-12)
    assert len({tuple(each.tolist()) for each in found.T}) >= 3  # members really differ


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window": 1}, "window is 1, but a slope needs at least 2"),
        ({"patience": 0}, "patience is 0, but must be at least 1"),
        ({"drop": 1.0}, "drop is 1.0, but must lie between 0 and 1"),
        ({"least": 2.0}, "least is 2.0, but must lie between 0 and 1"),
    ],
)
def test_wrong_settings_are_refused(options: dict[str, float], words: str) -> None:
    with pytest.raises(Refused, match=words):
        AutoDrop(**options)  # type: ignore[arg-type]


def test_it_asks_for_the_losses_of_all_epochs() -> None:
    with pytest.raises(Refused, match="losses of all 3 epochs"):
        AutoDrop().factor(3)
    with pytest.raises(Refused, match="losses of all 3 epochs"):
        AutoDrop().factor(3, torch.ones(2, 1))


# In the loop -------------------------------------------------------------------------------------------------

SEEDS = (4, 5)
EPOCHS = 8


def run(schedule: AutoDrop | Steps, rate: float = 0.05, **options: object) -> tuple[Ensemble, History]:
    draw = torch_generator("samples")
    inputs = torch.randn(10, 6, generator=draw, dtype=torch.float64)
    data = TensorSet(inputs, torch.randint(3, (10,), generator=draw), 3, "noise", "noise")
    nets = [PlainNet(6, 8, 2, 3, generator=torch_generator(seed), dtype=torch.float64) for seed in SEEDS]
    ensemble = Ensemble.of(nets)
    plan = Plan(EPOCHS, 4, SEEDS, rate=rate, optimiser=SGD(), schedule=schedule)
    return ensemble, train(ensemble, data, plan, **options)  # type: ignore[arg-type]


def test_the_loop_trains_with_the_factors_of_the_losses_it_reports() -> None:
    # Every measurement is slow, so the drops fall on known epochs and equal those of fixed steps.
    always = AutoDrop(window=2, patience=2, threshold=10.0, drop=0.1)
    stepped, _ = run(Steps((3, 5, 7), 0.1))
    dropped, _ = run(always)
    torch.testing.assert_close(dropped.rows, stepped.rows, rtol=1e-12, atol=1e-14)
    assert not torch.equal(dropped.rows, run(Steps(()))[0].rows)


def test_a_resumed_run_drops_as_the_uninterrupted_one_bit_for_bit(tmp_path: Path) -> None:
    schedule = AutoDrop(window=3, patience=2, threshold=0.02)
    whole, expected = run(schedule)
    final = schedule.factor(EPOCHS, expected.loss)
    assert bool((final < 1).any())  # otherwise the schedule has no part in it
    stops = 0
    while True:
        try:
            resumed, history = run(schedule, checkpoints=Checkpoints(tmp_path), deadline=0.0)
            break
        except TimeIsUp:
            stops += 1
    assert stops == EPOCHS - 1
    assert torch.equal(resumed.rows, whole.rows)
    assert torch.equal(history.loss, expected.loss)
