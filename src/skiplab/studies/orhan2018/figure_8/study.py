"""What is run for figure 8, and what is claimed: larger τ cost accuracy, though gradients vanish no more."""

from __future__ import annotations

import math
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.skip_networks import (
    TAU_QUICK,
    TAU_SMOKE,
    TauSettings,
    decays_no_more,
    train_taus,
    trend,
)
from skiplab.reproduction import Call, Claim, Exact, Greater, Ordered, Results, Study, scales
from skiplab.studies.orhan2018.effects import TENTH
from skiplab.studies.orhan2018.figure_8.evidence import larger_norms, on_the_circle
from skiplab.studies.orhan2018.skip_spectra import Spectra, skip_spectra

# Ours, as in the earlier version's figure 8: a factor of ten through the whole network is no great change.
TENFOLD = math.log(10)
FLOAT32 = 1e-6  # the table keeps eigenvalues as float32


def train(results: Results) -> list[Call]:
    """The one stage: the matrices' spectra, and the networks of the earlier version's figure 10."""
    settings = results.settings
    draws = tuple(networks.final_seeds(settings.seed, settings.draws))
    spectra = Spectra(settings.taus, draws, settings.width)
    label = f"eigenvalues of skip matrices, {len(draws)} draws"
    return [skip_spectra.of(spectra, label, stage="matrices"), *train_taus(results)]


def figure(results: Results) -> Any:
    """Eigenvalues of covariance, correlation and of Σ itself above; gradient norms and accuracies below."""
    from skiplab.studies.orhan2018.figure_8.plot import panels

    return panels(results)


STUDY = Study(
    id="orhan2018/figure-8",
    words=__file__,
    # Fewer matrices than the earlier version's figure 10 has, for five draws show whether moduli are 1.
    settings=scales(
        TauSettings, quick=TAU_QUICK, smoke=TAU_SMOKE, data=("cifar100-coarse", "cifar10"), draws=5
    ),
    stages=(train,),
    figure=figure,
    claims=(
        Claim(
            "gradients-do-not-vanish",
            "Gradients vanish no more with larger τ than with τ = 0: their log norm falls by at most ln 10 more.",
            decays_no_more,
            kind=Greater(margin=TENFOLD),
            unit="log norm",
        ),
        Claim(
            "norms-are-larger",
            "Gradient norms are larger with less orthogonal matrices than with τ = 0.",
            larger_norms,
            kind=Greater(worth=TENTH),
            unit="log norm",
        ),
        Claim(
            "unit-circle",
            "The eigenvalues of the skip matrices lie on the unit circle, whatever τ is.",
            on_the_circle,
            kind=Exact(rounding=FLOAT32),
            unit="largest distance of a modulus from 1, at most",
            source="ours",
        ),
        Claim(
            "accuracy-falls-with-tau",
            "Accuracy falls as τ grows.",
            trend,
            kind=Ordered(),
            unit="P(smaller τ > larger τ)",
        ),
    ),
    cost={"quick": 50, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
