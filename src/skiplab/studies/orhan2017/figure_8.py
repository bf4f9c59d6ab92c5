"""Figure 8: gradient norms by layer, and one batch normalisation in the middle of the network."""

from __future__ import annotations

from typing import Any

from skiplab.experiments.gains import (
    FLAT,
    ONE_POINT,
    PLAIN,
    RESIDUAL,
    RESIDUAL_FLAT,
    compare,
    log_decay,
    of_one,
)
from skiplab.reproduction import Claim, Equivalent, Greater, Results, Study, scales
from skiplab.studies.orhan2017.bias_grid import QUICK, SMOKE, SYMM_BREAK, WITH_BN, GridSettings, experiment

EXPERIMENT = experiment(PLAIN, RESIDUAL, SYMM_BREAK, WITH_BN)


def figure(results: Results) -> Any:
    """Gradient norms by layer at best gains and at a common one, and learning curves."""
    from skiplab.experiments.gain_figures import norms_and_curves

    return norms_and_curves(results, {model.name: model for model in EXPERIMENT.models})


STUDY = Study(
    id="orhan2017/figure-8",
    words=__file__,
    settings=scales(GridSettings, quick=QUICK, smoke=SMOKE, data=("cifar10",)),
    stages=EXPERIMENT.stages,
    figure=figure,
    claims=(
        RESIDUAL_FLAT,
        Claim(
            "plain-decays",
            "Gradient norms of plain networks decay towards the input (log norm falls by > ln 10).",
            of_one(PLAIN, log_decay),
            kind=Greater(margin=-FLAT),
            unit="log norm",
        ),
        Claim(
            "symm-break-decays",
            "Gradient norms of BiasSymmBreak networks decay towards the input (log norm falls by > ln 10).",
            of_one(SYMM_BREAK, log_decay),
            kind=Greater(margin=-FLAT),
            unit="log norm",
        ),
        Claim(
            "bn-reaches-residual",
            "BiasSymmBreak with one BatchNorm comes within a point of the residual network's accuracy.",
            compare(WITH_BN, RESIDUAL),
            kind=Equivalent(margin=ONE_POINT),
            unit="accuracy",
        ),
    ),
    cost={"quick": 30, "paper": 450},
    paper_device="one H200",
    in_tour=True,
)
