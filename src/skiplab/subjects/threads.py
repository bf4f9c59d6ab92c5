"""How many threads of the CPU a long measurement takes: one, where that is not slower.

Where other programs keep the cores busy, threads that share a small operation wait for each other far longer than the
operation takes: on two busy cores weight noise of a small network took eight times as long with two threads as with
one. Numbers depend on it by rounding only.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from functools import partial
from typing import ParamSpec, TypeVar

import torch
from torch import Tensor, nn

from skiplab.subjects.batches import Batch, batches_of
from skiplab.subjects.subject import Subject
from skiplab.subjects.untouched import PutBack

LITTLE = 1.1  # how many times as long one thread may take; ours
TURNS, BRIEF = 3, 0.2  # how often both are timed where a pass takes no more than these seconds, else once
_DECIDED: ContextVar[bool] = ContextVar("threads are decided", default=False)

P = ParamSpec("P")
R = TypeVar("R")


@contextlib.contextmanager
def fitting_threads(subject: Subject, batch: Batch) -> Iterator[None]:
    """One thread meanwhile where a pass of the network takes no longer so; then as many as before, whatever happens.

    Only the outermost decides. On a GPU nothing is timed.
    """
    many = torch.get_num_threads()
    if many == 1 or _DECIDED.get() or subject.device.type != "cpu":
        yield
        return
    token = _DECIDED.set(True)
    try:
        with PutBack([partial(torch.set_num_threads, many)]):
            if _one_is_as_fast(many, partial(_pass, subject, batch)):
                torch.set_num_threads(1)
            yield
    finally:
        _DECIDED.reset(token)


def with_fitting_threads(measurement: Callable[P, R]) -> Callable[P, R]:
    """The same measurement with as many threads as are fast, where its first batch can be looked at beforehand."""
    signature = inspect.signature(measurement)

    @functools.wraps(measurement)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        if torch.get_num_threads() == 1:
            return measurement(*args, **kwargs)
        with contextlib.ExitStack() as stack:
            # Wrong arguments are for the measurement to refuse.
            with contextlib.suppress(Exception):
                given = signature.bind(*args, **kwargs).arguments
                target, batches = given["target"], given["batches"]
                # A loader is read once, and only by the measurement.
                if isinstance(target, nn.Module) and isinstance(batches, tuple | list | Mapping | Tensor):
                    loss_fn, criterion = given.get("loss_fn"), given.get("criterion")
                    subject = Subject.of(target, criterion=criterion, loss_fn=loss_fn)
                    stack.enter_context(fitting_threads(subject, next(batches_of(batches))))
            return measurement(*args, **kwargs)

    return call


def _one_is_as_fast(many: int, run: Callable[[], object]) -> bool:
    """Whether one thread takes at most a little longer; a network that fails is for others to tell of."""
    try:
        torch.set_num_threads(1)
        run()  # the first may initialise what later ones have
        taken: dict[int, list[float]] = {1: [], many: []}
        for _ in range(TURNS):
            for count, times in taken.items():
                torch.set_num_threads(count)
                start = time.perf_counter()
                run()
                times.append(time.perf_counter() - start)
            if taken[1][0] + taken[many][0] > 2 * BRIEF:
                break
    except Exception:
        torch.set_num_threads(many)
        return False
    torch.set_num_threads(many)
    return statistics.median(taken[1]) <= LITTLE * statistics.median(taken[many])


def _pass(subject: Subject, batch: Batch) -> None:
    def run(model: nn.Module) -> Tensor:
        subject.call(model, batch)
        return torch.zeros(())

    with subject.borrowed(), torch.no_grad():
        subject.map_models(run)
