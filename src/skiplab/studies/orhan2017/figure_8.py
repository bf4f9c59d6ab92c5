"""Figure 8: gradient norms by layer, and one batch normalisation in the middle of the network."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.claim import Claim, Equivalent, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import figure_7, networks, searches
from skiplab.studies.orhan2017.figure_7 import ONE_POINT, PLAIN, RESIDUAL, SYMM_BREAK, Settings

if TYPE_CHECKING:
    import pandas as pd

WITH_BN = ("bias-symm-break-bn", "identity")
MODELS = (PLAIN, RESIDUAL, SYMM_BREAK, WITH_BN)
# Ours: gradients are flat if their norm changes by less than a factor of ten through the whole network.
FLAT = math.log(10)


def search(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """The same searches as figure 7's."""
    return figure_7.search(settings, tables)


def decide(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Figure 7's runs of three models, and BiasSymmBreak + BN at the σ and λ found without BN."""
    seeds = networks.final_seeds(settings.seed, settings.runs)
    apart = networks.search_seeds(settings.seed, settings.search_runs)
    calls = []
    for data in settings.data:
        for model, _ in MODELS:
            chosen = figure_7.members(settings, tables[0], data, model, seeds)
            calls.append(networks.call(settings.training, data, model, chosen, norms_at=settings.norms_at))
        chosen = figure_7.members(settings, tables[0], data, WITH_BN[0], apart)
        calls.append(networks.call(settings.search, data, WITH_BN[0], chosen, what="search"))
    return calls


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Gradient norms by layer at best gains and at a common one, and learning curves."""
    from skiplab.studies.orhan2017.drawing import norms_and_curves

    return norms_and_curves(frame, settings, [(model, model, skip) for model, skip in MODELS])


STUDY = Study(
    id="orhan2017/figure-8",
    item="Figure 8",
    title="Skips keep gradients from vanishing; biases do not, but one batch normalisation makes up for it",
    caption=(
        "Mean norm of the loss gradient in each layer's activities at the start of epoch 3, medians over runs: "
        "(a) each model at its best initial gain, (b) all at the gain nearest Glorot's; (c) training accuracy."
    ),
    settings={
        "smoke": figure_7.SMOKE,
        "quick": replace(figure_7.QUICK, data=("cifar10",)),
        "paper": Settings(data=("cifar10",)),
    },
    stages=(search, decide),
    table=figure_7.table,
    figure=figure,
    claims=(
        Claim(
            "residual-flat",
            "Gradient norms of residual networks do not diminish in earlier layers (log norm changes by < ln 10).",
            lambda frame, settings: searches.of_one(frame, settings, RESIDUAL, searches.log_decay),
            Equivalent(margin=FLAT),
            "log norm",
        ),
        Claim(
            "plain-decays",
            "Gradient norms of plain networks decay towards the input (log norm falls by > ln 10).",
            lambda frame, settings: searches.of_one(frame, settings, PLAIN, searches.log_decay),
            Greater(margin=-FLAT),
            "log norm",
        ),
        Claim(
            "symm-break-decays",
            "Gradient norms of BiasSymmBreak networks decay towards the input (log norm falls by > ln 10).",
            lambda frame, settings: searches.of_one(frame, settings, SYMM_BREAK, searches.log_decay),
            Greater(margin=-FLAT),
            "log norm",
        ),
        Claim(
            "bn-reaches-residual",
            "BiasSymmBreak with one BatchNorm comes within a point of the residual network's accuracy.",
            lambda frame, settings: searches.compare(frame, settings, WITH_BN, RESIDUAL),
            Equivalent(margin=ONE_POINT),
            "accuracy",
        ),
    ),
    cost={"quick": 30, "paper": 450},
    paper_device="one H200",
    choices=(
        "Gradients are measured at the start of epochs 1, 2 and 3 on 500 images; slopes are averaged over these.",
        "Flat means that the norm changes by less than a factor of ten from the top to the bottom layer.",
        "The BatchNorm acts on the pre-activations of the middle layer; σ and λ are those found without it.",
        *figure_7.STUDY.choices,
    ),
    errata=figure_7.STUDY.errata,
    in_tour=True,
)
