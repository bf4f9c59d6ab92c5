"""Rates over epochs, against torch's MultiStepLR."""

from __future__ import annotations

import pytest
import torch

from skiplab.training.schedules import Constant, Steps


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
