"""BiasSymmBreak's σ and λ, searched on a grid at every gain (figures 7 and 8)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment, Tuned, search_call
from skiplab.experiments.gains import WIDE, Model, last_step
from skiplab.experiments.networks import GainSettings, Member
from skiplab.reproduction.claim import Evidence
from skiplab.reproduction.results import Found, Results, matching
from skiplab.reproduction.trial import Call

SYMM_BREAK, L2_REG, INIT = Model("bias-symm-break"), Model("bias-l2-reg"), Model("bias-init")
WITH_BN = Model("bias-symm-break-bn")


@dataclass(frozen=True)
class GridSettings(GainSettings):
    """The common settings and the search grid of the bias regularisers.

    ``grid_gains``, if any are given, are the only gains at which the bias regularisers are searched and trained.
    ``bn_searched``: whether σ and λ are searched with the BatchNorm, too, or taken from the search without it.
    """

    sigmas: tuple[float, ...] = (0.0, 0.01, 0.03, 0.1, 0.3, 1.0)
    strengths: tuple[float, ...] = (0.001, 0.01, 0.1)
    grid_gains: tuple[float, ...] = ()
    bn_searched: bool = False


QUICK: dict[str, Any] = {**networks.QUICK, "sigmas": (0.0, 0.03, 0.3, 1.0), "strengths": (0.01,)}
SMOKE: dict[str, Any] = {**networks.SMOKE, "sigmas": (0.0, 0.1), "strengths": (0.01,)}


@dataclass(frozen=True)
class BiasGrid:
    """σ × λ × gain, trained as BiasSymmBreak, or with a BatchNorm if that is searched; σ = 0 is BiasL2Reg."""

    l2: bool = False
    bn: bool = False

    def searched(self, settings: GridSettings) -> Model:
        """The model that the grid is searched with."""
        return WITH_BN if self.bn and settings.bn_searched else SYMM_BREAK

    def gains(self, settings: GridSettings) -> tuple[float, ...]:
        """The gains at which the grid is searched."""
        return settings.grid_gains or settings.gains

    def search(self, settings: GridSettings, data: str) -> Call:
        """Name the trial that searches the whole grid."""
        seeds = networks.search_seeds(settings.seed, settings.search_runs)
        grid = product(self.gains(settings), settings.sigmas, settings.strengths, seeds)
        members = [Member(seed, gain, sigma, strength) for gain, sigma, strength, seed in grid]
        return search_call(settings, data, self.searched(settings), members)

    def best(self, results: Results, data: str, gain: float) -> dict[str, float]:
        """The σ and λ with the best mean accuracy at one gain."""
        model = self.searched(results.settings)
        rows = results.rows(stage="search", data=data, model=model.name, gain=gain)
        last = networks.last_accuracy(rows[(rows["sigma"] == 0) == self.l2])
        means = last.groupby(["sigma", "strength"], as_index=False)["value"].mean()
        best = means.loc[means["value"].idxmax()]
        return {"sigma": float(best["sigma"]), "strength": float(best["strength"])}


def telling_choice(found: Found, place: int = 0, *, bn: bool = False) -> Found:
    """The same evidence, whose headline rows say which σ and λ BiasSymmBreak has, and whether the grid ends there.

    ``place``: which of the two samples is BiasSymmBreak's, and might gain by a longer search; ``bn``: it has the
    BatchNorm.
    """
    grid = BiasGrid(bn=bn)

    def told(results: Results) -> Iterator[Evidence]:
        for row in found(results):
            if row.headline:
                data = row.condition.partition(",")[0]
                detail = "; ".join(filter(None, (row.detail, choice(results, data, grid))))
                to_gain = list(row.to_gain or (0.0, 0.0))
                to_gain[place] += last_steps(results, data, grid)
                row = replace(row, detail=detail, to_gain=tuple(to_gain))
            yield row

    return told


def last_steps(results: Results, data: str, grid: BiasGrid) -> float:
    """What the last steps of σ and of λ brought BiasSymmBreak at its own gain, where the grid ends at the best."""
    model = grid.searched(results.settings)
    gain = WIDE.own_gain(results, data, model)
    best = grid.best(results, data, gain)
    rows = networks.last_accuracy(results.rows(stage="search", data=data, model=model.name, gain=gain))
    brought = 0.0
    for name, other in (("sigma", "strength"), ("strength", "sigma")):
        means = matching(rows, **{other: best[other]}).groupby(name)["value"].mean()
        tried = {
            float(value): float(mean) for value, mean in zip(means.index, means, strict=True) if value > 0
        }
        # Below the smallest σ or λ the model is a plain one, which is among the models.
        brought += last_step(tried, best[name]) if best[name] == max(tried, default=0.0) else 0.0
    return brought


def choice(results: Results, data: str, grid: BiasGrid) -> str:
    """BiasSymmBreak's σ and λ at its own gain, in words."""
    settings = results.settings
    best = grid.best(results, data, WIDE.own_gain(results, data, grid.searched(settings)))
    ends = {"σ": (best["sigma"], max(settings.sigmas)), "λ": (best["strength"], max(settings.strengths))}
    words = ", ".join(f"{name} = {value:g}" for name, (value, _) in ends.items())
    beyond = [name for name, (value, last) in ends.items() if value == last]
    return f"{words} found" + (f", where the grid of {' and '.join(beyond)} ends" if beyond else "")


TUNED = {
    SYMM_BREAK: Tuned(BiasGrid()),
    L2_REG: Tuned(BiasGrid(l2=True)),
    INIT: Tuned(BiasGrid(), borrowed=True),
    WITH_BN: Tuned(BiasGrid(bn=True), borrowed=True, unless="bn_searched"),
}


def experiment(*models: Model) -> GainExperiment:
    """Some of these models and free ones, searched and trained at every gain."""
    return GainExperiment(*models, tuned={model: TUNED[model] for model in models if model in TUNED})
