"""Figure 2's claims and declaration."""

from __future__ import annotations

import math
from typing import Any

from skiplab.reproduction import Claim, Greater, Ordered, Results, Study, scales
from skiplab.studies.littwin2017.figure_2 import evidence
from skiplab.studies.littwin2017.resnet_settings import QUICK, SMOKE, ResNetSettings, networks

A_TENTH = Greater(worth=math.log(1.1))
A_TENTH_FASTER = Greater(worth=0.1)  # of the slope before
ONE_BLOCK = Greater(worth=1 / 15)  # beyond 11 of 15


def figure(results: Results) -> Any:
    """Absorbed norms by layer, over epochs, and their parts."""
    from skiplab.studies.littwin2017.figure_2.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/figure-2",
    words=__file__,
    settings=scales(ResNetSettings, quick=QUICK, smoke=SMOKE),
    stages=(networks,),
    figure=figure,
    claims=(
        Claim(
            "absorbed-norms-grow",
            "With batch normalisation absorbed, the mean norm of the convolutions grows in training.",
            evidence.grow,
            A_TENTH,
            unit="ln of the mean norm",
            source="appendix C",
        ),
        Claim(
            "later-epochs-lie-higher",
            "The mean norm is larger the later the epoch.",
            evidence.ordered,
            Ordered(),
            unit="mean norm",
            source="ours",
        ),
        Claim(
            "faster-after-the-drop",
            "The growth speeds up once the learning rate is reduced.",
            evidence.faster,
            A_TENTH_FASTER,
            unit="slope before the drop",
            source="appendix C",
        ),
        Claim(
            "waving",
            "Norms alternate between the two convolutions of a block, in the same way in most blocks.",
            evidence.waving,
            ONE_BLOCK,
            unit="share of blocks beyond 11 of 15",
            source="caption",
        ),
        Claim(
            "faster-because-of-the-drop",
            "It is the lower rate that speeds the growth up: networks whose rate is kept grow more slowly.",
            evidence.because_of_the_drop,
            A_TENTH_FASTER,
            unit="slope before the drop",
            source="ours",
        ),
        Claim(
            "growth-needs-skips",
            "Absorbed norms grow more in residual networks than in plain ones.",
            evidence.needs_skips,
            A_TENTH,
            unit="ln of the mean norm",
            source="ours",
        ),
    ),
    cost={"smoke": 2.0, "quick": 95.0, "paper": 2700.0},
    paper_device="one H200",
)
