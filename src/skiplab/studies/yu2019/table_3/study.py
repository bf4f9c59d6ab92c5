"""Table 3's settings, claims and declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Greater, Results, Study, Value, scales
from skiplab.studies.yu2019.controls import QUICK_CONTROLS, SMOKE_CONTROLS
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL
from skiplab.studies.yu2019.table_3 import evidence
from skiplab.studies.yu2019.table_3.trials import Draws, drawn_weights
from skiplab.studies.yu2019.untrained import (
    QUICK_UNTRAINED,
    SMOKE_UNTRAINED,
    UntrainedSettings,
    before,
    pairs_if_trained,
)

FIVE_PERCENT, TEN_PERCENT = Value(tolerance=0.05), Value(tolerance=0.1)
ONE_OF_OURS = Value(tolerance=0.0, spread="range")  # a number of one random network
ABOUT = Value(tolerance=0.05 / 0.9)  # .9 ± .05
A_HUNDREDTH, HALF_A_PERCENT = Greater(worth=0.01), Greater(worth=0.005)
A_TWENTIETH = Greater(worth=0.05)


@dataclass(frozen=True)
class Settings(UntrainedSettings):
    """Untrained and trained networks, and ``drawn_runs`` plain ones of which the first weights alone are looked at.

    A number outside the range of n networks has the p-value 2/(n + 1): 499 of them contradict at .004, which is
    below Holm's level for any of up to twelve claims.
    """

    drawn_runs: int = 499


def draw_weights(results: Results) -> list[Call]:
    """Name the draws of plain networks."""
    settings = results.settings
    own = Draws(
        data=settings.data[0],
        depth=evidence.untrained_depth(results),
        filters=settings.untrained_filters,
        seeds=tuple(run_seeds(settings.seed, settings.drawn_runs)),
    )
    return [drawn_weights.of(own, f"{PLAIN}, {own.depth} layers, {settings.drawn_runs} draws")]


def figure(results: Results) -> Any:
    """Histograms of all weights and of ID entries, before and after training (figure 7), and masses."""
    from skiplab.studies.yu2019.table_3.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/table-3",
    words=__file__,
    settings=scales(
        Settings,
        quick=QUICK_CONTROLS | QUICK_UNTRAINED,
        smoke=SMOKE_CONTROLS | SMOKE_UNTRAINED | {"drawn_runs": 2},
    ),
    stages=(before, draw_weights, pairs_if_trained),
    figure=figure,
    claims=(
        Claim(
            "masses-before",
            "Before training the weights of both networks have the masses that the table prints.",
            evidence.masses(trained=False),
            FIVE_PERCENT,
            unit="‖w‖₁",
        ),
        Claim(
            "masses-after",
            "After training they have the masses that the table prints.",
            evidence.masses(trained=True),
            TEN_PERCENT,
            unit="‖w‖₁",
        ),
        Claim(
            "moments-before",
            "Before training the deviations of weights, and the mean of t, are those that the table prints.",
            evidence.moments(trained=False),
            FIVE_PERCENT,
            unit="weight",
        ),
        Claim(
            "deviations-after",
            "After training the deviations of weights are those that the table prints.",
            evidence.moments(trained=True),
            TEN_PERCENT,
            unit="weight",
        ),
        Claim(
            "one-of-ours-before",
            "Before training the mean of the paper's plain weights, and how many of them exceed .7, lie in the range "
            "of plain networks that we draw.",
            evidence.one_of_ours_before,
            ONE_OF_OURS,
            source="table 3 and supplement C",
        ),
        Claim(
            "one-of-ours-after",
            "After training the number of the paper's plain weights that exceed .7 lies in the range of ours.",
            evidence.one_of_ours_after,
            ONE_OF_OURS,
            source="ours",
        ),
        Claim(
            "large-weights-are-id",
            "After training more than 76 % of the mass of a residual network's large weights, with the ones, are ID "
            "entries.",
            evidence.id_share(RESIDUAL, less=evidence.SHARES[RESIDUAL]),
            HALF_A_PERCENT,
            unit="share above .76",
            source="supplement C",
        ),
        Claim(
            "plain-id-share",
            "In plain networks ID entries have a tenth of that mass.",
            evidence.id_share(PLAIN),
            TEN_PERCENT,
            unit="share",
            source="supplement C",
        ),
        Claim(
            "mode-stays-high",
            "After training the mode of ID entries, with the ones, is still around .9.",
            evidence.mode,
            ABOUT,
            unit="weight",
            source="supplement C",
        ),
        Claim(
            "changes-small-beside-one",
            "Training changes weights by little relative to 1: less than .1 in the root mean square.",
            evidence.small_beside_one,
            A_HUNDREDTH,
            unit=".1 less the rms change",
            source="ours",
        ),
        Claim(
            "changes-small-beside-distance",
            "Training moves both networks by less than their starts are apart.",
            evidence.small_beside_distance(1.0),
            A_TWENTIETH,
            unit="1 less the ratio of distances",
            source="section 4.2 and supplement C",
        ),
        Claim(
            "changes-below-half-the-distance",
            "Training moves both networks by less than half of what their starts are apart.",
            evidence.small_beside_distance(0.5),
            A_TWENTIETH,
            unit="½ less the ratio of distances",
            source="ours",
        ),
        Claim(
            "outer-percents-stay",
            "Training moves the first and the last percent of the weights' distributions by less than .1.",
            evidence.quantiles_stay,
            A_HUNDREDTH,
            unit=".1 less the change",
            source="ours",
        ),
        Claim(
            "separated-by-id",
            "More than half of the squared distance between the starts lies in the ID entries.",
            evidence.separated_by_id,
            A_TWENTIETH,
            unit="share above ½",
            source="ours",
        ),
        Claim(
            "strangers-farther",
            "Two plain networks start farther apart than a plain and a residual one.",
            evidence.strangers_farther,
            Greater(worth=math.log(1.1)),
            unit="ln of the ratio",
            source="ours",
        ),
    ),
    cost={"smoke": 2.0, "quick": 80.0, "paper": 2100.0},
    paper_device="one H200",
)
