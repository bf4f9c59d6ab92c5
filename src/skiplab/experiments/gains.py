"""Search gains, then decide: models compared at each initial gain and at their own best ones.

The initial gain decides who wins (docs/errata.md), so every comparison has a headline row at each model's own best
gain, chosen on seeds that take no part in the verdict, and further rows at each common gain.

    EXPERIMENT = GainExperiment(PLAIN, RESIDUAL)
    Study(…, stages=EXPERIMENT.stages, claims=(Claim("…", "…", compare(RESIDUAL, PLAIN)),))
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from skiplab.experiments import networks
from skiplab.experiments.networks import GainSettings, Member
from skiplab.reproduction.claim import Claim, Equivalent, Evidence
from skiplab.reproduction.results import Found, Results, matching, sample_of
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

Quantity = Callable[["pd.DataFrame"], "np.ndarray"]  # rows of one model at one gain → one number per run

ONE_POINT = 0.01  # of accuracy: the smallest difference worth having
# Ours: gradients are flat if their norm changes by less than a factor of ten through the whole network.
FLAT = math.log(10)


class Model(NamedTuple):
    """A model of a study: the kind of network and its skip matrix."""

    name: str
    skip: str = "identity"


PLAIN, RESIDUAL, HYPER_RESIDUAL = Model("plain"), Model("residual"), Model("hyper-residual")


class Condition(NamedTuple):
    """Models at certain gains on one data set: its words, whether it is the headline, and each model's rows."""

    words: str
    headline: bool
    rows: list[pd.DataFrame]


@dataclass(frozen=True)
class Gains:
    """Networks of one size: the stages in which their gains are searched and their runs decide.

    The methods that compare return evidence, a function of the results.
    """

    search: str = "search"
    decide: str = "decide"
    sparse: bool = False  # whether gains at which not all models have runs are passed over

    def best_gain(self, results: Results, data: str, model: Model) -> float:
        """The gain with the best mean accuracy of a model on the search seeds."""
        found = _searched(results.rows(stage=self.search, data=data, skip=model.skip), model.name)
        last = networks.last_accuracy(found)
        # Within a gain σ and λ are at their own best, as they are in the deciding runs.
        means = last.groupby(["gain", "sigma", "strength"], as_index=False)["value"].mean()
        return float(means.loc[means["value"].idxmax(), "gain"])

    def at(self, results: Results, data: str, model: Model, gain: float | None = None) -> pd.DataFrame:
        """Rows of the deciding runs of a model at one gain, or (None) at its best one."""
        gain = self.best_gain(results, data, model) if gain is None else gain
        where: dict[str, Any] = {"data": data, "model": model.name, "skip": model.skip, "gain": gain}
        return results.rows(stage=self.decide, **where)

    def conditions(self, results: Results, models: Sequence[Model]) -> Iterator[Condition]:
        """Yield every condition: on each data set best gains first, then each gain for all models."""
        for data in results.settings.data:
            yield from self.conditions_on(results, data, models)

    def conditions_on(self, results: Results, data: str, models: Sequence[Model]) -> Iterator[Condition]:
        """Yield the conditions on one data set; samples come in the order of the models, whatever their gains."""
        best = [self.best_gain(results, data, model) for model in models]
        gains = "/".join(f"{gain:.3g}" for gain in dict.fromkeys(best))
        rows = [self.at(results, data, model, gain) for model, gain in zip(models, best, strict=True)]
        yield Condition(f"{data}, best gains ({gains})", True, rows)
        for gain in results.settings.gains:
            rows = [self.at(results, data, model, gain) for model in models]
            if not self.sparse or all(len(each) for each in rows):
                yield Condition(f"{data}, gain {gain:.3g}", False, rows)

    def each(self, models: Sequence[Model], quantity: Quantity | None = None) -> Found:
        """Evidence with one sample per model, in their order, in every condition."""
        taken = quantity or accuracies

        def found(results: Results) -> list[Evidence]:
            return [
                Evidence(words, [taken(rows) for rows in each], headline=headline)
                for words, headline, each in self.conditions(results, models)
            ]

        return found

    def compare(self, first: Model, second: Model, quantity: Quantity | None = None) -> Found:
        """Evidence that compares two models in every condition."""
        return self.each([first, second], quantity)

    def against_strongest(self, model: Model, models: Sequence[Model]) -> Found:
        """Evidence that compares a model with whichever other has the best mean."""
        return self._against(model, models, max)

    def against_weakest(self, model: Model, models: Sequence[Model]) -> Found:
        """Evidence that compares whichever other model has the worst mean with a model."""
        return self._against(model, models, min)

    def _against(self, model: Model, models: Sequence[Model], pick: Any) -> Found:
        others = [other for other in models if other != model]

        def found(results: Results) -> Iterator[Evidence]:
            for words, headline, each in self.conditions(results, [model, *others]):
                own, *samples = [accuracies(rows) for rows in each]
                place = pick(range(len(samples)), key=lambda index: samples[index].mean())
                pair = [own, samples[place]] if pick is max else [samples[place], own]
                yield Evidence(words, pair, headline=headline, detail=f"against {others[place].name}")

        return found


