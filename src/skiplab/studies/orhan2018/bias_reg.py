"""BiasReg: a plain network whose hidden biases are drawn towards random targets, and how we choose the targets' law.

BiasReg adds λ‖b − t‖² to the loss, with t ~ N(μ, σ²) drawn once a network; the biases themselves still start at 0.
The paper's captions do not say how μ, σ and λ were found. We draw triples at random, train each at every initial
gain on seeds that take no part in a verdict, and take the best triple at each gain.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments import old_gains as searches
from skiplab.experiments import old_narrow_networks as comparisons
from skiplab.experiments.measured_networks import CurvatureSettings, Measured
from skiplab.experiments.networks import GainSettings, Member
from skiplab.randomness import numpy_generator
from skiplab.reproduction.trial import Call

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

MODEL = "bias-reg"
Triple = tuple[float, float, float]  # (μ, σ, λ)

# Ours, written before the first run. They enclose the earlier paper's grid (σ to 1, λ from .001 to .1).
MEANS = (-1.0, 1.0)  # uniform
SIGMAS = (0.01, 1.0)  # uniform in the logarithm
STRENGTHS = (1e-4, 1e-1)  # uniform in the logarithm


def triples(seed: int, count: int) -> list[Triple]:
    """The first so many draws of (μ, σ, λ); a longer search begins with those of a shorter one."""
    uniform = numpy_generator(seed, "bias-reg search").random((count, 3)).tolist()
    return [
        (
            _rounded(MEANS[0] + (MEANS[1] - MEANS[0]) * first),
            _rounded(SIGMAS[0] * (SIGMAS[1] / SIGMAS[0]) ** second),
            _rounded(STRENGTHS[0] * (STRENGTHS[1] / STRENGTHS[0]) ** third),
        )
        for first, second, third in uniform
    ]


def _rounded(value: float) -> float:
    # Powers differ in the last digit from machine to machine, and a trial's key must not.
    return float(f"{value:.4g}")


def search_members(settings: GainSettings, count: int, runs: int) -> list[Member]:
    """Every triple at every gain on every search seed."""
    seeds = earlier.search_seeds(settings.seed, runs)
    grid = product(settings.gains, triples(settings.seed, count), seeds)
    return [Member(seed, gain, sigma, strength, mean) for gain, (mean, sigma, strength), seed in grid]


def search(settings: GainSettings, data: str, count: int, runs: int) -> Call:
    """Name the trial that searches μ, σ and λ at every gain."""
    return earlier.call(settings.search, data, MODEL, search_members(settings, count, runs), what="search")


def narrow_search(settings: CurvatureSettings, data: str, count: int, runs: int) -> Call:
    """Name the same search of the narrow networks, whose spectra are exact."""
    training = replace(settings.narrow_training, epochs=settings.search_epochs)
    named = earlier.together(training, data, MODEL, search_members(settings, count, runs))
    return networks.call(Measured(named, "narrow"), "narrow search")


def best_triple(found: pd.DataFrame, data: str, gain: float) -> Triple:
    """The (μ, σ, λ) with the best mean accuracy on the search seeds at one gain."""
    last = earlier.last_accuracy(found[earlier.is_search(found["seed"]) & (found["model"] == MODEL)])
    last = last[(last["data"] == data) & (last["gain"] == gain)]
    means = last.groupby(["mean", "sigma", "strength"], as_index=False)["value"].mean()
    best = means.loc[means["value"].idxmax()]
    return float(best["mean"]), float(best["sigma"]), float(best["strength"])


def members(
    settings: GainSettings, found: pd.DataFrame, data: str, model: str, seeds: Sequence[int]
) -> list[Member]:
    """Members of a model at every gain; those of BiasReg have the triple that the search found for the gain."""
    chosen = []
    for gain in settings.gains:
        mean, sigma, strength = best_triple(found, data, gain) if model.startswith(MODEL) else (0.0,) * 3
        chosen += [Member(seed, gain, sigma, strength, mean) for seed in seeds]
    return chosen


def decide(settings: GainSettings, found: pd.DataFrame, data: str, models: Sequence[str]) -> list[Call]:
    """Name the deciding runs of several models on one data set; of plain and residual nets they are orhan2017's."""
    seeds = earlier.final_seeds(settings.seed, settings.runs)
    return [
        earlier.call(
            settings.training,
            data,
            model,
            members(settings, found, data, model, seeds),
            norms_at=settings.norms_at,
        )
        for model in models
    ]


def narrow_runs(settings: CurvatureSettings, found: pd.DataFrame, data: str) -> Call:
    """Name BiasReg's narrow runs with exact spectra: at each gain the best triple, most runs at the best gain.

    As many are made at plain networks' best gain, so that the two can always be compared at a common one.
    """
    narrow = networks.part(found, "narrow")
    best = [searches.best_gain(narrow, data, model) for model in ("plain", MODEL)]
    members = []
    for gain, seed in comparisons.seeds_at_gains(settings, best):
        mean, sigma, strength = best_triple(narrow, data, gain)
        members.append(Member(seed, gain, sigma, strength, mean))
    return comparisons.measured_narrow(settings, data, MODEL, members)
