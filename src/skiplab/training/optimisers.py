"""Optimisers on rows of parameters: one elementwise update for all members, a learning rate each.

They follow torch.optim's formulas (tests compare step by step), acting on a matrix (E, row) in place. Members
that are not ``alive`` (their loss or gradient was not finite) keep their parameters.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from skiplab.checks import at_least, require

if TYPE_CHECKING:
    from skiplab.ensembles.fused.passes import Passes, Update

State = dict[str, Tensor]


class Pace(NamedTuple):
    """How fast every member goes: its learning rate (E,), and whether it is alive (E,) and goes at all."""

    rate: Tensor
    alive: Tensor


@dataclass(frozen=True)
class Adam:
    """Kingma & Ba (2015), algorithm 1, with bias correction."""

    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8

    def start(self, rows: Tensor) -> State:
        """State before the first step."""
        return {
            "first": torch.zeros_like(rows),
            "second": torch.zeros_like(rows),
            "steps": torch.zeros((), dtype=torch.float64, device=rows.device),
        }

    def step(
        self, rows: Tensor, gradient: Tensor, state: State, pace: Pace, passes: Passes | None = None
    ) -> None:
        """θ ← θ − rate · m̂ / (√v̂ + ε), at each member's pace; fused ``passes`` have a kernel of their own."""
        if passes is not None:
            passes.adam(self.begun(state, pace))
            return
        rate, alive = pace
        state["steps"] += 1
        beta1, beta2 = self.betas
        correct1 = 1 - beta1 ** state["steps"]
        correct2 = (1 - beta2 ** state["steps"]).sqrt().to(rows.dtype)
        scale = (alive * rate / correct1).to(rows.dtype).unsqueeze(1)
        moments = (state["first"], state["second"])
        update = _compiled(_adam, rows.device)
        update(rows, gradient, *moments, scale, correct2, alive.unsqueeze(1), beta1, beta2, self.eps)

    def begun(self, state: State, pace: Pace) -> Update:
        """A step, counted, that the kernels of fused passes are to take."""
        from skiplab.ensembles.fused.passes import Update

        state["steps"] += 1
        return Update(state, pace.rate, pace.alive, self.betas, self.eps)


@dataclass(frozen=True)
class SGD:
    """Stochastic gradient descent with momentum, as torch.optim.SGD; Nesterov's if asked."""

    momentum: float = 0.0
    nesterov: bool = False

    def __post_init__(self) -> None:
        at_least("momentum", self.momentum, 0.0)
        require(self.momentum > 0 or not self.nesterov, "Nesterov needs momentum; set momentum above 0.")

    def start(self, rows: Tensor) -> State:
        """State before the first step."""
        return {"velocity": torch.zeros_like(rows)} if self.momentum else {}

    def step(
        self, rows: Tensor, gradient: Tensor, state: State, pace: Pace, passes: Passes | None = None
    ) -> None:
        """v ← μv + g; θ ← θ − rate·v, or − rate·(g + μv) with Nesterov's momentum."""
        rate, alive = pace
        scale = (alive * rate).to(rows.dtype).unsqueeze(1)
        velocity = state.get("velocity")
        update = _descend if passes is not None else _compiled(_descend, rows.device)
        update(rows, gradient, velocity, scale, alive.unsqueeze(1), self.momentum, self.nesterov)
        if passes is not None:
            passes.refresh()


Optimiser = Adam | SGD


def _adam(
    rows: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    scale: Tensor,
    correct2: Tensor,
    alive: Tensor,
    beta1: float,
    beta2: float,
    eps: float,
) -> None:
    gradient = _living(gradient, alive)
    first.lerp_(gradient, 1 - beta1)
    second.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
    # In place: on a CPU every further temporary costs as much as the arithmetic.
    update = second.sqrt().div_(correct2).add_(eps)
    rows.sub_(torch.div(first, update, out=update).mul_(scale))


def _descend(
    rows: Tensor,
    gradient: Tensor,
    velocity: Tensor | None,
    scale: Tensor,
    alive: Tensor,
    momentum: float,
    nesterov: bool,
) -> None:
    gradient = _living(gradient, alive)
    if velocity is None:
        rows.sub_(scale * gradient)
        return
    velocity.mul_(momentum).add_(gradient)
    rows.sub_(scale * (gradient + momentum * velocity if nesterov else velocity))


def _living(gradient: Tensor, alive: Tensor) -> Tensor:
    """Zero the gradients of diverged members, so that they stay where they were."""
    # Looking at a flag is free on a CPU but would make a GPU wait; there the mask is fused instead.
    if gradient.device.type == "cpu" and bool(alive.all()):
        return gradient
    return torch.where(alive, gradient, 0.0)


@functools.cache
def _compiled(function: Callable[..., None], device: torch.device) -> Callable[..., None]:
    """Fuse an update into one kernel on a GPU, where it is bound by memory; on a CPU leave it."""
    if device.type != "cuda":
        return function
    return torch.compile(function, dynamic=False)
