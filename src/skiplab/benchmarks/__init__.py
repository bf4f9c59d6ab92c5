"""Benchmarks: ours and others, interleaved in one run, reported as ratios."""

from __future__ import annotations

from skiplab.benchmarks.convolutions import convolution_cases
from skiplab.benchmarks.harness import Case, Timing, interleave
from skiplab.benchmarks.hessian import hessian_cases, large_hessian_cases, loader_hessian_cases
from skiplab.benchmarks.landscape import landscape_cases
from skiplab.benchmarks.training import training_cases
from skiplab.checks import one_of

BENCHMARKS = {
    "training": training_cases,
    "convolutions": convolution_cases,
    "landscape": landscape_cases,
    "hessian": hessian_cases,
}
# Further sizes of a benchmark, with the most rounds that keep them within minutes.
LARGER = {
    "hessian": (("hessian, large", large_hessian_cases, 2), ("hessian, loader", loader_hessian_cases, 2)),
}

__all__ = ["BENCHMARKS", "Case", "Timing", "interleave", "measure"]


def measure(name: str, *, rounds: int = 5, device: str = "cpu") -> list[Timing]:
    """Run one benchmark by name, at each of its sizes; the first case of each is ours and the ratios are to it."""
    timings = interleave(name, BENCHMARKS[one_of("benchmark", name, BENCHMARKS)](device), rounds)
    for larger, cases, most in LARGER.get(name, ()):
        timings += interleave(larger, cases(device), min(rounds, most))
    return timings
