"""Figure 2's settings, claims and declaration."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Claim, Greater, Ordered, Results, Study, chunks, scales, subset
from skiplab.studies.yu2019.figure_2 import evidence
from skiplab.studies.yu2019.networks import Measures, Networks, Training, train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, PairSettings, train_pairs

HALF_A_POINT = Greater(worth=0.005)  # of test error


@dataclass(frozen=True)
class Settings:
    """Pairs trained at a constant rate with crops and flips, and ``bare_runs`` of them without, for fewer epochs.

    ``constant=False`` leaves both out; ``dropped`` also looks at table 1's pairs, whose rate is lowered. ``risks``
    are the training risks at which pairs are compared.
    """

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 13
    seed: int = 0
    depth: int = 20
    filters: tuple[int, ...] = (16, 32, 64)
    rate: float = 1e-2
    constant: bool = True
    dropped: bool = True
    epochs: int = 400
    bare_runs: int = 6
    bare_epochs: int = 100
    images: int | None = None
    side: int | None = None
    batch_size: int = 128
    padding: int = 4
    mixed: bool = True
    test_images: int | None = None
    risks: tuple[float, ...] = (0.5, 0.2, 0.1, 0.05, 0.02, 0.002)
    together: int = 13


QUICK = {
    "dropped": False,
    "runs": 5,
    "bare_runs": 5,
    "depth": 8,
    "filters": (8, 16, 32),
    "epochs": 40,
    "bare_epochs": 20,
    "images": 300,
    "side": 16,
    "batch_size": 15,
    "padding": 2,
    "mixed": False,
    "test_images": 300,
    "risks": (2.1, 2.0, 1.9, 1.8),
}
SMOKE = QUICK | {
    "data": ("digits",),
    "runs": 2,
    "bare_runs": 2,
    "depth": 5,
    "filters": (2, 2, 4),
    "epochs": 3,
    "bare_epochs": 3,
    "images": 40,
    "batch_size": 10,
    "padding": 1,
    "test_images": 40,
    "risks": (2.5, 0.002),
}


def train_long(results: Results) -> list[Call]:
    """Name both kinds of network with crops and flips."""
    return _calls(results.settings, results.settings.runs, results.settings.epochs, results.settings.padding)


def train_bare(results: Results) -> list[Call]:
    """Name both kinds of network on images as they are."""
    settings = results.settings
    return _calls(settings, min(settings.runs, settings.bare_runs), settings.bare_epochs, None)


def train_dropped(results: Results) -> list[Call]:
    """Name table 1's pairs of the same depth."""
    settings = results.settings
    own = PairSettings(data=settings.data, runs=settings.runs, seed=settings.seed, depths=(settings.depth,))
    return train_pairs(Results(own)) if settings.dropped else []


def _calls(settings: Settings, runs: int, epochs: int, padding: int | None) -> list[Call]:
    training = subset(Training, settings, epochs=epochs, drops=(), padding=padding)
    words = "" if padding is not None else ", no crops or flips"
    return [
        train.of(
            Networks(
                data=settings.data[0],
                model=model,
                depth=settings.depth,
                seeds=seeds,
                training=training,
                rate=settings.rate,
                filters=settings.filters,
                measures=Measures(test_images=settings.test_images),
            ),
            f"{model}, {epochs} epochs{words}",
        )
        for model in ((PLAIN, RESIDUAL) if settings.constant else ())
        for seeds in chunks(run_seeds(settings.seed, runs), settings.together)
    ]


def figure(results: Results) -> Any:
    """Risk and error over training, error against risk, and who reaches a risk first."""
    from skiplab.studies.yu2019.figure_2.plot import draw

    return draw(results)


STUDY = Study(
    id="yu2019/figure-2",
    words=__file__,
    settings=scales(Settings, quick=QUICK, smoke=SMOKE),
    stages=(train_long, train_bare, train_dropped),
    figure=figure,
    claims=(
        Claim(
            "residual-reaches-first",
            "Residual networks reach a low training risk before the plain ones of their pair.",
            evidence.reaches_first,
            kind=Ordered(),
            unit="P(plain later)",
            source="supplement D",
        ),
        Claim(
            "both-reach",
            "Both kinds of network reach a training risk of .002.",
            evidence.both_reach,
            kind=Greater(worth=math.log(1.1)),
            unit="ln of .002 over the lowest risk",
            source="supplement D",
        ),
        Claim(
            "lower-error-at-equal-risk",
            "At the same training risk residual networks have the lower test error.",
            evidence.lower_error,
            kind=HALF_A_POINT,
            unit="test error",
            source="sections 1 and 5",
        ),
    ),
    cost={"smoke": 1.5, "quick": 45.0, "paper": 3500.0},
    paper_device="one H200",
)
