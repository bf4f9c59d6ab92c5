"""Table 5's settings, stages, claims and declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Equivalent, Greater, Results, Study, Value, scales, subset
from skiplab.studies.yu2019.networks import Measures, train
from skiplab.studies.yu2019.pairs import QUICK, RESIDUAL, SMOKE, PairSettings, train_pairs
from skiplab.studies.yu2019.table_5 import evidence

TWO_POINTS = Equivalent(margin=0.02)
TEN_PERCENT = Value(tolerance=0.1)
HALF_A_PERCENT, ONE_PERCENT, A_TENTH = (Greater(worth=each) for each in (0.005, 0.01, 0.1))
FIVE_PERCENT = Equivalent(margin=math.log(1.05))


@dataclass(frozen=True)
class Settings(PairSettings):
    """Residual networks as in Table 1, and networks with T′, which are slower from ``slow_depth`` layers on too."""

    diagonal_runs: int = 5
    slow_diagonal_rate: float = 5e-3


def residual_networks(results: Results) -> list[Call]:
    """Name the residual networks that most items share, which T′ is taken from."""
    calls = [call for call in train_pairs(results) if call.settings.model == RESIDUAL]
    return [replace(call, stage=train_pairs.__name__) for call in calls]


def train_diagonals(results: Results) -> list[Call]:
    """Name networks with T′ of every depth, and the variants of the first depth."""
    settings = results.settings
    end = settings.epochs
    seeds = run_seeds(settings.seed, settings.diagonal_runs)
    wanted = [(evidence.DIAGONAL, depth) for depth in sorted(settings.depths, reverse=True)]
    wanted += [(model, settings.first_depth) for model in evidence.VARIANTS]
    calls = []
    for model, depth in wanted:
        rate = settings.slow_diagonal_rate if depth >= settings.slow_depth else settings.rate
        measures = subset(Measures, settings, test_every=end, clean=(end,))
        own = settings.networks(model, depth, seeds, rate=rate, measures=measures)
        calls.append(train.of(own, f"{model}, {depth} layers"))
    return calls


def figure(results: Results) -> Any:
    """Error and loss of networks with T′ by depth, and of the variants."""
    from skiplab.studies.yu2019.table_5.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/table-5",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE | {"diagonal_runs": 2}),
    stages=(residual_networks, train_diagonals),
    figure=figure,
    claims=(
        Claim(
            "printed-errors",
            "Networks with T′, and with a dense lower half of T_r, end with the test errors that the paper prints.",
            evidence.printed_errors,
            TWO_POINTS,
            unit="test error less the printed one",
            source="table 5 and supplement D.3",
        ),
        Claim(
            "printed-losses",
            "Networks with T′ end with the training losses that the paper prints.",
            evidence.printed_losses,
            TEN_PERCENT,
            unit="L",
        ),
        Claim(
            "better-than-guessing",
            "Networks with T′ are right much more often than by guessing.",
            evidence.better_than_guessing,
            A_TENTH,
            unit="accuracy above chance",
            source="supplement D.3",
        ),
        Claim(
            "keep-most-accuracy",
            "Networks with T′ have more than 76 % of the accuracy of residual networks of the same depth.",
            evidence.keep_accuracy,
            HALF_A_PERCENT,
            unit="share of accuracy above .76",
            source="supplement D.3",
        ),
        Claim(
            "no-degradation",
            "The training loss of networks with T′ does not grow with depth.",
            evidence.no_degradation,
            FIVE_PERCENT,
            unit="ln L",
            source="supplement D.3",
        ),
        Claim(
            "dense-half-better",
            "A dense lower half of the kernels between groups lowers the test error.",
            evidence.dense_better,
            ONE_PERCENT,
            unit="test error",
            source="supplement D.3",
        ),
        Claim(
            "zeroed-residual-worse",
            "Trained residual networks of whose kernels only T′'s entries are left do worse than networks trained "
            "with T′.",
            evidence.zeroed_worse,
            ONE_PERCENT,
            unit="test error",
            source="ours",
        ),
        Claim(
            "kwi-worse",
            "Networks with T′ that start from KWI, and so not near the identity, do worse.",
            evidence.kwi_worse,
            ONE_PERCENT,
            unit="test error",
            source="ours",
        ),
        Claim(
            "a-permutation-does-as-well",
            "With a fixed permutation of channels in place of the identity the test error is the same within two "
            "points.",
            evidence.shifted,
            TWO_POINTS,
            unit="test error",
            source="ours",
        ),
    ),
    cost={"smoke": 2.0, "quick": 95.0, "paper": 2400.0},
    paper_device="one H200",
)
