"""What figures 2 and 3 read from the tables of ``resnets``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from skiplab.reproduction import Results
from skiplab.studies.littwin2017.resnet_settings import LIMITS, NETWORKS
from skiplab.studies.littwin2017.resnets import MAIN, train

if TYPE_CHECKING:
    import pandas as pd

LABELS = {"cifar10": "CIFAR-10", "cifar100-fine": "CIFAR-100", "digits": "digits"}


@dataclass(frozen=True)
class Curves:
    """A quantity of some networks over training: values (networks, epochs)."""

    seeds: tuple[int, ...]
    epochs: tuple[int, ...]
    values: np.ndarray

    def at(self, epoch: int) -> np.ndarray:
        """One number per network."""
        return np.asarray(self.values[:, self.epochs.index(epoch)])

    def since(self, epoch: int) -> Curves:
        """The same from an epoch on."""
        first = self.epochs.index(epoch)
        return Curves(self.seeds, self.epochs[first:], self.values[:, first:])

    def log(self) -> Curves:
        """The logarithms."""
        return Curves(self.seeds, self.epochs, np.log(self.values))

    def of(self, seeds: Sequence[int]) -> Curves:
        """Some of the networks."""
        return Curves(tuple(seeds), self.epochs, self.values[[self.seeds.index(seed) for seed in seeds]])

    def log_ratio(self, later: int, earlier: int) -> np.ndarray:
        """ln of the quantity at one epoch over that at another, one number per network."""
        return np.log(self.at(later) / self.at(earlier))

    def slopes(self, window: tuple[int, int]) -> np.ndarray:
        """The least-squares slope per epoch within a window, its ends included; one number per network."""
        chosen = [epoch for epoch in self.epochs if window[0] <= epoch <= window[1]]
        values = np.stack([self.at(epoch) for epoch in chosen])
        return np.asarray(np.polyfit(chosen, values, 1)[0])


def means(results: Results, data: str, quantity: str, stage: str = NETWORKS, branch: str = MAIN) -> Curves:
    """The mean over convolutions, or what belongs to the whole network, at every epoch."""
    rows = _rows(results, data, stage, branch, quantity=quantity, layer=0)
    wide = rows.pivot_table(index="seed", columns="epoch", values="value", observed=True)
    seeds, epochs = (tuple(int(each) for each in axis) for axis in (wide.index, wide.columns))
    return Curves(seeds, epochs, wide.to_numpy(dtype=float))


def layers(results: Results, data: str, quantity: str) -> tuple[np.ndarray, np.ndarray]:
    """Epochs, and a quantity of every layer as an array (networks, epochs, layers)."""
    rows = _rows(results, data, NETWORKS, MAIN, quantity=quantity)
    rows = rows[rows["layer"] > 0]
    wide = rows.pivot_table(index="seed", columns=["epoch", "layer"], values="value", observed=True)
    epochs = np.unique(rows["epoch"])
    return epochs, wide.to_numpy().reshape(len(wide), len(epochs), -1)


def _rows(results: Results, data: str, stage: str, branch: str, **where: Any) -> pd.DataFrame:
    return results.rows(train, stage=stage, data=data, branch=branch, diverged=False, **where)


def sets(results: Results) -> Iterator[tuple[str, str, str]]:
    """Every data set, its name, and why its networks are not judged ("" if they are)."""
    for data in results.settings.data:
        error = float(means(results, data, "test_error").values[:, -1].mean())
        limit = LIMITS.get(data, 1.0) if results.settings.limited else 1.0
        words = f"test error {error:.3f}, above {limit:g}: not the paper's networks" if error > limit else ""
        yield data, LABELS.get(data, data), words


def control_set(results: Results) -> Iterator[tuple[str, str, str]]:
    """The data set of the controls as ``sets`` gives it, if its networks were trained."""
    return (each for each in sets(results) if each[0] == results.settings.control_data)


def same_seeds(*curves: Curves) -> list[Curves]:
    """The networks that all of some curves have."""
    shared = sorted(set.intersection(*(set(each.seeds) for each in curves)))
    return [each.of(shared) for each in curves]


def kept(results: Results, stage: str) -> bool:
    """Whether a control was trained."""
    return any(part.stage == stage for part in results.parts)
