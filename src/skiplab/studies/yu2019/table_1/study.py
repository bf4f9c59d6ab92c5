"""Table 1's settings, claims and declaration."""

from __future__ import annotations

import math
from typing import Any

from skiplab.reproduction import Claim, Equivalent, Greater, Ordered, Results, Study, Value, scales
from skiplab.studies.yu2019.controls import (
    QUICK_CONTROLS,
    SMOKE_CONTROLS,
    ControlSettings,
    common_rate,
    higher_rates,
    pilot,
)
from skiplab.studies.yu2019.pairs import train_pairs
from skiplab.studies.yu2019.table_1 import evidence

A_TENTH = Greater(worth=math.log(1.1))  # of L
A_FIFTH = Greater(worth=math.log(1.2))  # of the factor by which L grows
HALF_A_POINT = Greater(worth=0.005)  # of test error
A_POINT = Equivalent(margin=0.01)
QUARTER = Value(tolerance=0.25)  # of a printed L


def figure(results: Results) -> Any:
    """Loss and error against depth, and by how much loss grows."""
    from skiplab.studies.yu2019.table_1.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/table-1",
    words=__file__,
    settings=scales(ControlSettings, quick=QUICK_CONTROLS, smoke=SMOKE_CONTROLS),
    stages=(train_pairs, common_rate, higher_rates, pilot),
    figure=figure,
    claims=(
        Claim(
            "residual-lower-loss",
            "Residual networks reach a lower training loss than plain ones of the same depth.",
            evidence.lower_loss,
            A_TENTH,
            unit="ln L",
        ),
        Claim(
            "residual-lower-error",
            "Residual networks reach a lower test error than plain ones of the same depth.",
            evidence.lower_error,
            HALF_A_POINT,
            unit="test error",
        ),
        Claim(
            "residual-lower-loss-at-equal-rates",
            "Residual networks of 44 layers reach a lower training loss also where both kinds have the rate of the "
            "plain ones.",
            evidence.lower_loss_at_equal_rates,
            A_TENTH,
            unit="ln L",
            source="ours",
        ),
        Claim(
            "residual-lower-error-at-equal-rates",
            "Residual networks of 44 layers reach a lower test error also where both kinds have the rate of the "
            "plain ones.",
            evidence.lower_error_at_equal_rates,
            HALF_A_POINT,
            unit="test error",
            source="ours",
        ),
        Claim(
            "error-gap-grows",
            "The deeper the networks, the more the test errors of plain and residual ones differ.",
            evidence.error_gap_grows,
            HALF_A_POINT,
            unit="test error",
            source="supplement A",
        ),
        Claim(
            "plain-degrades-more",
            "The training loss grows by a larger factor with depth in plain than in residual networks, so that the "
            "gap between the two, in ln L, grows with depth.",
            evidence.degrades_more,
            A_FIFTH,
            unit="ln of the factor of L",
            source="supplements A and D.1",
        ),
        Claim(
            "plain-degrades-more-at-equal-rates",
            "The training loss grows by a larger factor with depth in plain than in residual networks, all of which "
            "are trained at one rate.",
            evidence.degrades_more_at_equal_rates,
            A_FIFTH,
            unit="ln of the factor of L",
            source="ours",
        ),
        Claim(
            "plain-error-rises",
            "The test error of plain networks rises with depth.",
            evidence.plain_error_rises,
            HALF_A_POINT,
            unit="test error",
            source="supplement A",
        ),
        Claim(
            "residual-error-stays",
            "The test error of residual networks stays roughly constant with depth.",
            evidence.residual_error_stays,
            A_POINT,
            unit="test error",
            source="supplement A",
        ),
        Claim(
            "higher-rates-fail",
            "At rate .01, that of the other networks, most plain networks of 44 layers have learnt nothing after "
            "five epochs.",
            evidence.higher_rates_fail,
            Ordered(),
            unit="share of dead networks",
            source="caption of table 1",
        ),
        Claim(
            "every-higher-rate-fails",
            "At each of the rates .01, .005 and .003 most plain networks of 44 layers have learnt nothing after five "
            "epochs.",
            evidence.every_higher_rate_fails,
            Ordered(),
            unit="share of dead networks",
            source="ours",
        ),
        Claim(
            "printed-losses",
            "Networks end with the losses that the paper prints, within a quarter.",
            evidence.printed_losses,
            QUARTER,
            unit="L",
        ),
        Claim(
            "printed-errors",
            "Networks end with the test errors that the paper prints, within a point.",
            evidence.printed_errors,
            A_POINT,
            unit="test error less the printed one",
        ),
    ),
    cost={"smoke": 2.0, "quick": 70.0, "paper": 3000.0},
    paper_device="one H200",
)
