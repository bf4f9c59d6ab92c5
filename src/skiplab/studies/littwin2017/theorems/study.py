"""The theorems' settings, claims and declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Greater, Results, Study, scales, subset
from skiplab.studies.littwin2017.theorems import evidence
from skiplab.studies.littwin2017.theorems.cross_entropy import Normalised, forces
from skiplab.studies.littwin2017.theorems.trials import (
    ONE_BLOCK,
    SEVERAL,
    Steps,
    scale_steps,
    shape_name,
    size_steps,
    slope_of_size,
)

ROUNDING = 1e-12
TAYLOR = 1e-4  # of what is predicted: higher orders, and rounding, after the smallest step
WORTH = 0.1  # of the force that theorem 3 has outside of blocks


@dataclass(frozen=True)
class Settings:
    """How many constructed networks, and lengths of steps relative to the norm of the weights."""

    runs: int = 200
    seed: int = 0
    steps: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
    normalised_runs: int = 50
    depth: int = 10
    width: int = 20
    samples: int = 500


def step(results: Results) -> list[Call]:
    """Name trials per kind of network."""
    settings = results.settings
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    calls = [
        forces.of(subset(Normalised, settings, seeds=seeds[: settings.normalised_runs]), "cross-entropy")
    ]
    for first, last, depth in (*ONE_BLOCK, (0, 0, SEVERAL)):
        own, words = Steps(first, last, depth, settings.steps, seeds), shape_name(first, last, depth)
        calls.append(scale_steps.of(own, f"λ, {words}"))
        if first:
            calls.append(size_steps.of(own, f"C, {words}"))
    return [*calls, slope_of_size.of(Steps(0, 0, SEVERAL, (), seeds), "eq 21")]


def figure(results: Results) -> Any:
    """Changes found and predicted, by size of the step and by network."""
    from skiplab.studies.littwin2017.theorems.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/theorems",
    words=__file__,
    settings=scales(
        Settings,
        quick={"normalised_runs": 10, "samples": 200},
        smoke={"runs": 6, "normalised_runs": 2, "depth": 3, "width": 8, "samples": 40, "steps": (1e-3, 1e-7)},
    ),
    stages=(step,),
    figure=figure,
    kind=Exact(),
    unit="cases against",
    claims=(
        Claim(
            "equation-21",
            "∂L/∂C is (1/C) Σ r L_r, L_r being the loss by paths of length r.",
            evidence.slopes,
            kind=Exact(rounding=ROUNDING),
            unit="relative difference",
            source="equation 21",
        ),
        Claim(
            "theorem-3-unskipped",
            "Where ∂L/∂λ_l is 0, a small step of gradient descent makes |λ_l| of layers that are not skipped grow.",
            evidence.outside(*evidence.BLOCKS),
            source="theorem 3",
        ),
        Claim(
            "theorem-3-skipped",
            "|λ_l| of skipped layers grows if ‖g_p‖² + g_pᵀg_m > 0.",
            evidence.inside(evidence.condition, *evidence.BLOCKS),
            source="theorem 3",
        ),
        Claim(
            "longer-paths-push",
            "|λ_l| of skipped layers grows if ‖g_p‖ > ‖g_m‖.",
            evidence.inside(evidence.longer, *evidence.BLOCKS),
            source="ours",
        ),
        Claim(
            "sizes",
            "∂L/∂λ_l becomes −(μ/λ_l)‖g‖² outside of blocks and −(μ/λ_l)(‖g_p‖² + g_pᵀg_m) inside.",
            evidence.sizes(scale_steps, shapes=evidence.BLOCKS),
            kind=Exact(rounding=TAYLOR),
            unit="relative difference",
            source="ours",
        ),
        Claim(
            "several-blocks",
            "What holds of one block holds of each of several: λ_1 grows, and λ_l of a skipped layer where paths "
            "through it push.",
            evidence.several,
            source="section 4.2",
        ),
        Claim(
            "theorem-4",
            "Where ∂L/∂C is 0, it becomes −(μ/C)(m‖g_m‖² + p‖g_p‖² + (m + p) g_pᵀg_m) after a small step.",
            evidence.sizes(size_steps, shapes=evidence.BLOCKS),
            kind=Exact(rounding=TAYLOR),
            unit="relative difference",
            source="theorem 4",
        ),
        Claim(
            "dominant-gradients",
            "If either ‖g_p‖ or ‖g_m‖ dominates, ‖g_m‖ < ‖g_p‖ or ‖g_m‖ > (p/m)‖g_p‖, the scale C grows.",
            evidence.dominant,
            source="ours",
        ),
        Claim(
            "and-only-then",
            "|λ_l| of skipped layers shrinks if ‖g_p‖² + g_pᵀg_m < 0.",
            evidence.inside(evidence.no_condition, *evidence.BLOCKS, evidence.ALL_SKIPPED, shrinks=True),
            source="ours",
        ),
        Claim(
            "at-every-angle",
            "Eq 27 makes C grow at every angle of g_m and g_p exactly if ‖g_m‖ < ‖g_p‖ or ‖g_m‖ > (p/m)‖g_p‖.",
            evidence.every_angle,
            source="ours",
        ),
        Claim(
            "cross-entropy",
            "With cross-entropy and real batch normalisation a step on the weights still pushes λ_l outwards, in the "
            "first layer and in skipped ones.",
            evidence.cross_entropy,
            kind=Greater(worth=WORTH),
            unit="change of −λ_l ∂L/∂λ_l over μ‖g‖²",
            source="ours",
        ),
    ),
    cost={"smoke": 1.0, "quick": 15.0, "paper": 30.0},
)
