"""Figure S1: figure 3 with plain and residual networks of 10 layers."""

from __future__ import annotations

from dataclasses import replace

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018 import figure_3
from skiplab.studies.orhan2018.spectra_over_training import Comparison, Settings

TWO = Comparison(("plain", "residual"))

STUDY = Study(
    id="orhan2018/figure-S1",
    words=__file__,
    settings={
        "smoke": figure_3.SMOKE,
        "quick": replace(figure_3.QUICK, depth=10, narrow_depth=10, narrow_runs=10),
        "paper": Settings(depth=10, narrow_depth=10),
    },
    stages=(TWO.search, TWO.decide),
    table=TWO.table,
    figure=TWO.figure,
    claims=TWO.claims(),
    cost={"quick": 25, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
