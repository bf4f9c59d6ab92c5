"""Figure 1f's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Results, Study, scales, subset
from skiplab.studies.littwin2017.figure_1f import evidence
from skiplab.studies.littwin2017.figure_1f.trials import Mixtures, random_mixtures

ROUNDING = 1e-12
DIGIT = 5e-4  # half a unit of the last digit of our values


@dataclass(frozen=True)
class Settings:
    """Depths, the first of which is the figure's, and how many random mixtures a run draws."""

    runs: int = 20
    seed: int = 0
    depths: tuple[int, ...] = (100, 10, 30, 1000)
    mixed_depths: tuple[int, ...] = (3, 4, 10, 30, 100)
    mixtures: int = 300


def draw_mixtures(results: Results) -> list[Call]:
    """Name a trial per depth."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        random_mixtures.of(subset(Mixtures, settings, depth=p, seeds=seeds), f"mixtures up to {p} spins")
        for p in settings.mixed_depths
    ]


def figure(results: Results) -> Any:
    """θ against β, and beside a pure model of the mean depth."""
    from skiplab.studies.littwin2017.figure_1f.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/figure-1f",
    words=__file__,
    settings=scales(
        Settings,
        quick={"runs": 10},
        smoke={"runs": 2, "mixed_depths": (3, 10), "mixtures": 20, "depths": (100, 10)},
    ),
    stages=(draw_mixtures,),
    figure=figure,
    kind=Exact(),
    unit="θ",
    claims=(
        Claim(
            "rises-with-beta",
            "As β grows and the ensemble gets deeper, θ rises: critical points of finite index get more.",
            evidence.steps_down,
            unit="step down of θ",
        ),
        Claim(
            "fewer-than-conventional",
            "At every β there are fewer critical points of finite index than in a conventional network of depth p.",
            evidence.above_pure,
            unit="θ above the pure model’s",
            source="ours",
        ),
        Claim(
            "theorem-5",
            "Of all mixtures of 2 to p interactions the pure p-spin glass has the largest θ.",
            evidence.mixtures("above", "summit"),
            kind=Exact(rounding=1e-6),
            unit="θ above, or 1 − ε_p² at the summit",
            source="theorem 5",
        ),
        Claim(
            "variance",
            "The variance of the Hamiltonian on the sphere is Λ whatever the mixture.",
            evidence.mixtures("variance"),
            kind=Exact(rounding=ROUNDING),
            unit="relative difference",
            source="ours",
        ),
        Claim(
            "alpha-zero",
            "α² = v″ + v′ − v′² is 0 for a single interaction.",
            evidence.alpha,
            unit="α²",
            source="ours",
        ),
        Claim(
            "equation-48",
            "Eq 31 in eq 33 gives eq 48.",
            evidence.mixtures("equation 48"),
            kind=Exact(rounding=ROUNDING),
            source="ours",
        ),
        Claim(
            "values",
            "At p = 100, θ is .306, .810, .993, 1.126, 1.232 for β = .1, .5, 1, 2, 5, and 1.318 in the pure model.",
            evidence.values,
            kind=Exact(rounding=DIGIT),
            source="ours",
        ),
        Claim(
            "mended-proof",
            "Theorem 5 follows from v″/v′ ≤ p − 1 and dθ/dx = (x − 1)²/(2x(x + 1)²) ≥ 0 for x = v″/v′.",
            evidence.mended,
            kind=Exact(rounding=1e-8),
            unit="violation",
            source="ours",
        ),
        Claim(
            "above-mean-depth",
            "A mixture lies above the pure model of its own mean depth: “fewer” is against depth p only.",
            evidence.below_mean_depth,
            unit="θ below the pure model of mean depth",
            source="ours",
        ),
    ),
    cost={"smoke": 0.3, "quick": 15.0, "paper": 15.0},
)
