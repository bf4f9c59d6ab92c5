"""Table 4's settings, claims and declaration."""

from __future__ import annotations

import math
from typing import Any

from skiplab.reproduction import Call, Claim, Greater, Results, Study, Value, scales
from skiplab.studies.yu2019.controls import QUICK_CONTROLS, SMOKE_CONTROLS
from skiplab.studies.yu2019.controls import without_decay as pairs_without_decay
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL
from skiplab.studies.yu2019.table_4 import evidence
from skiplab.studies.yu2019.untrained import (
    QUICK_UNTRAINED,
    SMOKE_UNTRAINED,
    UntrainedSettings,
    before,
    pairs_if_trained,
)

FIVE_PERCENT, TEN_PERCENT = Value(tolerance=0.05), Value(tolerance=0.1)
TEN_TIMES = Greater(margin=-math.log(10))
EIGHTY_TIMES = Greater(margin=-math.log(evidence.OVER))
A_TENTH = Greater(worth=math.log(1.1))
A_TWENTIETH = Greater(worth=0.05)


def without_decay(results: Results) -> list[Call]:
    """Name the control, unless nothing is to be trained."""
    return pairs_without_decay(results) if results.settings.trained else []


def figure(results: Results) -> Any:
    """Decay terms before and after training beside the table's, and beside the loss."""
    from skiplab.studies.yu2019.table_4.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/table-4",
    words=__file__,
    settings=scales(
        UntrainedSettings, quick=QUICK_CONTROLS | QUICK_UNTRAINED, smoke=SMOKE_CONTROLS | SMOKE_UNTRAINED
    ),
    stages=(before, pairs_if_trained, without_decay),
    figure=figure,
    claims=(
        Claim(
            "decay-before",
            "Before training the weight decay of plain networks is the one that the table prints.",
            evidence.decay_before(PLAIN),
            FIVE_PERCENT,
            unit="½λ‖w‖²/128",
        ),
        Claim(
            "residual-decay-before",
            "Before training the weight decay of residual networks is the one that the table prints.",
            evidence.decay_before(RESIDUAL),
            FIVE_PERCENT,
            unit="½λ‖w‖²/128",
            source="ours",
        ),
        Claim(
            "ratio-before",
            "Before training the decay of a plain network of 20 layers is 268 times that of a residual one.",
            evidence.ratio_before,
            FIVE_PERCENT,
            unit="ratio",
            source="ours",
        ),
        Claim(
            "loss-before",
            "Before training the losses are those that the table prints.",
            evidence.loss_before,
            FIVE_PERCENT,
            unit="L",
            source="ours",
        ),
        Claim(
            "loss-outweighs-decay",
            "The training loss is over 80 times the weight decay as the table prints it, before and after training.",
            evidence.outweighs,
            EIGHTY_TIMES,
            unit="ln of the ratio",
            source="table 4 and supplement D",
        ),
        Claim(
            "loss-outweighs-acting-decay",
            "The training loss is at least ten times ½λ‖w‖², the weight decay that probably acts on the weights, "
            "before and after training.",
            evidence.outweighs_acting,
            TEN_TIMES,
            unit="ln of the ratio",
            source="ours",
        ),
        Claim(
            "decay-after",
            "After training the weight decay is the one that the table prints.",
            evidence.decay_after,
            TEN_PERCENT,
            unit="½λ‖w‖²/128",
        ),
        Claim(
            "residual-weights-smaller",
            "After training residual networks have smaller weights, without the ones, than plain ones.",
            evidence.residual_smaller,
            A_TENTH,
            unit="ln ‖w‖²",
        ),
        Claim(
            "gap-without-decay",
            "Without weight decay residual networks keep at least half of their lead in loss and in error.",
            evidence.gap_without_decay,
            A_TWENTIETH,
            unit="of the lead with decay, above ½",
            source="ours",
        ),
    ),
    cost={"smoke": 2.0, "quick": 110.0, "paper": 2400.0},
    paper_device="one H200",
)
