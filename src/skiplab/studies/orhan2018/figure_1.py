"""Figure 1: elimination, overlap and linear dependence in one layer, and how skips break each."""

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

KINDS = ("zero incoming", "zero outgoing", "overlap", "linear dependence")
NETWORKS = ("plain", "residual")
ROUNDING = 1e-12  # relative; float64 keeps 2e-16, and a few hundred terms are added


@dataclass(frozen=True)
class Settings:
    """How many random layers, their size, and how far along each direction the loss is followed."""

    runs: int
    seed: int = 0
    units: int = 6
    samples: int = 60
    reach: float = 2.0
    steps: int = 21


@dataclass(frozen=True)
class Layers:
    """Settings of one trial: some of the random layers."""

    seeds: tuple[int, ...]
    units: int = 6
    samples: int = 60
    reach: float = 2.0
    steps: int = 21


@trial("orhan2018/singular-layers", version=1)
def layers(settings: Layers, bench: Bench) -> pd.DataFrame:
    """Build the four singular points for every seed, plain and with skips, and measure them exactly.

    ``loss`` is the loss along the first direction relative to its start, at step ``x``; ``deviation`` the largest
    change over all directions and steps; ``curvature`` the dᵀHd that is farthest from 0 (plain) or nearest to it
    (residual), relative to H's largest eigenvalue; ``push`` the smallest ‖Hd‖, relative too; ``eigenvalue`` those of
    the Gauss–Newton block, ``extra_zeros`` its zeros less those of the same layer beside the point.
    """
    import pandas as pd
    import torch

    from skiplab.randomness import torch_generator
    from skiplab.theory.singular.layers import curvature, loss_along, singular_layer, zeros

    steps = torch.linspace(-settings.reach, settings.reach, settings.steps, dtype=torch.float64)
    rows: list[tuple[int, str, str, str, float, float]] = []
    for done, seed in enumerate(settings.seeds):
        bench.tell(done / len(settings.seeds), f"layer {seed}")
        for kind in KINDS:
            for network in NETWORKS:
                size = (settings.units, settings.samples)
                skip = network == "residual"
                at, beside = (
                    singular_layer(
                        kind, *size, torch_generator(seed, "singular layer", kind), beside=off, skip=skip
                    )
                    for off in (False, True)
                )
                here, there = curvature(at), curvature(beside)
                start = float(at.loss(at.weights))
                losses = torch.stack([loss_along(at, d, steps) for d in at.directions]) / start
                change = (losses - 1).abs().amax(1)
                along = (here.along / here.scale).abs()
                found: dict[str, Any] = {
                    "deviation": change.min() if skip else change.max(),
                    "curvature": along.min() if skip else along.max(),
                    "push": here.pushed.min() / here.scale,
                    "extra_zeros": zeros(here.block_spectrum) - zeros(there.block_spectrum),
                    "hessian_scale": here.scale,
                }
                rows += [(seed, kind, network, name, 0.0, float(value)) for name, value in found.items()]
                rows += [
                    (seed, kind, network, "loss", float(x), float(y))
                    for x, y in zip(steps, losses[0], strict=True)
                ]
                shown = here.block_spectrum / here.block_spectrum.max()
                rows += [
                    (seed, kind, network, "eigenvalue", k, float(y)) for k, y in enumerate(shown, start=1)
                ]
    return pd.DataFrame(rows, columns=["draw", "kind", "network", "quantity", "x", "value"])


