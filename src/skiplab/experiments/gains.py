"""Search gains, then decide: models compared at their own best gains and at common ones.

The initial gain decides who wins (docs/errata.md). So claims about accuracy have their headline at each model's own
best gain, chosen on seeds that take no part in the verdict. Claims about gradients, spectra and degeneracy have it at
a common gain, since an absolute threshold at unequal gains measures scale. Every other gain is a further row.

    EXPERIMENT = GainExperiment(PLAIN, RESIDUAL)
    Study(…, stages=EXPERIMENT.stages, claims=(Claim("…", "…", compare(RESIDUAL, PLAIN)),))
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from skiplab.data.registry import classes
from skiplab.experiments import networks
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.results import Found, Results, matching, sample_of

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

Quantity = Callable[["pd.DataFrame"], "np.ndarray"]  # rows of one model at one gain → one number per run

ONE_POINT = 0.01  # of accuracy: the smallest difference worth having
GLOROT = 1.0  # the gain of Glorot's initialisation
LEARNED = 1.5  # times chance: networks that end below never learn


class Model(NamedTuple):
    """A model of a study: the kind of network and its skip matrix."""

    name: str
    skip: str = "identity"


PLAIN, RESIDUAL, HYPER_RESIDUAL = Model("plain"), Model("residual"), Model("hyper-residual")


class Condition(NamedTuple):
    """Models at certain gains on one data set: its words, whether it is the headline, and each model's rows.

    Rows are those of the seeds that all models share, so that run i of every sample is paired.
    """

    words: str
    headline: bool
    rows: list[pd.DataFrame]
    data: str
    to_gain: tuple[
        float, ...
    ] = ()  # what models might gain by a longer search, whose best gain is an end of the grid

    def of(self, *places: int) -> Condition:
        """The same for some of the models, in this order."""
        to_gain = tuple(self.to_gain[place] for place in places) if self.to_gain else ()
        return self._replace(rows=[self.rows[place] for place in places], to_gain=to_gain)

    def evidence(
        self,
        samples: Sequence[np.ndarray],
        words: str = "",
        *,
        headline: bool | None = None,
        detail: str = "",
        paired: bool = True,
    ) -> Evidence:
        """What samples, one per model, say in this condition; ``paired`` unless they leave out runs."""
        headline = self.headline if headline is None else headline
        paired = paired and len(samples) > 1
        other = not self.headline
        words = words or self.words
        return Evidence(words, samples, headline=headline, detail=detail, paired=paired, other_scale=other)


@dataclass(frozen=True)
class Gains:
    """Networks of one size: the stages in which their gains are searched and their runs decide.

    The methods that compare return evidence, a function of the results.
    """

    search: str = "search"
    decide: str = "decide"
    sparse: bool = False  # whether gains at which not all models have runs are passed over
    tie: float = (
        ONE_POINT  # how close accuracies tie: no more than the smallest effect that a claim looks for
    )

    def means(self, results: Results, data: str, model: Model) -> dict[float, float]:
        """Mean accuracy of a model on the search seeds, by gain; within a gain σ and λ are at their own best."""
        found = _searched(results.rows(stage=self.search, data=data, skip=model.skip), model.name)
        last = networks.last_accuracy(found)
        tuned = last.groupby(["gain", "sigma", "strength"])["value"].mean().reset_index()
        return best_by_gain(tuned)

    def best_gain(self, results: Results, data: str, model: Model) -> float:
        """The gain with the best mean accuracy of a model on the search seeds."""
        means = self.means(results, data, model)
        return max(means, key=lambda gain: means[gain])

    def own_gain(self, results: Results, data: str, model: Model) -> float:
        """The gain at which a model is compared: of those that tie with its best, the one nearest to Glorot's."""
        tied = self.tied_gains(results, data, model)
        there = [gain for gain in tied if len(self.at(results, data, model, gain))]
        return min(there or tied, key=lambda gain: abs(math.log(gain / GLOROT)))

    def tied_gains(self, results: Results, data: str, model: Model) -> list[float]:
        """The gains whose mean accuracies tie with a model's best one."""
        means = self.means(results, data, model)
        return [gain for gain, mean in means.items() if mean > max(means.values()) - self.tie]

    def common_gain(self, results: Results, data: str, models: Sequence[Model]) -> float:
        """Glorot's gain if every model learns there, otherwise the gain at which the worst of them learns best."""
        means = [self.means(results, data, model) for model in models]
        worst = {
            gain: min(each[gain] for each in means)
            for gain in means[0]
            if all(gain in each for each in means)
        }
        there = [gain for gain in worst if all(len(self.at(results, data, model, gain)) for model in models)]
        if GLOROT in there and worst[GLOROT] >= LEARNED * chance(data):
            return GLOROT
        return max(there or worst, key=lambda gain: worst[gain])

    def all_learn(self, results: Results, data: str, models: Sequence[Model], gain: float) -> bool:
        """Whether every model learns at a gain, on the search seeds."""
        means = [self.means(results, data, model) for model in models]
        return all(each.get(gain, 0.0) >= LEARNED * chance(data) for each in means)

    def at(self, results: Results, data: str, model: Model, gain: float | None = None) -> pd.DataFrame:
        """Rows of the deciding runs of a model at one gain, or (None) at the one at which it is compared."""
        gain = self.own_gain(results, data, model) if gain is None else gain
        where: dict[str, Any] = {"data": data, "model": model.name, "skip": model.skip, "gain": gain}
        return results.rows(stage=self.decide, **where)

    def conditions(
        self, results: Results, models: Sequence[Model], *, common: bool = False, learning: bool = False
    ) -> Iterator[Condition]:
        """Yield every condition on each data set: the headline first, then each gain for all models."""
        for data in results.settings.data:
            yield from self.conditions_on(results, data, models, common=common, learning=learning)

    def conditions_on(
        self,
        results: Results,
        data: str,
        models: Sequence[Model],
        *,
        common: bool = False,
        learning: bool = False,
    ) -> Iterator[Condition]:
        """Yield the conditions on one data set; samples come in the order of the models, whatever their gains.

        The headline is at the models' own best gains, or (``common``) at one gain for all of them; with ``learning``
        only if there is a gain at which all of them learn.
        """
        own = [self.own_gain(results, data, model) for model in models]
        shared = self.common_gain(results, data, models)
        common = common and not (learning and not self.all_learn(results, data, models, shared))
        rows = [self.at(results, data, model, gain) for model, gain in zip(models, own, strict=True)]
        in_words = "/".join(f"{gain:.3g}" for gain in dict.fromkeys(own))
        to_gain = tuple(
            beyond_the_grid(self.means(results, data, model), gain)
            for model, gain in zip(models, own, strict=True)
        )
        best = Condition(f"{data}, best gains ({in_words})", not common, shared_seeds(rows), data, to_gain)
        yield from () if common else [best]
        # The headline's gain comes first.
        gains = sorted(results.settings.gains, key=lambda gain: common and gain != shared)
        for gain in gains:
            rows = [self.at(results, data, model, gain) for model in models]
            if not self.sparse or all(len(each) for each in rows):
                headline = common and gain == shared
                words = f"{data}, {'common ' if headline else ''}gain {gain:.3g}"
                yield Condition(words, headline, shared_seeds(rows), data)
        yield from [best] if common and len(models) > 1 else ()

    def each(
        self,
        models: Sequence[Model],
        quantity: Quantity | None = None,
        *,
        common: bool = True,
        paired: bool = True,
    ) -> Found:
        """Evidence with one sample per model, in their order, in every condition.

        Accuracies are compared at best gains, with and without networks that never learn; other quantities at
        common gains, unless they are not meant to. Not ``paired``: the quantity leaves out runs.
        """
        if quantity is None:
            return self._accuracies(models)

        def found(results: Results) -> list[Evidence]:
            return [
                condition.evidence([quantity(rows) for rows in condition.rows], paired=paired)
                for condition in self.conditions(results, models, common=common)
            ]

        return found

    def _accuracies(self, models: Sequence[Model]) -> Found:
        def found(results: Results) -> Iterator[Evidence]:
            for condition in self.conditions(results, models):
                yield from of_accuracies(condition, models)

        return found

    def compare(
        self, first: Model, second: Model, quantity: Quantity | None = None, **options: bool
    ) -> Found:
        """Evidence that compares two models in every condition, with the options of ``each``."""
        return self.each([first, second], quantity, **options)

    def against_strongest(self, model: Model, models: Sequence[Model]) -> Found:
        """Evidence that compares a model with whichever other has the best mean."""
        return self._against(model, models, max)

    def against_weakest(self, model: Model, models: Sequence[Model]) -> Found:
        """Evidence that compares whichever other model has the worst mean with a model."""
        return self._against(model, models, min)

    def nearer(self, model: Model, target: Model, other: Model) -> Found:
        """Evidence that a model's accuracy is nearer to one model's than to another's: it, and their middle."""

        def found(results: Results) -> Iterator[Evidence]:
            for condition in self.conditions(results, [model, target, other]):
                own, high, low = (accuracies(rows) for rows in condition.rows)
                names = (model.name, own), (target.name, high), (other.name, low)
                detail = ", ".join(f"{name} {sample.mean():.3f}" for name, sample in names)
                row = condition.evidence([own, (high + low) / 2], detail=detail)
                first, *rest = condition.to_gain or (0.0,) * 3
                yield replace(row, to_gain=(first, sum(rest) / 2) if condition.headline else ())

        return found

    def _against(self, model: Model, models: Sequence[Model], pick: Any) -> Found:
        others = [other for other in models if other != model]

        def found(results: Results) -> Iterator[Evidence]:
            for condition in self.conditions(results, [model, *others]):
                _, *rest = condition.rows
                place = pick(range(len(rest)), key=lambda index: accuracies(rest[index]).mean())
                pair = {0: model, 1 + place: others[place]}
                order = list(pair) if pick is max else list(reversed(pair))
                named = [pair[each] for each in order]
                yield from of_accuracies(condition.of(*order), named, f"against {others[place].name}")

        return found