WIDE = Gains()  # networks of the paper's width, the only size of most studies
compare, each_of = WIDE.compare, WIDE.each
against_strongest, against_weakest = WIDE.against_strongest, WIDE.against_weakest


def of_one(model: Model, quantity: Quantity) -> Found:
    """Evidence about one model in every condition."""
    return WIDE.each([model], quantity)


def _searched(search: pd.DataFrame, model: str) -> pd.DataFrame:
    """The rows of a search that belong to a model: BiasL2Reg is BiasSymmBreak's search at σ = 0."""
    if model == "bias-l2-reg":
        return matching(search, model="bias-symm-break", sigma=0)
    found = matching(search, model=model)
    return found[found["sigma"] > 0] if model == "bias-symm-break" else found


# What is taken of a run ----------------------------------------------------------------------------------------


def accuracies(rows: pd.DataFrame) -> np.ndarray:
    """Accuracy at the last epoch, one number per run."""
    return sample_of(networks.last_accuracy(rows))


def log_decay(rows: pd.DataFrame) -> np.ndarray:
    """ln(norm at the top) − ln(norm at the bottom) along the fitted line, one number per run.

    The slope of log gradient norm against layer, averaged over the epochs measured and multiplied by the number of
    steps between layers; positive means that gradients shrink on their way down.
    """
    import numpy as np

    norms = matching(rows, quantity="gradient_norm").sort_values(["seed", "epoch", "layer"])
    layers = norms["layer"].nunique()
    # A vanished gradient may be exactly 0; the smallest float32 stands in for it.
    logs = np.log(np.maximum(norms["value"].to_numpy(dtype=float), np.finfo(np.float32).tiny))
    # An infinite one would spoil the fits of all runs; NaN spoils its own, which then counts as diverged.
    logs = np.where(np.isinf(logs), np.nan, logs).reshape(norms["seed"].nunique(), -1, layers)
    slopes = np.polyfit(np.arange(layers), logs.reshape(-1, layers).T, 1)[0]
    return slopes.reshape(logs.shape[:2]).mean(1) * (layers - 1)


RESIDUAL_FLAT = Claim(
    "residual-flat",
    "Gradient norms of residual networks do not diminish in earlier layers (log norm changes by < ln 10).",
    of_one(RESIDUAL, log_decay),
    kind=Equivalent(margin=FLAT),
    unit="log norm",
)


# Naming trials -------------------------------------------------------------------------------------------------


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
    """What a model has besides its gain, searched at every gain on separate seeds."""

    def search(self, settings: Any, data: str) -> Call:
        """Name the trial that searches."""

    def best(self, results: Results, data: str, gain: float) -> dict[str, float]:
        """What the search found best at one gain, as fields of ``networks.Member``."""


@dataclass(frozen=True)
class Tuned:
    """How a model is tuned; ``borrowed`` from another's search, its own best gain being searched afterwards."""

    by: Tuning
    borrowed: bool = False


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
        borrowing = [model for model, tuned in self.tuned.items() if tuned.borrowed]
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
        """Members of a model at every gain, with what the search found for that gain."""
        chosen = []
        for gain in results.settings.gains:
            found = self.tuned[model].by.best(results, data, gain) if model in self.tuned else {}
            chosen += [Member(seed, gain, **found) for seed in seeds]
        return chosen

    def figure(self, results: Results) -> Any:
        """Learning curves at each model's best gain (as the paper's), and accuracy against gain (ours)."""
        from skiplab.experiments.gain_figures import curves_and_gains

        return curves_and_gains(results, {model.name: model for model in self.models})
