"""What figure 12's claims are judged by, where a comparison of two kinds is not enough."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from skiplab.experiments import networks
from skiplab.experiments.gains import LEARNED, PLAIN, chance, share_that
from skiplab.experiments.open_claims import ENOUGH, thorough
from skiplab.reproduction import NOT_RUN, Evidence, Found, Results
from skiplab.studies.orhan2017.figure_12.profiles import KINDS, PROFILES, profile_in_words
from skiplab.studies.orhan2017.figure_12.trials import constant_or_start
from skiplab.studies.orhan2017.rescaled_networks import after

LIVE, ALL = ", those that learn", ", all networks"  # how conditions without dead networks end, and with them


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


def open_if_dead(found: Found) -> Found:
    """The same evidence, but no verdict over all networks where a short search's profile leaves some of them dead.

    A longer search would find a profile that leaves none dead; more runs with the same one would not.
    """

    def opened(results: Results) -> Iterator[Evidence]:
        settings = results.settings
        longer = f"--set search_runs={ENOUGH} --set search_epochs={settings.epochs}"
        why = f"not run yet: a longer search, for the profile found leaves some networks dead ({longer})"
        for row in found(results):
            if row.headline and row.condition.endswith(ALL) and not thorough(settings, settings.search_runs):
                data = row.condition.partition(",")[0]
                yield Evidence.without(
                    f"{data}, a profile that leaves none dead", NOT_RUN, why, len(row.samples)
                )
                row = replace(row, headline=False)
            yield row

    return opened


def generally(results: Results) -> Iterator[Evidence]:
    """Mean accuracy over the paper's profiles but a = b = 0, and that of a = b = 0, one number per search seed.

    These networks are the search's own, so they decide only if it was thorough: ten seeds at full length.
    """
    settings = results.settings
    seeds, epochs = settings.search_runs, settings.search_epochs
    enough = thorough(settings, seeds)
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
        if not enough:
            asked = f"a verdict asks for {ENOUGH} of {settings.epochs}"
            short = f"the search has {seeds} seeds of {epochs} epochs; {asked}"
            yield Evidence.without(f"{words}, trained in full", NOT_RUN, short, 2)
        for who, sample in samples.items():
            pair, judged = [sample.tolist(), plain.tolist()], enough and who == LIVE
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
