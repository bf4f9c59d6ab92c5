"""Figure 1's networks, claims and declaration."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Evidence, Results, Study, chunks, scales, subset
from skiplab.studies.balduzzi2017.figure_1.evidence import shallow_brown
from skiplab.studies.balduzzi2017.figure_1.trials import (
    ALTERNATIVES,
    BROWN,
    NetworkSteps,
    SeriesSteps,
    network_steps,
    series_steps,
)
from skiplab.studies.balduzzi2017.line_gradients import (
    LAGS,
    NOISES,
    RUNS_PER_TRIAL,
    LineGradients,
    NoiseSeries,
    averages,
    gradients,
    noise,
)
from skiplab.studies.balduzzi2017.line_networks import POINTS, Network, plain, residual, shallow
from skiplab.studies.balduzzi2017.noise_bands import (
    APART,
    BOTH,
    IN_BAND,
    RESEMBLES,
    SCATTER,
    above_white,
    below_brown,
    scattered_as_white,
    white_at,
)
from skiplab.studies.balduzzi2017.palette import beta_words


@dataclass(frozen=True)
class Settings:
    """How many networks of each kind, their sizes, and the grid."""

    runs: int = 100
    seed: int = 0
    width: int = 200
    deep: int = 24
    resnet: int = 50
    points: int = POINTS
    lags: int = LAGS
    series: int = 10_000

    @property
    def text_bias(self) -> float:
        """The deviation of biases in section 1.1, σ² = 1/N."""
        return float(self.width**-0.5)


def shown(settings: Settings) -> dict[str, Network]:
    """The networks of columns a to c."""
    return {
        "1-layer feedforward": shallow(settings.width),
        f"{settings.deep}-layer feedforward": plain(settings.deep, settings.width, "centre"),
        f"{settings.resnet}-layer resnet, β = .1": residual(settings.resnet, settings.width, 0.1),
    }


def further(settings: Settings) -> list[Network]:
    """What else could have been meant: small biases, other normalisations, β = 1."""
    return [
        shallow(settings.width, settings.text_bias),
        plain(settings.deep, settings.width, "batch"),
        plain(settings.deep, settings.width),
        residual(settings.resnet, settings.width, 1.0),
    ]


def draws(results: Results) -> list[Call]:
    """Name a trial for every twenty networks of a kind, two for the noises, and one for each kind of differences."""
    settings = results.settings
    groups = chunks(run_seeds(settings.seed, settings.runs), RUNS_PER_TRIAL)
    calls = [
        gradients.of(
            subset(LineGradients, settings, network=network, seeds=seeds),
            f"{network.label}, networks {seeds[0]}–{seeds[-1]}",
        )
        for network in (*shown(settings).values(), *further(settings))
        for seeds in groups
    ]
    calls += [
        noise.of(subset(NoiseSeries, settings, kind=kind, seeds=groups[0]), f"{kind} noise")
        for kind in NOISES
    ]
    # Other networks than those whose ACFs were seen before differences were declared.
    fresh = tuple(run_seeds(settings.seed, 2 * settings.runs)[settings.runs :])
    calls += [
        network_steps.of(
            subset(NetworkSteps, settings, network=network, seeds=fresh), f"{network.label}, differences"
        )
        for network in (shallow(settings.width), shallow(settings.width, settings.text_bias))
    ]
    return calls + [
        series_steps.of(subset(SeriesSteps, settings, kind=kind, seeds=fresh), f"{kind}, differences")
        for kind in (BROWN, *ALTERNATIVES)
    ]


def deep_white(results: Results) -> Iterator[Evidence]:
    """Whether the deep feedforward networks are white."""
    return white_at(results, results.settings.deep)


def deep_scattered(results: Results) -> Iterator[Evidence]:
    """Whether single deep feedforward networks are as white as single series."""
    return scattered_as_white(results, results.settings.deep)


def between(results: Results) -> Iterator[Evidence]:
    """Whether resnets lie above the mean of white noise and below that of brown noise."""
    settings = results.settings
    for beta in (0.1, 1.0):
        network, own = residual(settings.resnet, settings.width, beta), beta == 0.1
        sample = averages(results, network)
        detail = f"the resnets' mean is {sum(sample) / len(sample):.3f}"
        for words, apart in (("above white", above_white), ("below brown", below_brown)):
            where = f"{beta_words(beta)}: {words} noise"
            yield Evidence(where, [apart(results, network)], headline=own, detail=detail)


def more_structure(results: Results) -> Iterator[Evidence]:
    """ACFs of resnets against those of figure 1b's feedforward networks; all are drawn independently."""
    settings = results.settings
    rest = averages(results, plain(settings.deep, settings.width, "centre"))
    for beta in (0.1, 1.0):
        sample = averages(results, residual(settings.resnet, settings.width, beta))
        where = f"{settings.resnet}-layer resnet, {beta_words(beta)}, against {settings.deep} layers without skips"
        yield Evidence(where, [sample, rest], headline=beta == 0.1)


def figure(results: Results) -> Any:
    """Five gradients or noises, each over its covariance."""
    from skiplab.studies.balduzzi2017.figure_1.plot import draw

    return draw(results, shown(results.settings))


STUDY = Study(
    id="balduzzi2017/figure-1",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 20},
        smoke={"runs": 2, "width": 16, "deep": 4, "resnet": 6, "points": 64, "lags": 5, "series": 200},
    ),
    stages=(draws,),
    figure=figure,
    source="section 1.1",
    claims=(
        Claim(
            "shallow-brown",
            "The gradient of a network with one hidden layer resembles brown noise, with biases of deviation 1: its "
            "differences between neighbouring inputs are as white as white noise, and they are many jumps and not "
            "one: on a logarithmic scale their number is nearer to brown noise's.",
            shallow_brown,
            kind=RESEMBLES,
            unit="times the distance from brown noise that is allowed",
        ),
        Claim(
            "deep-white",
            "The gradient of a 24-layer feedforward network resembles white noise: on average over networks its ACF "
            f"lies in the band of single series of white noise, {BOTH}.",
            deep_white,
            kind=RESEMBLES,
            unit=IN_BAND,
        ),
        Claim(
            "single-networks-white",
            "Single 24-layer feedforward networks are as white as white noise: they lie in the band of 95 % of white "
            "series as often as those do, or at most twice as many lie outside.",
            deep_scattered,
            kind=SCATTER,
            unit="share of networks, less .95",
            source="ours",
        ),
        Claim(
            "resnet-between",
            "The gradient of a 50-layer resnet lies in between: on average over networks its ACF is above the mean "
            "of white noise and below that of brown noise.",
            between,
            kind=APART,
            unit="ACF",
        ),
        Claim(
            "resnet-more-structure",
            "The 50-layer resnet has markedly more structure than the feedforward network of figure 1b.",
            more_structure,
            kind=APART,
            unit="ACF",
        ),
    ),
    cost={"smoke": 0.5, "quick": 15.0, "paper": 45.0},
    in_tour=True,
)
