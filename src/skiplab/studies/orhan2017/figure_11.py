"""Figure 11: hyper-residual networks, with skips from every layer to all above it, against residual ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.reproduction.claim import Claim, Greater
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import figure_7, networks, searches
from skiplab.studies.orhan2017.figure_7 import ONE_POINT, RESIDUAL
from skiplab.studies.orhan2017.networks import FigureSettings, Member

if TYPE_CHECKING:
    import pandas as pd

HYPER = ("hyper-residual", "identity")
MODELS = (RESIDUAL, HYPER)


@dataclass(frozen=True)
class Settings(FigureSettings):
    """The common settings with this figure's 20 layers; gradients are of no interest to it."""

    runs: int = 10
    depth: int = 20
    norms_at: tuple[int, ...] = ()


# Two models only, so quick can afford the paper's number of runs.
QUICK = Settings(**networks.QUICK | {"runs": 10})
SMOKE = Settings(**networks.SMOKE)


def train(settings: Settings, _: Sequence[pd.DataFrame]) -> list[Call]:
    """The one stage: for both models the deciding runs at every gain and the gain search on other seeds."""
    seeds = networks.final_seeds(settings.seed, settings.runs)
    members = [Member(seed, gain) for gain, seed in product(settings.gains, seeds)]
    calls = []
    for data, (model, skip) in product(settings.data, MODELS):
        options: dict[str, Any] = {"skip": skip, "norms_at": settings.norms_at}
        calls.append(networks.call(settings.training, data, model, members, **options))
        calls.append(searches.gain_search(settings, model, data, skip))
    return calls


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Learning curves at each model's best gain (as the paper's), and accuracy against gain (ours)."""
    from skiplab.studies.orhan2017.drawing import curves_and_gains

    return curves_and_gains(frame, settings, [(model, model, skip) for model, skip in MODELS])


STUDY = Study(
    id="orhan2017/figure-11",
    item="Figure 11",
    title="Hyper-residual networks train at least as well as residual ones",
    caption=(
        "Training accuracy over epochs of 20-layer residual networks with identity skips, and of hyper-residual "
        "ones, which also have skips from all lower layers (eq 26); each at its best initial gain (a, b), and at "
        "the last epoch for every gain (c, d; ours). Lines and dots are means over runs with 95 % intervals."
    ),
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(train,),
    table=figure_7.table,
    figure=figure,
    claims=(
        Claim(
            "hyper-not-worse",
            "Hyper-residual networks perform at least as well as residual ones (within a point; the paper: better).",
            lambda frame, settings: searches.compare(frame, settings, HYPER, RESIDUAL),
            Greater(margin=ONE_POINT),
            "accuracy",
        ),
    ),
    cost={"quick": 35, "paper": 120},
    paper_device="one H200",
    choices=(
        "x_{l+1} = f(W_l x_l + b_{l+1}) + x_l + 1/(l − 1) · [Q_{l−1} x_{l−1} + … + Q_1 x_1], where x_1 is the first "
        "hidden layer: adjacent skips are the identity, as printed, and the input is not a source of skips.",
        "Q_k is an orthogonal matrix folded twice (“32” at 128 units, 8 at quick scale’s 32): each source layer k "
        "draws its own, which all layers above it share, as eq 26 has one Q_k.",
        "“Perform better” is tested as not worse by more than a point; the interval says whether they are better.",
        *(choice for choice in figure_7.STUDY.choices if "σ" not in choice),
    ),
    errata=(
        "Eq 26 divides by l − 1, which is 0 at l = 1: the bracket is empty there, so nothing is added.",
        *figure_7.STUDY.errata,
    ),
    in_tour=False,
)
