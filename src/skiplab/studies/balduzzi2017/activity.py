"""Which rectifiers are active for which points of a line: networks, settings and trial of figures 3 and 4."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.checks import require
from skiplab.randomness import run_seeds
from skiplab.reproduction import Bench, Call, Results, chunks, scales, subset, trial
from skiplab.studies.balduzzi2017.line_networks import POINTS, Network, ensemble, grid, plain, residual

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.measurements.activation_patterns import ActivationPatterns

BINS = 10  # of the share of inputs for which a unit is active (ours)
# Feedforward networks without batch normalisation that decide: the paper names no biases of its figures 3 and 4, and
# of figure 1a the small ones.
DECIDING = ("feedforward", "feedforward, small biases")
_TOGETHER = 10  # networks run as one
COLUMNS = ["run", "quantity", "layer", "unit", "x", "value"]
Row = tuple[int, str, int, int, float, float]


@dataclass(frozen=True)
class Settings:
    """How many networks of each kind, their size, the grid, and the layers that claims and figure 4 look at."""

    runs: int = 100
    seed: int = 0
    width: int = 100
    depth: int = 50
    points: int = POINTS
    layers: tuple[int, ...] = (1, 10, 50)

    def __post_init__(self) -> None:
        # Layer 0 would be read as the last one.
        within = all(1 <= layer <= self.depth for layer in self.layers)
        require(
            within and list(self.layers) == sorted(set(self.layers)),
            f"layers is {', '.join(map(str, self.layers))}, but these networks have layers 1 to {self.depth}; "
            "name some of them, in rising order.",
        )

    @property
    def text_bias(self) -> float:
        """The deviation of biases by section 1.1's rule, σ² = 1/N."""
        return float(self.width**-0.5)

    @property
    def seeds(self) -> tuple[int, ...]:
        """One for each network of a kind."""
        return tuple(run_seeds(self.seed, self.runs))


@dataclass(frozen=True)
class Patterns:
    """Settings of a trial: the activation patterns of one architecture's networks; ``layers`` are seen in detail."""

    network: Network
    seeds: tuple[int, ...]
    points: int = POINTS
    layers: tuple[int, ...] = (1, 10, 50)


@trial("balduzzi2017/activation-patterns", version=1)
def patterns(settings: Patterns, bench: Bench) -> pd.DataFrame:
    """Measure which units are active for which points of the grid.

    Every layer has "activation" and "coactivation". The layers in detail also have "activation share" (of units, x
    the bin's lower edge), "run share" (of runs of equal activation, x the power of two at or below their length),
    "run length" and "run spread", the mean length and the deviation of its log₂; and, in the first network, "run",
    the place x where a unit's run starts and whether it is active in it.
    """
    import pandas as pd

    from skiplab.measurements.activation_patterns import activation_patterns

    inputs = grid(settings.points).to(bench.device)
    rows: list[Row] = []
    groups = chunks(settings.seeds, _TOGETHER)
    for place, seeds in enumerate(groups):
        bench.tell(place / len(groups), f"network {seeds[0]}")
        networks = ensemble(settings.network, seeds, bench.device)
        found = activation_patterns(networks, inputs, mode="batch")
        for quantity in ("activation", "coactivation"):
            for seed, values in zip(seeds, getattr(found, quantity).tolist(), strict=True):
                rows += [
                    (seed, quantity, layer, 0, 0.0, value) for layer, value in enumerate(values, start=1)
                ]
        for layer in settings.layers:
            rows += _in_detail(found, layer, seeds)
            if place == 0:
                rows += _raster(found, layer, seeds[0])
    network = settings.network
    # Shares of 256 inputs and 100 units need no more digits, and the table ships with the package.
    small = {"layer": "int16", "unit": "int16", "x": "float32", "value": "float32"}
    frame = pd.DataFrame(rows, columns=COLUMNS).astype(small)
    return frame.assign(model=network.name, biases=network.bias_std)


def _in_detail(found: ActivationPatterns, layer: int, seeds: Sequence[int]) -> Iterator[Row]:
    shares = found.per_unit(layer - 1)
    runs = found.contiguity(layer - 1)
    for seed, share, lengths in zip(seeds, shares, runs, strict=True):
        bins = (share * BINS).floor().clamp(max=BINS - 1).long().bincount(minlength=BINS)
        for number, value in enumerate((bins / bins.sum()).tolist()):
            yield seed, "activation share", layer, 0, number / BINS, value
        logs = lengths.double().log2()
        powers = logs.floor().long().bincount(minlength=found.samples.bit_length())
        for number, value in enumerate((powers / powers.sum()).tolist()):
            yield seed, "run share", layer, 0, float(2**number), value
        yield seed, "run length", layer, 0, 0.0, float(lengths.double().mean())
        yield seed, "run spread", layer, 0, 0.0, float(logs.std(correction=0))


def _raster(found: ActivationPatterns, layer: int, seed: int) -> Iterator[Row]:
    for unit, row in enumerate(found.raster(layer - 1)[0].tolist()):
        for place, active in enumerate(row):
            if place == 0 or active != row[place - 1]:
                yield seed, "run", layer, unit, float(place), float(active)


def kinds(settings: Settings) -> dict[str, Network]:
    """The networks of figures 3 and 4, by the words that verdicts use."""
    depth, width = settings.depth, settings.width
    return {
        "feedforward": plain(depth, width),
        "feedforward + BN": plain(depth, width, "batch"),
        "resnet + BN": residual(depth, width, 1.0),
        "resnet + BN, β = .1": residual(depth, width, 0.1),
        "resnet without BN": residual(depth, width, 1.0, "none"),
        "feedforward, small biases": plain(depth, width, bias_std=settings.text_bias),
        "feedforward, no biases": plain(depth, width, bias_std=0.0),
    }


SCALES = scales(
    Settings, quick={}, smoke={"runs": 2, "width": 12, "depth": 4, "points": 32, "layers": (1, 2, 4)}
)


def draws(results: Results) -> list[Call]:
    """Name a trial for each kind of network."""
    settings = results.settings
    return [
        patterns.of(
            subset(Patterns, settings, network=network, seeds=settings.seeds),
            f"{network.label}, {settings.runs} networks",
        )
        for network in kinds(settings).values()
    ]


def rows_of(results: Results, words: str, quantity: str, **where: Any) -> pd.DataFrame:
    """The rows of a quantity in one kind of network, named as verdicts name it."""
    network = kinds(results.settings)[words]
    where |= {"model": network.name, "biases": network.bias_std}
    return results.rows(patterns, quantity=quantity, **where)


def by_layer(results: Results, words: str, quantity: str) -> pd.DataFrame:
    """A quantity for every run (row) and layer (column)."""
    return rows_of(results, words, quantity).pivot(index="run", columns="layer", values="value")


def histogram(results: Results, words: str, quantity: str, layer: int) -> pd.DataFrame:
    """The share in each bin (column) for each run (row)."""
    rows = rows_of(results, words, quantity, layer=layer)
    return rows.pivot(index="run", columns="x", values="value")
