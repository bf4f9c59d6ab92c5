"""One forward pass as a graph: which call reads which, what parameters it uses, and which module returned it.

The pass is followed as ``subjects.residual_blocks`` follows it, so that calls have the same numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from skiplab.measurements.tallies import square_sum
from skiplab.remedies.observing import refuse_compiled
from skiplab.remedies.pointwise import gain_of, nonlinear
from skiplab.subjects.batches import Batch
from skiplab.subjects.following import FRESH, Call, Followed, Follower
from skiplab.subjects.residual_blocks import ADDITIONS
from skiplab.subjects.subject import Subject, call_on_input
from skiplab.torch_private import tree_map


@dataclass(frozen=True)
class RecordedStep:
    """One call: the steps it reads, the parameters it is given, how many other tensors, and the module it is in.

    ``gain`` is that of a pointwise nonlinearity (``pointwise.gain_of``), else None; ``sizes`` are the root mean
    squares of the two sides of an addition and of the sum.
    """

    name: str
    number: int
    scope: str
    parents: tuple[int, ...]
    parameters: tuple[str, ...]
    other_tensors: int
    gain: float | None
    sizes: tuple[float, ...]


@dataclass
class RecordedPass:
    """The steps of a pass in order; step 0 stands for everything with which it begins."""

    steps: list[RecordedStep] = field(default_factory=list)
    uses: Counter[str] = field(
        default_factory=Counter
    )  # how often each parameter is used, under all its names
    returned: list[tuple[str, int, int]] = field(
        default_factory=list
    )  # module, its step, calls made before it ended

    def users(self, place: int) -> list[int]:
        """The steps that read a step."""
        return [number for number, step in enumerate(self.steps) if place in step.parents]

    def at_call(self, number: int) -> int:
        """The step of a call, given by its number in the pass."""
        return next(place for place, step in enumerate(self.steps) if step.number == number)

    def modules_returning(self, place: int) -> list[tuple[str, int]]:
        """The modules that return what a step made, inner ones first, and the calls made before they end."""
        return [(name, calls) for name, step, calls in self.returned if step == place]

    def times_called(self, module: str) -> int:
        """How often a module returned something that was followed."""
        return sum(name == module for name, *_ in self.returned)


def recorded(model: nn.Module, batch: Batch, *, gains: bool = False) -> RecordedPass:
    """Run a network once on a batch, in evaluation mode, and record the pass; ``gains`` takes the most time."""
    refuse_compiled(model)
    subject = Subject.of(model)
    recorder = _Recorder(gains)

    def run(running: nn.Module) -> Tensor:
        for name, parameter in running.named_parameters(remove_duplicate=False):
            recorder.names.setdefault(id(parameter), []).append(name)
        with recorder.watching(running):
            call_on_input(running, batch)
        return torch.zeros(())

    with subject.borrowed():
        subject.map_models(run)
    for names in recorder.names.values():  # a tied parameter has other uses, seen or not
        recorder.record.uses[names[0]] += len(names) - 1
    return recorder.record


class _Recorder(Follower):
    """Notes are places of steps."""

    def __init__(self, gains: bool) -> None:
        super().__init__()
        self.gains = gains
        self.record = RecordedPass([RecordedStep("", 0, "", (), (), 0, None, ())])
        self.names: dict[int, list[str]] = {}

    def source(self, value: Tensor) -> int:
        return self._added(RecordedStep("source", -1, self.scopes[-1], (0,), (), 0, None, ()))

    def leave(self, name: str, tensor: Followed) -> None:
        self.record.returned.append((name, tensor.note, self.calls))

    def follow(self, call: Call) -> Any:
        if call.name in FRESH:
            return None
        parents = tuple(each.note for each in call.followed)
        own = [self.names[id(each)][0] for each in call.given if id(each) in self.names]
        self.record.uses.update(own)
        function = _function_of(call) if self.gains and len(parents) == 1 and not own else None
        gain = gain_of(function) if function is not None and nonlinear(function) else None
        others = sum(each.is_floating_point() for each in call.given) - len(own)
        step = RecordedStep(
            call.name, call.number, call.scope, parents, tuple(own), others, gain, _sizes(call)
        )
        place = self._added(step)
        return place if isinstance(call.outcome, Tensor) else [place] * len(call.outcome)

    def _added(self, step: RecordedStep) -> int:
        self.record.steps.append(step)
        return len(self.record.steps) - 1


def _function_of(call: Call) -> Any:
    """The call as a function of its one followed tensor."""

    def function(probe: Tensor) -> Any:
        args, kwargs = tree_map(
            lambda leaf: probe if isinstance(leaf, Followed) else leaf, (call.args, call.kwargs)
        )
        return call.function(*args, **kwargs)

    return function


def _sizes(call: Call) -> tuple[float, ...]:
    if call.name not in ADDITIONS or len(call.followed) != 2:
        return ()
    sizes = [
        math.sqrt(float(square_sum(each)) / max(each.numel(), 1)) for each in (*call.taken, call.outcome)
    ]
    sizes[1] *= abs(float(call.kwargs.get("alpha", 1)))  # torch.add(x, y, alpha=…) is x + alpha y
    return tuple(sizes)
