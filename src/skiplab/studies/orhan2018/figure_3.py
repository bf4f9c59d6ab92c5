"""Figure 3: the more degenerate the model, the harder its training."""

from __future__ import annotations

from skiplab.experiments.apart import Stage, other_gains_apart
from skiplab.experiments.gains import HYPER_RESIDUAL, PLAIN, RESIDUAL
from skiplab.experiments.networks import BRACKETED
from skiplab.reproduction import Study, scales
from skiplab.studies.orhan2018.spectra_over_training import QUICK, SMOKE, Comparison, Settings

THREE = Comparison((PLAIN, RESIDUAL, HYPER_RESIDUAL))


def apart(stage: Stage) -> Stage:
    """The stage with three trials for one: other studies' gains, gain 2 as figure 5 has it, and smaller ones."""
    return other_gains_apart(other_gains_apart(stage), BRACKETED)


STUDY = Study(
    id="orhan2018/figure-3",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE, gains=(0.03, 0.05, *BRACKETED)),
    stages=(apart(THREE.search), apart(THREE.decide)),
    figure=THREE.figure,
    # Figure 3's caption names no architecture; that of S6, which repeats its "main results", gives the directions.
    source="figures 3 and S6",
    claims=THREE.claims(),
    cost={"quick": 60, "paper": 2000},
    paper_device="one H200",
    in_tour=False,
)
