"""Equation 26: whether dividing the skips from non-adjacent layers by their number helps."""

from __future__ import annotations

from dataclasses import dataclass, replace

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import HYPER_RESIDUAL, ONE_POINT, Model, compare
from skiplab.experiments.networks import SQRT2
from skiplab.experiments.open_claims import open_at_an_edge
from skiplab.reproduction import Call, Claim, Greater, Results, Study, scales
from skiplab.studies.orhan2017 import figure_11

SUMS = Model("hyper-residual-sums")
EXPERIMENT = GainExperiment(HYPER_RESIDUAL, SUMS)
SHARED = figure_11.Settings.gains  # of which figure 11 has the divided networks


@dataclass(frozen=True)
class Settings(figure_11.Settings):
    """Figure 11's with smaller gains, at which networks that add up their skips may do better."""

    gains: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, SQRT2)


def train(results: Results) -> list[Call]:
    """The one stage; gains that figure 11 does not have are trials of their own, so that the others stay shared."""
    settings = results.settings
    parts = [tuple(gain for gain in settings.gains if (gain in SHARED) == shared) for shared in (True, False)]
    return [
        call
        for gains in parts if gains
        for call in EXPERIMENT.train(Results(replace(settings, gains=gains)))
    ]  # fmt: skip


STUDY = Study(
    id="orhan2017/equation-26",
    words=__file__,
    settings=scales(Settings, quick={**networks.QUICK, "runs": 10}, smoke=networks.SMOKE),
    stages=(train,),
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
