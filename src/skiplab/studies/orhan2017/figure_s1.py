"""Figure S1: the landscapes of Figure 4 with random biases in the hidden units."""

from __future__ import annotations

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2017 import figure_4

STUDY = Study(
    id="orhan2017/figure-S1",
    words=__file__,
    settings=figure_4.scales(biases=True),
    stages=(figure_4.targets,),
    table=figure_4.table,
    figure=figure_4.figure,
    claims=figure_4.ORDER_CLAIMS,
    cost={"smoke": 0.1, "quick": 12.0, "paper": 40.0},
)
