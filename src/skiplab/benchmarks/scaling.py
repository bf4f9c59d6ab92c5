"""How the time of a training step grows with networks, depth, width and samples: slopes on log-log axes.

One size is changed at a time, and every round has a slope of its own: the interval is Student's over rounds. On a CPU
sizes take turns, since it is noisy; on a GPU, where a step is compiled for its size, each is timed by itself. A
device that is full works at a constant rate, and time grows as work does: the slope is to be read beside the slope of
the work (1 for networks, depth and samples, up to 2 for width).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from skiplab.benchmarks.ceilings import fresh_start, wait_for
from skiplab.benchmarks.training import TrainingSize
from skiplab.checks import at_least

FULL = 0.9  # of the best rate on an axis: from there on the device counts as full
FEWEST = 3  # points through which a slope is worth drawing


@dataclass(frozen=True)
class Sweep:
    """The networks in the middle, the sizes of each axis about them, and the steps that are timed together."""

    middle: TrainingSize
    axes: dict[str, tuple[int, ...]]
    steps: int


# "samples" are those of a step: more of them in an epoch are more steps, each of which takes as long.
AXES = {"networks": "networks", "depth": "depth", "width": "width", "samples": "batch"}
COUNTED = {
    "networks": "networks",
    "depth": "layers",
    "width": "units per layer",
    "samples": "samples per step",
}
CPU_SWEEP = Sweep(
    TrainingSize(networks=5, width=32, inputs=64, images=2000, batch=100, depth=10),
    {
        "networks": (1, 2, 4, 8, 16),
        "depth": (4, 8, 16, 32),
        "width": (8, 16, 32, 64, 128),
        "samples": (25, 50, 100, 200, 400),
    },
    steps=3,
)
GPU_SWEEP = Sweep(
    TrainingSize(networks=50, width=128, inputs=3072, images=8000, batch=500, depth=30),
    # Up to sizes that fill an H200: with 200 networks, 60 layers, 512 units or 2,000 samples it was not full.
    {
        "networks": (2, 10, 50, 100, 200, 400, 800),
        "depth": (8, 15, 30, 60, 120, 240),
        "width": (32, 64, 128, 256, 512, 1024),
        "samples": (64, 250, 1000, 2000, 4000, 8000),
    },
    steps=20,
)


@dataclass(frozen=True)
class Scaling:
    """Time along one axis: seconds per step (rounds, sizes), and the slope through the sizes at which it is full.

    ``full_from`` is the smallest size from which on work is done at 90 % of the best rate or faster, or None where
    fewer than three sizes are left; the slope is then that through all sizes.
    """

    axis: str
    sizes: tuple[int, ...]
    seconds: tuple[tuple[float, ...], ...]
    flops: tuple[float, ...]
    slope: float
    low: float
    high: float
    work_slope: float
    full_from: int | None

    @property
    def sentence(self) -> str:
        """What is to be read off, in words."""
        interval = f"{self.slope:.2f} [{self.low:.2f}, {self.high:.2f}]"
        counted = COUNTED[self.axis]
        where = (
            f"the device is full from {self.full_from} {counted} on, and there"
            if self.full_from is not None
            else f"the device does not fill up to {self.sizes[-1]} {counted}; over all sizes"
        )
        return f"{self.axis}: {where} time grows with slope {interval} (its work: {self.work_slope:.2f})."


def measure_scaling(
    *, rounds: int = 5, device: str = "cpu", tell: Callable[[str], None] = lambda axis: None
) -> list[Scaling]:
    """Time steps along every axis, in the arithmetic of trials."""
    from skiplab.reproduction.arithmetic import steady_arithmetic

    at_least("rounds", rounds, 2)
    sweep = GPU_SWEEP if device.startswith("cuda") else CPU_SWEEP
    found = []
    with steady_arithmetic(device):
        for axis, sizes in sweep.axes.items():
            tell(axis)
            found.append(_along(axis, sizes, sweep, rounds, device))
    return found


def _along(axis: str, sizes: Sequence[int], sweep: Sweep, rounds: int, device: str) -> Scaling:
    shapes = [replace(sweep.middle, **{AXES[axis]: size}) for size in sizes]
    groups = [[shape] for shape in shapes] if device.startswith("cuda") else [shapes]
    timed = [_in_turns(group, sweep.steps, rounds, device) for group in groups]
    seconds = [[taken for rows, _ in timed for taken in rows[number]] for number in range(rounds)]
    return summary(axis, sizes, seconds, [flops for _, group in timed for flops in group])


def _in_turns(
    shapes: Sequence[TrainingSize], steps: int, rounds: int, device: str
) -> tuple[list[list[float]], list[float]]:
    """Seconds per step, (rounds, shapes), and the operations of a step of each shape."""
    fresh_start(device)
    cases = [_case(shape, steps, device) for shape in shapes]
    for run, _ in cases:
        run()
    seconds = []
    for _ in range(rounds):
        taken = []
        for run, _ in cases:
            started = time.perf_counter()
            run()
            taken.append((time.perf_counter() - started) / steps)
        seconds.append(taken)
    return seconds, [flops for _, flops in cases]


def _case(size: TrainingSize, steps: int, device: str) -> tuple[Callable[[], None], float]:
    """Some steps of an ensemble of this size, and the operations of one of them."""
    from skiplab.benchmarks.counting import training_work
    from skiplab.benchmarks.steps import noise, our_step, own_batches
    from skiplab.ensembles import Ensemble

    networks = [size.network(0)] * size.networks  # drawing hundreds takes longer than timing them
    data = noise(size.images, size.inputs, device=device)
    step = our_step(Ensemble.of(networks, backend="batched", device=device), data)
    indices = own_batches(step, size.batch)

    def run() -> None:
        for _ in range(steps):
            step(indices)
        wait_for(device)

    batch = data.inputs[: size.batch], data.labels[: size.batch]
    work = training_work(networks[0], *batch, steps=1, networks=size.networks, unit="step", units=1)
    return run, work.flops


def summary(
    axis: str, sizes: Sequence[int], seconds: Sequence[Sequence[float]], flops: Sequence[float]
) -> Scaling:
    """The slope of log time against log size past the point where the device is full, with its interval."""
    from scipy import stats

    medians = [statistics.median(column) for column in zip(*seconds, strict=True)]
    rates = [work / taken for work, taken in zip(flops, medians, strict=True)]
    every = range(len(sizes))
    first = next((k for k in every if min(rates[k:]) >= FULL * max(rates)), len(sizes))
    full = first if len(sizes) - first >= FEWEST else None
    used = slice(full or 0, None)
    logs = [math.log(size) for size in sizes[used]]
    slopes = [_slope(logs, [math.log(each) for each in row[used]]) for row in seconds]
    mean = sum(slopes) / len(slopes)
    spread = math.sqrt(sum((each - mean) ** 2 for each in slopes) / (len(slopes) - 1) / len(slopes))
    half = float(stats.t.ppf(0.975, len(slopes) - 1)) * spread
    return Scaling(
        axis=axis,
        sizes=tuple(sizes),
        seconds=tuple(tuple(row) for row in seconds),
        flops=tuple(flops),
        slope=mean,
        low=mean - half,
        high=mean + half,
        work_slope=_slope(logs, [math.log(each) for each in flops[used]]),
        full_from=None if full is None else sizes[full],
    )


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Least squares."""
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    products = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return products / sum((a - middle_x) ** 2 for a in x)
