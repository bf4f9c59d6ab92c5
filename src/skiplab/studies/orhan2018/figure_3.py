"""Figure 3: the more degenerate the model, the harder its training."""

from __future__ import annotations

from skiplab.experiments import measured_networks as networks
from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018.spectra_over_training import Comparison, Settings

THREE = Comparison(("plain", "residual", "hyper-residual"))

QUICK = Settings(**networks.QUICK, narrow_search_runs=3, narrow_search_epochs=25)
SMOKE = Settings(**networks.SMOKE, narrow_search_runs=1, narrow_search_epochs=1)

# What figures 3 and S1 chose alike.
STUDY = Study(
    id="orhan2018/figure-3",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(THREE.search, THREE.decide),
    table=THREE.table,
    figure=THREE.figure,
    claims=THREE.claims(),
    cost={"quick": 60, "paper": 2000},
    paper_device="one H200",
    in_tour=False,
)
