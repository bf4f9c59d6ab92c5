"""Figure S1: figure 3 with plain and residual networks of 10 layers."""

from __future__ import annotations

from typing import Any

from skiplab.experiments.gains import PLAIN, RESIDUAL
from skiplab.reproduction import Study, scales
from skiplab.studies.orhan2018.spectra_over_training import QUICK, SMOKE, Comparison, Settings

TWO = Comparison((PLAIN, RESIDUAL))
LAYERS: dict[str, Any] = {"depth": 10, "narrow_depth": 10}

STUDY = Study(
    id="orhan2018/figure-S1",
    words=__file__,
    settings=scales(Settings, quick={**QUICK, **LAYERS, "narrow_runs": 10}, smoke=SMOKE, **LAYERS),
    stages=(TWO.search, TWO.decide),
    figure=TWO.figure,
    claims=TWO.claims(),
    cost={"quick": 25, "paper": 300},
    paper_device="one H200",
    in_tour=False,
)
