"""Figure S7: figure 4 on the Street View House Numbers and on STL-10."""

from __future__ import annotations

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018 import accuracy_and_degeneracy as shared
from skiplab.studies.orhan2018 import figure_4
from skiplab.studies.orhan2018.accuracy_and_degeneracy import Settings

DATA = ("svhn", "stl10")

STUDY = Study(
    id="orhan2018/figure-S7",
    words=__file__,
    settings={
        "smoke": Settings(**figure_4.SMOKE),  # type: ignore[arg-type]
        "quick": Settings(**figure_4.QUICK | {"data": DATA}),  # type: ignore[arg-type]
        "paper": Settings(data=DATA),
    },
    stages=(shared.train,),
    table=shared.table,
    figure=figure_4.figure,
    claims=shared.CLAIMS,
    cost={"quick": 60, "paper": 700},
    paper_device="one H200",
)
