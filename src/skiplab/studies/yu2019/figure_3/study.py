"""Figure 3's claims and declaration; its networks are those of table 1."""

from __future__ import annotations

from typing import Any

from skiplab.reproduction import Claim, Greater, Results, Study, scales
from skiplab.studies.yu2019.figure_3 import evidence
from skiplab.studies.yu2019.pairs import QUICK, SMOKE, PairSettings, train_pairs

A_TWENTIETH = Greater(worth=0.05)  # of the cushion
UP_TO_TWO = Greater(worth=1.0)  # of 3 − exceptions: fewer than 3 holds, more than 2 contradicts


def figure(results: Results) -> Any:
    """Distributions over images in the tenth layer, and medians by layer."""
    from skiplab.studies.yu2019.figure_3.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/figure-3",
    words=__file__,
    settings=scales(PairSettings, quick=QUICK, smoke=SMOKE, depths=(20, 32)),
    stages=(train_pairs,),
    figure=figure,
    unit="ln of the cushion",
    kind=A_TWENTIETH,
    claims=(
        Claim(
            "tenth-layer",
            "In the tenth layer residual networks have larger cushions than plain ones, the 1 being left out of ‖A‖.",
            evidence.tenth_layer,
        ),
        Claim(
            "all-but-two-layers",
            "Residual networks have the larger cushion in all layers but two.",
            evidence.exceptions,
            kind=UP_TO_TWO,
            unit="3 − exceptions",
            source="section 5",
        ),
        Claim(
            "more-than-a-norm",
            "In the tenth layer residual networks have larger cushions also if the 1 stays in ‖A‖.",
            evidence.identity_in_norm,
            source="ours",
        ),
    ),
    cost={"smoke": 1.5, "quick": 70.0, "paper": 2700.0},
    paper_device="one H200",
)
