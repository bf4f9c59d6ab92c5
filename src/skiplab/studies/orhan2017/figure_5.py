"""Figure 5: how a¹ and a² evolve in three-layer linear networks, plain and residual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from skiplab.randomness import run_seeds
from skiplab.reproduction.claim import Claim, Evidence, Exact, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017.linear_flows import (
    EXACT_ONES,
    FOLLOWED,
    MODES,
    NAMES,
    ONES,
    ONES_MODES,
    ORTHONORMAL,
    SMALL,
    Agreement,
    Descents,
    agreement,
    descents,
    steps_of,
    values,
)
from skiplab.studies.orhan2017.linear_panels import ROUNDING, three_layer_figure
from skiplab.studies.orhan2017.linear_terms import SETS, Singular, Terms, singular_sets, terms

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Settings:
    """How many random starts and tasks; rates, noise and when a network has learned."""

    runs: int = 20
    seed: int = 0
    rate_a: float = 0.1
    rate_b: float = 0.01
    noise: float = 1e-4
    within: float = 0.075
    most: int = 5000
    halvings: int = 6


def flows(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """Name the trials: descents, agreement with the ODE, the two terms, the singular sets."""
    seeds = tuple(run_seeds(settings.seed, settings.runs))
    runs = Descents(
        seeds, settings.rate_a, settings.rate_b, settings.noise, settings.within, most=settings.most
    )
    return [
        descents.of(runs, label="descents"),
        *(
            agreement.of(
                Agreement(seeds, network, start, until, halvings=settings.halvings, noise=settings.noise),
                label=f"ODE and descent, {network}, {start}",
            )
            for network, start, until in FOLLOWED
        ),
        terms.of(Terms(seeds), label="cooperation and competition"),
        singular_sets.of(Singular(seeds), label="singular sets"),
    ]


def table(settings: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the trials' rows as they are."""
    return tables[0]


def _faster(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    small = steps_of(frame, SMALL, "residual")
    detail = f"steps: plain {steps_of(frame, SMALL, 'plain').mean():.4g}, residual {small.mean():.4g}"
    gap = (steps_of(frame, SMALL, "plain") - small).tolist()
    yield Evidence(f"(a) {NAMES[SMALL]}", [gap], detail=detail)
    residual = steps_of(frame, MODES, "residual")
    for start in (ONES, ONES_MODES, ORTHONORMAL, MODES):
        plain, printed = steps_of(frame, start, "plain"), steps_of(frame, start, "plain", "printed")
        detail = f"steps: plain {plain.mean():.4g}, residual {residual.mean():.4g}"
        detail += f"; as printed, plain {printed.mean():.4g}"
        if start == ONES:
            losses = values(frame, "loss", start=EXACT_ONES, network="plain", dynamics="corrected")
            detail += f"; without noise mode 2 is never learned and the loss stays at {losses.iloc[-1]:.4g}"
        headline = start in (ONES, ONES_MODES)
        yield Evidence(
            f"(b) plain {NAMES[start]}", [(plain - residual).tolist()], headline=headline, detail=detail
        )


def _agrees(frame: pd.DataFrame, dynamics: str) -> Iterator[Evidence]:
    for network, start, until in FOLLOWED:
        where = {"start": start, "network": network, "part": "agreement"}
        sample = values(frame, "apart", dynamics=dynamics, **where)
        unsettled = values(frame, "unsettled", **where)
        detail = f"to t = {until:g}; the last halving of the step changed {unsettled.max():.1g}"
        yield Evidence(f"{network}, {NAMES[start]}", [sample.tolist()], detail=detail)


def _orthogonal(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    plain = values(frame, "cosine", start="random", network="plain")
    part = frame[(frame["part"] == "terms") & (frame["network"] == "residual")]
    for start, rows in part.groupby("start", sort=False):
        said = {
            "zero": f"plain from random weights: {plain.mean():.2f}",
            "small": "close to orthogonal, as the paper allows",
        }
        headline = start in ("zero", "zero, while learning, u = v")
        yield Evidence(
            f"residual at {start}",
            [rows["value"].tolist()],
            headline=headline,
            detail=said.get(str(start), ""),
        )


def _sets(frame: pd.DataFrame, names: Sequence[str]) -> Iterator[Evidence]:
    for name in names:
        plain, residual = (values(frame, "distance", start=name, network=n) for n in ("plain", "residual"))
        detail = f"residual leaves it by {residual.min():.2g} or more"
        yield Evidence(name, [plain.tolist()], detail=detail)


def _oriented(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    yield Evidence("plain a = v, b = u; residual zero", [values(frame, "apart", part="descent").tolist()])


STUDY = Study(
    id="orhan2017/figure-5",
    words=__file__,
    settings={
        "smoke": Settings(runs=2, most=800, halvings=2),
        "quick": Settings(),
        "paper": Settings(runs=100, halvings=7),
    },
    stages=(flows,),
    table=table,
    figure=three_layer_figure,
    claims=(
        Claim(
            "residual-faster",
            "The weights converge faster in the residual network, from small random weights and from equal norms.",
            _faster,
            Greater(),
            "steps",
        ),
        Claim(
            "ode-is-descent",
            "The differential equations, cross terms corrected, are gradient descent on W₁ and W₂ with a vanishing "
            "step.",
            lambda frame, settings: _agrees(frame, "corrected"),
            Exact(ROUNDING),
            "largest difference of a weight",
        ),
        Claim(
            "printed-ode-is-descent",
            "So are eqs 11–18 as printed.",
            lambda frame, settings: _agrees(frame, "printed"),
            Exact(ROUNDING),
            "largest difference of a weight",
        ),
        Claim(
            "terms-orthogonal",
            "Cooperative and competitive terms are orthogonal to each other in the residual network.",
            _orthogonal,
            Exact(1e-12),
            "largest |cosine|",
        ),
        Claim(
            "singular-sets-stay",
            "Once two hidden units of a plain network have equal weights in and out, or one has none, the dynamics "
            "never leaves that set (corrected).",
            lambda frame, settings: _sets(frame, SETS[:2]),
            Exact(1e-12),
            "distance from the set",
        ),
        Claim(
            "printed-singular-sets-stay",
            "The same holds where only the weights into the units are equal or zero, as the text says.",
            lambda frame, settings: _sets(frame, SETS[2:]),
            Exact(1e-12),
            "distance from the set",
        ),
        Claim(
            "skip-is-a-start",
            "A plain network that starts from a = v, b = u learns exactly as a residual one from zero (ours): the "
            "advantage at equal norms is the orientation of the start.",
            _oriented,
            Exact(1e-12),
            "largest difference of a weight",
        ),
    ),
    cost={"smoke": 1.5, "quick": 12.0, "paper": 35.0},
)