def of_accuracies(condition: Condition, models: Sequence[Model], detail: str = "") -> Iterator[Evidence]:
    """Accuracies of all networks, and as a further row of those seeds alone with which every model learns."""
    least = LEARNED * chance(condition.data)
    samples = [accuracies(rows) for rows in condition.rows]
    learned = [sample >= least for sample in samples]
    shares = [
        f"{named(model)} {share_that(~each)}"
        for model, each in zip(models, learned, strict=True) if not all(each)
    ]  # fmt: skip
    to_gain = condition.to_gain if len(samples) == 2 else ()
    if not condition.headline or not shares:
        yield replace(condition.evidence(samples, detail=detail), to_gain=to_gain)
        return
    dead = f"never learn: {', '.join(shares)}; the mean is over all networks"
    found = condition.evidence(samples, detail="; ".join(filter(None, (detail, dead))))
    yield replace(found, to_gain=to_gain)
    alive = functools.reduce(operator.and_, learned)
    words = f"{condition.words}, those that learn"
    yield condition.evidence([sample[alive] for sample in samples], words, headline=False)


def named(model: Model) -> str:
    """What tells a model from the others of its study: its skip matrix, where that is not the identity."""
    return model.name if model.skip == "identity" else model.skip


def last_step(means: dict[float, float], gain: float) -> float:
    """What the last step of a grid brought in mean accuracy, if it ends at this gain; otherwise nothing.

    A grid of two has nothing between its ends: a small run that makes do with them says so in its settings.
    """
    grid = sorted(means)
    if len(grid) < 3 or gain not in (grid[0], grid[-1]):
        return 0.0
    neighbour = grid[1] if gain == grid[0] else grid[-2]
    return max(means[gain] - means[neighbour], 0.0)


