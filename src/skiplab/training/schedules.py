"""Learning rates over epochs, as factors on the starting rate.

A schedule is a pure function of the epoch and of the losses of the epochs before it, which every checkpoint
holds: it needs no state of its own, and a resumed run gets the rates of the uninterrupted one.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from skiplab.checks import at_least, require


@dataclass(frozen=True)
class Constant:
    """The starting rate throughout."""

    def factor(self, epoch: int, losses: Tensor | None = None) -> float:
        """Factor on the starting rate in an epoch (0-based)."""
        return 1.0


@dataclass(frozen=True)
class Steps:
    """Multiply the rate by ``factor_each`` after each of the milestones (epochs completed)."""

    milestones: tuple[int, ...]
    factor_each: float = 0.1

    def factor(self, epoch: int, losses: Tensor | None = None) -> float:
        """Factor on the starting rate in an epoch (0-based)."""
        return self.factor_each ** sum(epoch >= milestone for milestone in self.milestones)


@dataclass(frozen=True)
class AutoDrop:
    """Drop the rate of each member when its own training loss has stopped falling (balduzzi2017, section 5.1).

    After every epoch the speed of the loss over the last ``window`` epochs is measured: minus the least-squares
    slope of the epochs' mean losses, divided by their mean, that is the share of the loss lost in an epoch. When
    it was below ``threshold`` ``patience`` measurements in a row, the rate is multiplied by ``drop`` and the
    counting begins anew; the window goes on, so that the fall which a lower rate brings is seen.

    The paper gives the window (ten epochs) and the patience (five measurements). Ours: a line through all ten
    losses, since the difference of two of them is mostly noise; a threshold of 1 % an epoch and halving, since
    networks that are merely slow should lose little by a drop that came too soon; and ``least``, below which the
    factor does not fall, so that a network on a plateau can still leave it.
    """

    window: int = 10
    patience: int = 5
    threshold: float = 0.01
    drop: float = 0.5
    least: float = 2**-10

    def __post_init__(self) -> None:
        require(self.window >= 2, f"window is {self.window}, but a slope needs at least 2 epochs.")
        at_least("patience", self.patience, 1)
        require(0 < self.drop < 1, f"drop is {self.drop}, but must lie between 0 and 1; .5 halves the rate.")
        require(0 <= self.least <= 1, f"least is {self.least}, but must lie between 0 and 1.")

    def factor(self, epoch: int, losses: Tensor | None = None) -> Tensor:
        """Factors (E,) in an epoch (0-based), from the losses (epochs so far, E) of each member."""
        require(
            losses is not None and len(losses) == epoch,
            f"AutoDrop needs the losses of all {epoch} epochs before; pass them as a tensor (epochs, members).",
        )
        assert losses is not None
        # On the CPU whatever the device: a few numbers an epoch, and the same roundings everywhere.
        history = losses.detach().to("cpu", torch.float64)
        factor = torch.ones(history.shape[1], dtype=torch.float64)
        slow_for = torch.zeros(history.shape[1], dtype=torch.int64)
        for end in range(self.window, epoch + 1):
            slow = self.speed(history[end - self.window : end]) < self.threshold
            slow_for = torch.where(slow, slow_for + 1, 0)
            due = slow_for >= self.patience
            factor = torch.where(due, (factor * self.drop).clamp_min(self.least), factor)
            slow_for = torch.where(due, 0, slow_for)
        return factor.to(losses.device)

    def speed(self, losses: Tensor) -> Tensor:
        """Share of the loss lost in an epoch, (E,), over a window (epochs, E); NaN once a member diverged."""
        position = torch.arange(len(losses), dtype=losses.dtype)
        position = position - position.mean()
        slope = position @ (losses - losses.mean(0)) / (position @ position)
        return -slope / losses.mean(0).abs()


Schedule = Constant | Steps | AutoDrop
