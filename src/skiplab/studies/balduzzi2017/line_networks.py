"""The laboratory of figures 1 to 4: random rectifier networks seen on a grid of 256 points of [−2, 2].

A network is eq. 2 of the paper, x_l = x_{l−1} + β W_l ρ(N(x_{l−1})), or the same without the skip ("plain"), where N
is nothing, mean-centring or batch normalisation over the whole grid. Depth counts its rectifier layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.trial import Bench, trial

if TYPE_CHECKING:
    import pandas as pd
    import torch

    from skiplab.ensembles import Ensemble

POINTS = 256  # section 1.1
REACH = 2.0  # section 1.1: inputs between −2 and 2
LAGS = 15  # ours: the text names no lag, and the pictures are not in our source
BIAS = 1.0  # ours, see errata: the text's deviation, 1/√200, gives a gradient that is flat but for |x| < .18
NOISES = ("brown", "white")
_TOGETHER = 10  # networks run as one; fixed here, so that a table depends on nothing else
_AFTER = {"none": "", "centre": "+centring", "batch": "+BN"}


@dataclass(frozen=True)
class Network:
    """An architecture at initialisation; ``ones`` makes the first weights v = (1, …, 1), as in figure 1a."""

    depth: int
    width: int = 200
    skip: bool = False
    beta: float = 1.0
    normalisation: str = "none"
    bias_std: float = 0.0
    ones: bool = False

    @property
    def name(self) -> str:
        """Its kind, depth left out: "plain+centring", "residual β=0.1+BN"."""
        return (f"residual β={self.beta:g}" if self.skip else "plain") + _AFTER[self.normalisation]

    @property
    def label(self) -> str:
        """Everything that tells it from another: the name of its random stream."""
        first = ", v = 1" if self.ones else ""
        return f"{self.name}, {self.depth}×{self.width}, biases {self.bias_std:.3g}{first}"


def shallow(width: int, bias_std: float = BIAS) -> Network:
    """The network of figure 1a: one hidden layer, f(x) = wᵀρ(x v − b) with v = (1, …, 1)."""
    return Network(1, width, bias_std=bias_std, ones=True)


def plain(depth: int, width: int, normalisation: str = "none", bias_std: float | None = None) -> Network:
    """A feedforward network; biases are ours where nothing is centred and none where they would cancel."""
    if bias_std is None:
        bias_std = BIAS if normalisation == "none" else 0.0
    return Network(depth, width, normalisation=normalisation, bias_std=bias_std)


def residual(depth: int, width: int, beta: float, normalisation: str = "batch") -> Network:
    """A residual network of eq. 2 with α = 1."""
    return replace(plain(depth, width, normalisation), skip=True, beta=beta)


def grid(points: int = POINTS) -> torch.Tensor:
    """The inputs (points, 1) of eq. 1."""
    import torch

    return torch.linspace(-REACH, REACH, points)[:, None]


def build(network: Network, seed: int) -> torch.nn.Module:
    """Draw the network of a seed; networks of different kinds or depths share no number."""
    import torch

    from skiplab.architectures.rescaled import RescaledNet
    from skiplab.randomness import torch_generator

    drawn = RescaledNet(
        1,
        network.width,
        network.depth,
        1,
        generator=torch_generator(seed, "balduzzi2017", network.label),
        beta=network.beta,
        skip=network.skip,
        normalisation=network.normalisation,
        bias_std=network.bias_std,
    )
    if network.ones:
        with torch.no_grad():
            drawn.first.weight.fill_(1.0)
    return drawn


def ensemble(network: Network, seeds: Sequence[int], device: str = "cpu") -> Ensemble:
    """The networks of several seeds as one computation."""
    from skiplab.ensembles import Ensemble

    return Ensemble.of([build(network, seed) for seed in seeds], device=device)


Row = tuple[int, str, float, float]  # run, quantity, x, value
COLUMNS = ["run", "quantity", "x", "value"]


@dataclass(frozen=True)
class Gradients:
    """Settings of a trial: the gradients of one architecture's networks on the grid."""

    network: Network
    seeds: tuple[int, ...]
    points: int = POINTS
    lags: int = LAGS


