"""Ctrl-C at any line of a measurement leaves the user's network and process as they were.

A trace function raises KeyboardInterrupt where Python would, between two lines: of the files that put things back,
and of the standard library's contextlib while it is on its way to them.
"""

from __future__ import annotations

import contextlib
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import skiplab.interface as sl
from skiplab.subjects import borrowing, hooks, untouched

BATCH = (torch.linspace(-1, 1, 12).reshape(4, 3), torch.tensor([0, 1, 2, 1]))
PUTTING_BACK = {str(Path(module.__file__)) for module in (untouched, borrowing, hooks, contextlib)}
Place = tuple[str, str, int]


class Restless(nn.Module):
    """A network that changes all it can reach."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.act, self.last = nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 3)
        self.calls: list[int] = [0]
        self.cache: dict[str, Any] = {"size": 1}
        self.noise = np.zeros(2)
        self.kept = torch.zeros(2)
        self.seen: set[int] = {1}

    def forward(self, x: Tensor) -> Tensor:
        self.calls.append(len(self.calls))
        self.cache["last"], self.new = x.shape, random.random()
        self.noise += np.random.rand()  # noqa: NPY002
        self.kept += torch.rand(())
        self.seen.add(len(self.seen) + 1)
        torch.set_default_dtype(torch.float64)
        return self.last(self.act(self.first(x)))


def state(net: Restless) -> list[Any]:
    """Everything of it that a call could leave changed, in terms that can be compared."""
    inside = [(part.training, {**vars(part)}.keys(), list(part._forward_hooks)) for part in net.modules()]
    held = [list(net.calls), dict(net.cache), net.noise.tolist(), net.kept.tolist(), sorted(net.seen)]
    weights = [(id(weight), weight.grad, weight.tolist()) for weight in net.parameters()]
    streams = [
        torch.get_rng_state().tolist(),
        random.getstate(),
        np.random.get_state()[1].tolist(),  # noqa: NPY002
    ]
    process = [torch.is_grad_enabled(), torch.get_default_dtype(), torch.get_num_threads()]
    return [inside, held, weights, streams, process]


@contextlib.contextmanager
def watched_lines(at: Callable[[Place], None]) -> Iterator[None]:
    """Call a function before every line of the files that put things back."""

    def line(frame: FrameType, event: str, _: Any) -> Any:
        if event == "line":
            at((frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno))
        return line

    def call(frame: FrameType, event: str, _: Any) -> Any:
        return line if frame.f_code.co_filename in PUTTING_BACK else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        yield
    finally:
        sys.settrace(before)


def measure(net: nn.Module) -> None:
    sl.gradient_norms(net, BATCH, criterion=nn.CrossEntropyLoss(), layers=["first"])


def places_of_a_call(net: nn.Module) -> list[Place]:
    found: list[Place] = []
    with watched_lines(found.append):
        measure(net)
    return found


def interrupted(net: nn.Module, at: int) -> Place | None:
    """Measure with Ctrl-C before one line, counted from 0; say which line it was."""
    met: list[Place] = []

    def stop(place: Place) -> None:
        met.append(place)
        if len(met) == at + 1:
            raise KeyboardInterrupt

    try:
        with watched_lines(stop):
            measure(net)
    except KeyboardInterrupt:
        return met[at]
    return None


@pytest.mark.parametrize(
    "times", [pytest.param(2, id="few"), pytest.param(10**9, marks=pytest.mark.slow, id="every")]
)
def test_ctrl_c_before_any_line_changes_nothing(times: int) -> None:
    """Before the first and the last times that each line is run, or every time."""
    net = Restless()
    measure(net)
    places, before = places_of_a_call(net), state(net)
    assert {"now", "__exit__", "put_back", "_noted", "borrowed"} <= {name for _, name, _ in places}
    first, last = Counter[Place](), Counter[Place]()
    tried = set()
    for at, place in enumerate(places):
        first[place] += 1
        if first[place] <= times // 2:
            tried.add(at)
    for at, place in reversed(list(enumerate(places))):
        last[place] += 1
        if last[place] <= times // 2:
            tried.add(at)
    for at in sorted(tried):
        place = interrupted(net, at)
        assert place is not None
        assert state(net) == before, place
        assert untouched.waiting_now() == 0, place


def test_what_ctrl_c_has_put_back_is_not_put_back_again_later() -> None:
    """The generator of a context manager may end long after its call, when the traceback is let go."""
    held = [1]
    net = nn.Sequential(nn.Linear(3, 3))
    net.held = held
    guard = untouched.untouched(net)
    guard.__enter__()
    held.append(2)
    untouched.put_back_since(0)
    assert held == [1]
    held.append(3)
    guard.__exit__(None, None, None)
    assert held == [1, 3]
