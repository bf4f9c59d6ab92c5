"""Profiles a·l + b of constant biases: the grid, the four kinds that are compared, and the best of each kind."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from skiplab.checks import require
from skiplab.experiments import networks
from skiplab.experiments.gains import PLAIN, Gains, Model, best_by_gain
from skiplab.reproduction import Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2017.figure_12.trials import train_and_rescale
from skiplab.studies.orhan2017.rescaled_networks import RescalingSettings

if TYPE_CHECKING:
    import pandas as pd

CONSTANT, DECREASING, INCREASING = Model("constant"), Model("decreasing"), Model("increasing")
KINDS = (PLAIN, CONSTANT, DECREASING, INCREASING)


def kind_of(slope: float, offset: float) -> Model:
    """What the paper calls a profile."""
    if slope:
        return DECREASING if slope < 0 else INCREASING
    return CONSTANT if offset else PLAIN


@dataclass(frozen=True)
class ProfileSettings(RescalingSettings):
    """The common settings, how networks are rescaled after training, and the profiles a·l + b."""

    data: tuple[str, ...] = ("cifar100-coarse",)
    gains: tuple[float, ...] = networks.BRACKETED
    runs: int = 50
    depth: int = 30
    slopes: tuple[float, ...] = (0.0, -0.003, -0.006, -0.009, -0.012)
    rising: tuple[float, ...] = (0.003, 0.006, 0.009, 0.012)
    offsets: tuple[float, ...] = (0.0, 0.03, 0.06, 0.09, 0.12)

    def __post_init__(self) -> None:
        there = {kind_of(*line) for line in self.profiles}
        missing = [kind.name for kind in KINDS if kind not in there]
        require(
            not missing,
            f"the slopes {self.slopes}, {self.rising} and offsets {self.offsets} have no {' or '.join(missing)} "
            f"profile; include slopes 0, below and above it, and offsets 0 and above it.",
        )

    @property
    def profiles(self) -> list[tuple[float, float]]:
        """Every (a, b) of the grid."""
        return list(product((*self.slopes, *self.rising), self.offsets))


class ProfileGains(Gains):
    """Kinds of profiles in the place of models: at each gain a kind is represented by its best profile there."""

    def means(self, results: Results, data: str, model: Model) -> dict[float, float]:
        """Mean accuracy of a kind's best profile on the search seeds, by gain."""
        return best_by_gain(_of_kind(searched(results, data), model))

    def best_profile(self, results: Results, data: str, model: Model, gain: float) -> dict[str, float]:
        """The slope and offset of a kind with the best mean accuracy on the search seeds at one gain."""
        best = best_of(_of_kind(matching(searched(results, data), gain=gain), model))
        return {"slope": float(best["slope"]), "offset": float(best["offset"])}

    def at(self, results: Results, data: str, model: Model, gain: float | None = None) -> pd.DataFrame:
        """Rows of the deciding runs of a kind's best profile at one gain, or (None) at the kind's own."""
        gain = self.own_gain(results, data, model) if gain is None else gain
        line = self.best_profile(results, data, model, gain)
        return results.rows(train_and_rescale, stage=self.decide, data=data, gain=gain, **line)


PROFILES = ProfileGains()


def searched(results: Results, data: str) -> pd.DataFrame:
    """The search's mean accuracies, one row per gain, slope and offset."""
    where = {"data": data, "quantity": "accuracy", "epoch": results.settings.search_epochs}
    last = results.rows(networks.train, stage="search", **where)
    return last.groupby(["gain", "slope", "offset"])["value"].mean().reset_index()


def best_of(means: pd.DataFrame) -> pd.Series[float]:
    """The gain, slope and offset with the best mean accuracy."""
    return means.iloc[int(means["value"].argmax())]


def _of_kind(means: pd.DataFrame, kind: Model) -> pd.DataFrame:
    lines = zip(means["slope"], means["offset"], strict=True)
    return means[[kind_of(*line) == kind for line in lines]]


def profile_in_words(rows: pd.DataFrame) -> str:
    """The profile of networks that have one in common."""
    line = rows[["slope", "offset"]].drop_duplicates().iloc[0]
    return f"{line['slope']:g}·l + {line['offset']:g}"
