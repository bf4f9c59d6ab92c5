"""Figure 1 (and 2a, b): permutation and rescaling of a network's weights, and how skips break both symmetries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017.changed_networks import (
    COMMON,
    NETWORKS,
    OUTER,
    SYMMETRIES,
    RandomNetworks,
    changed_networks,
)

if TYPE_CHECKING:
    import pandas as pd

WITH_SKIPS = ("residual", "hyper-residual", "path-residual")
ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and a few hundred terms are added in each layer
ONE_PERCENT = 0.01
AT_ONCE = 25  # networks a trial


@dataclass(frozen=True)
class Settings:
    """How many random networks of each kind, their size, and how often each is changed."""

    runs: int
    seed: int = 0
    inputs: int = 20
    width: int = 32
    depth: int = 10
    outputs: int = 10
    samples: int = 200
    draws: int = 10
    factor: float = 10.0


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name the trials, some networks of every kind in each."""
    seeds = run_seeds(settings.seed, settings.runs)
    names = ("inputs", "width", "depth", "outputs", "samples", "draws", "factor")
    size = {name: getattr(settings, name) for name in names}
    parts = [tuple(seeds[i : i + AT_ONCE]) for i in range(0, settings.runs, AT_ONCE)]
    return [
        changed_networks.of(RandomNetworks(part, **size), f"networks {part[0]}–{part[-1]}") for part in parts
    ]


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def changes(frame: pd.DataFrame, network: str, symmetry: str) -> pd.Series[float]:
    """Relative changes of the outputs, one row a draw, with the networks' seeds."""
    rows = frame[(frame["network"] == network) & (frame["symmetry"] == symmetry)]
    return rows.set_index("seed")["change"]


def kept(frame: pd.DataFrame, symmetry: str, named: Sequence[str]) -> Iterator[Evidence]:
    """All changes of the outputs, which are 0 up to rounding if the symmetry holds."""
    for network in named:
        found = changes(frame, network, symmetry)
        yield Evidence(network, [found.tolist()], detail=f"{found.index.nunique()} networks")


def broken(frame: pd.DataFrame, symmetry: str, named: Sequence[str]) -> Iterator[Evidence]:
    """Mean change of each network's outputs, one number a network."""
    for network in named:
        found = changes(frame, network, symmetry)
        means = found.groupby(level=0).mean()
        unmoved = int((found <= ROUNDING).sum())
        detail = (
            f"{unmoved} of {len(found)} changes left the outputs as they were; the least {found.min():.2g}"
        )
        yield Evidence(network, [means.tolist()], detail=detail)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the two changes, plain and with skips, and how far they move the outputs of random networks."""
    from skiplab.figures.symmetries import symmetry_panels

    found = {
        symmetry: {
            name: changes(frame, name, symmetry).groupby(level=0).mean().to_numpy() for name in NETWORKS
        }
        for symmetry in SYMMETRIES
    }
    return symmetry_panels(found, {"permutation": "residual", "rescaling": "hyper-residual"})


STUDY = Study(
    id="orhan2017/figure-1",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, inputs=4, width=8, depth=3, outputs=3, samples=20, draws=3),
        "quick": Settings(runs=25),
        "paper": Settings(runs=100),
    },
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "plain-permutation",
            "Permuting the units of a layer never changes a plain network's function, whatever its units.",
            lambda frame, _: kept(frame, "permutation", ("plain", "plain, linear", "plain, tanh")),
            Exact(rounding=ROUNDING),
            "largest relative change",
        ),
        Claim(
            "plain-rescaling",
            "Rescaling two layers against each other never changes a plain network's function if its units are "
            "ReLUs or linear.",
            lambda frame, _: kept(frame, "rescaling", ("plain", "plain, linear")),
            Exact(rounding=ROUNDING),
            "largest relative change",
        ),
        Claim(
            "skips-break-permutation",
            "Skips between layers break the permutation symmetry: outputs move by more than 1 %.",
            lambda frame, _: broken(frame, "permutation", ("residual", "hyper-residual")),
            Greater(margin=-ONE_PERCENT),
            "mean relative change",
        ),
        Claim(
            "skips-break-rescaling",
            "Skips between layers break the rescaling symmetry, adjacent ones too: outputs move by more than 1 %.",
            lambda frame, _: broken(frame, "rescaling", WITH_SKIPS),
            Greater(margin=-ONE_PERCENT),
            "mean relative change",
        ),
        Claim(
            "path-residual-permutation",
            "Path-residual networks, whose units all get the same skips, keep the permutation symmetry.",
            lambda frame, _: kept(frame, "permutation", ("path-residual",)),
            Exact(rounding=ROUNDING),
            "largest relative change",
        ),
        Claim(
            "common-permutation-stays",
            "Ours: permuting all hidden layers alike survives identity skips.",
            lambda frame, _: kept(frame, COMMON, ("residual",)),
            Exact(rounding=ROUNDING),
            "largest relative change",
        ),
        Claim(
            "far-skips-break-common-permutation",
            "Ours: it does not survive the dense skips of hyper-residual networks: outputs move by more than 1 %.",
            lambda frame, _: broken(frame, COMMON, ("hyper-residual",)),
            Greater(margin=-ONE_PERCENT),
            "mean relative change",
        ),
        Claim(
            "outer-rescaling-stays",
            "Ours: one rescaling survives the skips, that of the first matrix against the last.",
            lambda frame, _: kept(frame, OUTER, WITH_SKIPS),
            Exact(rounding=ROUNDING),
            "largest relative change",
        ),
        Claim(
            "rescaling-needs-homogeneous-units",
            "Ours: rescaling needs units with f(gx) = g f(x); with tanh a plain network's outputs move by more "
            "than 1 %.",
            lambda frame, _: broken(frame, "rescaling", ("plain, tanh",)),
            Greater(margin=-ONE_PERCENT),
            "mean relative change",
        ),
    ),
    cost={"smoke": 0.5, "quick": 5.0, "paper": 15.0},
    in_tour=False,
)
