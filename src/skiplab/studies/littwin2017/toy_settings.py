"""What the studies of appendix C's small networks have in common, so that they name the same trials."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from skiplab.randomness import run_seeds
from skiplab.studies.littwin2017.toys import Mixture, Toys, ToyTraining

EIGHTHS = 8  # checkpoints after the first epoch that a trend is judged by


@dataclass(frozen=True)
class ToySettings:
    """``runs`` networks decide; ``strip_runs``, for ``strip_epochs``, show unjudged how much an open choice matters.

    A mixture belongs to the study's ``seed``, so that another seed is another draw of it too.
    """

    runs: int = 20
    seed: int = 0
    strip_runs: int = 5
    epochs: int = 200
    strip_epochs: int = 50
    samples: int = 10_000
    dimensions: int = 50
    blocks: int = 10
    width: int = 20
    batch_size: int = 50
    path_samples: int = 512


QUICK: dict[str, Any] = {"runs": 10, "epochs": 24, "strip_epochs": 24, "samples": 2000, "path_samples": 128}
SMOKE: dict[str, Any] = {
    "runs": 2,
    "strip_runs": 1,
    "epochs": 2,
    "strip_epochs": 2,
    "samples": 60,
    "dimensions": 6,
    "blocks": 3,
    "width": 5,
    "batch_size": 20,
    "path_samples": 20,
}


def trend_epochs(epochs: int) -> tuple[int, ...]:
    """The first epoch and every eighth of the training, by which a steady increase is judged."""
    return tuple(sorted({1, *(round(part * epochs / EIGHTHS) for part in range(1, EIGHTHS + 1))} - {0}))


def strip_toys(settings: ToySettings, *, whole: bool = False, **changes: Any) -> Toys:
    """Networks that only show how much a choice matters: fewer, and for fewer epochs.

    For all epochs if ``whole``; they are measured at the shorter training's epochs too.
    """
    few = replace(settings, runs=settings.strip_runs)
    short = toys(replace(few, epochs=settings.strip_epochs), **changes)
    if not whole:
        return short
    found = toys(few, **changes)
    return replace(found, at=tuple(sorted({*short.at, *found.at})))


def toys(settings: ToySettings, **changes: Any) -> Toys:
    """The networks with batch normalisation that figure 1d is about, or others that differ from them by ``changes``.

    Changes may be fields of Toys, of its mixture or of its training.
    """
    trend = trend_epochs(settings.epochs)
    early = [epoch for epoch in (0, 2, 5, 10) if epoch < settings.epochs]
    mixture = Mixture(dimensions=settings.dimensions, samples=settings.samples, draw=settings.seed)
    training = ToyTraining(epochs=settings.epochs, batch_size=settings.batch_size)
    found = Toys(
        seeds=tuple(run_seeds(settings.seed, settings.runs)),
        width=settings.width,
        blocks=settings.blocks,
        at=tuple(sorted({*early, *trend})),
        path_samples=settings.path_samples,
    )
    parts: dict[str, Any] = {"mixture": mixture, "training": training}
    for name, part in parts.items():
        own = {key: value for key, value in changes.items() if key in vars(part)}
        parts[name] = replace(part, **own)
        changes = {key: value for key, value in changes.items() if key not in own}
    return replace(found, **parts, **changes)
