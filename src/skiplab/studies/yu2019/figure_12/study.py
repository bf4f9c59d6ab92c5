"""Figure 12's settings, claims and declaration; its simplified networks are table 1's of 20 layers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skiplab.reproduction import Claim, Equivalent, Greater, Results, Study, Value, scales
from skiplab.studies.yu2019.figure_12 import evidence
from skiplab.studies.yu2019.full_networks import QUICK_FULL, SMOKE_FULL, FullSettings, train_full
from skiplab.studies.yu2019.pairs import QUICK, SMOKE, PairSettings, train_pairs

WORTH = Greater(worth=0.02)  # of the channels
A_TENTH = Greater(worth=math.log(1.1))  # of σ
# Of σ too: so little that an interval above 0 decides and no margin does, since the paper says "higher" and no more.
HIGHER = Greater(worth=math.log(1.01))
TWO_POINTS = Greater(margin=-0.02)  # more than that many of the channels
QUARTER = Value(tolerance=0.25)  # of a printed ratio


@dataclass(frozen=True)
class Settings(PairSettings, FullSettings):
    """Pairs of simplified networks of one depth, and of full ones."""

    depths: tuple[int, ...] = (20,)


def figure(results: Results) -> Any:
    """σ against the layer, simplified and full; the share of positions; σ over training."""
    from skiplab.studies.yu2019.figure_12.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/figure-12",
    words=__file__,
    settings=scales(
        Settings,
        quick=QUICK | QUICK_FULL | {"depths": (14,)},
        smoke=SMOKE | SMOKE_FULL | {"depths": (5,)},
    ),
    stages=(train_pairs, train_full),
    figure=figure,
    unit="share of channels",
    kind=WORTH,
    claims=(
        Claim(
            "residual-above-plain",
            "Simplified residual networks have more dominant gradient flows than plain ones: in every layer after "
            "the first iteration and after the last, and on average over the layers whenever it is measured between.",
            evidence.above_plain,
            kind=HIGHER,
            unit="ln σ",
            source="figure 12 and supplement D.4.2",
        ),
        Claim(
            "residual-above-plain-by-two-points",
            "In every layer, after the first iteration and after the last, simplified residual networks have "
            "dominant flows in over two channels in a hundred more than plain ones.",
            evidence.above_plain_by,
            kind=TWO_POINTS,
            source="ours",
        ),
        Claim(
            "printed-ratios",
            "Over the whole training residual networks have the printed multiples of plain networks' dominant flows.",
            evidence.printed_ratios,
            kind=QUARTER,
            unit="σ of residual / σ of plain",
            source="supplement D.4.2",
        ),
        Claim(
            "rises-in-residual",
            "After the first iteration σ rises with the layer in simplified residual networks.",
            evidence.rises(evidence.FIRST),
            unit="rise of σ over the layers",
            source="supplement D.4.2",
        ),
        Claim(
            "rises-in-residual-at-the-end",
            "After the last iteration, too, σ rises with the layer in simplified residual networks, also without "
            "the last two layers.",
            evidence.rises(evidence.LAST, shorter=True),
            unit="rise of σ over the layers",
            source="ours",
        ),
        Claim(
            "steeper-at-first",
            "In simplified residual networks σ rises more steeply with the layer at the start of training than at "
            "its end.",
            evidence.steeper_first,
            unit="rise of σ over all layers",
            source="supplement D.4.2",
        ),
        Claim(
            "plain-does-not-rise",
            "In simplified plain networks σ is flat in the layer, if not falling.",
            evidence.plain_falls,
            kind=Greater(margin=0.02),
            unit="fall of σ over all layers",
            source="supplement D.4.2",
        ),
        Claim(
            "falls-with-training",
            "In simplified networks of both kinds σ is lower after the last iteration than after the first.",
            evidence.falls_with_training,
            source="supplement D.4.2",
        ),
        Claim(
            "keeps-falling",
            "In simplified networks of both kinds σ still falls in the second half of training.",
            evidence.keeps_falling,
            source="ours",
        ),
        Claim(
            "full-above-plain-at-first",
            "After the first iteration full residual networks, too, have more dominant flows than plain ones.",
            evidence.full_at_first,
            source="supplement D.4.2",
        ),
        Claim(
            "full-alike-at-the-end",
            "At the end of training dominant flows are as weak in full residual networks as in plain ones.",
            evidence.full_at_end,
            kind=Equivalent(margin=0.05),
            source="supplement D.4.2",
        ),
        Claim(
            "full-as-simplified",
            "In full networks, too, σ rises with the layer in residual ones, more steeply at first, and falls with "
            "training in both kinds.",
            evidence.full_as_simplified,
            source="supplement D.4.2",
        ),
        Claim(
            "full-closer-in-shallow-layers",
            "In shallow layers plain and residual networks are closer to each other in σ if they are full ones.",
            evidence.full_closer_in_shallow_layers,
            kind=A_TENTH,
            unit="|ln| of the ratio of σ",
            source="supplement D.4.2",
        ),
    ),
    cost={"smoke": 2.0, "quick": 60.0, "paper": 2300.0},
    paper_device="one H200",
)
