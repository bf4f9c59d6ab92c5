"""Figure 2's networks, claims and declaration."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import (
    Call,
    Claim,
    Evidence,
    Found,
    Ordered,
    Results,
    Study,
    chunks,
    scales,
    subset,
)
from skiplab.studies.balduzzi2017.line_gradients import (
    LAGS,
    NOISES,
    RUNS_PER_TRIAL,
    LineGradients,
    NoiseSeries,
    averages,
    curves,
    gradients,
    noise,
)
from skiplab.studies.balduzzi2017.line_networks import POINTS, Network, plain, residual
from skiplab.studies.balduzzi2017.noise_bands import (
    APART,
    BOTH,
    IN_BAND,
    NORMALISATIONS,
    RESEMBLES,
    SCATTER,
    above_white,
    resembling,
    scattered_as_white,
    white_at,
)
from skiplab.studies.balduzzi2017.palette import beta_words

DEEP = 10  # from here on the order is judged
BETAS = (1.0, 0.1, 0.3)  # the figure's, then the other end of section 3.3's range, as further rows
SHOWN = BETAS[:2]


@dataclass(frozen=True)
class Settings:
    """How many networks of each kind and depth, and the grid."""

    runs: int = 100
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
    """Every kind at every depth: the figure's, β = .3, and feedforward nets with BN or with nothing centred."""
    return [
        network
        for depth in settings.depths
        for network in (
            *(plain(depth, settings.width, normalisation) for normalisation in NORMALISATIONS),
            *(residual(depth, settings.width, beta) for beta in BETAS),
        )
    ]


def draws(results: Results) -> list[Call]:
    """Name a trial for every twenty networks of a kind and depth, deepest first, and one for each noise."""
    settings = results.settings
    groups = chunks(run_seeds(settings.seed, settings.runs), RUNS_PER_TRIAL)
    calls = [
        gradients.of(
            subset(LineGradients, settings, network=network, seeds=seeds),
            f"{network.label}, networks {seeds[0]}–{seeds[-1]}",
        )
        for network in sorted(networks(settings), key=lambda network: -network.depth)
        for seeds in groups
    ]
    return calls + [
        noise.of(subset(NoiseSeries, settings, kind=kind, seeds=groups[0]), f"{kind} noise")
        for kind in NOISES
    ]


def feedforward(settings: Settings, depth: int, normalisation: str) -> Network:
    """A feedforward network of the study's width."""
    return plain(depth, settings.width, normalisation)


def shallow_brown(results: Results) -> Iterator[Evidence]:
    """Whether the shallowest feedforward networks are brown; those that centre decide, as the paper's do."""
    settings = results.settings
    depth = min(settings.depths)
    for normalisation, words in NORMALISATIONS.items():
        acfs = curves(results, feedforward(settings, depth, normalisation))
        where = f"{depth} layers, {words}"
        yield from resembling(results, "brown", acfs, where, headline=normalisation == "centre")


def falls(results: Results) -> Iterator[Evidence]:
    """ACFs of feedforward networks from the deepest to the shallowest; depths are drawn independently."""
    settings = results.settings
    depths = sorted(settings.depths, reverse=True)
    for normalisation, words in NORMALISATIONS.items():
        samples = [averages(results, feedforward(settings, depth, normalisation)) for depth in depths]
        yield Evidence(f"feedforward, {words}", samples, headline=normalisation == "centre")


def resnets_fall(results: Results) -> Iterator[Evidence]:
    """The same of resnets, β = 1 first."""
    settings = results.settings
    depths = sorted(settings.depths, reverse=True)
    for beta in BETAS:
        samples = [averages(results, residual(depth, settings.width, beta)) for depth in depths]
        yield Evidence(f"resnet, {beta_words(beta)}", samples, headline=beta == 1.0)


def whiten_less(results: Results) -> Iterator[Evidence]:
    """Resnets with β = 1 against feedforward networks."""
    settings = results.settings
    for depth in settings.deep:
        one = averages(results, residual(depth, settings.width, 1.0))
        for normalisation, words in NORMALISATIONS.items():
            rest = averages(results, feedforward(settings, depth, normalisation))
            where = f"{depth} layers, resnet β = 1 − feedforward, {words}"
            yield Evidence(where, [one, rest], headline=normalisation == "centre")


def smaller_beta(results: Results) -> Iterator[Evidence]:
    """Resnets with β = .1, and as further rows with β = .3, against those with β = 1."""
    settings = results.settings
    for depth in settings.deep:
        one, *smaller = (averages(results, residual(depth, settings.width, beta)) for beta in BETAS)
        for beta, sample in zip(BETAS[1:], smaller, strict=True):
            where = f"{depth} layers, resnet {beta_words(beta)} − resnet β = 1"
            yield Evidence(where, [sample, one], headline=beta in SHOWN)


