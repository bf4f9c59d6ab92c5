"""Figure 2: the autocorrelation of gradients by depth, for feedforward networks, resnets and noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.balduzzi2017.networks import (
    LAGS,
    NOISES,
    POINTS,
    Gradients,
    Network,
    Noise,
    as_noise,
    averages,
    chosen,
    curves,
    gradients,
    inside,
    noise,
    plain,
    residual,
)

if TYPE_CHECKING:
    import pandas as pd

DEEP = 10  # from here on the order is judged
BETAS = (1.0, 0.1)
NORMALISATIONS = {"centre": "mean-centred", "batch": "batch-normalised", "none": "nothing centred, biases"}


@dataclass(frozen=True)
class Settings:
    """How many networks of each kind and depth, and the grid."""

    runs: int
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


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial for each kind and depth, deepest first, and one for each noise."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    size = (settings.points, settings.lags)
    calls = [
        gradients.of(Gradients(network, seeds, *size), f"{network.label}, {len(seeds)} networks")
        for network in sorted(networks(settings), key=lambda network: -network.depth)
    ]
    return calls + [
        noise.of(Noise(kind, seeds, *size, settings.series), f"{kind} noise, {len(seeds)} series")
        for kind in NOISES
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def _sample(frame: pd.DataFrame, network: Network) -> list[float]:
    return averages(frame, network.name, network.depth)


def _order(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for depth in settings.deep:
        one, tenth = (_sample(frame, residual(depth, settings.width, beta)) for beta in BETAS)
        for normalisation, words in NORMALISATIONS.items():
            rest = _sample(frame, plain(depth, settings.width, normalisation))
            where = f"{depth} layers, resnet β = 1 − feedforward, {words}"
            yield Evidence(where, [one, rest], headline=normalisation == "centre")
        yield Evidence(f"{depth} layers, resnet β = .1 − resnet β = 1", [tenth, one])


def _white(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    depth = max(settings.depths)
    for normalisation, words in NORMALISATIONS.items():
        network = plain(depth, settings.width, normalisation)
        yield from inside(frame, "white", words, _sample(frame, network), headline=normalisation == "centre")
        if normalisation == "centre":
            yield from as_noise(frame, "white", words, curves(frame, network.name, depth))


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the ACF at every depth for the three kinds, and of the noises, over the noises' bands."""
    from skiplab.figures.gradient_noise import autocorrelation_panels

    def of(network: Network) -> Any:
        return curves(frame, network.name, network.depth).to_numpy()

    def ends(kind: str) -> tuple[Any, Any]:
        low, high = (chosen(frame, kind, end)["value"].to_numpy() for end in ("low", "high"))
        return low, high

    depths, width = sorted(settings.depths), settings.width
    panels: dict[float | None, dict[int, Any]] = {None: {d: of(plain(d, width, "centre")) for d in depths}}
    panels |= {beta: {d: of(residual(d, width, beta)) for d in depths} for beta in BETAS}
    noises = {kind: curves(frame, kind).to_numpy() for kind in NOISES}
    return autocorrelation_panels(panels, noises, {kind: ends(kind) for kind in NOISES})


STUDY = Study(
    id="balduzzi2017/figure-2",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, width=16, depths=(2, 4), points=64, lags=5, series=200),
        "quick": Settings(runs=20),
        "paper": Settings(runs=20),
    },
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "order-by-kind",
            "From 10 layers on the ACF, averaged over lags 1 to 15, is smallest in feedforward networks, larger in "
            "resnets with β = 1 and largest in resnets with β = .1.",
            _order,
            Greater(),
            "ACF",
        ),
        Claim(
            "deepest-white",
            "In 50-layer feedforward networks gradients are indistinguishable from white noise: on average over "
            "networks their ACF averaged over lags 1 to 15 lies in the 95 % band of single series of white noise.",
            _white,
            Greater(),
            "ACF",
        ),
    ),
    cost={"smoke": 0.5, "quick": 30.0, "paper": 30.0},
)