def draws(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name a trial for every ten layers."""
    seeds = run_seeds(settings.seed, settings.runs)
    size = {name: getattr(settings, name) for name in ("units", "samples", "reach", "steps")}
    return [
        layers.of(
            Layers(tuple(seeds[i : i + 10]), **size), label=f"layers {seeds[i]}–{seeds[i : i + 10][-1]}"
        )
        for i in range(0, settings.runs, 10)
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def _values(frame: pd.DataFrame, kind: str, network: str, quantity: str) -> pd.Series[float]:
    chosen = (frame["kind"] == kind) & (frame["network"] == network) & (frame["quantity"] == quantity)
    return frame.loc[chosen, "value"]


def _plain_is_zero(frame: pd.DataFrame, quantity: str) -> Iterator[Evidence]:
    for kind in KINDS:
        yield Evidence(kind, [_values(frame, kind, "plain", quantity).tolist()])


def _skip_is_not(frame: pd.DataFrame, quantity: str) -> Iterator[Evidence]:
    for kind in KINDS:
        values = _values(frame, kind, "residual", quantity)
        detail = f"the smallest of {len(values)} layers is {values.min():.2g}"
        yield Evidence(kind, [(values <= ROUNDING).astype(float).tolist()], detail=detail)


def _extra_zeros(frame: pd.DataFrame, settings: Settings, network: str) -> Iterator[Evidence]:
    predicted = settings.units if network == "plain" else 0
    for kind in KINDS:
        values = _values(frame, kind, network, "extra_zeros")
        found = ", ".join(f"{count:g}" for count in sorted(values.unique()))
        detail = f"{found} more zeros than beside the point, {predicted} predicted"
        yield Evidence(kind, [(values - predicted).tolist()], detail=detail)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the four layers, the loss along their null directions, and the Gauss–Newton eigenvalues."""
    from skiplab.figures.singular_layers import singular_layer_panels

    def curves(kind: str, quantity: str) -> dict[str, tuple[Any, Any]]:
        chosen = frame[(frame["kind"] == kind) & (frame["quantity"] == quantity)]
        pivots = {
            name: part.pivot(index="draw", columns="x", values="value")
            for name, part in chosen.groupby("network")
        }
        return {str(name): (part.columns.to_numpy(float), part.to_numpy()) for name, part in pivots.items()}

    return singular_layer_panels(
        {kind: curves(kind, "loss") for kind in KINDS}, {kind: curves(kind, "eigenvalue") for kind in KINDS}
    )


STUDY = Study(
    id="orhan2018/figure-1",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, units=4, samples=30, steps=9),
        "quick": Settings(runs=20),
        "paper": Settings(runs=200),
    },
    stages=(draws,),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "plain-flat",
            "At each singular point the plain layer's loss is exactly flat along every predicted direction.",
            lambda frame, settings: _plain_is_zero(frame, "deviation"),
            Exact(rounding=ROUNDING),
            "largest |ΔL|/L",
        ),
        Claim(
            "plain-not-curved",
            "The Hessian has no curvature along them: dᵀHd = 0 in the plain layer.",
            lambda frame, settings: _plain_is_zero(frame, "curvature"),
            Exact(rounding=ROUNDING),
            "largest |dᵀHd|/‖H‖",
        ),
        Claim(
            "plain-extra-zeros",
            "The plain layer's Gauss–Newton block gains one zero for every predicted direction.",
            lambda frame, settings: _extra_zeros(frame, settings, "plain"),
            Exact(),
            "zeros gained − predicted",
        ),
        Claim(
            "skip-not-flat",
            "With skips the loss changes along every one of these directions, in every layer drawn.",
            lambda frame, settings: _skip_is_not(frame, "deviation"),
            Exact(),
            "layers with a flat direction",
        ),
        Claim(
            "skip-curved",
            "With skips dᵀHd is not 0 along any of them, in any layer drawn.",
            lambda frame, settings: _skip_is_not(frame, "curvature"),
            Exact(),
            "layers with a direction without curvature",
        ),
        Claim(
            "skip-no-extra-zeros",
            "With skips the Gauss–Newton block gains no zero.",
            lambda frame, settings: _extra_zeros(frame, settings, "residual"),
            Exact(),
            "zeros gained",
        ),
    ),
    cost={"smoke": 0.3, "quick": 8.0, "paper": 60.0},
    in_tour=True,
)
