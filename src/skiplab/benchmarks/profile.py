"""Where the time of a training step and of a Hessian product goes, kernel by kernel, and a trial's part by part."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from skiplab.benchmarks.ceilings import fresh_start, wait_for

if TYPE_CHECKING:
    from skiplab.benchmarks.convolutions import ConvolutionSize

TIMES = 20
MOST_KERNELS = 12  # shown by name; the others are added up
LONGEST_NAME = 48
OTHERS = "all others"
TRIAL = "one trial"  # with which the name of a profile of a trial begins


@dataclass(frozen=True)
class Kernel:
    """One kernel's seconds per step or product, and how often one calls it; or those of a part of a trial."""

    name: str
    seconds: float
    calls: float

    @property
    def short_name(self) -> str:
        """The name without what C++ puts around it, as long as a table lets it be."""
        name = self.name.removeprefix("void ").replace("at::native::", "")
        name = name.replace("(anonymous namespace)::", "")
        return name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"


@dataclass(frozen=True)
class Profile:
    """The seconds of a step or product without the profiler, and its kernels' with it, the longest first.

    Kernels that overlap, or leave the device idle between them, do not add up to the whole.
    """

    what: str
    seconds: float
    kernels: tuple[Kernel, ...]

    @property
    def piece(self) -> str:
        """What it is taken apart into, in words."""
        return "part" if self.what.startswith(TRIAL) else "kernel"


def measure_profiles(device: str, *, times: int = TIMES) -> list[Profile]:
    """Training steps and Hessian products of networks of the benchmarks' sizes, kernel by kernel; then a trial.

    The ResNets are those with as many layers as the convolutional networks before them. On a GPU steps are those of
    mixed trials, in bfloat16.
    """
    from skiplab.benchmarks import training
    from skiplab.benchmarks.trial import trial_profile
    from skiplab.reproduction.arithmetic import steady_arithmetic

    found = []
    with steady_arithmetic(device):
        for what, make in _runs(device).items():
            fresh_start(device)
            found.append(profile_of(what, make(), device, times=times))
        fresh_start(device)
        size = training.GPU_SIZE if device.startswith("cuda") else training.CPU_SIZE
        found.append(trial_profile(size, device))
    return found


def profile_of(what: str, run_once: Callable[[], object], device: str, *, times: int = TIMES) -> Profile:
    """Run something some times, then as often under torch's profiler."""
    from torch.profiler import ProfilerActivity, profile

    gpu = device.startswith("cuda")

    def run() -> None:
        for _ in range(times):
            run_once()
        wait_for(device)

    run()
    started = time.perf_counter()
    run()
    seconds = (time.perf_counter() - started) / times
    with profile(activities=[ProfilerActivity.CUDA if gpu else ProfilerActivity.CPU]) as seen:
        run()
    found = [
        (event.key, (event.self_device_time_total if gpu else event.self_cpu_time_total), event.count)
        for event in seen.key_averages()
    ]
    return Profile(what, seconds, longest_first(found, times))


def longest_first(found: list[tuple[str, float, int]], times: int) -> tuple[Kernel, ...]:
    """Names, microseconds and calls of so many runs as kernels per run, short ones together at the end."""
    by_name: dict[str, list[float]] = {}
    for name, taken, calls in found:
        own = by_name.setdefault(name, [0.0, 0.0])
        own[0], own[1] = own[0] + taken, own[1] + calls
    ordered = sorted(by_name.items(), key=lambda each: -each[1][0])
    shown = [
        Kernel(name, 1e-6 * taken / times, calls / times) for name, (taken, calls) in ordered if taken > 0
    ]
    rest = shown[MOST_KERNELS:]
    if not rest:
        return tuple(shown)
    others = Kernel(OTHERS, sum(each.seconds for each in rest), sum(each.calls for each in rest))
    return (*shown[:MOST_KERNELS], others)


def _runs(device: str) -> dict[str, Callable[[], Callable[[], object]]]:
    """By name, what makes the runs."""
    from skiplab.benchmarks import convolutions, products, training

    gpu = device.startswith("cuda")
    dense = training.GPU_SIZE if gpu else training.CPU_SIZE
    wide = convolutions.GPU_SIZE if gpu else convolutions.CPU_SIZE
    normalised = replace(wide, blocks=wide.blocks // 2, normalised=True)
    curved = products.GPU_SIZE if gpu else products.CPU_SIZE
    steps = {
        f"{dense.networks} residual networks of {dense.depth} layers": (dense, dense.images, (dense.inputs,)),
        f"{wide.networks} convolutional networks of {wide.layers} layers": _on_images(wide),
        f"{normalised.networks} ResNets of {normalised.layers} layers, normalised": _on_images(normalised),
    }
    return {f"one training step of {what}": partial(_step, *each, device) for what, each in steps.items()} | {
        f"one Hessian product each of {curved.networks} networks of {curved.depth} layers": lambda: (
            products.product_run(curved, device)
        ),
        f"one Hessian product of one network of {curved.depth} layers": lambda: products.product_run(
            replace(curved, networks=1), device
        ),
    }


def _on_images(size: ConvolutionSize) -> tuple[ConvolutionSize, int, tuple[int, ...]]:
    """A size, so many images that members have their own, and the images' shape."""
    return size, size.networks * size.batch, (3, 32, 32)


def _step(size: Any, images: int, shape: tuple[int, ...], device: str) -> Callable[[], object]:
    """A training step of networks of a size, each on images of its own out of so many of noise."""
    from skiplab.benchmarks.steps import noise, our_step, own_batches
    from skiplab.ensembles import Ensemble

    ensemble = Ensemble.drawn(size.network, size.networks, backend="batched", device=device)
    # On a CPU as trials are by default: there bfloat16 is slower.
    data = noise(images, *shape, device=device)
    step = our_step(ensemble, data, mixed=device.startswith("cuda"))
    indices = own_batches(step, size.batch)
    return lambda: step(indices)
