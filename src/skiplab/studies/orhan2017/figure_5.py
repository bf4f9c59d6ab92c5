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
    item="Figure 5",
    title="Learning in three-layer linear networks: small weights, equal norms, and the two modes' competition",
    caption=(
        "(a, b) The weights a¹ and a² of both hidden units under gradient descent, singular values 3 and 1.5, "
        "small random start, rate .1; (c) steps until BᵀA is within .075 of its target, every run a dot; hollow: "
        "equations as printed. (d–f) The same from starts of equal norms, rate .01: the residual network from "
        "zero, the plain one from a = [1, 1]/√2 with b alike or along the modes u, and from other starts of the "
        "same norms. (g) Their losses; at 1.125 the second mode is never learned. (h) Largest difference between "
        "the ODE and gradient descent on the real W₁ and W₂ as its step goes to zero: corrected equations (filled) "
        "and printed (hollow). (i) Cosine between cooperation and competition, and how far plain networks get from "
        "singular sets they start on; hollow: the sets as the text has them."
    ),
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
    choices=(
        "Learned means that no element of BᵀA differs from its target by more than .075, a twentieth of s₂.",
        "Plain starts of (b) have N(0, .0001²) noise, so that runs differ; random orthonormal ones need none.",
        "The ODE and the real networks are compared at four times up to about when the network has learned; "
        "descent on W₁ and W₂ starts at step .05, which is halved and extrapolated to zero.",
        "The two terms are compared in random tasks with three modes; singular sets with three modes, four hidden "
        "units and random starts.",
        "All nets are in float64; the paper shows one run, ours are random starts.",
    ),
    errata=(
        "Eqs 13, 14, 17 and 18 exchange a and b in the cross term: ḃ¹ must end in −(a²·b¹)a², as eq 9 has it. "
        "Printed and corrected agree only while BᵀA is symmetric, which the paper's own starts nearly keep; from a "
        "= [1, 1]/√2, b = u the printed equations need 243 steps instead of 140.",
        "The caption of (b) says how a starts in the plain network, not b. With b alike the network sits on the "
        "overlap of its two units and never learns mode 2 (loss 1.125); noise of .0001 lets it escape after some "
        "770 steps; with b = u it takes 140, the residual network 75.",
        "A plain network from a = v, b = u also takes 75: with the same product W₂W₁ plus skips it is the same "
        "trajectory. The effect is orientation, not the skip itself; with random orthonormal a and b, which is "
        "also what a residual network has if its u and v differ, it takes more.",
        "Sets with a_i = a_j alone, or a_i = 0 alone, are not invariant: ȧ_i follows b_i. Both a and b must be "
        "equal (or zero).",
        "Cooperation and competition are exactly orthogonal at zero weights only; while learning they stay so if u "
        "= v (competition is then zero), not otherwise. A hidden layer narrower than the output cuts the u off, "
        "and they are not orthonormal then.",
    ),
)
