"""Networks trained and then rescaled: figure 2c measures plain and residual ones so, figure 12 constant biases.

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

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.experiments import networks
from skiplab.experiments.gains import LEARNED, Found, Gains, Model, share_that, shared_seeds
from skiplab.experiments.networks import GainSettings, Networks, Trained
from skiplab.reproduction import Bench, Evidence, Results, trial
from skiplab.reproduction.results import matching, sample_of

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
    """Settings of one trial: the networks, on how many training samples they are rescaled, g, and pairs per run."""

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
        "rescaling": found.ratio.mean(1),
        "rescaling_error": found.ratio.std(1) / found.ratio.shape[1] ** 0.5,
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


def seeds_at_gains(settings: RescalingSettings, best: float) -> Iterator[tuple[float, int]]:
    """Yield (gain, seed): ``runs`` seeds at the best gain, ``other_runs`` at each other one."""
    for gain in settings.gains:
        runs = settings.runs if gain == best else settings.other_runs
        for seed in networks.final_seeds(settings.seed, runs):
            yield gain, seed


def rescaled(settings: RescalingSettings, named: Networks) -> Rescaled:
    """The settings of a trial that trains these networks and rescales them as the study does."""
    return Rescaled(named, settings.rescaled_on, settings.pairs, settings.factor)


# What is taken of a run, and compared ----------------------------------------------------------------------------


def ratios(rows: pd.DataFrame) -> np.ndarray:
    """How much of its accuracy a run keeps when it is rescaled."""
    return after(rows, "rescaling")


def after(rows: pd.DataFrame, quantity: str) -> np.ndarray:
    """A quantity after training, one number per run in the order of their seeds."""
    return sample_of(matching(rows, quantity=quantity, layer=0))


def above_chance(rows: pd.DataFrame) -> np.ndarray:
    """How much of its accuracy above chance a run keeps; one that never learned has none to lose and is left out."""
    before, chance = after(rows, "before"), after(rows, "chance")
    learned = before >= LEARNED * chance
    return (ratios(rows) * before - chance)[learned] / (before - chance)[learned]


def compare_ratios(gains: Gains, more: Model, less: Model) -> Found:
    """Evidence on the ratios of two models, whose accuracies before are told: they limit how far a ratio can fall.

    The headline is about all networks, as the paper's means are. One that never learns cannot fall, so that its ratio
    is near 1 whatever its symmetry: where there are such, those seeds with which both models learn are a further row.
    """

    def found(results: Results) -> Iterator[Evidence]:
        for condition in gains.conditions(results, [more, less]):
            both = shared_seeds([_rescaled(rows) for rows in condition.rows])
            samples = [ratios(rows) for rows in both]
            before = " and ".join(f"{after(rows, 'before').mean():.3f}" for rows in both if len(rows))
            detail = f"accuracies before: {more.name} and {less.name} {before}" if before else ""
            learned = [after(rows, "before") >= LEARNED * after(rows, "chance") for rows in both]
            dead = [
                f"{model.name} {share_that(~each)}"
                for model, each in zip((more, less), learned, strict=True) if not all(each)
            ]  # fmt: skip
            if not condition.headline or not dead:
                yield condition.evidence(samples, detail=detail)
                continue
            alive = learned[0] & learned[1]
            words = f"{condition.words}, those that learn"
            never = f"{detail}; never learn: {', '.join(dead)}"
            yield condition.evidence(samples, f"{condition.words}, all networks", detail=never)
            yield condition.evidence([sample[alive] for sample in samples], words, headline=False)

    return found


def _rescaled(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of networks that were rescaled, which diverged ones are not."""
    return matching(rows, seed=set(matching(rows, quantity="rescaling")["seed"]))
