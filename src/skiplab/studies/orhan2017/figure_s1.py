"""Figure S1: the landscapes of Figure 4 with random biases in the hidden units."""

from __future__ import annotations

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2017 import figure_4

STUDY = Study(
    id="orhan2017/figure-S1",
    item="Figure S1",
    title="Exhaustive landscapes of toy networks with binary weights and random biases",
    caption=(
        "As Figure 4, on the same targets, but every hidden unit has a fixed bias drawn from N(0, 1) for that "
        "target. Lines are medians over targets, bands their range. The paper calls the result similar to Figure 4."
    ),
    settings=figure_4.scales(biases=True),
    stages=(figure_4.targets,),
    table=figure_4.table,
    figure=figure_4.figure,
    claims=figure_4.ORDER_CLAIMS,
    cost={"smoke": 0.1, "quick": 12.0, "paper": 40.0},
    choices=(
        *figure_4.CHOICES,
        "The paper gives no numbers here, only that the results are “qualitatively similar”; we read that as "
        "the order statements of Figure 4.",
        "Biases are drawn anew for each target and are the same for the four networks.",
    ),
    errata=figure_4.ERRATA,
)