def beyond_the_grid(means: dict[float, float], gain: float) -> float:
    """What a longer search might bring over this gain: nothing, unless the best gain is an end of the grid.

    A tie with the end is not bracketed either: the gain that stands in for it lacks their difference, too.
    """
    best = max(means, key=lambda each: means[each])
    step = last_step(means, best)
    return means[best] - means[gain] + step if step else 0.0


def share_that(which: np.ndarray) -> str:
    """How many runs do something, with Wilson's 95 % interval."""
    from skiplab.reproduction.statistics import share_interval

    count, total = int(which.sum()), len(which)
    low, high = share_interval(count, total)
    return f"{count} of {total} ({100 * low:.0f} to {100 * high:.0f} %)"


def chance(data: str) -> float:
    """The accuracy of guessing on a data set."""
    return 1 / classes(data)


def best_by_gain(means: pd.DataFrame) -> dict[float, float]:
    """The best of the mean accuracies at each gain."""
    best = means.groupby("gain")["value"].max()
    return dict(zip(best.index.astype(float).tolist(), best.tolist(), strict=True))


def shared_seeds(rows: Sequence[pd.DataFrame]) -> list[pd.DataFrame]:
    """The rows of the seeds that all tables have."""
    if not all(len(each) for each in rows):
        return list(rows)
    seeds = set.intersection(*(set(each["seed"]) for each in rows))
    return [each if seeds == set(each["seed"]) else matching(each, seed=seeds) for each in rows]


WIDE = Gains()  # networks of the paper's width, the only size of most studies
compare, each_of, nearer = WIDE.compare, WIDE.each, WIDE.nearer
against_strongest, against_weakest = WIDE.against_strongest, WIDE.against_weakest


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
