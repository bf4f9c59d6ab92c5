"""What figure 2 claims: where the overlap attracts, that learning slows near it, and what reduced flows say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import (
    Call,
    Claim,
    Equivalent,
    Exact,
    Greater,
    Results,
    Study,
    chunks,
    scales,
    subset,
)
from skiplab.studies.orhan2018.figure_2.evidence import (
    EXAMPLE,
    OTHERS,
    blind,
    dependence_plateaus,
    frozen,
    plateaus,
    slow,
    stable,
)
from skiplab.studies.orhan2018.figure_2.trials import (
    ThreeUnitToys,
    TwoInputUnits,
    TwoUnitGrid,
    TwoUnitStarts,
    agreement,
    dependence,
    portrait,
    stability,
)

# A plateau is to be seen in a figure if learning speeds up tenfold after it; the caption gives no number.
TENFOLD = Greater(margin=-1.0)


@dataclass(frozen=True)
class Settings:
    """How many random units, starts and toys, and the grid on which reduced and full flow are compared."""

    runs: int = 50
    seed: int = 0
    ratios: tuple[float, ...] = (3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1)
    distances: tuple[float, ...] = (3e-4, 1e-3, 3e-3, 1e-2, 3e-2)
    shares: tuple[float, ...] = (0.2, 0.5, 0.9)
    order: int = 64
    times: int = 200
    halvings: int = 9


def flows(results: Results) -> list[Call]:
    """Name the trials: agreement and portrait for every five runs, and one each for stability and the toy."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = []
    for five in chunks(seeds, 5):
        names = f"{five[0]}–{five[-1]}"
        calls += [
            agreement.of(subset(TwoUnitGrid, settings, seeds=five), f"agreement, units {names}"),
            portrait.of(
                subset(TwoUnitStarts, settings, seeds=five), f"flow near the overlap, starts {names}"
            ),
        ]
    return [
        *calls,
        stability.of(TwoInputUnits(seeds), "stability of the overlap"),
        dependence.of(ThreeUnitToys(seeds, times=settings.times), "linear-dependence toy"),
    ]


def figure(results: Results) -> Any:
    """Draw both fields with the full flow over them, plateau, agreement, and the toy."""
    from skiplab.studies.orhan2018.figure_2.plot import near_singular_panels

    return near_singular_panels(results)


STUDY = Study(
    id="orhan2018/figure-2",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 10, "ratios": (1e-4, 1e-3, 1e-2, 1e-1), "distances": (3e-4, 1e-3, 3e-3, 1e-2)},
        smoke={
            "runs": 2,
            "ratios": (1e-4, 1e-2),
            "distances": (1e-3,),
            "shares": (0.2, 0.9),
            "order": 32,
            "times": 40,
            "halvings": 2,
        },
    ),
    stages=(flows,),
    figure=figure,
    claims=(
        Claim(
            "stable-segment",
            "A segment of the overlap h = 0 is stable: |z| < 1, where H is negative definite.",
            stable(EXAMPLE),
            kind=Exact(),
            unit="values of z at odds",
        ),
        Claim(
            "stability-by-curvature",
            "The overlap attracts where |z| > 1 if H is positive definite, and nowhere if it is indefinite.",
            stable(*OTHERS),
            kind=Exact(),
            unit="values of z at odds",
            source="ours",
        ),
        Claim(
            "plateau",
            "Trajectories that pass near the singularity, from 2 % outside the basin, have a plateau: learning "
            "slows, then speeds up at least tenfold (both numbers are ours).",
            plateaus,
            kind=TENFOLD,
            unit="powers of ten",
        ),
        Claim(
            "dependence-plateau",
            "Trajectories of our three units that start near a linear dependence have a plateau, too: learning "
            "slows, then speeds up at least tenfold.",
            dependence_plateaus,
            kind=TENFOLD,
            unit="powers of ten",
            source="ours",
        ),
        Claim(
            "slow-flow-agrees",
            "The reduced flow in which v and w follow gives the full flow's rates within 1 % at |u| = .001 and "
            "|H|/K = .0001.",
            slow,
            kind=Exact(rounding=0.01),
            unit="largest relative error",
            source="ours",
        ),
        Claim(
            "frozen-flow-agrees",
            "The reduced flow in the form of Wei et al., in which v and w are frozen, gives the full flow's rates "
            "within 10 %.",
            frozen,
            kind=Equivalent(margin=0.1),
            unit="relative error",
            source="ours",
        ),
        Claim(
            "dependence-blind",
            "On the linear-dependence manifold the outgoing weights' null direction gets no gradient.",
            blind,
            kind=Exact(rounding=1e-12),
            unit="share of the gradient",
            source="ours",
        ),
    ),
    cost={"smoke": 2.0, "quick": 25.0, "paper": 240.0},
    in_tour=True,
)
