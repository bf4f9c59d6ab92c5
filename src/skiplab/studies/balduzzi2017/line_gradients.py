"""Gradients of networks on a line, and noise measured as they are: the trials of figures 1 and 2."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.reproduction import Bench, Results, chunks, trial
from skiplab.studies.balduzzi2017.line_networks import POINTS, Network, ensemble, grid

if TYPE_CHECKING:
    import pandas as pd

LAGS = 15  # ours: the text names no lag, and the pictures are not in our source
NOISES = ("brown", "white")
RUNS_PER_TRIAL = 20  # as many as figure 2 of the paper averages over; figures 1 and 2 share trials
_TOGETHER = 10  # networks run as one; fixed here, so that a table depends on nothing else

Row = tuple[int, str, float, float]  # run, quantity, x, value
COLUMNS = ["run", "quantity", "x", "value"]


@dataclass(frozen=True)
class LineGradients:
    """Settings of a trial: the gradients of one architecture's networks on the grid."""

    network: Network
    seeds: tuple[int, ...]
    points: int = POINTS
    lags: int = LAGS


@trial("balduzzi2017/gradients-on-a-line", version=1)
def gradients(settings: LineGradients, bench: Bench) -> pd.DataFrame:
    """Measure df/dx on the grid: its autocorrelation ("acf", x the lag) in every network.

    The first network's gradient itself is kept to be drawn ("gradient", x the input).
    """
    import pandas as pd

    from skiplab.measurements.gradient_shattering import gradient_shattering

    inputs = grid(settings.points)
    rows: list[Row] = []
    groups = chunks(settings.seeds, _TOGETHER)
    for place, seeds in enumerate(groups):
        bench.tell(place / len(groups), f"network {seeds[0]}")
        found = gradient_shattering(
            ensemble(settings.network, seeds, bench.device), inputs.to(bench.device), mode="batch"
        )
        for seed, values in zip(seeds, found.autocorrelation(range(settings.lags + 1)).tolist(), strict=True):
            rows += [(seed, "acf", float(lag), value) for lag, value in enumerate(values)]
        if place == 0:
            drawn = found.gradients[0, :, 0].tolist()
            where = inputs[:, 0].tolist()
            rows += [(seeds[0], "gradient", x, value) for x, value in zip(where, drawn, strict=True)]
    network = settings.network
    return pd.DataFrame(rows, columns=COLUMNS).assign(
        model=network.name, depth=network.depth, biases=network.bias_std
    )


@dataclass(frozen=True)
class NoiseSeries:
    """Settings of a trial: noise series to stand beside the gradients, and the bands in which such series lie."""

    kind: str
    seeds: tuple[int, ...]
    points: int = POINTS
    lags: int = LAGS
    series: int = 10_000
    means: int = 1_000


@trial("balduzzi2017/noise", version=1)
def noise(settings: NoiseSeries, bench: Bench) -> pd.DataFrame:
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


# What was measured of a network, or of a kind of noise ---------------------------------------------------------


def measured(results: Results, what: Network | str, quantity: str) -> pd.DataFrame:
    """The rows of a quantity, ordered by run and x."""
    if isinstance(what, Network):
        where: dict[str, Any] = {"model": what.name, "depth": what.depth, "biases": what.bias_std}
        rows = results.rows(gradients, quantity=quantity, **where)
    else:
        rows = results.rows(noise, quantity=quantity, model=what)
    return rows.sort_values(["run", "x"])


def curves(results: Results, what: Network | str) -> pd.DataFrame:
    """The ACF of every run (row) at every lag (column), lag 0 included."""
    return measured(results, what, "acf").pivot(index="run", columns="x", values="value")


def averages(results: Results, what: Network | str) -> list[float]:
    """Every run's ACF averaged over lags 1 to 15."""
    return over_lags(curves(results, what))


def over_lags(acfs: pd.DataFrame) -> list[float]:
    """Each row's mean over all lags but 0, where every ACF is 1."""
    means: list[float] = acfs.iloc[:, 1:].mean(axis=1).tolist()
    return means
