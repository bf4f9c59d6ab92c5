"""Figure 3: how often rectifiers are active, and co-active for two inputs, by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.checks import require
from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Equivalent, Evidence, Greater, Value
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench, Call, trial
from skiplab.studies.balduzzi2017.networks import POINTS, Network, ensemble, grid, plain, residual

if TYPE_CHECKING:
    import pandas as pd

    from skiplab.measurements.activation_patterns import ActivationPatterns

BINS = 10  # of the share of inputs for which a unit is active (ours)
_TOGETHER = 10  # networks run as one
COLUMNS = ["run", "quantity", "layer", "unit", "x", "value"]
Row = tuple[int, str, int, int, float, float]


@dataclass(frozen=True)
class Settings:
    """How many networks of each kind, their size, the grid, and the layers that claims and figure 4 look at."""

    runs: int
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
    for start in range(0, len(settings.seeds), _TOGETHER):
        bench.tell(start / len(settings.seeds), f"network {settings.seeds[start]}")
        seeds = settings.seeds[start : start + _TOGETHER]
        networks = ensemble(settings.network, seeds, bench.device)
        found = activation_patterns(networks, inputs, statistics="batch")
        for quantity in ("activation", "coactivation"):
            for seed, values in zip(seeds, getattr(found, quantity).tolist(), strict=True):
                rows += [
                    (seed, quantity, layer, 0, 0.0, value) for layer, value in enumerate(values, start=1)
                ]
        for layer in settings.layers:
            rows += _in_detail(found, layer, seeds)
            if start == 0:
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


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial for each kind of network."""
    return [
        patterns.of(
            Patterns(network, settings.seeds, settings.points, settings.layers),
            f"{network.label}, {settings.runs} networks",
        )
        for network in kinds(settings).values()
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows without what only figure 4 needs."""
    return tables[0][tables[0]["quantity"].isin(("activation", "coactivation"))].reset_index(drop=True)


def rows_of(frame: pd.DataFrame, network: Network, quantity: str) -> pd.DataFrame:
    """The rows of a quantity in one kind of network."""
    rows = (frame["model"] == network.name) & (frame["biases"] == network.bias_std)
    return frame[rows & (frame["quantity"] == quantity)]


def by_layer(frame: pd.DataFrame, network: Network, quantity: str) -> pd.DataFrame:
    """A quantity for every run (row) and layer (column)."""
    return rows_of(frame, network, quantity).pivot(index="run", columns="layer", values="value")


def _half(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for words, network in kinds(settings).items():
        wide = by_layer(frame, network, "activation")
        headline = words in ("feedforward", "feedforward + BN")
        yield Evidence(f"{words}, all layers", [wide.mean(axis=1).tolist()], 0.5, headline)
        yield Evidence(f"{words}, layer {settings.depth}", [wide[settings.depth].tolist()], 0.5, False)


def _quarter(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for words in ("feedforward + BN", "resnet + BN", "resnet + BN, β = .1"):
        wide = by_layer(frame, kinds(settings)[words], "coactivation")
        yield Evidence(
            f"{words}, all layers", [wide.mean(axis=1).tolist()], 0.25, headline=words == "feedforward + BN"
        )
        yield Evidence(f"{words}, layer {settings.depth}", [wide[settings.depth].tolist()], 0.25, False)


def _climbs(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    further = ("resnet without BN", "feedforward, small biases", "feedforward, no biases")
    for words in ("feedforward", *further):
        wide = by_layer(frame, kinds(settings)[words], "coactivation")
        for lower, upper in zip(settings.layers, settings.layers[1:], strict=False):
            gap = wide[upper] - wide[lower]
            detail = f"from {wide[lower].mean():.3f} to {wide[upper].mean():.3f}"
            where = f"{words}, layer {upper} − layer {lower}"
            yield Evidence(where, [gap.tolist()], headline=words == "feedforward", detail=detail)


def _same(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    named = kinds(settings)
    for words in ("resnet + BN", "resnet + BN, β = .1"):
        for quantity in ("activation", "coactivation"):
            one, two = (
                by_layer(frame, named[each], quantity).mean(axis=1).tolist()
                for each in (words, "feedforward + BN")
            )
            yield Evidence(f"{words}: {quantity}", [one, two], headline=words == "resnet + BN")


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw activation and coactivation by layer, without and with BN, in feedforward networks and resnets."""
    from skiplab.figures.activation_rasters import activation_curves
    from skiplab.figures.shattering_palette import network_name

    named = kinds(settings)
    panels = {
        network_name(None): ("feedforward", "feedforward + BN"),
        f"{network_name(1.0)} (not shown in the paper)": ("resnet without BN", "resnet + BN"),
    }
    return activation_curves(
        {
            title: {
                (quantity, with_bn): by_layer(frame, named[words], quantity).to_numpy()
                for quantity in ("activation", "coactivation")
                for with_bn, words in enumerate(pair)
            }
            for title, pair in panels.items()
        }
    )


SCALES = {
    "smoke": Settings(runs=2, width=12, depth=4, points=32, layers=(1, 2, 4)),
    "quick": Settings(runs=100),
    "paper": Settings(runs=100),
}
STUDY = Study(
    id="balduzzi2017/figure-3",
    words=__file__,
    settings=SCALES,
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "half-active",
            "Neurons are active for half their inputs on average, with or without batch normalisation.",
            _half,
            Value(tolerance=0.1),
            "share of inputs",
        ),
        Claim(
            "quarter-coactive-with-bn",
            "With batch normalisation neurons are co-active for a quarter of distinct pairs of inputs.",
            _quarter,
            Value(tolerance=0.1),
            "share of pairs",
        ),
        Claim(
            "coactive-climbs-without-bn",
            "Without batch normalisation the co-active proportion climbs with depth.",
            _climbs,
            Greater(),
            "share of pairs",
        ),
        Claim(
            "resnets-the-same",
            "Resnets with batch normalisation behave the same as feedforward networks with it.",
            _same,
            Equivalent(margin=0.025),
            "share",
        ),
    ),
    cost={"smoke": 0.5, "quick": 40.0, "paper": 40.0},
)
