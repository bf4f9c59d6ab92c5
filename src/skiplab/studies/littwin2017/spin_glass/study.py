"""The spin glass's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Equivalent, Exact, Greater, Results, Study, scales, subset
from skiplab.studies.littwin2017.spin_glass import evidence
from skiplab.studies.littwin2017.spin_glass.trials import Minima, minima


@dataclass(frozen=True)
class Settings:
    """Numbers of spins Λ, and how many random matrices a run draws at each."""

    runs: int = 10
    seed: int = 0
    matrices: int = 100_000
    sizes: tuple[int, ...] = (10, 14, 20, 28, 40, 57, 80)


def draw_matrices(results: Results) -> list[Call]:
    """Name a trial per Λ, large ones first."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        minima.of(subset(Minima, settings, size=size, seeds=seeds), f"Λ = {size}")
        for size in (*sorted(settings.sizes, reverse=True), evidence.CIRCLE)
    ]


def figure(results: Results) -> Any:
    """Rates against Λ, what remains after the known corrections, and effective samples."""
    from skiplab.studies.littwin2017.spin_glass.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/spin-glass",
    words=__file__,
    settings=scales(
        Settings, quick={"matrices": 15_000}, smoke={"runs": 2, "matrices": 500, "sizes": (10, 14, 20)}
    ),
    stages=(draw_matrices,),
    figure=figure,
    unit="θ",
    claims=(
        Claim(
            "equation-33",
            "For index 0, minima, the logarithm of the mean number of critical points, per spin, tends to the θ of "
            "eq 33, which the paper quotes from Auffinger & Ben Arous, for pure models and mixtures.",
            evidence.limits,
            kind=Equivalent(margin=evidence.TOLERANCE),
            source="equation 33",
        ),
        Claim(
            "far-from-the-limit",
            "At the largest Λ the rate itself is above θ by more than the tolerance, so that comparing the two says "
            "nothing of eq 33.",
            evidence.finite,
            kind=Greater(worth=evidence.TOLERANCE),
            source="ours",
        ),
        Claim(
            "minima-on-a-circle",
            "For Λ = 2 the formula with random matrices gives the minima that Rice’s formula has in closed form.",
            evidence.on_a_circle,
            kind=Equivalent(margin=0.01),
            unit="relative difference",
            source="ours",
        ),
        Claim(
            "enough-matrices",
            f"Every mean is that of at least {evidence.ENOUGH} effectively equal matrices.",
            evidence.enough,
            kind=Exact(),
            unit="matrices that lack",
            source="ours",
        ),
    ),
    cost={"smoke": 0.3, "quick": 20.0, "paper": 130.0},
)
