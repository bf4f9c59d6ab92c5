"""A learning rate per network, chosen on seeds of their own, so that none is helped by a rate that suits it alone.

The rate with the lowest cautious loss is taken: the upper end of a one-sided interval of the mean final loss, since
few seeds search. Where nobody gives rates, three are tried and more beside them while the best one is at an edge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from skiplab.checks import positive, require
from skiplab.diagnosis.courses import Course
from skiplab.diagnosis.losses import Loss
from skiplab.diagnosis.side_by_side import Entrant, trained
from skiplab.telling import Tell, silent

START = (3e-4, 1e-3, 3e-3)  # about Adam's usual 0.001
FARTHEST = (1e-5, 1e-1)  # of rates that nobody gave
CAUTION = 0.8  # the level of the one-sided interval: with 3 seeds, the mean and 1.06 standard errors

Entering = Callable[[str, int, float], Entrant]


@dataclass(frozen=True)
class ChosenRate:
    """A learning rate, the cautious loss of every rate that was tried, and whether a better one may lie beyond."""

    rate: float
    tried: Mapping[float, float]

    @property
    def at_edge(self) -> bool:
        """Whether the rate is the smallest or largest of several that were tried."""
        return len(self.tried) > 1 and self.rate in (min(self.tried), max(self.tried))

    def __str__(self) -> str:
        if not self.tried:
            return f"{self.rate:g}"
        edge = ", at the edge: a better one may lie beyond" * self.at_edge
        return f"{self.rate:g} (best of {', '.join(f'{rate:g}' for rate in sorted(self.tried))}{edge})"


def checked_rates(rate: float | None, rates: Sequence[float] | None) -> tuple[float, ...] | None:
    """The rates to choose from: one, several, or None where they are to be found."""
    require(
        rate is None or rates is None, "both rate and rates were given; pass one rate, or several in rates."
    )
    if rate is not None:
        return (positive("rate", rate, 1e-3),)
    if rates is None:
        return None
    is_list = isinstance(rates, Sequence) and not isinstance(rates, str) and len(rates) > 0
    require(is_list, f"rates is {rates!r}, but must be a list of numbers, such as [0.0003, 0.001, 0.003].")
    return tuple(sorted({positive("a rate", each, 1e-3) for each in rates}))


def choose_rates(
    names: Sequence[str],
    entering: Entering,
    rates: tuple[float, ...] | None,
    course: Course,
    loss: Loss,
    *,
    seeds: Sequence[int],
    steps: int,
    device: str | torch.device = "cpu",
    tell: Tell = silent,
) -> dict[str, ChosenRate]:
    """The best rate of every network; ``entering(name, seed, rate)`` makes one that has not been trained."""
    if rates is not None and len(rates) == 1:
        return {name: ChosenRate(rates[0], {}) for name in names}
    found: dict[str, dict[float, float]] = {name: {} for name in names}
    wanted = dict.fromkeys(names, tuple(rates or START))
    while wanted:
        entrants = [
            entering(name, seed, rate) for name, some in wanted.items() for rate in some for seed in seeds
        ]
        runs = trained(
            entrants,
            course,
            loss,
            steps=steps,
            device=device,
            tell=lambda text: tell(f"search for a rate, {text}"),
        )
        for name, some in wanted.items():
            for rate in some:
                ends = [run.final_loss for run in runs if run.name == name and run.rate == rate]
                found[name][rate] = cautious(ends)
        wanted = {} if rates is not None else _beyond(found)
    return {name: ChosenRate(best_of(tried), tried) for name, tried in found.items()}


def cautious(losses: Sequence[float]) -> float:
    """The upper end of the mean's one-sided interval; infinite where a run diverged."""
    if not all(map(math.isfinite, losses)):
        return math.inf
    mean = float(np.mean(losses))
    if len(losses) < 2:
        return mean
    error = float(np.std(losses, ddof=1)) / math.sqrt(len(losses))
    return mean + float(stats.t.ppf(CAUTION, len(losses) - 1)) * error


def best_of(tried: Mapping[float, float]) -> float:
    """The rate of the lowest loss; of equal ones, and where all diverge, the smallest."""
    return min(sorted(tried), key=lambda rate: tried[rate])


def _beyond(found: Mapping[str, Mapping[float, float]]) -> dict[str, tuple[float, ...]]:
    """The next rate of every network whose best one is at an edge."""
    wanted: dict[str, tuple[float, ...]] = {}
    for name, tried in found.items():
        best = best_of(tried)
        low, high = min(tried), max(tried)
        step = _third(low, down=True) if best == low else _third(high, down=False) if best == high else None
        if step is not None and FARTHEST[0] <= step <= FARTHEST[1]:
            wanted[name] = (step,)
    return wanted


def _third(rate: float, *, down: bool) -> float:
    """The neighbour in 1, 3, 10, 30, …"""
    exponent = math.floor(math.log10(rate) + 1e-9)
    is_one = rate / 10**exponent < 2
    if down:
        return float(f"3e{exponent - 1}") if is_one else float(f"1e{exponent}")
    return float(f"3e{exponent}") if is_one else float(f"1e{exponent + 1}")
