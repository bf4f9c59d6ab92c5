"""Does training accuracy go along with distance from degenerate manifolds? Many plain networks at one common gain.

Networks of the paper's width have norms, overlaps and dependences of hidden units, and each is correlated with
accuracy over all of them. Small networks of two depths have exact spectra: of those that learn, the best and the
worst are compared. Everything is at Glorot's gain 1, where networks differ in how they train; at √2 all train alike
and there is nothing to explain (figures 4 and S7).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.networks import Member, Training
from skiplab.reproduction.claim import Claim, Evidence, Greater
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

MODEL = "plain"
SMALL, WIDE = "small", "wide-units"


@dataclass(frozen=True)
class Settings:
    """How many networks of each size, and what is measured of them when.

    ``runs`` small networks of each of ``narrow_depths``, of which the ``extremes`` best and worst of those that
    learn are measured at ``spectra_at``; ``wide_runs`` of the paper's size, all measured at ``at``. The seed is 1:
    seed 0's networks chose the gain and the statistics.
    """

    data: tuple[str, ...] = ("cifar100-coarse",)
    runs: int = 400
    wide_runs: int = 100
    seed: int = 1
    gain: float = 1.0
    depth: int = 30
    width: int = 128
    images: int | None = None
    components: int | None = None
    epochs: int = 100
    batch_size: int = 500
    narrow: int = 16
    narrow_depths: tuple[int, ...] = (30, 10)
    narrow_components: int = 128
    at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)
    spectra_at: tuple[int, ...] = (1, 3, 10, 30, 100)
    samples: int = 2000
    extremes: int = 20
    learned: float = 1.5  # times chance: a network whose last accuracy is below it has not learned

    @property
    def training(self) -> Training:
        """What networks of the paper's size have in common."""
        shape = (self.depth, self.width, self.images, self.components)
        return Training(*shape, self.epochs, self.batch_size)


