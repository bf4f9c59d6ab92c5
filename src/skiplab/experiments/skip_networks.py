"""Residual networks with skip matrices from orthogonal to folded ones, or of the τ family of orhan2017's note 4.

Both versions of Orhan's paper train them: orhan2017's figures 9 and 10, orhan2018's figures 7 and 8. Settings list
their matrices as ``skips``, from the least to the most orthogonal one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from skiplab.experiments import networks
from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import ONE_POINT, RESIDUAL, Model, compare, each_of
from skiplab.experiments.gradient_falls import fall_along_a_line
from skiplab.experiments.networks import GainSettings
from skiplab.reproduction.claim import Claim, Evidence, Greater, Ordered
from skiplab.reproduction.results import Results
from skiplab.reproduction.trial import Call

IDENTITY, ORTHOGONAL = RESIDUAL, Model("residual", "orthogonal")


@dataclass(frozen=True)
class FoldedSettings(GainSettings):
    """The common settings, and how many distinct skip vectors are left after folding."""

    runs: int = 10
    folded: tuple[int, ...] = (64, 32, 16, 8, 4, 2, 1)

    @property
    def skips(self) -> list[Model]:
        """From the most folded to the orthogonal matrix; identity is apart."""
        return [Model("residual", f"folded-{distinct}") for distinct in sorted(self.folded)] + [ORTHOGONAL]


FOLDED_QUICK: dict[str, Any] = {**networks.QUICK, "folded": (8, 1)}
FOLDED_SMOKE: dict[str, Any] = {**networks.SMOKE, "folded": (1,)}


@dataclass(frozen=True)
class TauSettings(GainSettings):
    """The common settings, and the τ of the skip matrices; larger ones are less orthogonal."""

    runs: int = 10
    norms_at: tuple[int, ...] = (0,)
    taus: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1)
    draws: int = 20  # random matrices of each τ whose eigenvalues are computed, as many as note 4's

    @property
    def skips(self) -> list[Model]:
        """From the largest τ to the smallest one, 0 as a rule."""
        return [Model("residual", skip_of(tau)) for tau in sorted(self.taus, reverse=True)]


# At 32 units τ is four times as large, so that exp(−τ(n − 1)), the smallest eigenvalue, is nearly the same.
TAU_QUICK: dict[str, Any] = {**networks.QUICK, "taus": (0.0, 0.08, 0.2, 0.4), "draws": 5}
TAU_SMOKE: dict[str, Any] = {**networks.SMOKE, "taus": (0.0, 0.4), "draws": 2}


def skip_of(tau: float) -> str:
    """The name of a skip matrix of the τ family, which building.skip_matrix reads."""
    return f"tau-{tau:g}"


def train_folded(results: Results) -> list[Call]:
    """A stage: for every folded matrix and for identity the deciding runs and the gain search."""
    return GainExperiment(*results.settings.skips, IDENTITY).train(results)


def train_taus(results: Results) -> list[Call]:
    """A stage: for every τ the deciding runs and the gain search."""
    return GainExperiment(*results.settings.skips).train(results)


def trend(results: Results) -> Iterable[Evidence]:
    """Accuracies from the least to the most orthogonal matrix."""
    return each_of(results.settings.skips)(results)


def decays_no_more(results: Results) -> list[Evidence]:
    """How far log gradient norms fall before training with the most orthogonal matrix, and with each other one."""
    *others, orthogonal = results.settings.skips
    return [row for model in reversed(others) for row in _decay(results, model, (orthogonal, model))]


def _decay(results: Results, named: Model, pair: tuple[Model, Model]) -> list[Evidence]:
    found = compare(*pair, partial(fall_along_a_line, before=True))(results)
    return [replace(row, condition=f"{named.skip}, {row.condition}") for row in found]


# What both versions of the paper say of folded matrices.
FOLDING_CLAIMS = (
    Claim(
        "monotone-in-folding",
        "Accuracy falls as the number of distinct skip vectors falls.",
        trend,
        kind=Ordered(),
        unit="P(more orthogonal > less)",
    ),
    Claim(
        "orthogonal-not-worse",
        "Dense orthogonal skips perform at least as well as identity skips (within a point).",
        compare(ORTHOGONAL, IDENTITY),
        kind=Greater(margin=ONE_POINT),
        unit="accuracy",
    ),
)


def shown(settings: FoldedSettings | TauSettings) -> dict[str, Model]:
    """The matrices as figures show them, by the name that has a colour: from the most to the least orthogonal."""
    return {model.skip: model for model in reversed(settings.skips)}
