"""Figure S1: the landscapes of Figure 4 with random biases in the hidden units."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from skiplab.reproduction import Results, Study, scales
from skiplab.reproduction.claim import OURS
from skiplab.studies.orhan2017.landscapes.experiment import (
    DOMINATED,
    ORDER_CLAIMS,
    QUICK,
    SMOKE,
    LandscapeSettings,
    targets,
)


def figure(results: Results) -> Any:
    """Draw the three distributions; the paper gives no numbers of these minima."""
    from skiplab.studies.orhan2017.landscapes.plot import landscape_panels

    return landscape_panels(results)


STUDY = Study(
    id="orhan2017/figure-S1",
    words=__file__,
    settings=scales(LandscapeSettings, quick=QUICK, smoke=SMOKE, biases=True),
    stages=(targets,),
    figure=figure,
    source="figure S1",
    # The paper says no more of this figure than that it is like figure 4; "more than half" is our reading.
    claims=(replace(DOMINATED, source=OURS), *ORDER_CLAIMS),
    cost={"smoke": 0.1, "quick": 12.0, "paper": 40.0},
)
