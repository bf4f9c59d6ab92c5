"""Figure 6 as a study: figure 5's networks, BiasReg with one batch normalisation, and three claims."""

from __future__ import annotations

import math
from dataclasses import dataclass

from skiplab.experiments import networks
from skiplab.experiments.gains import (
    ONE_POINT,
    PLAIN,
    RESIDUAL,
    RESIDUAL_FLAT,
    compare,
)
from skiplab.experiments.networks import GainSettings
from skiplab.reproduction import Claim, Equivalent, Study, scales
from skiplab.studies.orhan2018 import bias_reg
from skiplab.studies.orhan2018.bias_reg import BIAS_REG, WITH_BN
from skiplab.studies.orhan2018.figure_6.evidence import alike
from skiplab.studies.orhan2018.figure_6.plot import figure

EXPERIMENT = bias_reg.experiment(PLAIN, RESIDUAL, BIAS_REG, WITH_BN)
# Ours: the paper's "almost identical" is within 10 %, the margin of every number that a paper gives.
ALIKE = math.log(1.1)


@dataclass(frozen=True)
class Settings(GainSettings):
    """The earlier paper's settings, and how many triples (μ, σ, λ) are tried on how many seeds."""

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 50
    triples: int = 24
    triple_runs: int = 2


STUDY = Study(
    id="orhan2018/figure-6",
    words=__file__,
    settings=scales(
        Settings,
        quick={**networks.QUICK, **bias_reg.QUICK},
        smoke={**networks.SMOKE, **bias_reg.SMOKE},
    ),
    stages=EXPERIMENT.stages,
    figure=figure,
    claims=(
        RESIDUAL_FLAT,
        Claim(
            "bias-reg-as-plain",
            "Gradient norms of plain and BiasReg networks are almost identical initially (within 10 %).",
            alike,
            kind=Equivalent(margin=ALIKE),
            unit="mean |ln ratio|",
        ),
        Claim(
            "bn-approaches-residual",
            "BiasReg with one BatchNorm comes within a point of the residual network's accuracy.",
            compare(WITH_BN, RESIDUAL),
            kind=Equivalent(margin=ONE_POINT),
            unit="accuracy",
        ),
    ),
    cost={"quick": 30, "paper": 550},
    paper_device="one H200",
)
