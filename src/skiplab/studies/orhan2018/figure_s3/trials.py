"""Plain networks with exact spectra, and both estimates of the same spectra."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.networks import SQRT2, Member, Training
from skiplab.reproduction import Call, Results, subset


@dataclass(frozen=True)
class Settings:
    """Which plain networks have exact spectra, at which epochs, and what Lanczos may spend on them."""

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 10  # networks at each gain
    seed: int = 0
    gains: tuple[float, ...] = (0.3, 1.0, SQRT2)
    widths: tuple[int, ...] = (32,)
    depth: int = 10
    images: int | None = None
    components: int = 128
    epochs: int = 100
    batch_size: int = 500
    at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)
    samples: int = 2000
    probes: int = 10
    steps: int = 80
    max_steps: int = 640


def measure(results: Results) -> list[Call]:
    """The one stage: a trial per data set, width and gain, with exact spectra and both estimates."""
    settings = results.settings
    seeds = networks.final_seeds(settings.seed, settings.runs)
    calls = []
    for data, width, gain in product(settings.data, settings.widths, settings.gains):
        training = subset(Training, settings, width=width)
        named = networks.together(training, data, "plain", [Member(seed, gain) for seed in seeds])
        counts = {"exact": settings.samples, "limits": settings.samples}
        both = subset(Measured, settings, networks=named, part=of_width(width), **counts)
        calls.append(measured.call(both, f"{width} units, gain {gain:.3g}"))
    return calls


def of_width(width: int) -> str:
    """The stage of the networks of one width."""
    return f"{width} units"
