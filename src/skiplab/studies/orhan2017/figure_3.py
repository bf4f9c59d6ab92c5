"""Figure 3: the four toy networks, drawn from the architectures themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import pandas as pd

ARCHITECTURES = ("plain", "residual", "hyper-residual", "path-residual")
EQUATIONS = {
    "plain": "$x_{l+1} = f(W_l x_l)$",
    "residual": r"$x_{l+1} = \frac{2}{3}\,[f(W_l x_l) + x_l]$",
    "hyper-residual": r"$x_{l+1} = \frac{2}{l+2}\,[f(W_l x_l) + x_l + \ldots + x_1]$",
    "path-residual": r"$x_{l+1} = \frac{2}{4}\,[f(W_l x_l) + \mathbf{1} x_l]$",
}
WIDTH = 2
PAPER_WEIGHTS = 23
ROUNDING = 1e-15


@dataclass(frozen=True)
class Settings:
    """At how many random activities the connections are looked for, and the number of hidden layers."""

    runs: int
    seed: int = 0
    depth: int = 5


@dataclass(frozen=True)
class Probe:
    """Settings of the trial: the seeds of the activities and the number of hidden layers."""

    seeds: tuple[int, ...]
    depth: int = 5


@trial("orhan2017/toy-connections", version=1)
def probe(settings: Probe, bench: Bench) -> pd.DataFrame:
    """Find every connection of the four networks, one row each; ``draw`` is the seed of the activities."""
    import dataclasses

    import pandas as pd
    import torch

    from skiplab.architectures.toy import TOY_NETS
    from skiplab.randomness import torch_generator
    from skiplab.subjects.direct_connections import connections

    rows = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"activities {seed}")
        size = (settings.depth + 1, WIDTH)
        drawn = torch.rand(size, generator=torch_generator(seed, "figure 3"), dtype=torch.float64)
        for name in ARCHITECTURES:
            found = connections(TOY_NETS[name](settings.depth), list(0.5 + drawn))
            rows += [{"draw": seed, "architecture": name, **dataclasses.asdict(each)} for each in found]
    return pd.DataFrame(rows)


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name the one trial."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [probe.of(Probe(seeds, settings.depth), "connections of the four networks")]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trial's rows as they are."""
    return tables[0]


def chosen(frame: pd.DataFrame, architecture: str, kind: str) -> pd.DataFrame:
    """The connections of one kind in one network."""
    return frame[(frame["architecture"] == architecture) & (frame["kind"] == kind)]


def expected_skips(architecture: str, depth: int) -> set[tuple[int, int, int, int]]:
    """Skips (layer and unit from which, to which) that the equations say: eqs 1–4 for x_2 … x_{depth+1}."""
    pairs = [(layer, layer + 1) for layer in range(1, depth + 1)]
    units = range(1, WIDTH + 1)
    match architecture:
        case "residual":
            return {(before, unit, after, unit) for before, after in pairs for unit in units}
        case "hyper-residual":
            return {
                (before, unit, after, unit)
                for after in range(2, depth + 2)
                for before in range(1, after)
                for unit in units
            }
        case "path-residual":
            return {
                (before, one, after, other) for before, after in pairs for one in units for other in units
            }
        case _:
            return set()


def factor(architecture: str, after: int) -> float:
    """What the equation multiplies x_after's connections by; l = after − 1."""
    skips = {"plain": 0, "residual": 1, "hyper-residual": after - 1, "path-residual": WIDTH}[architecture]
    return 2 / (2 + skips)


def _counts(frame: pd.DataFrame, architecture: str, kind: str, settings: Settings) -> list[int]:
    rows = chosen(frame, architecture, kind)
    seeds = run_seeds(settings.seed, settings.runs)
    return [int((rows["draw"] == seed).sum()) for seed in seeds]


def _weights(frame: pd.DataFrame, settings: Settings, expected: int) -> Iterator[Evidence]:
    for name in ARCHITECTURES:
        counts = _counts(frame, name, "weight", settings)
        yield Evidence(
            name, [[count - expected for count in counts]], detail=f"{counts[0]} weights, {expected} said"
        )


