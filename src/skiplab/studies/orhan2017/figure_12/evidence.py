"""What figure 12's claims are judged by, where a comparison of two kinds is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skiplab.experiments import networks
from skiplab.experiments.gains import LEARNED, PLAIN, accuracies, chance, of_accuracies, share_that
from skiplab.reproduction import NOT_RUN, Evidence, Found, Results
from skiplab.studies.orhan2017.figure_12.profiles import (
    CONSTANT,
    DECREASING,
    INCREASING,
    KINDS,
    PROFILES,
    profile_in_words,
)
from skiplab.studies.orhan2017.figure_12.trials import constant_or_start
from skiplab.studies.orhan2017.rescaled_networks import after

SEARCH_SEEDS = 10  # that a search must have for a verdict to rest on it
LIVE = ", those that learn"  # how conditions without the others end


def against_strongest(results: Results) -> Iterator[Evidence]:
    """Decreasing profiles against whichever other kind has the best mean."""
    others = (CONSTANT, PLAIN, INCREASING)
    for condition in PROFILES.conditions(results, [DECREASING, *others]):
        own, *rest = condition.rows
        if not all(len(rows) for rows in condition.rows):  # no runs were asked for at this gain
            yield condition.evidence([accuracies(own), accuracies(rest[0])], paired=False)
            continue
        place = max(range(len(rest)), key=lambda index: accuracies(rest[index]).mean())
        detail = f"{profile_in_words(own)} against {others[place].name}, {profile_in_words(rest[place])}"
        yield from of_accuracies(condition.of(0, 1 + place), [DECREASING, others[place]], detail)


def of_those_that_learn(found: Found) -> Found:
    """The same evidence; where some networks never learn, the headline is about the others and all are a further row.

    The chosen profile leaves a quarter of the networks dead, next to which nothing else would be seen.
    """

    def judged(results: Results) -> Iterator[Evidence]:
        rows = {row.condition: row for row in found(results)}
        for condition, row in rows.items():
            everyone = rows.get(condition.removesuffix(LIVE))
            if f"{condition}{LIVE}" in rows:
                yield replace(row, headline=False)
            elif condition.endswith(LIVE) and everyone is not None:
                detail = everyone.detail.partition("; the mean is over")[0]
                yield replace(row, headline=True, detail=detail, to_gain=everyone.to_gain)
            else:
                yield row

    return judged


def generally(results: Results) -> Iterator[Evidence]:
    """Mean accuracy over the paper's profiles but a = b = 0, and that of a = b = 0, one number per search seed.

    These networks are the search's own, so they decide only if it was thorough: ten seeds at full length.
    """
    settings = results.settings
    seeds, epochs = settings.search_runs, settings.search_epochs
    thorough = seeds >= SEARCH_SEEDS and epochs >= settings.epochs
    for data in settings.data:
        gain = PROFILES.own_gain(results, data, PLAIN)
        where = {"data": data, "gain": gain, "quantity": "accuracy", "epoch": epochs}
        rows = results.rows(networks.train, stage="search", **where)
        wide = rows[rows["slope"] <= 0].pivot(index="seed", columns=["slope", "offset"], values="value")
        plain = wide[0.0, 0.0]
        others = wide.drop(columns=[(0.0, 0.0)])
        alive = others >= LEARNED * chance(data)
        samples = {"": others.mean(axis=1), LIVE: others.where(alive).mean(axis=1)}
        dead = f"never learn: {share_that(~alive.to_numpy().ravel())} networks"
        words = f"{data}, gain {gain:.3g}, {others.shape[1]} profiles"
        if not thorough:
            asked = f"a verdict asks for {SEARCH_SEEDS} of {settings.epochs}"
            short = f"the search has {seeds} seeds of {epochs} epochs; {asked}"
            yield Evidence.without(f"{words}, trained in full", NOT_RUN, short, 2)
        for who, sample in samples.items():
            pair, judged = [sample.tolist(), plain.tolist()], thorough and who == LIVE
            yield Evidence(f"{words}{who}", pair, headline=judged, detail="" if who else dead, paired=True)


def whole(results: Results) -> Iterator[Evidence]:
    """How much the outputs change if constant biases are rescaled with the trained ones."""
    for kind in KINDS:
        for condition in PROFILES.conditions(results, [kind]):
            changes = after(condition.rows[0], "whole_rescaling_change")
            yield condition.evidence([changes], f"{kind.name}, {condition.words}")


def starts(results: Results) -> Iterator[Evidence]:
    """Differences between a constant profile and biases that start at it."""
    rows = results.rows(constant_or_start, quantity="difference")
    size = f"{results.settings.depth} layers of {results.settings.width}"
    condition = f"{size}, {profile_in_words(rows)}, {rows['epoch'].max()} steps"
    yield Evidence(condition, [rows["value"].tolist()])
