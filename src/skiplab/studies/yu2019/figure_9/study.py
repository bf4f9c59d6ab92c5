"""Figure 9's settings, stages, claims and declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Greater, Results, Study, Value, scales, subset
from skiplab.studies.yu2019.figure_9 import evidence
from skiplab.studies.yu2019.networks import Measures, Training, train
from skiplab.studies.yu2019.pairs import PLAIN, QUICK, SMOKE, PairSettings, train_pairs

A_TENTH = Greater(worth=math.log(1.1))  # of L
FIVE_EPOCHS = Value(tolerance=5 / 15)
QUARTER = Value(tolerance=0.25)


@dataclass(frozen=True)
class Settings(PairSettings):
    """Pairs as in Table 1, compared ``at`` some epochs; the first ``wide_at`` are the beginning.

    Plain networks that the paper trains faster are trained for as long at the rate of the slow ones too.
    """

    at: tuple[int, ...] = (5, 15, 50, 100, 200)
    wide_at: int = 15


def slow_start(results: Results) -> list[Call]:
    """Name plain networks of the faster depths at the slow rate, for the first epochs alone."""
    settings = results.settings
    fast = [depth for depth in settings.depths if depth < settings.slow_depth]
    if len(fast) == len(settings.depths):
        return []
    training = replace(subset(Training, settings), epochs=settings.wide_at, drops=())
    own: dict[str, Any] = {
        "rate": settings.slow_rate,
        "training": training,
        "measures": Measures(test_every=0),
    }
    return [
        train.of(
            settings.networks(PLAIN, depth, run_seeds(settings.seed, settings.deep_runs), **own),
            f"{PLAIN}, {depth} layers, rate {settings.slow_rate:g}, {settings.wide_at} epochs",
        )
        for depth in sorted(fast, reverse=True)
    ]


def figure(results: Results) -> Any:
    """Losses over the epochs and the gap between plain and residual networks."""
    from skiplab.studies.yu2019.figure_9.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/figure-9",
    words=__file__,
    settings=scales(
        Settings, quick=QUICK | {"at": (8,), "wide_at": 6}, smoke=SMOKE | {"at": (1,), "wide_at": 1}
    ),
    stages=(train_pairs, slow_start),
    figure=figure,
    claims=(
        Claim(
            "residual-ahead",
            "After any fixed number of epochs residual networks have a lower training loss than plain ones, "
            "whatever the depth.",
            evidence.ahead,
            A_TENTH,
            unit="ln L",
            source="supplement D.1",
        ),
        Claim(
            "printed-means",
            "Training ends at the mean losses that the figure is marked with, within a quarter.",
            evidence.printed_means,
            QUARTER,
            unit="L",
        ),
        Claim(
            "gap-peaks",
            "The gap in training loss widens from the beginning until around epoch 15, where it is widest.",
            evidence.gap_peaks,
            FIVE_EPOCHS,
            unit="epoch",
            source="supplement D.3",
        ),
        Claim(
            "deeper-plain-slower",
            "Twelve further layers slow plain networks down from the very beginning, at one rate for both.",
            evidence.deeper_slower,
            A_TENTH,
            unit="ln L, mean over the first epochs",
            source="supplement D.3",
        ),
    ),
    cost={"smoke": 2.0, "quick": 70.0, "paper": 2100.0},
    paper_device="one H200",
)
