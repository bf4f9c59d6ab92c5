"""BiasReg: a plain network whose hidden biases are drawn towards random targets, and how we choose the targets' law.

BiasReg adds λ‖b − t‖² to the loss, with t ~ N(μ, σ²) drawn once per network; the biases themselves still start at 0.
The paper's captions do not say how μ, σ and λ were found. We draw triples at random, train each at every initial
gain on seeds that take no part in a verdict, and take the best triple at each gain.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment, Tuned, search_call
from skiplab.experiments.gains import PLAIN, WIDE, Gains, Model
from skiplab.experiments.narrow_networks import NARROW, measured_narrow, narrow_search_call, seeds_at_gains
from skiplab.experiments.networks import Member
from skiplab.randomness import numpy_generator
from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Call

BIAS_REG, WITH_BN = Model("bias-reg"), Model("bias-reg-bn")
Triple = tuple[float, float, float]  # (μ, σ, λ)

# Ours, written before the first run. They enclose the earlier paper's grid (σ to 1, λ from .001 to .1).
MEANS = (-1.0, 1.0)  # uniform
SIGMAS = (0.01, 1.0)  # uniform in the logarithm
STRENGTHS = (1e-4, 1e-1)  # uniform in the logarithm

# What figures 5 and 6 shrink alike: how many triples are tried, on how many seeds.
QUICK: dict[str, Any] = {"triples": 6, "triple_runs": 1}
SMOKE: dict[str, Any] = {"triples": 2, "triple_runs": 1}


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


@dataclass(frozen=True)
class BiasTriples:
    """Triples (μ, σ, λ) tried at every gain by networks of one size; ``named_by`` names their trial.

    ``bn``: they have a BatchNorm, if a run searches with it.
    """

    size: Gains
    named_by: Callable[..., Call]
    bn: bool = False

    def searched(self, settings: Any) -> Model:
        """The model that triples are tried with."""
        return WITH_BN if self.bn and getattr(settings, "bn_searched", False) else BIAS_REG

    def gains(self, settings: Any) -> tuple[float, ...]:
        """The gains at which triples are tried: all of them."""
        found: tuple[float, ...] = settings.gains
        return found

    def search(self, settings: Any, data: str) -> Call:
        """Name the trial that tries every triple at every gain on every search seed."""
        seeds = networks.search_seeds(settings.seed, settings.triple_runs)
        grid = product(self.gains(settings), triples(settings.seed, settings.triples), seeds)
        members = [Member(seed, gain, sigma, strength, mean) for gain, (mean, sigma, strength), seed in grid]
        return self.named_by(settings, data, self.searched(settings), members)

    def best(self, results: Results, data: str, gain: float) -> dict[str, float]:
        """The μ, σ and λ with the best mean accuracy at one gain."""
        model = self.searched(results.settings)
        rows = results.rows(stage=self.size.search, data=data, model=model.name, gain=gain)
        last = networks.last_accuracy(rows)
        means = last.groupby(["mean", "sigma", "strength"], as_index=False)["value"].mean()
        best = means.loc[means["value"].idxmax()]
        return {name: float(best[name]) for name in ("mean", "sigma", "strength")}


WIDE_TRIPLES = BiasTriples(WIDE, search_call)
WITH_BN_TRIPLES = BiasTriples(WIDE, search_call, bn=True)
NARROW_TRIPLES = BiasTriples(NARROW, narrow_search_call)
TUNED = {BIAS_REG: Tuned(WIDE_TRIPLES), WITH_BN: Tuned(WITH_BN_TRIPLES, borrowed=True, unless="bn_searched")}


def experiment(*models: Model) -> GainExperiment:
    """Some of these models and free ones, searched and trained at every gain at the paper's width."""
    return GainExperiment(*models, tuned={model: TUNED[model] for model in models if model in TUNED})


def narrow_bias_runs(results: Results, data: str) -> Call:
    """Name BiasReg's narrow runs with exact spectra: at each gain the best triple, most runs at the best gain.

    As many are made at plain networks' best gain, so that the two can always be compared at a common one.
    """
    best = [NARROW.best_gain(results, data, model) for model in (PLAIN, BIAS_REG)]
    members = [
        Member(seed, gain, **NARROW_TRIPLES.best(results, data, gain))
        for gain, seed in seeds_at_gains(results.settings, best)
    ]
    return measured_narrow(results.settings, data, BIAS_REG, members)
