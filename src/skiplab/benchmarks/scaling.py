"""How the time of a training step grows with networks, depth, width and samples: slopes on log-log axes.

One size is changed at a time, and every round has a slope of its own: the interval is Student's over rounds. On a CPU
sizes take turns, since it is noisy; on a GPU, where a step is compiled for its size, each is timed by itself. A
device that is full does all further work at one rate. Time is then a straight line in the work, with what does not
grow as its start (for samples, Adam's pass over the parameters): such a start is why the log-log slope of time may
stay below that of the work (1 for networks, up to 1 for depth and samples, up to 2 for width).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from skiplab.benchmarks.ceilings import fresh_start, wait_for
from skiplab.benchmarks.training import TrainingSize
from skiplab.checks import at_least

FULL = 0.9  # of the best rate of further work: where none is slower from a size on, the device counts as full
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
ONE = {"networks": "network", "depth": "layer", "width": "unit per layer", "samples": "sample"}
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

    ``full_from`` is the smallest size from which on further work, the difference between one size and the next, is
    done at 90 % of its best rate or faster, or None where fewer than three sizes are left; the slope is then that
    through all sizes.
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
        slope = f"slope {self.slope:.2f} [{self.low:.2f}, {self.high:.2f}] (its work: {self.work_slope:.2f})"
        counted, medians = COUNTED[self.axis], _medians(self.seconds)
        if self.full_from is None:
            rates = further_rates(medians, self.flops)
            rising = f"is not full at {self.sizes[-1]} {counted}, where further work is still done faster"
            why = rising if rates[-1] == max(rates) else "does further work at no constant rate"
            return f"{self.axis}: the device {why}; over all sizes time grows with {slope}."
        where = f"{self.axis}: the device is full from {self.full_from} {counted} on, and there time"
        if self.axis == "width":  # whose work is no straight line
            return f"{where} grows with {slope}."
        first = self.sizes.index(self.full_from)
        each = _slope(self.sizes[first:], medians[first:])
        start = statistics.mean(medians[first:]) - each * statistics.mean(self.sizes[first:])
        fixed = f" and a fixed {_in_words(start)}" if start > 0 else ""
        line = f"is a straight line, {_in_words(each)} per {ONE[self.axis]}{fixed}"
        return f"{where} {line}; on log-log axes it grows with {slope}."


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

    # Drawing hundreds takes longer than timing them, and so does stacking them anywhere but on the device.
    networks = [size.network(0).to(device)] * size.networks
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

    rates = further_rates(_medians(seconds), flops)
    full = next((k for k in range(len(sizes) - FEWEST + 1) if _constant(rates[k:])), None)
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


def further_rates(seconds: Sequence[float], flops: Sequence[float]) -> list[float]:
    """Operations per second of the work that each size has beyond the one before; infinite where it takes no time."""
    pairs = zip(pairwise(flops), pairwise(seconds), strict=True)
    return [
        (more - work) / (longer - taken) if longer > taken else math.inf
        for (work, more), (taken, longer) in pairs
    ]


def _constant(rates: Sequence[float]) -> bool:
    return max(rates) < math.inf and min(rates) >= FULL * max(rates)


def _medians(seconds: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.median(column) for column in zip(*seconds, strict=True)]


def _in_words(seconds: float) -> str:
    """A time in three digits, '2 s', '0.059 ms' or '4.7 µs'."""
    for least, factor, unit in ((1.0, 1, "s"), (1e-5, 1e3, "ms")):
        if seconds >= least:
            return f"{factor * seconds:.3g} {unit}"
    return f"{1e6 * seconds:.3g} µs"


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Least squares."""
    middle_x, middle_y = sum(x) / len(x), sum(y) / len(y)
    products = sum((a - middle_x) * (b - middle_y) for a, b in zip(x, y, strict=True))
    return products / sum((a - middle_x) ** 2 for a in x)
