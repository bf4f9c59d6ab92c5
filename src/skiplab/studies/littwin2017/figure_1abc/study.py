"""Figure 1a–c's settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Results, Study, scales, subset
from skiplab.studies.littwin2017.figure_1abc import evidence
from skiplab.studies.littwin2017.figure_1abc.trials import (
    Depths,
    EveryLength,
    RandomPeaks,
    by_depth,
    every_length,
    random_peaks,
)

NOTHING_LEFT = 1e-9  # of Σ ε_r² = 1
ROUNDING = 1e-12


@dataclass(frozen=True)
class Settings:
    """The figure's β, depths up to where limits are judged, and random cases listed exactly."""

    runs: int = 200
    seed: int = 0
    betas: tuple[float, ...] = (0.1, 0.5, 2.0)
    depths: tuple[int, ...] = (10, 100, 1000, 10_000, 100_000, 1_000_000)
    deltas: tuple[float, ...] = (0.02, 0.01, 0.005)
    listed_depths: tuple[int, ...] = (10, 100, 1000)
    deepest: int = 400


def compute(results: Results) -> list[Call]:
    """Name a trial of random peaks, one per β and one per depth of lemma 4."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    return [
        random_peaks.of(RandomPeaks(seeds, settings.deepest), f"{settings.runs} random peaks"),
        *(by_depth.of(subset(Depths, settings, beta=beta), f"β = {beta:g}") for beta in settings.betas),
        *(every_length.of(EveryLength(p), f"every length of {p}") for p in settings.listed_depths),
    ]


def figure(results: Results) -> Any:
    """ε_r at three β as in the paper, and below them theorems 1 and 2."""
    from skiplab.studies.littwin2017.figure_1abc.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/figure-1abc",
    words=__file__,
    settings=scales(
        Settings,
        quick={},
        smoke={
            "runs": 4,
            "depths": (10, 100, 100_000),
            "deltas": (0.02,),
            "listed_depths": (10,),
            "deepest": 60,
        },
    ),
    stages=(compute,),
    figure=figure,
    kind=Exact(),
    unit="violations",
    claims=(
        Claim(
            "theorem-1",
            "The length with the largest ε_r tends to β/(1 + β) of the depth, from which it is at most a layer away.",
            evidence.peak_rows("too far", "too_far"),
            unit="layers beyond 1",
            source="theorem 1",
        ),
        Claim(
            "theorem-2",
            "The weight Σ ε_r² of lengths within p(β/(1 + β) ± δ) tends to 1 with depth, however small δ.",
            evidence.concentrated,
            kind=Exact(rounding=NOTHING_LEFT),
            unit="weight outside",
            source="theorem 2",
        ),
        Claim(
            "lemma-4",
            "Every length from 1 to p is the one with the largest ε_r for some scale C of the weights.",
            evidence.each_length("missed"),
            unit="lengths missed",
            source="lemma 4",
        ),
        Claim(
            "large-beta",
            "At constant depth and large enough β the longest paths have the largest ε_r; at constant β and large "
            "enough depth shorter ones do.",
            evidence.large_beta,
            unit="layers",
            source="section 3",
        ),
        Claim(
            "wide-networks",
            "In wide networks the longest paths have the largest ε_r, if the root mean square C of weights stays the "
            "same.",
            evidence.wide,
            unit="layers from p",
            source="ours",
        ),
        Claim(
            "start-below-half",
            "With C = 1/√n and Λ = n, β is ρ, and the largest ε_r of deep networks is below half the depth.",
            evidence.start,
            source="section 3",
        ),
        Claim(
            "start-mostly-short",
            "With that initialisation the loss is mostly that of paths shorter than half the depth: they have more "
            "than half of Σ ε_r², at 100 layers and in the limit.",
            evidence.start_mass,
            unit="weight that lacks",
            source="ours",
        ),
        Claim(
            "legendre",
            "Σ C(p, r)² β^2r, from r = 0 on, is (1 − β²)^p times the Legendre polynomial of (1 + β²)/(1 − β²).",
            evidence.legendre,
            kind=Exact(rounding=ROUNDING),
            unit="relative difference",
            source="ours",
        ),
        Claim(
            "peak-formula",
            "The largest ε_r is at ⌊pβ/(1 + β)⌋ + 1 exactly: at 10, 34 and 67 of 100 layers for the figure’s β.",
            evidence.peak_rows("elsewhere", "elsewhere"),
            unit="peaks elsewhere",
            source="ours",
        ),
        Claim(
            "tie",
            "Where pβ/(1 + β) is whole, as theorems 1 and 2 assume, ε_r is largest at that length and at the next.",
            evidence.ties,
            source="ours",
        ),
        Claim(
            "sharp-ranges",
            "Length k has the largest ε_r exactly for (k − 1)/(p − k + 1) ≤ β ≤ k/(p − k), and p from β = p − 1 on.",
            evidence.each_length("blunt"),
            unit="lengths with another range",
            source="ours",
        ),
        Claim(
            "width-of-the-band",
            "From 100 layers on path lengths have the standard deviation √(pα(1 − α)/2), α = β/(1 + β), within 1 %.",
            evidence.narrow,
            kind=Exact(rounding=0.01),
            unit="relative difference",
            source="ours",
        ),
    ),
    cost={"smoke": 0.3, "quick": 8.0, "paper": 8.0},
)
