"""Cooperation, competition, initial velocity and singular sets of three-layer linear networks: further trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.trial import Bench, trial
from skiplab.studies.orhan2017.figure_5.trials import SMALL, Row, frame_of, paper_task, start

if TYPE_CHECKING:
    import pandas as pd

# Sets the paper calls singular; those of the second pair are what its text asks for, the first what stays.
SETS = ("equal in and out", "silent in and out", "equal in", "silent in")


@dataclass(frozen=True)
class RandomTasks:
    """Random tasks in which cooperation and competition are compared, with this many modes and times."""

    seeds: tuple[int, ...]
    modes: int = 3
    times: int = 21


@dataclass(frozen=True)
class SmallStarts:
    """Small random weights, as in panel (a), and their standard deviation."""

    seeds: tuple[int, ...]
    noise: float = 1e-4


@dataclass(frozen=True)
class SingularStarts:
    """Random starts on the singular sets of a network with these sizes, followed for some time."""

    seeds: tuple[int, ...]
    modes: int = 3
    hidden: int = 4
    duration: float = 5.0
    times: int = 26


@trial("orhan2017/linear-terms", version=1)
def terms(settings: RandomTasks, bench: Bench) -> pd.DataFrame:
    """The largest |cosine| between cooperation and competition: at zero weights and while learning."""
    import numpy as np

    from skiplab.randomness import numpy_generator
    from skiplab.theory.linear_networks.gradient_flow import ThreeLayers

    rows: list[Row] = []
    times = np.linspace(0, 2, settings.times)
    n = settings.modes
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"task {seed}")
        draw = numpy_generator(seed, "terms")
        strengths = tuple(sorted(draw.uniform(0.5, 3.0, n).tolist(), reverse=True))
        U, V, wide = (np.linalg.qr(draw.standard_normal((k, k)))[0] for k in (n, n, n + 1))
        nothing, small = np.zeros((n, n)), 1e-4 * draw.standard_normal((2, n, n))
        apart, same = (ThreeLayers("residual", strengths, U, modes, n) for modes in (V, U))
        narrow = ThreeLayers("residual", strengths, wide, V, n)
        plain = ThreeLayers("plain", strengths, U, V, n)
        random = draw.standard_normal((2, n, n)) / np.sqrt(n)
        cases: dict[tuple[str, str], tuple[Any, Any, Any]] = {
            ("residual", "zero"): (apart, nothing, nothing),
            ("residual", "small"): (apart, small[0], small[1]),
            ("residual", "zero, while learning, u = v"): (same, *same.flow(nothing, nothing, times)),
            ("residual", "zero, while learning"): (apart, *apart.flow(nothing, nothing, times)),
            ("residual", "zero, hidden layer narrower than the output"): (
                narrow,
                nothing,
                np.zeros((n, n + 1)),
            ),
            ("plain", "random"): (plain, random[0], random[1]),
        }
        for (network, name), (net, a, b) in cases.items():
            value = _cosine(net.cooperation(a, b), net.competition(a, b))
            rows.append(("terms", seed, name, network, "corrected", "cosine", 0.0, value))
    return frame_of(rows)


def _cosine(cooperation: tuple[Any, Any], competition: tuple[Any, Any]) -> float:
    """The largest |cosine| between the columns; a term that is zero to rounding is orthogonal to everything."""
    import numpy as np

    worst = 0.0
    for one, two in zip(cooperation, competition, strict=True):
        sizes = np.linalg.norm(one, axis=-2), np.linalg.norm(two, axis=-2)
        largest = np.maximum(*sizes).max()
        both = np.minimum(*sizes) > 1e-10 * largest
        dots = np.abs((one * two).sum(-2))
        worst = max(worst, float(np.where(both, dots / np.where(both, sizes[0] * sizes[1], 1.0), 0.0).max()))
    return worst


@trial("orhan2017/linear-initial-velocity", version=1)
def initial_velocity(settings: SmallStarts, bench: Bench) -> pd.DataFrame:
    """The norm of (ȧ, ḃ) at small random weights, plain and residual, in the paper's task."""
    import numpy as np

    rows: list[Row] = []
    for seed in settings.seeds:
        for network in ("plain", "residual"):
            velocity = paper_task(network).velocity(*start(SMALL, network, seed, settings.noise))
            value = float(np.linalg.norm(np.stack(velocity)))
            rows.append(("terms", seed, SMALL, network, "corrected", "velocity", 0.0, value))
    return frame_of(rows)


@trial("orhan2017/linear-singular-sets", version=1)
def singular_sets(settings: SingularStarts, bench: Bench) -> pd.DataFrame:
    """How far the flow gets from each singular set when it starts on it, plain and residual.

    Sets concern the first two hidden units: equal weights (or, the first unit, none) into them, and out of them too.
    """
    import numpy as np

    from skiplab.randomness import numpy_generator
    from skiplab.theory.linear_networks.gradient_flow import ThreeLayers

    rows: list[Row] = []
    times = np.linspace(0, settings.duration, settings.times)
    n, hidden = settings.modes, settings.hidden
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"start {seed}")
        draw = numpy_generator(seed, "singular sets")
        U, V = np.linalg.qr(draw.standard_normal((2, n, n)))[0]
        strengths = tuple(sorted(draw.uniform(0.5, 3.0, n).tolist(), reverse=True))
        begin = draw.standard_normal((2, hidden, n)) / np.sqrt(hidden)
        for name in SETS:
            a, b = begin.copy()
            for part in (a, b) if "out" in name else (a,):
                part[0] = part[1] if name.startswith("equal") else 0.0
            for network in ("plain", "residual"):
                path = ThreeLayers(network, strengths, U, V, hidden).flow(a, b, times)
                away = [
                    part[:, 0] - part[:, 1] if name.startswith("equal") else part[:, 0]
                    for part in (path if "out" in name else path[:1])
                ]
                value = float(np.abs(np.concatenate(away, axis=1)).max())
                rows.append(("singular", seed, name, network, "corrected", "distance", 0.0, value))
    return frame_of(rows)
