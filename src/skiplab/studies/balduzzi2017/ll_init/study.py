"""Section 5's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Results, Study, scales
from skiplab.studies.balduzzi2017.ll_init.as_trained import TrainedStarts, as_trained, departures, roundings
from skiplab.studies.balduzzi2017.ll_init.evidence import ROUNDING, bent, linear, zero
from skiplab.studies.balduzzi2017.ll_init.trials import (
    AFTER_HE,
    CONV,
    FULL,
    MIRRORED,
    SLOPED,
    THIN,
    LinearStarts,
    starts,
)


@dataclass(frozen=True)
class Settings:
    """How many networks, their sizes and depths; a thin network of r has 4r + 2 layers."""

    runs: int = 10
    seed: int = 0
    depths: tuple[int, ...] = (2, 10, 50, 200)
    rs: tuple[int, ...] = (1, 12, 49)
    width: int = 200
    filters: int = 16
    side: int = 8
    thin_side: int = 32
    points: int = 257
    trained_runs: int = 5


def networks(results: Results) -> list[Call]:
    """Name a trial for every family and depth, and one for every depth of the networks that figure 6 trains."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    sizes = {
        FULL: (settings.depths, settings.width, 1),
        CONV: (settings.depths, settings.filters, settings.side),
        THIN: (tuple(4 * r + 2 for r in settings.rs), 0, settings.thin_side),
    }
    thin_depths = sizes[THIN][0]
    trained = tuple(run_seeds(settings.seed, settings.trained_runs))
    calls = [
        as_trained.of(TrainedStarts(depth, trained, settings.thin_side), f"as trained, {depth}")
        for depth in thin_depths
    ]
    return calls + [
        starts.of(
            LinearStarts(family, depth, seeds, width, side, settings.points, random_norms=family == THIN),
            f"{family}, {depth}",
        )
        for family, (depths, width, side) in sizes.items()
        for depth in depths
    ]


def figure(results: Results) -> Any:
    """Output and derivative along a line, one column per start, one line per depth."""
    from skiplab.studies.balduzzi2017.ll_init.plot import draw

    return draw(results)


STUDY = Study(
    id="balduzzi2017/ll-init",
    words=__file__,
    item="LL-init",
    source="section 5",
    settings=scales(
        Settings,
        quick={
            "runs": 5,
            "depths": (2, 10, 50),
            "rs": (1, 6, 12),
            "trained_runs": 2,
            "width": 64,
            "thin_side": 16,
            "points": 97,
        },
        smoke={
            "runs": 1,
            "trained_runs": 1,
            "depths": (2, 5),
            "rs": (1,),
            "width": 16,
            "filters": 4,
            "side": 6,
            "thin_side": 16,
            "points": 17,
        },
    ),
    stages=(networks,),
    figure=figure,
    claims=(
        Claim(
            "linear",
            "With mirrored CReLUs or PReLUs with a = 1 the network is exactly linear at initialisation: outputs "
            "superpose, and the gradient is the same at every input.",
            linear,
            kind=Exact(rounding=ROUNDING),
            unit="largest relative departure from superposition, or change of the gradient",
        ),
        Claim(
            "linear-as-trained",
            "Networks as figure 6 trains them, but without their batch normalisation, which multiplies rounding "
            "errors, are exactly linear at initialisation too.",
            departures,
            kind=Exact(rounding=ROUNDING),
            unit="largest relative departure from superposition",
            source="ours",
        ),
        Claim(
            "single-precision",
            "The looks-linear networks that figure 6 trains compute in float32 what they do in float64: their "
            "outputs have a cosine of .99 or more.",
            roundings,
            kind=Exact(rounding=0.01),
            unit="1 − cosine",
            source="ours",
        ),
        Claim(
            "isometry",
            "With orthogonal weights, kernels of one centre tap included, norms are kept exactly.",
            zero("stretch", (FULL, CONV)),
            kind=Exact(rounding=ROUNDING),
            unit="largest |‖net(x)‖/‖x‖ − 1|",
            source="ours",
        ),
        Claim(
            "he-not-linear",
            "Initialised after He et al., no ReLU or CReLU network of the same architecture is linear.",
            bent("departure", *AFTER_HE),
            kind=Exact(),
            unit="networks that are linear",
            source="ours",
        ),
        Claim(
            "one-step",
            "The output ceases to be linear as soon as a weight update makes a CReLU's two blocks W and −W diverge.",
            bent("stepped", MIRRORED),
            kind=Exact(),
            unit="networks still linear after one step",
        ),
        Claim(
            "one-step-prelu",
            "The output ceases to be linear with PReLUs too, as soon as an update moves their slopes off a = 1.",
            bent("stepped", SLOPED),
            kind=Exact(),
            unit="networks still linear after one step",
            source="ours",
        ),
    ),
    cost={"smoke": 0.7, "quick": 20.0, "paper": 600.0},
)
