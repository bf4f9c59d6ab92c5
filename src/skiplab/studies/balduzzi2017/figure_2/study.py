"""Figure 2's networks, claims and declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Evidence, Results, Study, scales, subset
from skiplab.studies.balduzzi2017.line_gradients import (
    LAGS,
    NOISES,
    LineGradients,
    NoiseSeries,
    averages,
    gradients,
    noise,
)
from skiplab.studies.balduzzi2017.line_networks import POINTS, Network, plain, residual
from skiplab.studies.balduzzi2017.noise_bands import NORMALISATIONS, white_at

DEEP = 10  # from here on the order is judged
BETAS = (1.0, 0.1)


@dataclass(frozen=True)
class Settings:
    """How many networks of each kind and depth, and the grid."""

    runs: int = 20
    seed: int = 0
    width: int = 200
    depths: tuple[int, ...] = (2, 4, 10, 24, 50)
    points: int = POINTS
    lags: int = LAGS
    series: int = 10_000

    @property
    def deep(self) -> list[int]:
        """The depths at which the order is judged: 10 and more, or else the largest."""
        return [depth for depth in self.depths if depth >= DEEP] or [max(self.depths)]


def networks(settings: Settings) -> list[Network]:
    """Every kind at every depth: the three of the figure, and feedforward nets with BN or with nothing centred."""
    return [
        network
        for depth in settings.depths
        for network in (
            *(plain(depth, settings.width, normalisation) for normalisation in NORMALISATIONS),
            *(residual(depth, settings.width, beta) for beta in BETAS),
        )
    ]


def draws(results: Results) -> list[Call]:
    """Name a trial for each kind and depth, deepest first, and one for each noise."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = [
        gradients.of(
            subset(LineGradients, settings, network=network, seeds=seeds),
            f"{network.label}, {len(seeds)} networks",
        )
        for network in sorted(networks(settings), key=lambda network: -network.depth)
    ]
    return calls + [
        noise.of(subset(NoiseSeries, settings, kind=kind, seeds=seeds), f"{kind} noise, {len(seeds)} series")
        for kind in NOISES
    ]


def order_by_kind(results: Results) -> Iterator[Evidence]:
    """Resnets with β = 1 against feedforward networks, and with β = .1 against those with β = 1."""
    width = results.settings.width
    for depth in results.settings.deep:
        one, tenth = (averages(results, residual(depth, width, beta)) for beta in BETAS)
        for normalisation, words in NORMALISATIONS.items():
            rest = averages(results, plain(depth, width, normalisation))
            where = f"{depth} layers, resnet β = 1 − feedforward, {words}"
            yield Evidence(where, [one, rest], headline=normalisation == "centre")
        yield Evidence(f"{depth} layers, resnet β = .1 − resnet β = 1", [tenth, one])


def deepest_white(results: Results) -> Iterator[Evidence]:
    """Whether the deepest feedforward networks are white."""
    return white_at(results, max(results.settings.depths))


def figure(results: Results) -> Any:
    """The ACF at every depth for the three kinds, and of the noises, over the noises' bands."""
    from skiplab.studies.balduzzi2017.figure_2.plot import draw

    depths, width = sorted(results.settings.depths), results.settings.width
    shown: dict[float | None, list[Network]] = {None: [plain(depth, width, "centre") for depth in depths]}
    return draw(results, shown | {beta: [residual(depth, width, beta) for depth in depths] for beta in BETAS})


STUDY = Study(
    id="balduzzi2017/figure-2",
    words=__file__,
    settings=scales(
        Settings,
        quick={},
        smoke={"runs": 2, "width": 16, "depths": (2, 4), "points": 64, "lags": 5, "series": 200},
    ),
    stages=(draws,),
    figure=figure,
    unit="ACF",
    claims=(
        Claim(
            "order-by-kind",
            "From 10 layers on the ACF, averaged over lags 1 to 15, is smallest in feedforward networks, larger in "
            "resnets with β = 1 and largest in resnets with β = .1.",
            order_by_kind,
        ),
        Claim(
            "deepest-white",
            "In 50-layer feedforward networks gradients are indistinguishable from white noise: on average over "
            "networks their ACF averaged over lags 1 to 15 lies in the 95 % band of single series of white noise.",
            deepest_white,
        ),
    ),
    cost={"smoke": 0.5, "quick": 30.0, "paper": 30.0},
)
