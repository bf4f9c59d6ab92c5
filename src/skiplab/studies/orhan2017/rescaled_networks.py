"""Networks trained and then rescaled: what figure 2c measures of plain, residual and hyper-residual ones.

The rows of a trained network are those of networks.train; after the last epoch come, on the first training samples,

- ``before``, its accuracy as it is, the weights at rest (``accuracy`` is the running mean over the last epoch), and
  ``chance``, that of guessing;
- ``rescaling``, the mean over pairs k < l of the accuracy after W_k × g, W_l / g and the biases between them × g,
  divided by ``before``: 1 if the symmetry is whole; ``rescaling_error``, its standard error over pairs;
- ``rescaling_change``, the largest relative change of the outputs over pairs, and ``rescaling_mean_change``;
- ``rescaling_at_distance``, the ratio by l − k (its layer), averaged over the pairs drawn at that distance.

A run's own seed draws its pairs. A network that diverged is not rescaled and has no such rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import networks
from skiplab.experiments import old_gains as searches
from skiplab.experiments.networks import GainSettings, Member, Networks, Trained
from skiplab.reproduction.trial import Bench, Call, trial

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

BATCH = 1000  # samples that are rescaled at once
TRAINING_SHARE = 0.9  # of the progress bar


@dataclass(frozen=True)
class RescalingSettings(GainSettings):
    """The common settings and how networks are rescaled after training."""

    runs: int = 40
    depth: int = 20
    norms_at: tuple[int, ...] = ()
    other_runs: int = 10  # at the gains that are not a model's best one
    factor: float = 10.0
    pairs: int = 10
    rescaled_on: int = 10_000


@dataclass(frozen=True)
class Rescaled:
    """Settings of one trial: the networks, on how many training samples they are rescaled, g, and pairs a run."""

    networks: Networks
    samples: int
    pairs: int
    factor: float = 10.0

    @property
    def data(self) -> str:
        """The data set, by which the trial's key depends on its hash."""
        return self.networks.data


@trial("orhan2017/train-and-rescale", version=1)
def train_and_rescale(settings: Rescaled, bench: Bench) -> pd.DataFrame:
    """Train the members, then measure how much of the rescaling symmetry they have."""
    training = replace(bench, tell=lambda done, text: bench.tell(TRAINING_SHARE * done, text))
    trained = networks.train_members(settings.networks, training)
    bench.tell(TRAINING_SHARE, "rescaling")
    rows = trained.rows + rescaled_rows(settings, trained)
    return networks.table(settings.networks, rows, trained.diverged)


def rescaled_rows(settings: Rescaled, trained: Trained) -> list[dict[str, Any]]:
    """What rescaling does to the trained networks, as rows of the table."""
    import torch

    from skiplab.measurements.symmetry import rescaling_symmetry

    alive = [member for member, diverged in enumerate(trained.diverged) if not diverged]
    if not alive:
        return []
    # In double precision, so that rounding does not pass for a broken symmetry.
    ensemble = trained.ensemble.selected(alive, dtype=torch.float64)
    inputs = trained.samples.inputs[: settings.samples].split(BATCH)
    labels = trained.samples.labels[: settings.samples].split(BATCH)
    found = rescaling_symmetry(
        ensemble,
        ((x.double(), y) for x, y in zip(inputs, labels, strict=True)),
        factor=settings.factor,
        draws=settings.pairs,
        seed=[settings.networks.seeds[member] for member in alive],
    )
    numbers = {
        "before": found.accuracy_before,
        "chance": torch.full_like(found.accuracy_before, 1 / trained.samples.classes),
        "rescaling": found.score,
        "rescaling_error": found.stderr,
        "rescaling_change": found.change.amax(1),
        "rescaling_mean_change": found.mean_change,
    }
    values = [
        (member, quantity, 0, value)
        for quantity, each in numbers.items()
        for member, value in zip(alive, each.tolist(), strict=True)
    ]
    distances = (found.changed[..., 1] - found.changed[..., 0]).to(found.ratio.device)
    for place, member in enumerate(alive):
        for distance in sorted(set(distances[place].tolist())):
            ratio = found.ratio[place][distances[place] == distance].mean()
            values.append((member, "rescaling_at_distance", distance, float(ratio)))
    last = settings.networks.training.epochs
    names = ("member", "quantity", "layer", "value")
    return [{**dict(zip(names, row, strict=True)), "epoch": last} for row in values]


def search(settings: RescalingSettings, models: Sequence[str]) -> list[Call]:
    """Name the trials that find each model's best gain."""
    return [searches.gain_search(settings, model, data) for data, model in product(settings.data, models)]


def decide(settings: RescalingSettings, found: pd.DataFrame, models: Sequence[str]) -> list[Call]:
    """Name the runs that decide: ``runs`` at each model's best gain, ``other_runs`` at each other one."""
    calls = []
    for data, model in product(settings.data, models):
        best = searches.best_gain(found, data, model)
        members = [
            Member(seed, gain)
            for gain in settings.gains
            for seed in networks.final_seeds(
                settings.seed, settings.runs if gain == best else settings.other_runs
            )
        ]
        named = networks.together(settings.training, data, model, members)
        trained = Rescaled(named, settings.rescaled_on, settings.pairs, settings.factor)
        calls.append(train_and_rescale.of(trained, networks.label(named)))
    return calls


def values(rows: pd.DataFrame, quantity: str = "rescaling") -> np.ndarray:
    """A quantity after training, one number a run in the order of their seeds."""
    chosen = rows[(rows["quantity"] == quantity) & (rows["layer"] == 0)]
    return chosen.sort_values("seed")["value"].to_numpy(dtype=float)
