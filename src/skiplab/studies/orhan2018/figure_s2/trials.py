"""Many small plain networks at their best initial gain and at others to be shown, the best and worst measured."""

from __future__ import annotations

from dataclasses import dataclass

from skiplab.checks import at_least
from skiplab.data.reading import has_split
from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.best_and_worst import extremes_among
from skiplab.experiments.gains import PLAIN
from skiplab.experiments.measured_networks import CurvatureSettings, Measured
from skiplab.experiments.narrow_networks import NARROW, narrow_searches
from skiplab.experiments.networks import Member
from skiplab.reproduction import Call, Results


@dataclass(frozen=True)
class Settings(CurvatureSettings):
    """How many small networks are trained, and how many of the best and of the worst are compared.

    ``runs`` are at their best gain, ``other_runs`` at each of ``shown_gains`` (0: at none).
    """

    runs: int = 400
    other_runs: int = 400
    narrow_depth: int = 10
    narrow_runs: int = 0  # all networks are narrow, and ``runs`` counts them
    wide_runs: int = 0
    extremes: int = 40
    shown_gains: tuple[float, ...] = (1.0,)
    test: bool = True


def search(results: Results) -> list[Call]:
    """First stage: the best gain of the small networks."""
    return narrow_searches(results.settings, [PLAIN], results.settings.data)


def decide(results: Results) -> list[Call]:
    """Second stage: one trial per data set and gain."""
    settings, calls = results.settings, []
    for data in settings.data:
        best, *others = gains(results, data)
        counts = {best: settings.runs} | dict.fromkeys(others, settings.other_runs)
        calls += [small_networks(settings, data, gain, runs) for gain, runs in counts.items() if runs]
    return calls


def gains(results: Results, data: str) -> list[float]:
    """The best gain on the search seeds, then the other gains to show."""
    best = NARROW.best_gain(results, data, PLAIN)
    return list(dict.fromkeys((best, *results.settings.shown_gains)))


def small_networks(settings: Settings, data: str, gain: float, runs: int) -> Call:
    """Name the trial of so many networks at one gain; test accuracies need a set with test images."""
    at_least("number of networks with a best and a worst one", runs, 2)
    members = [Member(seed, gain) for seed in networks.final_seeds(settings.seed, runs)]
    named = networks.together(settings.narrow_training, data, PLAIN.name, members)
    extremes = Measured(
        named,
        NARROW.decide,
        at=settings.at,
        exact=settings.samples,
        units=settings.samples,
        extremes=extremes_among(runs, settings.extremes),
        # Where nothing of the set is here, what was published is meant, which had both parts.
        test=settings.test and (has_split(data, "test") or not has_split(data, "train")),
    )
    return measured.call(extremes, f"gain {gain:.3g}")