@trial("balduzzi2017/gradients-on-a-line", version=1)
def gradients(settings: Gradients, bench: Bench) -> pd.DataFrame:
    """Measure df/dx on the grid: its autocorrelation ("acf", x the lag) in every network.

    The first network's gradient itself is kept to be drawn ("gradient", x the input).
    """
    import pandas as pd

    from skiplab.measurements.gradient_shattering import gradient_shattering

    inputs = grid(settings.points)
    rows: list[Row] = []
    for start in range(0, len(settings.seeds), _TOGETHER):
        bench.tell(start / len(settings.seeds), f"network {settings.seeds[start]}")
        seeds = settings.seeds[start : start + _TOGETHER]
        found = gradient_shattering(
            ensemble(settings.network, seeds, bench.device), inputs.to(bench.device), statistics="batch"
        )
        for seed, values in zip(seeds, found.autocorrelation(range(settings.lags + 1)).tolist(), strict=True):
            rows += [(seed, "acf", float(lag), value) for lag, value in enumerate(values)]
        if start == 0:
            drawn = found.gradients[0, :, 0].tolist()
            where = inputs[:, 0].tolist()
            rows += [(seeds[0], "gradient", x, value) for x, value in zip(where, drawn, strict=True)]
    network = settings.network
    return pd.DataFrame(rows, columns=COLUMNS).assign(
        model=network.name, depth=network.depth, biases=network.bias_std
    )


@dataclass(frozen=True)
class Noise:
    """Settings of a trial: noise series to stand beside the gradients, and the bands in which such series lie."""

    kind: str
    seeds: tuple[int, ...]
    points: int = POINTS
    lags: int = LAGS
    series: int = 10_000
    means: int = 1_000


@trial("balduzzi2017/noise", version=1)
def noise(settings: Noise, bench: Bench) -> pd.DataFrame:
    """Draw noise, columns d and e of figure 1, and measure it as the gradients are.

    "low" and "high" are the ends of the 95 % band of an ACF averaged over as many series as there are seeds, lag (x)
    by lag; "average", "average low" and "average high" are the mean over lags 1 … of a single series and the ends of
    its 95 % band.
    """
    import pandas as pd
    import torch

    from skiplab.measurements.autocorrelation import autocorrelation, noise_band
    from skiplab.randomness import torch_generator

    first, drawn = settings.seeds[0], []
    for seed in settings.seeds:
        generator = torch_generator(seed, "balduzzi2017", settings.kind, settings.points)
        white = torch.randn(settings.points, generator=generator, dtype=torch.float64)
        # Section 1.1: W ~ N(0, 1) for white noise, the running sum of W ~ N(0, 1/N) for brown.
        drawn.append(white if settings.kind == "white" else white.cumsum(0) / settings.points**0.5)
    rows: list[Row] = []
    found = autocorrelation(torch.stack(drawn), range(settings.lags + 1))
    for seed, values in zip(settings.seeds, found.values.tolist(), strict=True):
        rows += [(seed, "acf", float(lag), value) for lag, value in enumerate(values)]
    rows += [
        (first, "gradient", x, value)
        for x, value in zip(grid(settings.points)[:, 0].tolist(), drawn[0].tolist(), strict=True)
    ]
    bench.tell(0.2, "band")
    stream = torch_generator(first, "balduzzi2017", settings.kind, "band")
    size = (settings.points, range(1, settings.lags + 1))
    one = noise_band(settings.kind, *size, 1, stream, draws=settings.series)
    many = noise_band(settings.kind, *size, len(settings.seeds), stream, draws=settings.means)
    rows += [(first, "average", 0.0, one.average)]
    rows += [(first, "average low", 0.0, one.average_low), (first, "average high", 0.0, one.average_high)]
    for lag, low, high in zip(many.lags, many.low.tolist(), many.high.tolist(), strict=True):
        rows += [(first, "low", float(lag), low), (first, "high", float(lag), high)]
    return pd.DataFrame(rows, columns=COLUMNS).assign(model=settings.kind, depth=0, biases=0.0)


def chosen(
    frame: pd.DataFrame, model: str, quantity: str, depth: int = 0, biases: float | None = None
) -> pd.DataFrame:
    """The rows of a quantity in networks of one kind, or in noise (depth 0), ordered by run and x."""
    rows = (frame["model"] == model) & (frame["quantity"] == quantity) & (frame["depth"] == depth)
    if biases is not None:
        rows &= frame["biases"] == biases
    return frame[rows].sort_values(["run", "x"])


