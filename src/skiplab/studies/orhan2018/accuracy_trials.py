"""Many plain networks at one common gain: does accuracy go along with distance from degenerate manifolds?

Networks of the paper's width have norms, overlaps and dependences of hidden units, and each is correlated with
accuracy over all of them. Small networks of two depths have exact spectra: of those that learn, the best and the
worst are compared. Everything is at Glorot's gain 1, where networks differ in how they train; at √2 all train alike
and there is nothing to explain (figures 4 and S7).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.networks import Member, Networks, Training
from skiplab.reproduction import Call, Results, subset

WIDE = "wide-units"  # the stage of networks of the paper's width


@dataclass(frozen=True)
class Settings:
    """How many networks of each size, and what is measured of them when.

    ``runs`` small networks of each of ``narrow_depths``, of which the ``extremes`` best and worst of those that
    learn are measured at ``spectra_at``; ``wide_runs`` of the paper's size, all measured at ``at``. The seed is 1:
    seed 0's networks chose the gain and the statistics.
    """

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 400
    wide_runs: int = 100
    seed: int = 1
    gain: float = 1.0
    depth: int = 30
    width: int = 128
    images: int | None = None
    components: int | None = None
    epochs: int = 100
    batch_size: int = 500
    narrow: int = 16
    narrow_depths: tuple[int, ...] = (30, 10)
    narrow_components: int = 128
    at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)
    spectra_at: tuple[int, ...] = (1, 3, 10, 30, 100)
    samples: int = 2000
    extremes: int = 20
    learned: float = 1.5  # times chance: a network whose last accuracy is below it has not learned
    # Where given (√2 is declared), small networks at a gain at which all train alike, for an equivalence of ours.
    alike_gain: float | None = None


# Narrow plain networks hardly learn in the 25 epochs of other figures' quick scale.
QUICK: dict[str, Any] = {
    "runs": 60,
    "wide_runs": 40,
    "width": 32,
    "images": 2000,
    "components": 128,
    "epochs": 50,
    "batch_size": 100,
    "narrow": 8,
    "narrow_depths": (20, 10),
    "narrow_components": 32,
    "at": (0, 10, 50),
    "spectra_at": (10, 50),
    "samples": 500,
    "extremes": 6,
}
SMOKE: dict[str, Any] = {
    "data": ("digits",),
    "runs": 4,
    "wide_runs": 6,
    "depth": 4,
    "width": 8,
    "images": 100,
    "epochs": 1,
    "batch_size": 50,
    "narrow": 4,
    "narrow_depths": (3, 2),
    "at": (0, 1),
    "spectra_at": (1,),
    "samples": 40,
    "extremes": 2,
    "learned": 0.01,
    "alike_gain": 2.0,
}


def small(depth: int) -> str:
    """The stage of the small networks of one depth."""
    return f"small-{depth}"


def alike(depth: int) -> str:
    """The stage of the small networks of one depth at the gain at which all train alike."""
    return f"alike-{depth}"


def train(results: Results) -> list[Call]:
    """The one stage: per data set one trial at the paper's width and one per depth of the small networks."""
    return [call for data in results.settings.data for call in _on(results.settings, data)]


def _on(settings: Settings, data: str) -> Iterator[Call]:
    def named(training: Training, runs: int, gain: float) -> Networks:
        members = [Member(seed, gain) for seed in networks.final_seeds(settings.seed, runs)]
        return networks.together(training, data, "plain", members)

    def narrow(depth: int, stage: str, gain: float) -> Measured:
        shape = {"depth": depth, "width": settings.narrow, "components": settings.narrow_components}
        nets = named(subset(Training, settings, **shape), settings.runs, gain)
        at, kept = settings.spectra_at, settings.extremes
        return Measured(nets, stage, at, exact=samples, extremes=kept, learned=learned)

    learned, samples = settings.learned, settings.samples
    wide = named(subset(Training, settings), settings.wide_runs, settings.gain)
    yield measured.call(Measured(wide, WIDE, settings.at, units=samples, learned=learned), "full width")
    for depth in settings.narrow_depths:
        shape = f"{depth} × {settings.narrow} units"
        yield measured.call(narrow(depth, small(depth), settings.gain), shape)
        if settings.alike_gain is not None:
            gain = settings.alike_gain
            yield measured.call(narrow(depth, alike(depth), gain), f"{shape}, gain {gain:.3g}")
