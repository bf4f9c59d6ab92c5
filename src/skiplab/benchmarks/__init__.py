"""Benchmarks: ours and others, interleaved in one run, reported as ratios."""

from __future__ import annotations

from skiplab.benchmarks.harness import Case, Timing, interleave
from skiplab.benchmarks.hessian import hessian_cases
from skiplab.benchmarks.landscape import landscape_cases
from skiplab.benchmarks.training import training_cases
from skiplab.checks import one_of

BENCHMARKS = {"training": training_cases, "landscape": landscape_cases, "hessian": hessian_cases}

__all__ = ["BENCHMARKS", "Case", "Timing", "interleave", "measure"]


def measure(name: str, *, rounds: int = 5, device: str = "cpu") -> list[Timing]:
    """Run one benchmark by name; the first case is ours and the ratios are to it."""
    return interleave(name, BENCHMARKS[one_of("benchmark", name, BENCHMARKS)](device), rounds)
