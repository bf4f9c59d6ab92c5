"""Timing several ways to do one thing, turn by turn, so that a noisy machine disturbs all alike."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from skiplab.benchmarks.ceilings import Ceiling
from skiplab.checks import at_least


@dataclass(frozen=True)
class Work:
    """What a case has to do, however it does it, so that rates compare programs and not their detours.

    ``flops`` are the floating-point operations of its matrix products and convolutions, ``traffic`` the bytes that
    any program must move if no layer's activities stay in a cache. It makes ``units`` of what ``unit`` names.
    """

    flops: float
    traffic: float
    units: float
    unit: str


@dataclass(frozen=True)
class Case:
    """One way to do the work; ``run`` must finish it (and wait for the device) before it returns.

    A slow way may do one of ``times`` equal parts of the work: its seconds are multiplied.
    """

    what: str
    run: Callable[[], object] | None
    note: str = ""
    precision: str = "float32"
    times: int = 1
    work: Work | None = None


@dataclass(frozen=True)
class Timing:
    """Median seconds of a case, and how many times ours that is; None where it could not run.

    ``start_up`` is what the first run took beyond the median: compiling and capturing. ``flops`` and ``traffic`` are
    achieved per second, their shares those of the device's own measured ceiling in this precision.
    """

    benchmark: str
    what: str
    seconds: float | None
    ratio: float | None
    note: str
    precision: str = "float32"
    start_up: float | None = None
    unit: str = ""
    seconds_per_unit: float | None = None
    flops: float | None = None
    traffic: float | None = None
    flops_share: float | None = None
    traffic_share: float | None = None


def interleave(
    benchmark: str,
    cases: Sequence[Case],
    rounds: int,
    ceilings: Mapping[str, Ceiling] | None = None,
    tell: Callable[[str], object] | None = None,
) -> list[Timing]:
    """Run every case once to warm up, then in turns; ratios are medians of each round's own ratio.

    A ratio is to ours: to the first case that computes in the same precision, or to the first of all. ``tell`` is
    told how long the turns will take at most, by the first run of each, which compiles besides.
    """
    at_least("rounds", rounds, 1)
    able = [case for case in cases if case.run is not None]
    first = {case.what: _seconds(case) for case in able}
    if tell is not None:
        tell(f"{benchmark}: {rounds} rounds, at most about {math.ceil(rounds * sum(first.values()))} s")
    taken: dict[str, list[float]] = {case.what: [] for case in able}
    for _ in range(rounds):
        for case in able:
            taken[case.what].append(_seconds(case))
    firsts = {case.precision: case for case in reversed(able)}
    timings = []
    for case in cases:
        if case.what not in taken:
            timings.append(Timing(benchmark, case.what, None, None, case.note, case.precision))
            continue
        first_one = firsts[case.precision]
        ours = [first_one.times * each for each in taken[first_one.what]]
        whole = [case.times * each for each in taken[case.what]]
        ratio = statistics.median(each / own for each, own in zip(whole, ours, strict=True))
        start_up = max(0.0, first[case.what] - statistics.median(taken[case.what]))
        ceiling = (ceilings or {}).get(case.precision)
        timings.append(_timing(benchmark, case, statistics.median(whole), ratio, start_up, ceiling))
    return timings


def _seconds(case: Case) -> float:
    assert case.run is not None
    started = time.perf_counter()
    case.run()
    return time.perf_counter() - started


def _timing(
    benchmark: str, case: Case, seconds: float, ratio: float, start_up: float, ceiling: Ceiling | None
) -> Timing:
    plain = (benchmark, case.what, seconds, ratio, case.note, case.precision, start_up)
    work = case.work
    if work is None:
        return Timing(*plain)
    flops, traffic = work.flops / seconds, work.traffic / seconds
    return Timing(
        *plain,
        unit=work.unit,
        seconds_per_unit=seconds / work.units,
        flops=flops,
        traffic=traffic,
        flops_share=None if ceiling is None else flops / ceiling.flops,
        traffic_share=None if ceiling is None else traffic / ceiling.traffic,
    )
