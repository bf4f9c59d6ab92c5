"""Figure 3's claims and declaration."""

from __future__ import annotations

import math
from typing import Any

from skiplab.reproduction import Claim, Equivalent, Greater, Results, Study, scales
from skiplab.studies.littwin2017.figure_3 import evidence
from skiplab.studies.littwin2017.resnet_settings import QUICK, SMOKE, ResNetSettings, networks

A_TWENTIETH = Greater(worth=math.log(1.05))
TWO_EPOCHS = Equivalent(margin=2.0)


def figure(results: Results) -> Any:
    """Norms of γ by layer, over epochs, and in the controls."""
    from skiplab.studies.littwin2017.figure_3.plot import draw

    return draw(results)


STUDY = Study(
    id="littwin2017/figure-3",
    words=__file__,
    settings=scales(ResNetSettings, quick=QUICK, smoke=SMOKE),
    stages=(networks,),
    figure=figure,
    claims=(
        Claim(
            "coefficients-rise-before-the-drop",
            "Until the learning rate is reduced the coefficients of batch normalisation grow.",
            evidence.rise,
            A_TWENTIETH,
            unit="ln of mean ‖γ‖",
            source="appendix C",
        ),
        Claim(
            "coefficients-fall-after-the-drop",
            "Once the learning rate is reduced the coefficients decrease.",
            evidence.fall,
            A_TWENTIETH,
            unit="ln of mean ‖γ‖",
            source="appendix C",
        ),
        Claim(
            "the-turn-is-at-the-drop",
            "The coefficients turn exactly when the learning rate is reduced, within two epochs of 81.",
            evidence.turn,
            TWO_EPOCHS,
            unit="epochs after the drop",
            source="appendix C",
        ),
        Claim(
            "growth-moves-to-the-convolutions",
            "After the drop the growth moves to the convolutions: with batch normalisation absorbed, their mean norm "
            "rises.",
            evidence.moves,
            A_TWENTIETH,
            unit="ln of the mean",
            source="appendix C",
        ),
        Claim(
            "the-drop-turns-them",
            "The lower rate turns the coefficients: where the rate is kept, more than half of the turn is absent.",
            evidence.because_of_the_drop,
            A_TWENTIETH,
            unit="ln of mean ‖γ‖",
            source="ours",
        ),
        Claim(
            "they-fall-without-decay",
            "The coefficients decrease after the drop even where they do not decay.",
            evidence.without_decay,
            A_TWENTIETH,
            unit="ln of mean ‖γ‖",
            source="ours",
        ),
    ),
    cost={"smoke": 2.0, "quick": 95.0, "paper": 2700.0},
    paper_device="one H200",
)
