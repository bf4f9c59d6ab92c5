"""Figure S7: figure 4 on the Street View House Numbers and on STL-10."""

from __future__ import annotations

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018 import accuracy_and_degeneracy as shared
from skiplab.studies.orhan2018 import figure_4
from skiplab.studies.orhan2018.accuracy_and_degeneracy import Settings

DATA = ("svhn", "stl10")

STUDY = Study(
    id="orhan2018/figure-S7",
    item="Figure S7",
    title="Figure 4 on SVHN and STL-10: plain networks that train well are less degenerate there too",
    caption=f"Figure 4 on SVHN (upper row) and, where the set is present, STL-10. {figure_4.PANELS}",
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
    choices=(
        "Training images only, as many as are at hand; a set that is missing is left out and named. Our SVHN is the "
        "first 20,000 training digits, cropped anew from the full-number images.",
        *shared.CHOICES,
    ),
)
