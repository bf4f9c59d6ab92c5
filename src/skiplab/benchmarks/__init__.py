"""Benchmarks: ours and others, interleaved in one run, as ratios and as shares of what the device reaches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from skiplab.benchmarks.ceilings import Ceiling, fresh_start, measure_ceiling
from skiplab.benchmarks.convolutions import (
    convolution_cases,
    many_convolution_cases,
    normalised_convolution_cases,
)
from skiplab.benchmarks.drawing import drawing_cases
from skiplab.benchmarks.extremes import fresh_cases, trained_cases
from skiplab.benchmarks.harness import Case, Timing, interleave
from skiplab.benchmarks.hessian import hessian_cases, large_hessian_cases, loader_hessian_cases
from skiplab.benchmarks.landscape import landscape_cases
from skiplab.benchmarks.products import product_cases
from skiplab.benchmarks.training import joined_cases, many_training_cases, training_cases
from skiplab.checks import one_of

__all__ = ["BENCHMARKS", "Case", "Ceiling", "Suite", "Timing", "interleave", "measure"]


@dataclass(frozen=True)
class Suite:
    """The cases of a benchmark at one size, and the most rounds that keep it within minutes."""

    name: str
    cases: Callable[[str], list[Case]]
    most_rounds: int = 100


BENCHMARKS: dict[str, tuple[Suite, ...]] = {
    "training": (Suite("training", training_cases), Suite("training, many", many_training_cases, 3)),
    "joined": (Suite("joined", joined_cases),),
    "drawing": (Suite("drawing", drawing_cases, 3),),
    "convolutions": (
        Suite("convolutions", convolution_cases),
        Suite("convolutions, many", many_convolution_cases, 3),
        Suite("convolutions, normalised", normalised_convolution_cases, 3),
    ),
    "landscape": (Suite("landscape", landscape_cases),),
    "products": (Suite("products", product_cases),),
    "hessian": (
        Suite("hessian", hessian_cases),
        Suite("hessian, large", large_hessian_cases, 2),
        Suite("hessian, loader", loader_hessian_cases, 2),
    ),
    "extremes": (Suite("extremes, fresh", fresh_cases), Suite("extremes, trained", trained_cases)),
}


def measure(
    name: str,
    *,
    rounds: int = 5,
    device: str = "cpu",
    ceilings: dict[str, Ceiling] | None = None,
    tell: Callable[[str], object] | None = None,
) -> list[Timing]:
    """Run one benchmark by name, at each of its sizes, in the arithmetic of trials; ratios are to the first case.

    ``ceilings`` holds what the device was seen to reach so far, by precision, and gains what is missing; ``tell`` is
    told about how long each size takes.
    """
    from skiplab.reproduction.arithmetic import steady_arithmetic

    known = {} if ceilings is None else ceilings
    suites = BENCHMARKS[one_of("benchmark", name, BENCHMARKS)]
    timings = []
    with steady_arithmetic(device):
        for suite in suites:
            fresh_start(device)
            timings += _timed(suite, rounds, device, known, tell)
    return timings


def _timed(
    suite: Suite,
    rounds: int,
    device: str,
    ceilings: dict[str, Ceiling],
    tell: Callable[[str], object] | None,
) -> list[Timing]:
    # In a function of its own, so that the networks of one suite are gone before those of the next are made.
    cases = suite.cases(device)
    for precision in sorted({case.precision for case in cases if case.work and case.run} - set(ceilings)):
        ceilings[precision] = measure_ceiling(device, precision)
    return interleave(suite.name, cases, min(rounds, suite.most_rounds), ceilings, tell) if cases else []
