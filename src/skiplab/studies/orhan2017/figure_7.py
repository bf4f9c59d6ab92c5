"""Figure 7: training accuracy of 30-layer networks, and of plain ones whose biases break the symmetry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from skiplab.experiments.gains import ONE_POINT, PLAIN, RESIDUAL, Gains, accuracies
from skiplab.experiments.networks import BRACKETED, SQRT2, last_accuracy
from skiplab.experiments.open_claims import difference
from skiplab.reproduction import NOT_RUN, Claim, Evidence, Greater, Results, Study, scales
from skiplab.studies.orhan2017.bias_grid import (
    INIT,
    L2_REG,
    QUICK,
    SMOKE,
    SYMM_BREAK,
    GridSettings,
    experiment,
    telling_choice,
)
from skiplab.studies.orhan2017.tied_sigmas import init_at_ties, open_if_sigmas_disagree, tied_sigmas

if TYPE_CHECKING:
    import pandas as pd

# Of these the plain network is the worst: “in all these models, we initialized the biases to zero”.
START_AT_ZERO = (PLAIN, RESIDUAL, SYMM_BREAK, L2_REG)
EXPERIMENT = experiment(*START_AT_ZERO, INIT)
# Plain networks with other biases are not trained at gains at which plain ones never learn.
SEARCHED = Gains(sparse=True)
compare, against_strongest = SEARCHED.compare, SEARCHED.against_strongest
against_weakest = SEARCHED.against_weakest


@dataclass(frozen=True)
class Settings(GridSettings):
    """A grid that goes on until the best gain, σ and λ lie inside it, searched on ten seeds for all epochs."""

    gains: tuple[float, ...] = BRACKETED
    grid_gains: tuple[float, ...] = (1.0, SQRT2, 2.0)
    sigmas: tuple[float, ...] = (0.0, 0.3, 1.0, 3.0, 10.0)
    strengths: tuple[float, ...] = (0.01, 0.1, 1.0, 10.0)
    search_runs: int = 10
    search_epochs: int = 100
    mixed: bool = True
    init_at_ties: bool = False  # whether BiasInit is also trained at the σ that tie with the one found


# What the paper's scale alone has: on a CPU bfloat16 is slower, and two gains must do.
SMALL: dict[str, Any] = {"grid_gains": (), "mixed": False}


def not_nearly(results: Results) -> Iterator[Evidence]:
    """Half of the way from plain to residual networks, below which BiasSymmBreak is to stay, and BiasSymmBreak.

    Where residual networks are no better than plain ones, it is to stay below residual ones.
    """
    for condition in SEARCHED.conditions(results, [RESIDUAL, PLAIN, SYMM_BREAK]):
        residual, plain, own = (accuracies(rows) for rows in condition.rows)
        share = 0.5 if difference([residual, plain]) > 0 else 1.0
        names = ("residual", residual), ("plain", plain), ("bias-symm-break", own)
        detail = ", ".join(f"{name} {sample.mean():.3f}" for name, sample in names)
        row = condition.evidence([share * residual + (1 - share) * plain, own], detail=detail)
        first, second, third = condition.to_gain or (0.0,) * 3
        yield replace(row, to_gain=(share * first + (1 - share) * second, third))


def interior_sigma(results: Results) -> Iterator[Evidence]:
    """Accuracy at the best intermediate σ minus at the best end of the grid, one number per search seed.

    Both, and λ, are chosen on the other seeds each time, so that choosing favours neither. Where the largest σ is
    best or ties with the best, the grid ends too early to say anything.
    """
    for data in results.settings.data:
        gain = SEARCHED.best_gain(results, data, SYMM_BREAK)
        last = last_accuracy(results.rows(stage="search", data=data, gain=gain, model=SYMM_BREAK.name))
        wide = last.pivot(index="seed", columns=["sigma", "strength"], values="value")
        sigmas = wide.columns.get_level_values("sigma").to_numpy(dtype=float)
        largest, best = sigmas.max(), sigmas[wide.mean().argmax()]
        inner = wide.loc[:, (sigmas > 0) & (sigmas < largest)]
        ends = wide.loc[:, (sigmas == 0) | (sigmas == largest)]
        differences: list[float] = []
        if inner.shape[1] and len(wide) > 1:
            differences = [_held_out(inner, place) - _held_out(ends, place) for place in range(len(wide))]
        detail = f"σ = {best:g} is best, where the grid ends" if best == largest else f"σ = {best:g} is best"
        bracketed = best < largest and largest not in tied_sigmas(results, data, gain)
        if not bracketed:
            ends_at = (
                detail if best == largest else f"{detail}; σ = {largest:g}, where the grid ends, is as good"
            )
            why = f"{ends_at}; to be searched with --set sigmas=0,0.3,1,3,10,30,100"
            yield Evidence.without(f"{data}, a longer grid", NOT_RUN, why)
        if best < largest:
            yield Evidence(f"{data}, gain {gain:.3g}", [differences], detail=detail, headline=bracketed)


def _held_out(wide: pd.DataFrame, place: int) -> float:
    """The accuracy in one row, a seed's, of the column that is best in the other rows."""
    others = wide.drop(index=wide.index[place])
    return float(wide.iloc[place, others.mean().argmax()])


STUDY = Study(
    id="orhan2017/figure-7",
    words=__file__,
    settings=scales(Settings, quick={**QUICK, **SMALL}, smoke={**SMOKE, **SMALL}, init_at_ties=True),
    stages=(*EXPERIMENT.stages, init_at_ties),
    figure=EXPERIMENT.figure,
    kind=Greater(worth=ONE_POINT),
    unit="accuracy",
    source="section 2.4.1",
    claims=(
        Claim(
            "residual-best",
            "Residual networks reach the highest training accuracy (compared with the strongest other model).",
            against_strongest(RESIDUAL, EXPERIMENT.models),
        ),
        Claim(
            "plain-worst",
            "Of the models whose biases start at zero plain networks reach the lowest training accuracy: none is "
            "worse by more than a point.",
            against_weakest(PLAIN, START_AT_ZERO),
            kind=Greater(margin=ONE_POINT),
        ),
        Claim(
            "symm-break-beats-plain",
            "BiasSymmBreak improves on the plain network.",
            telling_choice(compare(SYMM_BREAK, PLAIN)),
        ),
        Claim(
            "residual-beats-symm-break",
            "BiasSymmBreak “does not perform nearly as well as” residual networks: it is nearer to plain ones.",
            telling_choice(not_nearly, place=1),
        ),
        Claim(
            "l2-does-not-help",
            "BiasL2Reg (σ = 0) does not improve on the plain network by more than a point.",
            compare(PLAIN, L2_REG),
            kind=Greater(margin=ONE_POINT),
        ),
        Claim(
            "init-is-not-enough",
            "BiasInit performs worse than BiasSymmBreak.",
            open_if_sigmas_disagree(telling_choice(compare(SYMM_BREAK, INIT)), SYMM_BREAK, INIT, 0.0),
        ),
        Claim(
            "interior-sigma",
            "The best σ of BiasSymmBreak is expected to be an intermediate one.",
            interior_sigma,
        ),
    ),
    cost={"quick": 50, "paper": 400},
    paper_device="one H200",
    in_tour=True,
)
