"""Differences between neighbouring points of gradients on a line, and of brown noise and what is not brown noise.

Brown noise is a sum of independent steps. Its ACF is near 1 at small lags, and so is that of a single step or of a
straight line; what tells them apart are the differences: how alike neighbouring ones are, and how many there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.reproduction import Bench, chunks, trial
from skiplab.studies.balduzzi2017.line_gradients import LAGS
from skiplab.studies.balduzzi2017.line_networks import POINTS, Network, ensemble, grid

if TYPE_CHECKING:
    import pandas as pd
    import torch

BROWN = "brown"
# What is to be told from brown noise.
ALTERNATIVES = {"step": "one step at a random place", "line": "a straight line"}
_TOGETHER = 10  # networks run as one; fixed here, so that a table depends on nothing else
COLUMNS = ["run", "quantity", "x", "value"]
Row = tuple[int, str, float, float]  # run, quantity, lag, value


@dataclass(frozen=True)
class NetworkSteps:
    """Settings of a trial: the differences of one architecture's gradients on the grid."""

    network: Network
    seeds: tuple[int, ...]
    points: int = POINTS
    lags: int = LAGS


@dataclass(frozen=True)
class SeriesSteps:
    """Settings of a trial: the differences of brown noise, of one step, or of a straight line."""

    kind: str
    seeds: tuple[int, ...]
    points: int = POINTS
    lags: int = LAGS
    series: int = 10_000


@trial("balduzzi2017/steps-of-gradients", version=1)
def network_steps(settings: NetworkSteps, bench: Bench) -> pd.DataFrame:
    """Measure the differences of df/dx between neighbouring points, as ``measured`` does, in every network."""
    import pandas as pd

    from skiplab.measurements.gradient_shattering import gradient_shattering

    inputs = grid(settings.points).to(bench.device)
    rows: list[Row] = []
    groups = chunks(settings.seeds, _TOGETHER)
    for place, seeds in enumerate(groups):
        bench.tell(place / len(groups), f"network {seeds[0]}")
        found = gradient_shattering(ensemble(settings.network, seeds, bench.device), inputs, mode="batch")
        rows += measured(found.gradients[..., 0].double(), seeds, settings.lags)
    network = settings.network
    return pd.DataFrame(rows, columns=COLUMNS).assign(
        model=network.name, depth=network.depth, biases=network.bias_std
    )


@trial("balduzzi2017/steps-of-series", version=1)
def series_steps(settings: SeriesSteps, bench: Bench) -> pd.DataFrame:
    """Draw brown noise, single steps of size 1 or straight lines, and measure their differences as the gradients'.

    For brown noise "low" and "high" are the ends of the 95 % band of single series' ACF of differences, lag (x) by
    lag, and "average low" and "average high" those of its mean over lags 1 ….
    """
    import pandas as pd
    import torch

    from skiplab.randomness import torch_generator

    drawn = []
    for seed in settings.seeds:
        generator = torch_generator(seed, "balduzzi2017", "steps", settings.kind, settings.points)
        steps = torch.ones(settings.points, dtype=torch.float64)
        if settings.kind == BROWN:
            steps = torch.randn(settings.points, generator=generator, dtype=torch.float64)
        elif settings.kind == "step":
            # Not the first, which no difference would see.
            at = 1 + int(torch.randint(settings.points - 1, (), generator=generator))
            steps = (torch.arange(settings.points) == at).double()
        drawn.append(steps.cumsum(0))
    rows = list(measured(torch.stack(drawn), settings.seeds, settings.lags))
    if settings.kind == BROWN:
        bench.tell(0.2, "band")
        stream = torch_generator(settings.seeds[0], "balduzzi2017", "steps", "band")
        noise = torch.randn(settings.series, settings.points - 1, generator=stream, dtype=torch.float64)
        acfs = alike(noise, settings.lags)
        ends = torch.tensor([0.025, 0.975], dtype=torch.float64)
        first = settings.seeds[0]
        for name, values in zip(("low", "high"), torch.quantile(acfs, ends, dim=0).tolist(), strict=True):
            rows += [(first, name, float(lag), value) for lag, value in enumerate(values, start=1)]
        averages = torch.quantile(acfs.mean(1), ends).tolist()
        names = ("average low", "average high")
        rows += [(first, name, 0.0, value) for name, value in zip(names, averages, strict=True)]
    return pd.DataFrame(rows, columns=COLUMNS).assign(model=settings.kind, depth=0, biases=0.0)


def measured(series: torch.Tensor, seeds: Sequence[int], lags: int) -> Iterator[Row]:
    """The ACF of each series' differences ("acf", x the lag) and their effective number ("jumps")."""
    differences = series.diff(dim=1)
    acfs, counts = alike(differences, lags).tolist(), effective_number(differences).tolist()
    for seed, values, count in zip(seeds, acfs, counts, strict=True):
        yield from ((seed, "acf", float(lag), value) for lag, value in enumerate(values, start=1))
        yield seed, "jumps", 0.0, count


def alike(differences: torch.Tensor, lags: int) -> torch.Tensor:
    """Σ d_i d_{i+k} / Σ d_i² at lags k = 1 … (series, lags): no mean is removed, since brown noise's steps have none.

    A straight line, whose differences are all the same, so has nearly 1.
    """
    import torch

    length = differences.shape[1]
    products = [(differences[:, lag:] * differences[:, : length - lag]).sum(1) for lag in range(1, lags + 1)]
    return torch.stack(products, 1) / differences.square().sum(1, keepdim=True)


def effective_number(differences: torch.Tensor) -> torch.Tensor:
    """(Σ d²)² / Σ d⁴ (series,): n for n differences of one size, 1 where all but one are 0, n/3 for n normal ones."""
    squares = differences.square()
    count: torch.Tensor = squares.sum(1).square() / squares.square().sum(1)
    return count
