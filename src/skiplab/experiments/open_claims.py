"""Evidence that leaves a claim open where what the paper does not say, or we have not run, decides it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from skiplab.experiments.gains import (
    ONE_POINT,
    WIDE,
    Gains,
    Model,
    accuracies,
    last_step,
    shared_seeds,
)
from skiplab.reproduction import NOT_RUN, Evidence, Found, Results

ENOUGH = 10  # seeds of a search that a verdict may rest on, as the rules of judging ask
TELLING = 20  # seeds that tell gains half a point apart
# The smallest gain of most studies is the best of some networks; one below it belongs to a search that is to tell.
LONGER = (
    f"not run yet: --set search_runs={TELLING} --set search_epochs=100 --set "
    "gains=0.03,0.1,0.3,1,1.4142135623730951"
)


def thorough(settings: Any, runs: int, least: int = ENOUGH) -> bool:
    """Whether a search had enough seeds, ``runs``, for a verdict that rests on it, and trained them in full."""
    return bool(runs >= least and settings.search_epochs >= settings.epochs)


class Open(NamedTuple):
    """A condition that would decide a claim and has no runs: whether they are yet to be made, and why it decides."""

    condition: str
    missing: str
    why: str


# What leaves a headline row open, from the results and the row; None if nothing does.
Reason = Callable[[Results, Evidence], Open | None]


def opened(found: Found, reason: Reason) -> Found:
    """The same evidence; where there is a reason, a condition without runs is the headline in the row's place."""

    def rows(results: Results) -> Iterator[Evidence]:
        for row in found(results):
            filled = row.headline and all(map(len, row.samples))
            if left := reason(results, row) if filled else None:
                yield Evidence.without(*left, len(row.samples))
            yield replace(row, headline=row.headline and left is None)

    return rows


def open_if_ties_disagree(first: Model, second: Model, worth: float) -> Found:
    """Accuracies of two models at their own gains, but no verdict where gains that tie decide what is worth having.

    Gains tie within a point. Where the difference is worth having at some of them and not at others, the headline is
    a longer search, which would tell them apart, unless that is the one made; what we have are further rows.
    """

    def reason(results: Results, row: Evidence) -> Open | None:
        if thorough(results.settings, results.settings.search_runs, TELLING):
            return None
        data = row.condition.partition(", ")[0]
        told = _at_tied_gains(results, data, first, second)
        if not told or (min(told.values()) >= worth) == (max(told.values()) >= worth):
            return None
        each = ", ".join(f"{effect:+.4f} at {gains}" for gains, effect in told.items())
        why = f"the gain decides: {each}; a longer search would settle it ({LONGER})"
        return Open(f"{data}, the best of tied gains", NOT_RUN, why)

    return opened(Gains(tie=worth).compare(first, second), reason)


def _at_tied_gains(results: Results, data: str, first: Model, second: Model) -> dict[str, float]:
    """The difference of two models' mean accuracies, by the gains of both, over all gains that tie."""
    found = {}
    tied = [sorted(WIDE.tied_gains(results, data, model), reverse=True) for model in (first, second)]
    for gains in product(*tied):
        pair = zip((first, second), gains, strict=True)
        rows = shared_seeds([WIDE.at(results, data, model, gain) for model, gain in pair])
        if all(map(len, rows)):
            words = (
                f"gain {gains[0]:.3g}"
                if gains[0] == gains[1]
                else f"gain {gains[0]:.3g} against {gains[1]:.3g}"
            )
            found[words] = difference([accuracies(each) for each in rows])
    return found


def open_at_an_edge(found: Found, model: Model) -> Found:
    """The same evidence, but no verdict where a model's accuracy still rises by more than a point at its grid's end.

    Where it ends no one knows, so that no number of further steps can be said to be too few.
    """

    def reason(results: Results, row: Evidence) -> Open | None:
        data = row.condition.partition(",")[0]
        means = WIDE.means(results, data, model)
        best = max(means, key=lambda gain: means[gain])
        rise = last_step(means, best)
        if rise <= ONE_POINT:
            return None
        further = f"{best:.3g}, where the grid ends, {100 * rise:.0f} points above the next"
        beyond = "smaller" if best == min(means) else "larger"
        why = f"{model.name} networks do best at gain {further}; {beyond} gains are declared and not run yet"
        return Open(f"{data}, a longer grid", NOT_RUN, why)

    return opened(found, reason)


def open_if_short(found: Found, untuned: str, *, tuned: Callable[[Any], bool], least: float = 0.0) -> Found:
    """The same evidence, but no verdict where the first sample's mean exceeds the second's by no more than ``least``.

    ``untuned`` says what was not searched for the first: with it networks might do better, and without it they may
    do well. ``tuned`` says by the settings of a run whether it was searched: then there is a verdict.
    """

    def reason(results: Results, row: Evidence) -> Open | None:
        if tuned(results.settings):
            return None
        data = row.condition.partition(",")[0]
        return Open(f"{data}, tuned", NOT_RUN, untuned) if difference(row.samples) <= least else None

    return opened(found, reason)


def difference(samples: Sequence[Any]) -> float:
    """The first sample's mean less the second's."""
    first, second = (sum(map(float, sample)) / len(sample) for sample in samples)
    return first - second
