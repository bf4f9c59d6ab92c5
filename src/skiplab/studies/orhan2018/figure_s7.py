"""Figure S7: figure 4 on the Street View House Numbers and on STL-10."""

from __future__ import annotations

from skiplab.reproduction import Study, scales
from skiplab.studies.orhan2018.accuracy_evidence import CLAIMS
from skiplab.studies.orhan2018.accuracy_panels import figure
from skiplab.studies.orhan2018.accuracy_trials import QUICK, SMOKE, Settings, train

STUDY = Study(
    id="orhan2018/figure-S7",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE, data=("svhn", "stl10")),
    stages=(train,),
    figure=figure,
    claims=CLAIMS,
    cost={"quick": 60, "paper": 700},
    paper_device="one H200",
)
