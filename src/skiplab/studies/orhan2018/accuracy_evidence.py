"""What figures 4 and S7 claim: the worst networks are more degenerate, and singularities go with low accuracy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING, NamedTuple

from skiplab.reproduction import Claim, Equivalent, Evidence, Found, Greater, Results
from skiplab.reproduction.results import matching
from skiplab.studies.orhan2018.accuracy_trials import WIDE, alike, small
from skiplab.studies.orhan2018.effects import CORRELATION, GROUP_SHARE

if TYPE_CHECKING:
    import pandas as pd


def by_network(rows: pd.DataFrame, quantity: str, epochs: Sequence[int] | None = None) -> pd.Series:
    """A quantity per network, averaged over the epochs given or over all at which it was measured."""
    found = matching(rows, quantity=quantity, layer=0)
    if epochs is not None:
        found = matching(found, epoch=list(epochs))
    return found.groupby("seed")["value"].mean().dropna()


def never_learn(rows: pd.DataFrame) -> str:
    """How many networks never learn, in words."""
    learned = by_network(rows, "learned")
    return f"{int((learned == 0).sum())} of {len(learned)} networks never learn"


def correlation_with_accuracy(quantity: str, sign: int) -> Found:
    """Fisher's z of Spearman's ρ between a quantity and accuracy, as jackknife pseudo-values; one per network.

    The headline takes every network and averages the quantity over the measured epochs of training (not epoch 0).
    Further rows take only networks that learn, and each epoch by itself.
    """

    def found(results: Results) -> Iterator[Evidence]:
        from skiplab.studies.orhan2018.regression import rank_z, spearman

        at = results.settings.at
        after = [epoch for epoch in at if epoch > 0]
        for data in results.settings.data:
            rows = results.rows(stage=WIDE, data=data)
            accuracy = by_network(rows, "accuracy")
            learned = accuracy.index[by_network(rows, "learned") > 0]
            cases = [(f"{data}, all networks", accuracy.index, after)]
            cases += [(f"{data}, those that learn", learned, after)]
            cases += [(f"{data}, all networks, epoch {epoch}", accuracy.index, [epoch]) for epoch in at]
            for condition, who, epochs in cases:
                values = by_network(rows, quantity, epochs)
                names = values.index.intersection(who)
                x, y = values[names].to_numpy(float), accuracy[names].to_numpy(float)
                headline = condition.endswith("all networks")
                detail = f"ρ = {spearman(x, y):+.3f}" + (f"; {never_learn(rows)}" if headline else "")
                yield Evidence(condition, [sign * rank_z(x, y)], headline=headline, detail=detail)

    return found


class Extremes(NamedTuple):
    """Rows of the best and of the worst small networks of those that learn, and of all."""

    best: pd.DataFrame
    worst: pd.DataFrame
    everyone: pd.DataFrame


def extremes(results: Results, data: str, depth: int, stage: Callable[[int], str] = small) -> Extremes:
    """The groups that the trial of a stage measured: half of them are the best, half the worst."""
    rows = results.rows(stage=stage(depth), data=data)
    chosen = by_network(rows, "degenerate").index
    order = by_network(rows, "accuracy")[chosen].sort_values(ascending=False, kind="stable").index.tolist()
    half = len(order) // 2
    best, worst = (matching(rows, seed=some) for some in (order[:half], order[len(order) - half :]))
    return Extremes(best, worst, rows)


def more_degenerate(results: Results) -> Iterator[Evidence]:
    """Degenerate fractions of the worst and of the best, averaged over epochs; each epoch is a further row."""
    settings = results.settings
    for data, depth in product(settings.data, settings.narrow_depths):
        best, worst, everyone = extremes(results, data, depth)
        words = f"{data}, {depth}×{settings.narrow}"
        dead = (by_network(everyone, "learned") == 0).any()
        told = f"{never_learn(everyone)}{', and spectra are of the others alone' if dead else ''}"
        cases = [(words, settings.spectra_at, told)]
        cases += [(f"{words}, epoch {epoch}", (epoch,), "") for epoch in settings.spectra_at]
        for condition, epochs, detail in cases:
            samples = [by_network(rows, "degenerate", epochs).tolist() for rows in (worst, best)]
            yield Evidence(condition, samples, headline=condition == words, detail=detail)


def no_more_degenerate(results: Results) -> Iterator[Evidence]:
    """Degenerate fractions of the worst and of the best at a gain at which all train alike, averaged over epochs."""
    settings = results.settings
    if settings.alike_gain is None:
        return
    for data, depth in product(settings.data, settings.narrow_depths):
        best, worst, everyone = extremes(results, data, depth, alike)
        samples = [by_network(rows, "degenerate", settings.spectra_at).tolist() for rows in (worst, best)]
        words = f"{data}, {depth}×{settings.narrow}, gain {settings.alike_gain:.3g}"
        yield Evidence(words, samples, detail=never_learn(everyone))


def _correlated(name: str, words: str, quantity: str, sign: int) -> Claim:
    return Claim(
        name,
        f"{words} (Spearman's ρ over plain networks of the paper's width).",
        correlation_with_accuracy(quantity, sign),
        kind=Greater(worth=CORRELATION),
        unit="Fisher's z" if sign > 0 else "−Fisher's z",
    )


CLAIMS = (
    Claim(
        "worst-more-degenerate",
        "The worst plain networks have a larger fraction of degenerate eigenvalues than the best.",
        more_degenerate,
        kind=Greater(worth=GROUP_SHARE),
        unit="fraction",
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
    Claim(
        "alike-where-all-train-alike",
        "Where all networks train alike, the worst and the best have equally many degenerate eigenvalues.",
        no_more_degenerate,
        kind=Equivalent(margin=GROUP_SHARE),
        unit="fraction",
        source="ours",
    ),
)