def deepest(of: Callable[[Results, int], Iterator[Evidence]]) -> Found:
    """Evidence on the deepest feedforward networks."""
    return lambda results: of(results, max(results.settings.depths))


def correlations_left(results: Results) -> Iterator[Evidence]:
    """By how much the deepest resnets are above white noise."""
    settings = results.settings
    depth = max(settings.depths)
    for beta in BETAS:
        network = residual(depth, settings.width, beta)
        where = f"{depth} layers, {beta_words(beta)}"
        yield Evidence(where, [above_white(results, network)], headline=beta == 1.0)


def damped_brown(results: Results) -> Iterator[Evidence]:
    """Whether the deepest resnets with β = .1 are brown; those with β = .3 are further rows."""
    settings = results.settings
    depth = max(settings.depths)
    for beta in BETAS[1:]:
        acfs = curves(results, residual(depth, settings.width, beta))
        where = f"{depth} layers, {beta_words(beta)}"
        yield from resembling(results, "brown", acfs, where, headline=beta in SHOWN)


def figure(results: Results) -> Any:
    """The ACF at every depth for the three kinds, and of the noises, over the noises' bands."""
    from skiplab.studies.balduzzi2017.figure_2.plot import draw

    depths, width = sorted(results.settings.depths), results.settings.width
    shown: dict[float | None, list[Network]] = {None: [plain(depth, width, "centre") for depth in depths]}
    return draw(results, shown | {beta: [residual(depth, width, beta) for depth in depths] for beta in SHOWN})


STUDY = Study(
    id="balduzzi2017/figure-2",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": RUNS_PER_TRIAL},
        smoke={"runs": 2, "width": 16, "depths": (2, 4), "points": 64, "lags": 5, "series": 200},
    ),
    stages=(draws,),
    figure=figure,
    source="section 1.1",
    unit="ACF",
    claims=(
        Claim(
            "shallow-brown",
            "The ACF of shallow feedforward networks resembles that of brown noise: that of 2-layer networks lies on "
            f"average over networks in the band of single series of brown noise, {BOTH}.",
            shallow_brown,
            kind=RESEMBLES,
            unit=IN_BAND,
        ),
        Claim(
            "feedforward-whiten-with-depth",
            "The deeper feedforward networks are, the more their ACF comes to resemble that of white noise: averaged "
            "over lags 1 to 15 it falls with depth.",
            falls,
            kind=Ordered(),
            unit="P(shallower > deeper)",
        ),
        Claim(
            "resnets-whiten-with-depth",
            "The gradients of resnets become progressively less structured with depth.",
            resnets_fall,
            kind=Ordered(),
            unit="P(shallower > deeper)",
        ),
        Claim(
            "resnets-whiten-less",
            "Resnets do not whiten to the extent of feedforward networks: from 10 layers on their ACF is larger.",
            whiten_less,
            kind=APART,
        ),
        Claim(
            "smaller-beta-whitens-less",
            "β-rescaling has a dramatic effect: from 10 layers on the ACF of resnets with β = .1 is larger than with "
            "β = 1.",
            smaller_beta,
            kind=APART,
        ),
        Claim(
            "deepest-white",
            "Gradients of 50-layer feedforward networks are “indistinguishable from white noise”: their mean ACF "
            "differs from white noise's by less than the half-width of a single series' band, "
            f"{BOTH}.",
            deepest(white_at),
            kind=RESEMBLES,
            unit=IN_BAND,
        ),
        Claim(
            "single-networks-white",
            "Single 50-layer feedforward networks lie in the band of 95 % of white series as often as those do, or "
            "at most twice as many lie outside.",
            deepest(scattered_as_white),
            kind=SCATTER,
            unit="share of networks, less .95",
            source="ours",
        ),
        Claim(
            "resnet-correlations-left",
            "There are still correlations in the 50-layer resnet: its ACF is above that of white noise.",
            correlations_left,
            kind=APART,
        ),
        Claim(
            "damped-resnet-brown",
            "With β = .1 the ACF of even the 50-layer resnet resembles that of brown noise: on average over networks "
            f"it lies in the band of single series of brown noise, {BOTH}.",
            damped_brown,
            kind=RESEMBLES,
            unit=IN_BAND,
        ),
    ),
    cost={"smoke": 0.5, "quick": 35.0, "paper": 180.0},
)
