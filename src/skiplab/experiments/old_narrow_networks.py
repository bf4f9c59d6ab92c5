"""Naming the measured runs of a model at its best and other gains, and comparing models epoch by epoch.

As in the earlier paper's studies, the headline is at each model's best initial gain, chosen on separate seeds; the
other gains are further rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments import old_gains as searches
from skiplab.experiments.measured_networks import CurvatureSettings, Measured
from skiplab.experiments.networks import Member
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd


def narrow_runs(
    settings: CurvatureSettings, found: pd.DataFrame, data: str, model: str, **measured: Any
) -> Call:
    """Name the measured runs of a model's narrow networks: most at its best gain, some at each other gain.

    One trial for all gains: on a GPU fifty such networks take no longer than five.
    """
    best = searches.best_gain(networks.part(found, "narrow"), data, model)
    members = [Member(seed, gain) for gain, seed in seeds_at_gains(settings, [best])]
    return measured_narrow(settings, data, model, members, **measured)


def seeds_at_gains(settings: CurvatureSettings, best: Sequence[float]) -> Iterator[tuple[float, int]]:
    """Yield (gain, seed): ``narrow_runs`` seeds at the best gains, ``other_runs`` at each other one."""
    for gain in settings.gains:
        runs = settings.narrow_runs if gain in best else settings.other_runs
        for seed in earlier.final_seeds(settings.seed, runs):
            yield gain, seed


def measured_narrow(
    settings: CurvatureSettings, data: str, model: str, members: Sequence[Member], **measured: Any
) -> Call:
    """Name the trial that trains these narrow networks and finds their exact spectra."""
    named = earlier.together(settings.narrow_training, data, model, members)
    options: dict[str, Any] = {"at": settings.at, "exact": settings.samples, "units": settings.samples}
    return networks.call(Measured(named, "narrow", **options | measured))


def limits_at_width(
    settings: CurvatureSettings, found: pd.DataFrame, data: str, model: str, **measured: Any
) -> list[Call]:
    """Name the runs at the paper's width whose spectra Lanczos bounds and the paper's mixture estimates."""
    best = searches.best_gain(networks.part(found, "wide"), data, model)
    members = [Member(seed, best) for seed in earlier.final_seeds(settings.seed, settings.wide_runs)]
    if not members:
        return []
    named = earlier.together(settings.training, data, model, members)
    options: dict[str, Any] = {"at": settings.at, "limits": settings.wide_samples} | measured
    options |= {"probes": settings.probes, "steps": settings.steps}
    return [networks.call(Measured(named, "limits", **options), "limits at full width")]


def each_narrow_condition(
    frame: pd.DataFrame, settings: CurvatureSettings, data: str, models: Sequence[str]
) -> Iterator[tuple[str, bool, list[pd.DataFrame]]]:
    """Yield (condition, headline, rows of each model's narrow nets): best gains first, then each gain for all."""
    narrow = networks.part(frame, "narrow")
    best = [searches.best_gain(narrow, data, model) for model in models]
    rows = [searches.deciding(narrow, data, model, gain) for model, gain in zip(models, best, strict=True)]
    gains = "/".join(f"{gain:.3g}" for gain in dict.fromkeys(best))
    yield f"{data}, best gains ({gains})", True, rows
    for gain in settings.gains:
        rows = [searches.deciding(narrow, data, model, gain) for model in models]
        if all(len(each) for each in rows):
            yield f"{data}, gain {gain:.3g}", False, rows


def values(rows: pd.DataFrame, quantity: str, epoch: int, layer: int = 0) -> np.ndarray:
    """A quantity at one epoch, one number a run in the order of their seeds."""
    chosen = (rows["quantity"] == quantity) & (rows["epoch"] == epoch) & (rows["layer"] == layer)
    return rows[chosen].sort_values("seed")["value"].to_numpy(dtype=float)


def every_epoch(
    frame: pd.DataFrame, settings: CurvatureSettings, quantity: str, larger: str, smaller: str
) -> Iterator[Evidence]:
    """Evidence that one model's narrow nets have more of a quantity than another's, at every measured epoch."""
    for data in settings.data:
        for condition, headline, rows in each_narrow_condition(frame, settings, data, (larger, smaller)):
            for epoch in settings.at:
                samples = [values(each, quantity, epoch) for each in rows]
                yield Evidence(f"epoch {epoch}, {condition}", samples, headline=headline)


def narrow_search_of(settings: CurvatureSettings, models: Sequence[str]) -> list[Call]:
    """Name the gain searches of narrow nets of several models on every data set."""
    return [networks.narrow_search(settings, data, model) for data in settings.data for model in models]
