"""Timing several ways to do one thing, turn by turn, so that a noisy machine disturbs all alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from skiplab.checks import at_least


@dataclass(frozen=True)
class Case:
    """One way to do the work; ``run`` must finish it (and wait for the device) before it returns."""

    what: str
    run: Callable[[], object] | None
    note: str = ""


@dataclass(frozen=True)
class Timing:
    """Median seconds of a case, and how many times ours that is; None where it could not run."""

    benchmark: str
    what: str
    seconds: float | None
    ratio: float | None
    note: str


def interleave(benchmark: str, cases: Sequence[Case], rounds: int) -> list[Timing]:
    """Run every case once to warm up, then in turns; ratios are medians of each round's own ratio."""
    at_least("rounds", rounds, 1)
    able = [case for case in cases if case.run is not None]
    for case in able:
        assert case.run is not None
        case.run()
    seconds: dict[str, list[float]] = {case.what: [] for case in able}
    for _ in range(rounds):
        for case in able:
            assert case.run is not None
            started = time.perf_counter()
            case.run()
            seconds[case.what].append(time.perf_counter() - started)
    ours = seconds[able[0].what]
    timings = []
    for case in cases:
        taken = seconds.get(case.what)
        if taken is None:
            timings.append(Timing(benchmark, case.what, None, None, case.note))
            continue
        ratio = statistics.median(each / own for each, own in zip(taken, ours, strict=True))
        timings.append(Timing(benchmark, case.what, statistics.median(taken), ratio, case.note))
    return timings
