"""Networks of the paper's depth with few units, whose spectra are exact: named, and compared epoch by epoch.

What spectra say is judged at a common initial gain; other gains at which all models have runs are further rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.gains import WIDE, Gains, Model
from skiplab.experiments.measured_networks import CurvatureSettings, Measured
from skiplab.experiments.networks import Member, Training
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.results import Found, Results, matching, sample_of
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

BEFORE = "before training"

NARROW = Gains("narrow search", "narrow", sparse=True)


@dataclass(frozen=True)
class NarrowSearchSettings(CurvatureSettings):
    """The common settings and the length of the narrow networks' own search.

    They learn more slowly than wide ones, so at small scales their search must be longer to tell gains apart.
    """

    narrow_search_runs: int = 5
    narrow_search_epochs: int = 30

    @property
    def narrow_search(self) -> tuple[int, Training]:
        """How many runs the narrow search has at a gain, and what they have in common."""
        return self.narrow_search_runs, replace(self.narrow_training, epochs=self.narrow_search_epochs)


def narrow_searches(settings: CurvatureSettings, models: Sequence[Model], data: Sequence[str]) -> list[Call]:
    """Name the gain searches of several models' narrow networks on some data sets."""
    runs, _ = settings.narrow_search
    seeds = networks.search_seeds(settings.seed, runs)
    members = [Member(seed, gain) for gain, seed in product(settings.gains, seeds)]
    return [narrow_search_call(settings, name, model, members) for name in data for model in models]


def narrow_search_call(
    settings: CurvatureSettings, data: str, model: Model, members: Sequence[Member]
) -> Call:
    """Name a trial of narrow networks that only choose."""
    _, training = settings.narrow_search
    named = Measured(networks.together(training, data, model.name, members), "narrow")
    return measured.call(named, NARROW.search, stage=NARROW.search)


def narrow_runs(results: Results, data: str, model: Model, **more: Any) -> Call:
    """Name the measured runs of a model's narrow networks: most at its best gain, some at each other gain.

    One trial for all gains: on a GPU fifty such networks take no longer than five.
    """
    best = NARROW.best_gain(results, data, model)
    members = [Member(seed, gain) for gain, seed in seeds_at_gains(results.settings, [best])]
    return measured_narrow(results.settings, data, model, members, **more)


def seeds_at_gains(settings: CurvatureSettings, best: Sequence[float]) -> Iterator[tuple[float, int]]:
    """Yield (gain, seed): ``narrow_runs`` seeds at the best gains, ``other_runs`` at each other one."""
    for gain in settings.gains:
        runs = settings.narrow_runs if gain in best else settings.other_runs
        for seed in networks.final_seeds(settings.seed, runs):
            yield gain, seed


def measured_narrow(
    settings: CurvatureSettings,
    data: str,
    model: Model,
    members: Sequence[Member],
    *,
    norms_at: tuple[int, ...] = (),
    **more: Any,
) -> Call:
    """Name the trial that trains these narrow networks and finds their exact spectra."""
    named = networks.together(settings.narrow_training, data, model.name, members, norms_at=norms_at)
    options: dict[str, Any] = {"at": settings.at, "exact": settings.samples, "units": settings.samples}
    return measured.call(Measured(named, "narrow", **options | more))


def limits_at_width(results: Results, data: str, model: Model, **more: Any) -> list[Call]:
    """Name the runs at the paper's width whose spectra Lanczos bounds and the paper's mixture estimates."""
    settings = results.settings
    best = WIDE.best_gain(results, data, model)
    members = [Member(seed, best) for seed in networks.final_seeds(settings.seed, settings.wide_runs)]
    if not members:
        return []
    named = networks.together(settings.training, data, model.name, members)
    options: dict[str, Any] = {"at": settings.at, "limits": settings.wide_samples} | more
    options |= {"probes": settings.probes, "steps": settings.steps}
    return [measured.call(Measured(named, "limits", **options), "limits at full width")]


def values(rows: pd.DataFrame, quantity: str, epoch: int, layer: int = 0) -> np.ndarray:
    """A quantity at one epoch, one number per run in the order of their seeds."""
    return sample_of(matching(rows, quantity=quantity, epoch=epoch, layer=layer))


def every_epoch(quantity: str, larger: Model, smaller: Model) -> Found:
    """Evidence that one model's narrow nets have more of a quantity than another's, at every epoch after the first.

    Both at one gain, or each at its own best where they learn at none together. Epoch 0 is before training, of which
    the papers say nothing: a further row.
    """

    def found(results: Results) -> list[Evidence]:
        return [
            condition.evidence(
                [values(rows, quantity, epoch) for rows in condition.rows],
                f"epoch {epoch}, {condition.words}",
                headline=condition.headline and epoch > 0,
                detail="" if epoch else BEFORE,
            )
            for condition in NARROW.conditions(results, [larger, smaller], common=True, learning=True)
            for epoch in results.settings.at
        ]

    return found
