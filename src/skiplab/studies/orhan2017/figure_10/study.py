"""What is run for figure 10, and what is claimed: accuracy falls with τ, eigenvalues stay on the unit circle."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skiplab.experiments.skip_networks import TAU_QUICK, TAU_SMOKE, TauSettings, train_taus, trend
from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Evidence, Exact, Ordered, Results, Study, scales
from skiplab.studies.orhan2017.note_4 import Matrices, matrices


def train(results: Results) -> list[Call]:
    """The one stage: note 4's matrices, and the networks, which are those of orhan2018's figure 8."""
    settings = results.settings
    draws = tuple(run_seeds(settings.seed, settings.draws))
    calls = [
        matrices.of(
            Matrices(tau, draws, settings.width), f"τ = {tau:g}, {len(draws)} matrices", stage="matrices"
        )
        for tau in settings.taus
    ]
    return calls + train_taus(results)


def off_the_circle(results: Results) -> Iterator[Evidence]:
    """By how much of the bound the farthest eigenvalue of Σ exceeds it, one number per draw."""
    for tau in results.settings.taus:
        farthest, allowed = (
            results.sample(matrices, by="draw", tau=tau, quantity=quantity)
            for quantity in ("deviation", "bound")
        )
        detail = f"{farthest.max():.2g}, bound {allowed.min():.2g}"
        yield Evidence(f"τ = {tau:g}", [(farthest / allowed - 1).clip(min=0)], detail=detail)


def figure(results: Results) -> Any:
    """Spectra and learning curves above (as the paper's); eigenvalues of Σ and accuracy by gain below (ours)."""
    from skiplab.studies.orhan2017.figure_10.plot import panels

    return panels(results)


STUDY = Study(
    id="orhan2017/figure-10",
    words=__file__,
    settings=scales(TauSettings, quick=TAU_QUICK, smoke=TAU_SMOKE),
    stages=(train,),
    figure=figure,
    claims=(
        Claim(
            "accuracy-falls-with-tau",
            "More orthogonal skip matrices perform better though the eigenvalues are fixed: accuracy falls with τ.",
            trend,
            kind=Ordered(),
            unit="P(smaller τ > larger τ)",
        ),
        Claim(
            "unit-circle",
            "The eigenvalues of Σ lie on the unit circle, up to n·eps·cond(T)².",
            off_the_circle,
            kind=Exact(),
            unit="excess over the bound",
            source="ours",
        ),
    ),
    cost={"quick": 50, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
