"""Networks of the paper's size before training: tables 3 and 4 say much of them, and they cost seconds.

At every scale but the smallest they have the paper's depths and widths. With ``trained=False`` nothing else is
computed, so that a run at the paper's scale on a CPU tells all that can be told without training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Results
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.yu2019.controls import ControlSettings
from skiplab.studies.yu2019.networks import Measures, Networks, Training, train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL, train_pairs

if TYPE_CHECKING:
    import numpy as np

FAN_IN = "residual-fan-in"  # equation 4 with input channels, as it is printed
AS_PAPERS = ((20, 32, 44), (16, 32, 64))  # depths and filters


@dataclass(frozen=True)
class UntrainedSettings(ControlSettings):
    """``untrained_runs`` networks of each kind before training, their loss on ``untrained_images`` images."""

    trained: bool = True
    untrained_depths: tuple[int, ...] = AS_PAPERS[0]
    untrained_filters: tuple[int, ...] = AS_PAPERS[1]
    untrained_runs: int = 13
    untrained_images: int = 128


QUICK_UNTRAINED: dict[str, Any] = {"untrained_images": 32}
SMOKE_UNTRAINED: dict[str, Any] = {
    "untrained_depths": (5, 8),
    "untrained_filters": (2, 2, 4),
    "untrained_runs": 2,
    "untrained_images": 10,
}


def before(results: Results) -> list[Call]:
    """Name networks of every depth before training; trained for no epoch, they are measured all the same."""
    settings = results.settings
    calls = []
    for depth in settings.untrained_depths:
        for model in (PLAIN, RESIDUAL, FAN_IN):
            own = Networks(
                data=settings.data[0],
                model=model,
                depth=depth,
                seeds=tuple(run_seeds(settings.seed, settings.untrained_runs)),
                training=Training(images=settings.untrained_images, epochs=0, drops=()),
                filters=settings.untrained_filters,
                measures=Measures(test_every=0, clean=(0,), weights=(0,)),
            )
            calls.append(train.of(own, f"{model}, {depth} layers, untrained"))
    return calls


def pairs_if_trained(results: Results) -> list[Call]:
    """Name the pairs that most items share, unless nothing is to be trained."""
    calls = train_pairs(results) if results.settings.trained else []
    return [replace(call, stage=train_pairs.__name__) for call in calls]


def untrained(results: Results, model: str, depth: int, quantity: str, layer: int = 0) -> np.ndarray:
    """One number per network before training, in the order of seeds."""
    where = {"model": model, "depth": depth, "quantity": quantity, "layer": layer}
    return sample_of(matching(results.rows(train, stage=before.__name__), **where))


def is_papers_size(settings: UntrainedSettings) -> bool:
    """Whether the untrained networks have the paper's depths and widths."""
    return (settings.untrained_depths, settings.untrained_filters) == AS_PAPERS
