"""A gain experiment's trials: search each model's gain, and what else it has to tune, then train runs that decide.

What the runs say is compared in ``gains``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Protocol

from skiplab.experiments import networks
from skiplab.experiments.gains import Model
from skiplab.experiments.networks import GainSettings, Member
from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Call


def gain_search(settings: GainSettings, data: str, model: Model) -> Call:
    """Name the trial that finds a model's best gain."""
    seeds = networks.search_seeds(settings.seed, settings.search_runs)
    members = [Member(seed, gain) for gain, seed in product(settings.gains, seeds)]
    return search_call(settings, data, model, members)


def search_call(settings: GainSettings, data: str, model: Model, members: Sequence[Member]) -> Call:
    """Name a trial whose runs only choose."""
    return networks.call(
        settings.search, data, model.name, members, skip=model.skip, what="search", stage="search"
    )


def deciding_call(settings: GainSettings, data: str, model: Model, members: Sequence[Member]) -> Call:
    """Name a trial whose runs decide."""
    options: dict[str, Any] = {"skip": model.skip, "norms_at": settings.norms_at, "stage": "decide"}
    return networks.call(settings.training, data, model.name, members, **options)


class Tuning(Protocol):
    """What a model has besides its gain, searched at its gains on separate seeds."""

    def gains(self, settings: Any) -> tuple[float, ...]:
        """The gains at which the model is searched and trained."""

    def search(self, settings: Any, data: str) -> Call:
        """Name the trial that searches."""

    def best(self, results: Results, data: str, gain: float) -> dict[str, float]:
        """What the search found best at one gain, as fields of ``networks.Member``."""


@dataclass(frozen=True)
class Tuned:
    """How a model is tuned; ``borrowed`` from another's search, its own best gain being searched afterwards.

    ``unless`` names a setting, which not every study has, with which a run searches for the model itself.
    """

    by: Tuning
    borrowed: bool = False
    unless: str = ""

    def borrows(self, settings: Any) -> bool:
        """Whether the model takes what was found for another one."""
        return self.borrowed and not (self.unless and getattr(settings, self.unless, False))


class GainExperiment:
    """Models searched and then trained at every gain; ``tuned`` says which have more to search than a gain."""

    def __init__(self, *models: Model, tuned: dict[Model, Tuned] | None = None) -> None:
        self.models = models
        self.tuned = tuned or {}
        # Without anything to tune, searches and deciding runs do not wait for each other.
        self.stages = (self.search, self.decide) if self.tuned else (self.train,)

    def search(self, results: Results) -> list[Call]:
        """First stage: what tuned models search at every gain, and the gains of the others."""
        settings, calls = results.settings, []
        free = [model for model in self.models if model not in self.tuned]
        for data in settings.data:
            calls += [tuned.by.search(settings, data) for tuned in self.tuned.values()]
            calls += [gain_search(settings, data, model) for model in free]
        return list(dict.fromkeys(calls))  # two models may share a search

    def decide(self, results: Results) -> list[Call]:
        """Second stage: the runs that decide, at every gain, and the gain searches of models with borrowed tuning."""
        settings, calls = results.settings, []
        seeds = networks.final_seeds(settings.seed, settings.runs)
        apart = networks.search_seeds(settings.seed, settings.search_runs)
        borrowing = [model for model, tuned in self.tuned.items() if tuned.borrows(settings)]
        for data in settings.data:
            calls += [
                deciding_call(settings, data, model, self.members(results, data, model, seeds))
                for model in self.models
            ]
            calls += [
                search_call(settings, data, model, self.members(results, data, model, apart))
                for model in borrowing
            ]
        return calls

    def train(self, results: Results) -> list[Call]:
        """The one stage where nothing is tuned: for every model the deciding runs and the gain search."""
        settings = results.settings
        seeds = networks.final_seeds(settings.seed, settings.runs)
        return [
            call
            for data, model in product(settings.data, self.models)
            for call in (
                deciding_call(settings, data, model, self.members(results, data, model, seeds)),
                gain_search(settings, data, model),
            )
        ]

    def members(self, results: Results, data: str, model: Model, seeds: Sequence[int]) -> list[Member]:
        """Members of a model at each of its gains, with what the search found for that gain."""
        settings = results.settings
        if model not in self.tuned:
            return [Member(seed, gain) for gain in settings.gains for seed in seeds]
        tuning = self.tuned[model].by
        return [
            Member(seed, gain, **found)
            for gain in tuning.gains(settings)
            for found in [tuning.best(results, data, gain)]
            for seed in seeds
        ]

    def figure(self, results: Results) -> Any:
        """Learning curves at each model's best gain (as the paper's), and accuracy against gain (ours)."""
        from skiplab.experiments.gain_figures import curves_and_gains

        return curves_and_gains(results, {model.name: model for model in self.models})
