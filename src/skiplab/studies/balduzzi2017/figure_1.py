"""Figure 1: gradients of rectifier networks on a line, beside brown and white noise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.figures.shattering_palette import beta_words
from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.balduzzi2017.networks import (
    BIAS,
    LAGS,
    NOISES,
    POINTS,
    Gradients,
    Network,
    Noise,
    as_noise,
    averages,
    band,
    chosen,
    curves,
    gradients,
    inside,
    noise,
    plain,
    residual,
    shallow,
)

if TYPE_CHECKING:
    import pandas as pd

TOGETHER = 20  # runs of one trial; figure 2 averages over as many, and shares them


@dataclass(frozen=True)
class Settings:
    """How many networks of each kind, their sizes, and the grid."""

    runs: int
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


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial for every twenty networks of a kind, and two for the noises."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = [
        gradients.of(
            Gradients(network, seeds[i : i + TOGETHER], settings.points, settings.lags),
            f"{network.label}, networks {seeds[i]}–{seeds[i : i + TOGETHER][-1]}",
        )
        for network in (*shown(settings).values(), *further(settings))
        for i in range(0, len(seeds), TOGETHER)
    ]
    size = (settings.points, settings.lags, settings.series)
    return calls + [noise.of(Noise(kind, seeds[:TOGETHER], *size), f"{kind} noise") for kind in NOISES]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def _sample(frame: pd.DataFrame, network: Network) -> list[float]:
    return averages(frame, network.name, network.depth, network.bias_std)


def _brown(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for biases in (BIAS, settings.text_bias):
        network = shallow(settings.width, biases)
        words = f"biases of deviation {biases:.3g}"
        yield from inside(frame, "brown", words, _sample(frame, network), headline=biases == BIAS)


def _white(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    kinds = {"centre": "mean-centred", "batch": "batch-normalised", "none": "nothing centred, biases"}
    for normalisation, words in kinds.items():
        network = plain(settings.deep, settings.width, normalisation)
        yield from inside(frame, "white", words, _sample(frame, network), headline=normalisation == "centre")
        if normalisation == "centre":
            acfs = curves(frame, network.name, network.depth, network.bias_std)
            yield from as_noise(frame, "white", words, acfs)


def _between(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    white, brown = band(frame, "white")[1], band(frame, "brown")[0]
    centre = float(chosen(frame, "brown", "average")["value"].iloc[0])
    for beta in (0.1, 1.0):
        sample = _sample(frame, residual(settings.resnet, settings.width, beta))
        detail = f"the resnets' mean is {sum(sample) / len(sample):.3f}"
        for words, apart in (
            ("above the white band", [value - white for value in sample]),
            ("below the brown band", [brown - value for value in sample]),
            ("below the mean of brown noise", [centre - value for value in sample]),
        ):
            headline = beta == 0.1 and words.endswith("band")
            yield Evidence(f"{beta_words(beta)}: {words}", [apart], headline=headline, detail=detail)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw five gradients or noises, each over its covariance."""
    from skiplab.figures.gradient_noise import gradient_panels
    from skiplab.figures.shattering_palette import NOISE, network_colour

    run = run_seeds(settings.seed, settings.runs)[0]

    def first(model: str, depth: int = 0, biases: float = 0.0) -> tuple[Any, Any]:
        rows = chosen(frame, model, "gradient", depth, biases)
        rows = rows[rows["run"] == run]
        return rows["x"].to_numpy(), rows["value"].to_numpy()

    columns = {
        title: first(network.name, network.depth, network.bias_std)
        for title, network in shown(settings).items()
    }
    colours = [network_colour(network.beta if network.skip else None) for network in shown(settings).values()]
    columns |= {f"{kind.capitalize()} noise": first(kind) for kind in NOISES}
    return gradient_panels(columns, [*colours, *(NOISE[kind] for kind in NOISES)])


STUDY = Study(
    id="balduzzi2017/figure-1",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, width=16, deep=4, resnet=6, points=64, lags=5, series=200),
        "quick": Settings(runs=20),
        "paper": Settings(runs=100),
    },
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "shallow-brown",
            "The gradient of a network with one hidden layer resembles brown noise: on average over networks its ACF "
            "averaged over lags 1 to 15 lies in the band of single series of brown noise.",
            _brown,
            Greater(),
            "ACF",
        ),
        Claim(
            "deep-white",
            "The gradient of a 24-layer feedforward network resembles white noise: on average over networks its ACF "
            "averaged over lags 1 to 15 lies in the band of single series of white noise.",
            _white,
            Greater(),
            "ACF",
        ),
        Claim(
            "resnet-between",
            "The gradient of a 50-layer resnet lies in between: on average over networks, above the band of single "
            "series of white noise and below that of brown noise.",
            _between,
            Greater(),
            "ACF",
        ),
    ),
    cost={"smoke": 0.5, "quick": 15.0, "paper": 45.0},
    in_tour=True,
)