def _printed(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    yield from _weights(frame, settings, PAPER_WEIGHTS)


def _by_layers(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    yield from _weights(frame, settings, WIDTH * WIDTH * settings.depth + WIDTH)


def _skips(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Skips that are missing or too many."""
    for name in ARCHITECTURES:
        expected = expected_skips(name, settings.depth)
        rows = chosen(frame, name, "skip")
        columns = ["before", "source", "after", "target"]
        wrong = []
        for seed in run_seeds(settings.seed, settings.runs):
            found = set(rows.loc[rows["draw"] == seed, columns].itertuples(index=False, name=None))
            wrong.append(len(found ^ expected))
        yield Evidence(name, [wrong], detail=f"{_counts(frame, name, 'skip', settings)[0]} skips")


def _factors(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for name in ARCHITECTURES:
        rows = frame[(frame["architecture"] == name) & frame["kind"].isin(("weight", "skip"))]
        rows = rows[rows["after"] <= settings.depth + 1]
        apart = [
            strength - factor(name, after)
            for after, strength in zip(rows["after"], rows["strength"], strict=True)
        ]
        yield Evidence(name, [apart])


def _equalised(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    for name in ARCHITECTURES:
        rows = frame[(frame["architecture"] == name) & frame["kind"].isin(("weight", "skip"))]
        rows = rows[rows["after"] <= settings.depth + 1]
        sums = rows.groupby(["draw", "after", "target"])["strength"].sum()
        detail = f"{len(rows) // settings.runs} connections into hidden units"
        yield Evidence(name, [(sums - WIDTH).tolist()], detail=detail)


def _after_the_units(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Connections by which what is left when all units are silent differs from the skips."""
    for name in ARCHITECTURES:
        parts = [
            set(
                chosen(frame, name, kind)
                .drop(columns=["kind", "architecture"])
                .itertuples(index=False, name=None)
            )
            for kind in ("skip", "left when silent")
        ]
        yield Evidence(
            name, [[float(len(parts[0] ^ parts[1]))]], detail=f"{len(parts[1]) // settings.runs} left"
        )


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the networks from the connections found at the first activities."""
    from skiplab.figures.network_diagrams import network_panels

    first = frame[frame["draw"] == run_seeds(settings.seed, settings.runs)[0]]

    def edges(architecture: str, kind: str) -> list[tuple[int, int, int, int]]:
        rows = chosen(first, architecture, kind)
        return list(rows[["before", "source", "after", "target"]].itertuples(index=False, name=None))

    networks = {name: (edges(name, "weight"), edges(name, "skip")) for name in ARCHITECTURES}
    return network_panels(networks, [WIDTH] * (settings.depth + 1) + [1], EQUATIONS)


STUDY = Study(
    id="orhan2017/figure-3",
    words=__file__,
    settings={"smoke": Settings(runs=1), "quick": Settings(runs=5), "paper": Settings(runs=20)},
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "weights-printed",
            "As the text says, each network has 23 binary parameters.",
            _printed,
            Exact(),
            "weights found − said",
        ),
        Claim(
            "weights",
            "Corrected: each has 5·4 + 2 = 22 weights.",
            _by_layers,
            Exact(),
            "weights found − said",
        ),
        Claim(
            "skips",
            "Skips are where eqs 1 to 4 put them: none, 10, 30 and 20.",
            _skips,
            Exact(),
            "skips missing or too many",
        ),
        Claim(
            "factors",
            "Connections carry the factors of eqs 1 to 4: 1, 2/3, 2/(l + 2) and 2/4.",
            _factors,
            Exact(rounding=ROUNDING),
            "deviation",
        ),
        Claim(
            "equalised",
            "Normalisation gives every hidden unit the same total of incoming connections, two, in all four "
            "networks.",
            _equalised,
            Exact(rounding=ROUNDING),
            "total − 2",
        ),
        Claim(
            "skips-after-the-units",
            "Weights act before the nonlinearity, skips after it: silent units leave the skips and nothing else.",
            _after_the_units,
            Exact(),
            "connections that differ",
        ),
    ),
    cost={"smoke": 0.1, "quick": 1.5, "paper": 2.0},
)
