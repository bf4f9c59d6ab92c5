"""Learning rates over epochs, as factors on the starting rate."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Constant:
    """The starting rate throughout."""

    def factor(self, epoch: int) -> float:
        """Factor on the starting rate in an epoch (0-based)."""
        return 1.0


@dataclass(frozen=True)
class Steps:
    """Multiply the rate by ``factor_each`` after each of the milestones (epochs completed)."""

    milestones: tuple[int, ...]
    factor_each: float = 0.1

    def factor(self, epoch: int) -> float:
        """Factor on the starting rate in an epoch (0-based)."""
        return self.factor_each ** sum(epoch >= milestone for milestone in self.milestones)


Schedule = Constant | Steps
