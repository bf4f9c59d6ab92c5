"""Fully fledged plain and residual networks, trained once for interlayer-cushion and figure-12.

Blocks of two convolutions with batch normalisation, shortcut A, rate .1 for 180 epochs (figure 12's caption). Pairs
of equal seed share initial weights, batches, crops and flips.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from skiplab.randomness import run_seeds
from skiplab.reproduction import Call, Results, chunks, subset
from skiplab.reproduction.results import matching, sample_of
from skiplab.studies.yu2019.networks import Measures, Networks, Training, train
from skiplab.studies.yu2019.pairs import PLAIN, RESIDUAL

if TYPE_CHECKING:
    import numpy as np

PREFIX = "full-"
NO_FULL = "no full networks are trained in this run"
SMALLER = "networks that are not trained as the paper's"


@dataclass(frozen=True)
class FullSettings:
    """What the items with fully fledged networks have in common; drops after epochs 90 and 135 are ours.

    There are ``runs`` pairs, but no more than ``full_runs``, and none with ``fully_fledged=False``. Flows
    are measured at ``full_flows_at`` (0: after the first iteration), interlayer cushions at ``cushions_between_at``
    on ``images_between`` images. No name is one of ``Measures`` that ``PairSettings`` leaves at its default: an item
    with both must name the pairs that others name.
    """

    data: tuple[str, ...] = ("cifar10",)
    runs: int = 5
    seed: int = 0
    filters: tuple[int, ...] = (16, 32, 64)
    images: int | None = None
    side: int | None = None
    batch_size: int = 128
    padding: int = 4
    mixed: bool = True
    test_images: int | None = None
    flow_images: int = 128
    fully_fledged: bool = True
    full_runs: int = 5
    full_depth: int = 20
    full_rate: float = 0.1
    full_epochs: int = 180
    full_drops: tuple[int, ...] = (90, 135)
    full_flows_at: tuple[int, ...] = (0, 1, 2, 4, 8, 15, 30, 60, 90, 135, 179)
    cushions_between_at: tuple[int, ...] = (0, 180)
    images_between: int = 32

    @property
    def full_blocks(self) -> int:
        """Blocks of two convolutions in a network of 6n + 2 layers."""
        return (self.full_depth - 2) // 2

    def full(self, model: str, seeds: tuple[int, ...]) -> Networks:
        """Settings of the trial that trains full networks, plain or residual."""
        # Named one by one: items that have more settings than these must name the same trial.
        measures = Measures(
            test_every=5,
            flows=self.full_flows_at,
            interlayer=self.cushions_between_at,
            test_images=self.test_images,
            flow_images=self.flow_images,
            interlayer_images=self.images_between,
        )
        return Networks(
            data=self.data[0],
            model=PREFIX + model,
            depth=self.full_depth,
            seeds=seeds,
            training=subset(Training, self, epochs=self.full_epochs, drops=self.full_drops),
            rate=self.full_rate,
            filters=self.filters,
            measures=measures,
        )


# What both items shrink alike below the paper's scale.
QUICK_FULL: dict[str, Any] = {
    "full_depth": 14,
    "full_epochs": 4,
    "full_drops": (2, 3),
    "full_flows_at": (0, 1, 3),
    "cushions_between_at": (0, 4),
    "images_between": 4,
}
SMOKE_FULL: dict[str, Any] = QUICK_FULL | {
    "full_depth": 8,
    "full_epochs": 1,
    "full_drops": (),
    "full_flows_at": (0, 1),
    "cushions_between_at": (0, 1),
    "images_between": 2,
}


def train_full(results: Results) -> list[Call]:
    """Name both kinds of full network."""
    settings = results.settings
    seeds = run_seeds(settings.seed, min(settings.runs, settings.full_runs))
    return [
        train.of(settings.full(model, own), f"full {model}, {settings.full_depth} layers")
        for model in ((PLAIN, RESIDUAL) if settings.fully_fledged else ())
        for own in chunks(seeds, len(seeds))
    ]


def full_values(results: Results, model: str, quantity: str, *, epoch: int, layer: int) -> np.ndarray:
    """One number per full network in the order of seeds."""
    where = {"model": PREFIX + model, "quantity": quantity, "epoch": epoch, "layer": layer}
    return sample_of(matching(results.rows(train, stage=train_full.__name__), **where))
