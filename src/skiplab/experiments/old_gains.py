"""Choosing gains, σ and λ on separate seeds, and comparing models at each gain and at their best ones.

The initial gain decides who wins (docs/errata.md), so every comparison has a headline row at each model's own
best gain, chosen on seeds that take no part in the verdict, and further rows at each common gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

from skiplab.experiments import networks
from skiplab.experiments.networks import GainSettings, Member
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def gain_search(settings: GainSettings, model: str, data: str, skip: str = "identity") -> Call:
    """Name the trial that finds a model's best gain."""
    seeds = networks.search_seeds(settings.seed, settings.search_runs)
    members = [Member(seed, gain) for gain, seed in product(settings.gains, seeds)]
    return networks.call(settings.search, data, model, members, skip=skip, what="search")


def best_gain(table: pd.DataFrame, data: str, model: str, skip: str = "identity") -> float:
    """The gain with the best mean accuracy of a model on the search seeds."""
    found = table[networks.is_search(table["seed"]) & (table["data"] == data) & (table["skip"] == skip)]
    if model == "bias-l2-reg":
        found = found[(found["model"] == "bias-symm-break") & (found["sigma"] == 0)]
    elif model == "bias-symm-break":
        found = found[(found["model"] == model) & (found["sigma"] > 0)]
    else:
        found = found[found["model"] == model]
    last = networks.last_accuracy(found)
    # Within a gain σ and λ are at their own best, as they are in the deciding runs.
    means = last.groupby(["gain", "sigma", "strength"], as_index=False)["value"].mean()
    return float(means.loc[means["value"].idxmax(), "gain"])


def deciding(table: pd.DataFrame, data: str, model: str, gain: float, skip: str = "identity") -> pd.DataFrame:
    """Rows of the deciding runs of one model at one gain."""
    same = (table["data"] == data) & (table["model"] == model) & (table["skip"] == skip)
    return table[same & (table["gain"] == gain) & ~networks.is_search(table["seed"])]


def accuracies(rows: pd.DataFrame) -> np.ndarray:
    """Accuracy at the last epoch, one number a run."""
    return networks.last_accuracy(rows).sort_values("seed")["value"].to_numpy(dtype=float)


def each_condition(
    table: pd.DataFrame, settings: GainSettings, models: Sequence[tuple[str, str]]
) -> Iterator[tuple[str, bool, list[pd.DataFrame]]]:
    """Yield (condition, headline, rows of each (model, skip)): best gains first, then each gain for all."""
    for data in settings.data:
        best = [best_gain(table, data, *pair) for pair in models]
        # Samples come in the order of the models, whatever their gains are.
        at_best = [
            deciding(table, data, model, gain, skip) for (model, skip), gain in zip(models, best, strict=True)
        ]
        gains = "/".join(f"{gain:.3g}" for gain in dict.fromkeys(best))
        yield f"{data}, best gains ({gains})", True, at_best
        for gain in settings.gains:
            rows = [deciding(table, data, model, gain, skip) for model, skip in models]
            yield f"{data}, gain {gain:.3g}", False, rows


def compare(
    table: pd.DataFrame,
    settings: GainSettings,
    first: tuple[str, str],
    second: tuple[str, str],
    sample: Callable[[pd.DataFrame], np.ndarray] = accuracies,
) -> list[Evidence]:
    """Evidence that compares two (model, skip) pairs in every condition."""
    return [
        Evidence(condition, [sample(rows) for rows in both], headline=headline)
        for condition, headline, both in each_condition(table, settings, [first, second])
    ]


def of_one(
    table: pd.DataFrame,
    settings: GainSettings,
    model: tuple[str, str],
    sample: Callable[[pd.DataFrame], np.ndarray],
) -> list[Evidence]:
    """Evidence about a single (model, skip) pair in every condition."""
    return [
        Evidence(condition, [sample(rows[0])], headline=headline)
        for condition, headline, rows in each_condition(table, settings, [model])
    ]


def log_decay(rows: pd.DataFrame) -> np.ndarray:
    """ln(norm at the top) − ln(norm at the bottom) along the fitted line, one number a run.

    The slope of log gradient norm against layer, averaged over the epochs measured and multiplied by the
    number of steps between layers; positive means that gradients shrink on their way down.
    """
    import numpy as np

    norms = rows[rows["quantity"] == "gradient_norm"].sort_values(["seed", "epoch", "layer"])
    layers = norms["layer"].nunique()
    # A vanished gradient may be exactly 0; the smallest float32 stands in for it.
    logs = np.log(np.maximum(norms["value"].to_numpy(dtype=float), np.finfo(np.float32).tiny))
    # An infinite one would spoil the fits of all runs; NaN spoils its own, which then counts as diverged.
    logs = np.where(np.isinf(logs), np.nan, logs).reshape(norms["seed"].nunique(), -1, layers)
    slopes = np.polyfit(np.arange(layers), logs.reshape(-1, layers).T, 1)[0]
    return slopes.reshape(logs.shape[:2]).mean(1) * (layers - 1)
