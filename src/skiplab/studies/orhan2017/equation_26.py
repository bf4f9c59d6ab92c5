"""Equation 26: whether dividing the skips from non-adjacent layers by their number helps."""

from __future__ import annotations

from skiplab.experiments import networks
from skiplab.experiments.apart import other_gains_apart
from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import HYPER_RESIDUAL, ONE_POINT, Model, compare
from skiplab.experiments.open_claims import open_at_an_edge
from skiplab.reproduction import Claim, Greater, Study, scales
from skiplab.studies.orhan2017 import figure_11

SUMS = Model("hyper-residual-sums")
EXPERIMENT = GainExperiment(HYPER_RESIDUAL, SUMS)


STUDY = Study(
    id="orhan2017/equation-26",
    words=__file__,
    settings=scales(figure_11.Settings, quick={**networks.QUICK, "runs": 10}, smoke=networks.SMOKE),
    stages=(other_gains_apart(EXPERIMENT.train),),
    figure=EXPERIMENT.figure,
    claims=(
        Claim(
            "normalised-better",
            "Hyper-residual networks perform better if skips from non-adjacent layers are divided by l − 1.",
            open_at_an_edge(compare(HYPER_RESIDUAL, SUMS), SUMS),
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="section 2.4",
        ),
    ),
    cost={"quick": 35, "paper": 180},
    paper_device="one H200",
    in_tour=False,
)
