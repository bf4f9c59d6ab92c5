"""Where the time of a training step goes, kernel by kernel: what a goal that was missed waits for."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.benchmarks.ceilings import fresh_start, wait_for

if TYPE_CHECKING:
    from skiplab.training.step import Step

STEPS = 20
MOST_KERNELS = 12  # shown by name; the others are added up
LONGEST_NAME = 48
OTHERS = "all others"


@dataclass(frozen=True)
class Kernel:
    """One kernel's seconds per step, and how often a step calls it."""

    name: str
    seconds: float
    calls: float


@dataclass(frozen=True)
class Profile:
    """A step's seconds without the profiler, and its kernels' with it, the longest first.

    Kernels that overlap, or leave the device idle between them, do not add up to the step.
    """

    what: str
    seconds: float
    kernels: tuple[Kernel, ...]


def measure_profiles(device: str) -> list[Profile]:
    """The steps that the training benchmarks time in the precision of mixed trials, kernel by kernel."""
    from skiplab.reproduction.arithmetic import steady_arithmetic

    found = []
    with steady_arithmetic(device):
        for what, make in _steps(device).items():
            fresh_start(device)
            found.append(profile_of(what, *make(), device))
    return found


def profile_of(what: str, step: Step, indices: Any, device: str, *, steps: int = STEPS) -> Profile:
    """Take some steps, then the same ones under torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    gpu = device.startswith("cuda")

    def run() -> None:
        for _ in range(steps):
            step(indices)
        wait_for(device)

    run()
    started = time.perf_counter()
    run()
    seconds = (time.perf_counter() - started) / steps
    with profile(activities=[ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU]) as seen:
        run()
    found = [
        (event.key, (event.self_device_time_total if gpu else event.self_cpu_time_total), event.count)
        for event in seen.key_averages()
    ]
    return Profile(what, seconds, longest_first(found, steps))


def longest_first(found: list[tuple[str, float, int]], steps: int) -> tuple[Kernel, ...]:
    """Names, microseconds and calls of so many steps as kernels, short ones together at the end."""
    ordered = sorted((each for each in found if each[1] > 0), key=lambda each: -each[1])
    shown = [Kernel(_short(name), 1e-6 * taken / steps, calls / steps) for name, taken, calls in ordered]
    rest = shown[MOST_KERNELS:]
    if not rest:
        return tuple(shown)
    others = Kernel(OTHERS, sum(each.seconds for each in rest), sum(each.calls for each in rest))
    return (*shown[:MOST_KERNELS], others)


def _short(name: str) -> str:
    """A kernel's name without what C++ puts around it."""
    name = name.removeprefix("void ").replace("at::native::", "").replace("(anonymous namespace)::", "")
    return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


def _steps(device: str) -> dict[str, Callable[[], tuple[Step, Any]]]:
    from skiplab.benchmarks import convolutions, training

    gpu = device.startswith("cuda")
    dense = training.GPU_SIZE if gpu else training.CPU_SIZE
    wide = convolutions.GPU_SIZE if gpu else convolutions.CPU_SIZE
    normalised = replace(wide, blocks=wide.blocks // 2, normalised=True)
    shape = (3, 32, 32)
    return {
        f"{dense.networks} residual networks of {dense.depth} layers": lambda: _started(
            dense, (dense.inputs,), device
        ),
        f"{wide.networks} convolutional networks of {wide.layers} layers": lambda: _started(
            wide, shape, device
        ),
        f"{normalised.networks} ResNets of {normalised.layers} layers, normalised": lambda: _started(
            normalised, shape, device
        ),
    }


def _started(size: Any, shape: tuple[int, ...], device: str) -> tuple[Step, Any]:
    """The step of networks of a size, and the samples of its batches."""
    import torch

    from skiplab.benchmarks.steps import noise, our_step
    from skiplab.ensembles import Ensemble

    data = noise(size.batch, *shape, device=device)
    networks = [size.network(seed) for seed in range(size.networks)]
    ensemble = Ensemble.of(networks, backend="batched", device=device)
    # On a CPU as trials are by default: there bfloat16 is slower.
    step = our_step(ensemble, data, mixed=device.startswith("cuda"))
    return step, torch.arange(size.batch, device=device).expand(size.networks, -1)
