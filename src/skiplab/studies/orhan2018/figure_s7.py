"""Figure S7: figure 4 on the Street View House Numbers and on STL-10."""

from __future__ import annotations

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018 import best_and_worst, figure_4
from skiplab.studies.orhan2018.best_and_worst import Settings

DATA = ("svhn", "stl10")

STUDY = Study(
    id="orhan2018/figure-S7",
    item="Figure S7",
    title="Figure 4 on SVHN and STL-10: plain networks that train well are less degenerate there too",
    caption=f"Figure 4 on SVHN (upper rows) and, where the set is present, STL-10. {figure_4.PANELS}",
    settings={
        "smoke": Settings(**figure_4.SMOKE),
        "quick": Settings(**figure_4.QUICK | {"data": DATA, "shown_gains": ()}),
        "paper": Settings(data=DATA),
    },
    stages=(best_and_worst.search, best_and_worst.decide),
    table=best_and_worst.table,
    figure=figure_4.figure,
    claims=best_and_worst.CLAIMS,
    cost={"quick": 45, "paper": 1800},
    paper_device="one H200",
    choices=(
        "Training images only, as many as are at hand; a set that is missing is left out and named.",
        *best_and_worst.CHOICES,
    ),
)