def curves(frame: pd.DataFrame, model: str, depth: int = 0, biases: float | None = None) -> pd.DataFrame:
    """The ACF of every run (row) at every lag (column), lag 0 included."""
    return chosen(frame, model, "acf", depth, biases).pivot(index="run", columns="x", values="value")


def averages(frame: pd.DataFrame, model: str, depth: int = 0, biases: float | None = None) -> list[float]:
    """Every run's ACF averaged over lags 1 to 15."""
    # Column 0 is lag 0, where every ACF is 1.
    means: list[float] = curves(frame, model, depth, biases).iloc[:, 1:].mean(axis=1).tolist()
    return means


def band(frame: pd.DataFrame, kind: str) -> tuple[float, float]:
    """Between what values 95 % of noise series of this kind have their ACF averaged over lags 1 to 15."""
    low, high = (float(chosen(frame, kind, f"average {end}")["value"].iloc[0]) for end in ("low", "high"))
    return low, high


def band_of_means(frame: pd.DataFrame, kind: str, count: int) -> tuple[float, float]:
    """The same for the mean over ``count`` series: √count times narrower, about the mean of all series."""
    low, high = band(frame, kind)
    centre = float(chosen(frame, kind, "average")["value"].iloc[0])
    half = (high - low) / 2 / count**0.5
    return centre - half, centre + half


def band_at_lag(frame: pd.DataFrame, kind: str, lag: int, count: int) -> tuple[float, float]:
    """Where the ACF at one lag, averaged over ``count`` series, lies in 95 % of experiments."""
    ends = [chosen(frame, kind, end).set_index("x")["value"] for end in ("low", "high")]
    low, high = (float(end[float(lag)]) for end in ends)
    # The trial's band is that of as many series as it drew.
    half = (high - low) / 2 * (len(curves(frame, kind)) / count) ** 0.5
    return (low + high) / 2 - half, (low + high) / 2 + half


def inside(
    frame: pd.DataFrame, kind: str, where: str, sample: Sequence[float], headline: bool
) -> Iterator[Evidence]:
    """Two rows of evidence: the sample's mean is above a noise band's lower end, and below its upper end.

    The band is that of single series, wider than that of a mean; see ``as_noise`` for what is stricter.
    """
    low, high = band(frame, kind)
    within = sum(low <= value <= high for value in sample)
    detail = f"{within} of {len(sample)} networks lie in the band of single series, {low:.3f} to {high:.3f}"
    yield Evidence(
        f"{where}: above the {kind} band's foot", [[v - low for v in sample]], None, headline, detail
    )
    yield Evidence(
        f"{where}: below the {kind} band's top", [[high - v for v in sample]], None, headline, detail
    )


def as_noise(frame: pd.DataFrame, kind: str, where: str, acfs: pd.DataFrame) -> Iterator[Evidence]:
    """Three further rows, each 0 or more if networks were noise; ``acfs`` has a row a network, a column a lag.

    Of single series 95 % lie in their band, by definition. The mean over networks, of the average over lags and of
    lag 1 alone, is compared with the band of the mean of as many series, at the end that it is nearer to.
    """
    sample, count = acfs.iloc[:, 1:].mean(axis=1).tolist(), len(acfs)
    low, high = band(frame, kind)
    within = [low <= value <= high for value in sample]
    yield Evidence(
        f"{where}: share of networks in the {kind} band, less .95",
        [[each - 0.95 for each in within]],
        headline=False,
        detail=f"{sum(within)} of {count} networks",
    )
    for words, values, ends in (
        ("mean", sample, band_of_means(frame, kind, count)),
        ("mean at lag 1", acfs[1.0].tolist(), band_at_lag(frame, kind, 1, count)),
    ):
        mean = sum(values) / count
        above = 2 * mean < sum(ends)  # nearer to the foot, and to be above it
        yield Evidence(
            f"{where}: {words}, inside the band of as many {kind} series' mean",
            [[value - ends[0] if above else ends[1] - value for value in values]],
            headline=False,
            detail=f"the mean is {mean:.4f}, and that of {count} series {ends[0]:.4f} to {ends[1]:.4f} in 95 %",
        )
