"""Figure 4: training accuracy of plain networks against their distance from degenerate manifolds."""

from __future__ import annotations

from skiplab.reproduction import Study, scales
from skiplab.studies.orhan2018.accuracy_evidence import CLAIMS
from skiplab.studies.orhan2018.accuracy_panels import figure
from skiplab.studies.orhan2018.accuracy_trials import QUICK, SMOKE, Settings, train

STUDY = Study(
    id="orhan2018/figure-4",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE),
    stages=(train,),
    figure=figure,
    claims=CLAIMS,
    cost={"quick": 55, "paper": 450},
    paper_device="one H200",
)
