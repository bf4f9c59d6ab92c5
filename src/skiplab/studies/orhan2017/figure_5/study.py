"""What figure 5 claims: residual networks learn faster, their two terms are orthogonal, singular sets stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Greater, Results, Study, scales, subset
from skiplab.studies.orhan2017.figure_5.evidence import (
    agrees,
    faster,
    oriented,
    orthogonal,
    starts_faster,
    stays,
)
from skiplab.studies.orhan2017.figure_5.terms import (
    SETS,
    RandomTasks,
    SingularStarts,
    SmallStarts,
    initial_velocity,
    singular_sets,
    terms,
)
from skiplab.studies.orhan2017.figure_5.trials import (
    FOLLOWED,
    ONES_MODES,
    ORTHONORMAL,
    Descents,
    FollowedNetwork,
    agreement,
    descents,
)
from skiplab.studies.orhan2017.smallest_effects import POWERS_OF_TEN, TEN_PERCENT

ROUNDING = 1e-6  # allowed between the ODE and gradient descent extrapolated to a step of zero


@dataclass(frozen=True)
class Settings:
    """How many random starts and tasks; rates, noise and when a network has learned."""

    runs: int = 100
    seed: int = 0
    rate_a: float = 0.1
    rate_b: float = 0.01
    noise: float = 1e-4
    within: float = 0.075
    most: int = 5000
    halvings: int = 7


def flows(results: Results) -> list[Call]:
    """Name the trials: descents, agreement with the ODE, the two terms, the singular sets."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        descents.of(subset(Descents, settings, seeds=seeds), "descents"),
        *(
            agreement.of(
                subset(FollowedNetwork, settings, seeds=seeds, network=network, start=start, until=until),
                f"ODE and descent, {network}, {start}",
            )
            for network, start, until in FOLLOWED
        ),
        terms.of(RandomTasks(seeds), "cooperation and competition"),
        initial_velocity.of(subset(SmallStarts, settings, seeds=seeds), "initial velocity"),
        singular_sets.of(SingularStarts(seeds), "singular sets"),
    ]


def figure(results: Results) -> Any:
    """Draw a¹ and a² from both starts, the steps every start takes, losses, and what should be zero."""
    from skiplab.studies.orhan2017.figure_5.plot import three_layer_panels

    return three_layer_panels(results, ROUNDING)


STUDY = Study(
    id="orhan2017/figure-5",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 20, "halvings": 6},
        smoke={"runs": 2, "most": 800, "halvings": 2},
    ),
    stages=(flows,),
    figure=figure,
    claims=(
        Claim(
            "residual-faster",
            "The weights converge faster in the residual network, from small random weights and from equal norms.",
            faster,
            kind=Greater(worth=TEN_PERCENT),
            unit=POWERS_OF_TEN,
            source="caption",
        ),
        Claim(
            "higher-initial-velocity",
            "The vectors that skips add increase the initial velocity of small random weights.",
            starts_faster,
            kind=Greater(worth=TEN_PERCENT),
            unit=POWERS_OF_TEN,
            source="section 2.3.1",
        ),
        Claim(
            "ode-is-descent",
            "Eqs 8 and 9 are gradient descent on W₁ and W₂ of the plain network with a vanishing step.",
            agrees("corrected", networks=("plain",)),
            kind=Exact(rounding=ROUNDING),
            unit="largest difference of a weight",
            source="equations 8 and 9",
        ),
        Claim(
            "printed-ode-is-descent",
            "Eqs 13, 14, 17 and 18 with the cross terms as printed, which eq 9 has right, are gradient descent too.",
            agrees("printed", starts=(ONES_MODES, ORTHONORMAL)),
            kind=Exact(rounding=ROUNDING),
            unit="largest difference of a weight",
            source="ours",
        ),
        Claim(
            "terms-orthogonal",
            "Cooperative and competitive terms are orthogonal to each other in the residual network at the start, "
            "from zero weights.",
            orthogonal,
            kind=Exact(rounding=1e-12),
            unit="largest |cosine|",
            source="ours",
        ),
        Claim(
            "singular-sets-stay",
            "Once two hidden units of a plain network have equal weights in and out, or one has none, the dynamics "
            "never leaves that set (corrected).",
            stays(*SETS[:2]),
            kind=Exact(rounding=1e-12),
            unit="distance from the set",
            source="ours",
        ),
        Claim(
            "printed-singular-sets-stay",
            "“Once on any of these manifolds, the dynamics never leaves it”, where the text has a_i = a_j or a_i = 0 "
            "for the weights into the units alone.",
            stays(*SETS[2:]),
            kind=Exact(rounding=1e-12),
            unit="distance from the set",
            source="section 2.3.1",
        ),
        Claim(
            "skip-is-a-start",
            "A plain network that starts from a = v, b = u learns exactly as a residual one from zero: the "
            "advantage at equal norms is the orientation of the start.",
            oriented,
            kind=Exact(rounding=1e-12),
            unit="largest difference of a weight",
            source="ours",
        ),
    ),
    cost={"smoke": 1.5, "quick": 12.0, "paper": 35.0},
)
