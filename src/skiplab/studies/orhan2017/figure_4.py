"""Figure 4: every configuration of four toy networks with binary weights, on random targets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from skiplab.reproduction import Claim, Evidence, Results, Study, Value, scales
from skiplab.studies.orhan2017.landscapes.experiment import (
    ORDER_CLAIMS,
    QUICK,
    SMOKE,
    LandscapeSettings,
    by_target,
    targets,
)

PAPER_MINIMA = {"plain": 3.2e6, "path-residual": 505e3, "residual": 140e3, "hyper-residual": 54.0}


def minima(results: Results) -> Iterator[Evidence]:
    """Numbers of local minima, one per target, beside the paper's of its one target."""
    counts = by_target(results, "minima")
    for architecture, paper in PAPER_MINIMA.items():
        ours = counts[architecture]
        fewer = f"{int((ours <= paper).sum())} of {len(ours)} targets have no more minima than the paper's"
        detail = f"{results.settings.weights} weights; {fewer}"
        yield Evidence(architecture, [ours.tolist()], paper_value=paper, detail=detail)


def figure(results: Results) -> Any:
    """Draw the three distributions, with the paper's numbers of minima where ours can be compared with them."""
    from skiplab.studies.orhan2017.landscapes.plot import landscape_panels

    settings = results.settings
    comparable = settings.depth == LandscapeSettings.depth and not settings.biases
    return landscape_panels(results, PAPER_MINIMA if comparable else {})


STUDY = Study(
    id="orhan2017/figure-4",
    words=__file__,
    settings=scales(LandscapeSettings, quick=QUICK, smoke=SMOKE),
    stages=(targets,),
    figure=figure,
    source="section 2.2",
    claims=(
        Claim(
            "number-of-minima",
            "The paper's number of local minima lies in our range over targets, give or take a tenth.",
            minima,
            kind=Value(tolerance=0.1, spread="range"),
            unit="local minima",
        ),
        *ORDER_CLAIMS,
    ),
    cost={"smoke": 0.1, "quick": 12.0, "paper": 40.0},
    in_tour=True,
)
