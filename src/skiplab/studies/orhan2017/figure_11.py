"""Figure 11: hyper-residual networks, with skips from every layer to all above it, against residual ones."""

from __future__ import annotations

from dataclasses import dataclass

from skiplab.experiments import networks
from skiplab.experiments.gains import HYPER_RESIDUAL, ONE_POINT, RESIDUAL, GainExperiment, compare
from skiplab.experiments.networks import GainSettings
from skiplab.reproduction import Claim, Greater, Study, scales
from skiplab.studies.orhan2017 import figure_7

EXPERIMENT = GainExperiment(RESIDUAL, HYPER_RESIDUAL)


@dataclass(frozen=True)
class Settings(GainSettings):
    """The common settings with this figure's 20 layers; gradients are of no interest to it."""

    runs: int = 10
    depth: int = 20
    norms_at: tuple[int, ...] = ()


STUDY = Study(
    id="orhan2017/figure-11",
    item="Figure 11",
    title="Hyper-residual networks train at least as well as residual ones",
    caption=(
        "Training accuracy over epochs of 20-layer residual networks with identity skips, and of hyper-residual "
        "ones, which also have skips from all lower layers (eq 26); each at its best initial gain (a, b), and at "
        "the last epoch for every gain (c, d; ours). Lines and dots are means over runs with 95 % intervals."
    ),
    # Two models only, so quick can afford the paper's number of runs.
    settings=scales(Settings, quick={**networks.QUICK, "runs": 10}, smoke=networks.SMOKE),
    stages=EXPERIMENT.stages,
    figure=EXPERIMENT.figure,
    claims=(
        Claim(
            "hyper-not-worse",
            "Hyper-residual networks perform at least as well as residual ones (within a point; the paper: better).",
            evidence=compare(HYPER_RESIDUAL, RESIDUAL),
            kind=Greater(margin=ONE_POINT),
            unit="accuracy",
        ),
    ),
    cost={"quick": 35, "paper": 120},
    paper_device="one H200",
    choices=(
        "x_{l+1} = f(W_l x_l + b_{l+1}) + x_l + 1/(l − 1) · [Q_{l−1} x_{l−1} + … + Q_1 x_1], where x_1 is the first "
        "hidden layer: adjacent skips are the identity, as printed, and the input is not a source of skips.",
        "Q_k is an orthogonal matrix folded twice (“32” at 128 units, 8 at quick scale’s 32): each source layer k "
        "draws its own, which all layers above it share, as eq 26 has one Q_k.",
        "“Perform better” is tested as not worse by more than a point; the interval says whether they are better.",
        *(choice for choice in figure_7.STUDY.choices if "σ" not in choice),
    ),
    errata=(
        "Eq 26 divides by l − 1, which is 0 at l = 1: the bracket is empty there, so nothing is added.",
        *figure_7.STUDY.errata,
    ),
    in_tour=False,
)
