"""Figure 11: hyper-residual networks, with skips from every layer to all above it, against residual ones."""

from __future__ import annotations

from dataclasses import dataclass

from skiplab.experiments import networks
from skiplab.experiments.apart import other_gains_apart
from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import HYPER_RESIDUAL, ONE_POINT, RESIDUAL, compare
from skiplab.experiments.networks import GAINS, GainSettings
from skiplab.reproduction import Claim, Greater, Study, scales

EXPERIMENT = GainExperiment(RESIDUAL, HYPER_RESIDUAL)


@dataclass(frozen=True)
class Settings(GainSettings):
    """The common settings with this figure's 20 layers; gradients are of no interest to it.

    Smaller gains than elsewhere, since networks with skips from all layers do best at the smallest of those.
    """

    gains: tuple[float, ...] = (0.01, 0.03, *GAINS)
    runs: int = 10
    depth: int = 20
    norms_at: tuple[int, ...] = ()


STUDY = Study(
    id="orhan2017/figure-11",
    words=__file__,
    # Two models only, so quick can afford the paper's number of runs.
    settings=scales(Settings, quick={**networks.QUICK, "runs": 10}, smoke=networks.SMOKE),
    stages=(other_gains_apart(EXPERIMENT.train),),
    figure=EXPERIMENT.figure,
    claims=(
        Claim(
            "hyper-better",
            "Hyper-residual networks perform better than residual ones.",
            compare(HYPER_RESIDUAL, RESIDUAL),
            kind=Greater(worth=ONE_POINT),
            unit="accuracy",
            source="section 2.4.3",
        ),
    ),
    cost={"quick": 35, "paper": 120},
    paper_device="one H200",
    in_tour=False,
)