def train(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: per data set one trial at the paper's width and one per depth of the small networks."""
    return [call for data in settings.data for call in _on(settings, data)]


def _on(settings: Settings, data: str) -> Iterator[Call]:
    def named(training: Training, runs: int) -> Any:
        seeds = earlier.final_seeds(settings.seed, runs)
        return earlier.together(training, data, MODEL, [Member(seed, settings.gain) for seed in seeds])

    learned = settings.learned
    wide = named(settings.training, settings.wide_runs)
    yield networks.call(
        Measured(wide, WIDE, settings.at, units=settings.samples, learned=learned), "full width"
    )
    for depth in settings.narrow_depths:
        size = {"depth": depth, "width": settings.narrow, "components": settings.narrow_components}
        small = named(replace(settings.training, **size), settings.runs)
        options: dict[str, Any] = {"exact": settings.samples, "extremes": settings.extremes}
        measured = Measured(small, f"{SMALL}-{depth}", settings.spectra_at, learned=learned, **options)
        yield networks.call(measured, f"{depth} × {settings.narrow} units")


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All networks in one long table; ``part`` tells their sizes apart."""
    return networks.joined(tables)


# What the tables say -----------------------------------------------------------------------------------


def of(frame: pd.DataFrame, data: str, part: str) -> pd.DataFrame:
    """Rows of the networks of one size on one data set."""
    return frame[(frame["data"] == data) & (frame["part"] == part)]


def by_network(rows: pd.DataFrame, quantity: str, epochs: Sequence[int] | None = None) -> pd.Series:
    """A quantity per network, averaged over the epochs given or over all at which it was measured."""
    found = rows[(rows["quantity"] == quantity) & (rows["layer"] == 0)]
    if epochs is not None:
        found = found[found["epoch"].isin(epochs)]
    return found.groupby("seed")["value"].mean().dropna()


def correlations(frame: pd.DataFrame, settings: Settings, quantity: str, sign: int) -> Iterator[Evidence]:
    """Fisher's z of Spearman's ρ between a quantity and accuracy, as jackknife pseudo-values; one per network.

    The headline takes every network and averages the quantity over the measured epochs of training (not epoch 0).
    Further rows take only networks that learn, and each epoch by itself.
    """
    after = [epoch for epoch in settings.at if epoch > 0]
    for data in settings.data:
        rows = of(frame, data, WIDE)
        learned = by_network(rows, "learned") > 0
        accuracy = by_network(rows, "accuracy")
        share = f"{int((~learned).sum())} of {len(learned)} networks never learn"
        some = {f"{data}, all networks": (accuracy.index, after), f"{data}, those that learn": (None, after)}
        some |= {f"{data}, all networks, epoch {epoch}": (accuracy.index, [epoch]) for epoch in settings.at}
        for condition, (who, epochs) in some.items():
            values = by_network(rows, quantity, epochs)
            names = values.index.intersection(accuracy.index[learned] if who is None else who)
            x, y = values[names].to_numpy(float), accuracy[names].to_numpy(float)
            headline = condition.endswith("all networks")
            detail = f"ρ = {spearman(x, y):+.3f}" + (f"; {share}" if headline else "")
            yield Evidence(condition, [sign * rank_z(x, y)], headline=headline, detail=detail)


def spearman(x: np.ndarray, y: np.ndarray) -> float:
    """Spearman's rank correlation, ties given their mean rank."""
    from scipy import stats

    from skiplab.studies.orhan2018.regression import correlation

    return correlation(stats.rankdata(x), stats.rankdata(y))


def rank_z(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Pseudo-values of Fisher's z of Spearman's ρ, one per network."""
    import numpy as np

    from skiplab.studies.orhan2018.regression import NEARLY_ONE, pseudo_values

    def statistic(x: np.ndarray, y: np.ndarray) -> float:
        return float(np.arctanh(np.clip(spearman(x, y), -NEARLY_ONE, NEARLY_ONE)))

    return pseudo_values(statistic, x, y, np.arange(len(x)))


@dataclass(frozen=True)
class Extremes:
    """Small networks of one depth on one data set: the best and the worst of those that learn."""

    data: str
    depth: int
    everyone: pd.DataFrame
    best: pd.DataFrame
    worst: pd.DataFrame

    @property
    def share(self) -> str:
        """How many never learn, in words."""
        learned = by_network(self.everyone, "learned")
        return f"{int((learned == 0).sum())} of {len(learned)} networks never learn"


def extremes(frame: pd.DataFrame, settings: Settings, data: str, depth: int) -> Extremes:
    """The groups that the trial measured: half of them are the best, half the worst."""
    rows = of(frame, data, f"{SMALL}-{depth}")
    measured = by_network(rows, "degenerate").index
    order = by_network(rows, "accuracy")[measured].sort_values(ascending=False, kind="stable").index
    best, worst = order[: len(order) // 2], order[len(order) - len(order) // 2 :]
    return Extremes(data, depth, rows, *(rows[rows["seed"].isin(some)] for some in (best, worst)))


def more_degenerate(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Degenerate fractions of the worst and of the best, averaged over epochs; each epoch is a further row."""
    for data in settings.data:
        for depth in settings.narrow_depths:
            found = extremes(frame, settings, data, depth)
            words = f"{data}, {depth}×{settings.narrow}"
            for epochs in (settings.spectra_at, *((epoch,) for epoch in settings.spectra_at)):
                whole = epochs == settings.spectra_at
                yield Evidence(
                    words if whole else f"{words}, epoch {epochs[0]}",
                    [by_network(rows, "degenerate", epochs).tolist() for rows in (found.worst, found.best)],
                    headline=whole,
                    detail=found.share if whole else "",
                )


def _correlated(name: str, words: str, quantity: str, sign: int) -> Claim:
    return Claim(
        name,
        f"{words} (Spearman's ρ over plain networks of the paper's width).",
        lambda frame, settings: correlations(frame, settings, quantity, sign),
        Greater(),
        "Fisher's z" if sign > 0 else "−Fisher's z",
    )


CLAIMS = (
    Claim(
        "worst-more-degenerate",
        "The worst plain networks have a larger fraction of degenerate eigenvalues than the best.",
        more_degenerate,
        Greater(),
        "fraction",
    ),
    _correlated(
        "norm-with-accuracy", "Networks with larger norms of incoming weights train better", "norm", 1
    ),
    _correlated(
        "overlap-against-accuracy", "Networks whose hidden units overlap more train worse", "overlap", -1
    ),
    _correlated(
        "dependence-against-accuracy",
        "Networks whose hidden units are more linearly dependent train worse",
        "dependence",
        -1,
    ),
)
