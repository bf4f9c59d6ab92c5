"""Table 2's settings, claims and declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import (
    Call,
    Claim,
    Equivalent,
    Greater,
    Results,
    Study,
    Value,
    chunks,
    scales,
    subset,
)
from skiplab.studies.yu2019.table_2 import evidence
from skiplab.studies.yu2019.table_2.trials import Pairs, Training, train_pairs

DOUBLED = Greater(worth=math.log10(2))  # |ΔL| over the iterations in float64
A_DECADE = Value(tolerance=1 / 16)  # of 16 decades: from 1e-17 to 1e-15
A_TENTH = Equivalent(margin=math.log(1.1))  # of L
A_POINT = Equivalent(margin=0.01)  # of test error
QUARTER = Value(tolerance=0.25)  # of a printed L
NEARER = Greater(worth=math.log(2))  # strangers differ twice as much


@dataclass(frozen=True)
class Settings:
    """Pairs trained for ``double_epochs`` in float64 and for ``epochs`` in float32, ``together`` in a trial.

    In float64 losses are compared every ``every`` iterations on ``probe`` training images.
    """

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 5
    seed: int = 0
    depths: tuple[int, ...] = (20, 32, 44)
    filters: tuple[int, ...] = (16, 32, 64)
    double_epochs: int = 1
    every: int = 10
    probe: int = 128
    epochs: int = 200
    drops: tuple[int, ...] = (120, 160)
    images: int | None = None
    test_images: int | None = None
    side: int | None = None
    batch_size: int = 128
    rate: float = 1e-2
    momentum: float = 0.9
    decay: float = 1e-4
    padding: int = 4
    mixed: bool = False
    together: int = 10


QUICK = {
    "depths": (14,),
    "filters": (8, 16, 32),
    "double_epochs": 6,
    "probe": 50,
    "epochs": 6,
    "drops": (4, 5),
    "images": 800,
    "side": 16,
    "batch_size": 20,
    "padding": 2,
    "together": 1,
}
SMOKE = {
    "data": ("digits",),
    "runs": 2,
    "depths": (5,),
    "filters": (4, 8, 8),
    "double_epochs": 1,
    "every": 1,
    "probe": 10,
    "epochs": 2,
    "drops": (1,),
    "images": 40,
    "batch_size": 10,
    "padding": 1,
}


def pairs(results: Results) -> list[Call]:
    """Name pairs of every depth, in float64 for how rounding drives them apart, in float32 for the whole training."""
    settings = results.settings
    training = subset(Training, settings)
    short = replace(training, epochs=settings.double_epochs, drops=(), mixed=False)
    calls = []
    for name in settings.data:
        for depth in sorted(settings.depths, reverse=True):
            for seeds in chunks(run_seeds(settings.seed, settings.runs), settings.together):
                own: dict[str, Any] = {
                    "data": name,
                    "depth": depth,
                    "seeds": seeds,
                    "filters": settings.filters,
                }
                measured = {"every": settings.every, "probe": settings.probe}
                double = Pairs(training=short, precision="float64", **measured, **own)
                whole = Pairs(training=training, test=True, test_images=settings.test_images, **own)
                calls.append(train_pairs.of(whole, f"{depth} layers, float32", stage="training"))
                calls.append(train_pairs.of(double, f"{depth} layers, float64", stage="rounding"))
    return calls


def figure(results: Results) -> Any:
    """Losses and their differences over training, and Table 2's numbers beside ours."""
    from skiplab.studies.yu2019.table_2.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/table-2",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE),
    stages=(pairs,),
    figure=figure,
    claims=(
        Claim(
            "rounding-grows",
            "Trained in float64 on the same batches, the losses of a pair drift apart over the iterations of the "
            "first epoch.",
            evidence.grows,
            kind=DOUBLED,
            unit="decades of |ΔL|",
            source="figure 6",
        ),
        Claim(
            "second-layer",
            "After one iteration some outputs of the second layer differ by about 1e-16, a decade more or less.",
            evidence.second_layer,
            kind=A_DECADE,
            unit="log₁₀ of the largest difference",
            source="supplement B",
        ),
        Claim(
            "same-loss",
            "After the whole training the losses of a pair are the same within a tenth.",
            evidence.same_loss,
            kind=A_TENTH,
            unit="ln L",
        ),
        Claim(
            "same-error",
            "After the whole training the test errors of a pair are the same within a point.",
            evidence.same_error,
            kind=A_POINT,
            unit="test error",
        ),
        Claim(
            "printed-losses",
            "The plain networks end with the losses that the paper prints.",
            evidence.printed_numbers("epoch_loss", 0, away=False),
            kind=QUARTER,
            unit="L",
        ),
        Claim(
            "printed-errors",
            "The plain networks end with the test errors that the paper prints, within a point.",
            evidence.printed_numbers("test_error", 1, away=True),
            kind=A_POINT,
            unit="test error less the printed one",
        ),
        Claim(
            "nearer-than-strangers",
            "After the whole training the losses of a pair are nearer to each other than to those of other seeds.",
            evidence.nearer_than_strangers,
            kind=NEARER,
            unit="ln of the ratio of |Δ ln L|",
            source="ours",
        ),
    ),
    cost={"smoke": 1.0, "quick": 50.0, "paper": 3000.0},
    paper_device="one H200",
)
