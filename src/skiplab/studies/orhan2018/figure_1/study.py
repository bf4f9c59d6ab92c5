"""What figure 1 claims: a plain layer's loss is flat at its singular points, and skips bend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Exact, Results, Study, chunks, scales, subset
from skiplab.studies.orhan2018.figure_1.evidence import (
    ROUNDING,
    plain_is_zero,
    plain_zeros_gained,
    skip_is_not,
    skip_zeros_gained,
)
from skiplab.studies.orhan2018.figure_1.trials import SingularLayers, layers


@dataclass(frozen=True)
class Settings:
    """How many random layers, their size, and how far along each direction the loss is followed."""

    runs: int = 200
    seed: int = 0
    units: int = 6
    samples: int = 60
    reach: float = 2.0
    steps: int = 21


def draws(results: Results) -> list[Call]:
    """Name a trial for every ten layers."""
    settings = results.settings
    return [
        layers.of(subset(SingularLayers, settings, seeds=ten), f"layers {ten[0]}–{ten[-1]}")
        for ten in chunks(run_seeds(settings.seed, settings.runs), 10)
    ]


def figure(results: Results) -> Any:
    """Draw the four layers, the loss along their null directions, and the Gauss–Newton eigenvalues."""
    from skiplab.studies.orhan2018.figure_1.plot import singular_layer_panels

    return singular_layer_panels(results)


STUDY = Study(
    id="orhan2018/figure-1",
    words=__file__,
    settings=scales(Settings, quick={"runs": 20}, smoke={"runs": 2, "units": 4, "samples": 30, "steps": 9}),
    stages=(draws,),
    figure=figure,
    claims=(
        Claim(
            "plain-flat",
            "At each singular point the plain layer's loss is exactly flat along every predicted direction.",
            plain_is_zero("deviation"),
            kind=Exact(rounding=ROUNDING),
            unit="largest |ΔL|/L",
        ),
        Claim(
            "plain-not-curved",
            "The Hessian has no curvature along them: dᵀHd = 0 in the plain layer.",
            plain_is_zero("curvature"),
            kind=Exact(rounding=ROUNDING),
            unit="largest |dᵀHd|/‖H‖",
            source="ours",
        ),
        Claim(
            "plain-extra-zeros",
            "The plain layer's Gauss–Newton block gains one zero for every predicted direction.",
            plain_zeros_gained,
            kind=Exact(),
            unit="zeros gained − predicted",
            source="ours",
        ),
        Claim(
            "skip-not-flat",
            "With skips the loss changes along every one of these directions, in every layer drawn.",
            skip_is_not("deviation"),
            kind=Exact(),
            unit="layers with a flat direction",
        ),
        Claim(
            "skip-curved",
            "With skips dᵀHd is not 0 along any of them, in any layer drawn.",
            skip_is_not("curvature"),
            kind=Exact(),
            unit="layers with a direction without curvature",
            source="ours",
        ),
        Claim(
            "skip-no-extra-zeros",
            "With skips the Gauss–Newton block gains no zero.",
            skip_zeros_gained,
            kind=Exact(),
            unit="zeros gained",
            source="ours",
        ),
    ),
    cost={"smoke": 0.3, "quick": 8.0, "paper": 60.0},
    in_tour=True,
)
