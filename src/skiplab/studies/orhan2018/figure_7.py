"""Figure 7: skip matrices folded to fewer distinct vectors, and how often units respond with zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as networks
from skiplab.experiments import networks as earlier
from skiplab.experiments import old_gains as searches
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.networks import Member
from skiplab.experiments.old_narrow_networks import values
from skiplab.reproduction.claim import Claim, Evidence, Greater, Ordered
from skiplab.reproduction.study import Study
from skiplab.reproduction.trial import Call
from skiplab.studies.orhan2017 import figure_9
from skiplab.studies.orhan2017.figure_9 import IDENTITY, ORTHOGONAL

if TYPE_CHECKING:
    import pandas as pd

ZERO = "zero responses"  # the part of the table with the measured networks
COMPARED = (IDENTITY, ORTHOGONAL)


@dataclass(frozen=True)
class Settings(figure_9.Settings):
    """The earlier version's settings, and when and on how many samples zero responses are counted."""

    at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)
    samples: int = 5000


QUICK = Settings(**earlier.QUICK, folded=(8, 1), at=(0, 1, 3, 10, 25), samples=500)
SMOKE = Settings(**earlier.SMOKE, folded=(1,), at=(0, 1), samples=40)


def count_zeros(settings: Settings, tables: Sequence[pd.DataFrame]) -> list[Call]:
    """Second stage: identity and dense orthogonal skips at their best gains, measured on the way."""
    seeds = earlier.final_seeds(settings.seed, settings.runs)
    calls = []
    for data in settings.data:
        for model, skip in COMPARED:
            gain = searches.best_gain(tables[0], data, model, skip)
            members = [Member(seed, gain) for seed in seeds]
            named = earlier.together(settings.training, data, model, members, skip=skip)
            calls.append(networks.call(Measured(named, ZERO, at=settings.at, units=settings.samples)))
    return calls


def table(_: Settings, tables: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The earlier version's networks, "wide", and those whose zero responses were counted."""
    return networks.joined(tables)


def folding(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Accuracies from the most folded to the orthogonal matrix."""
    return figure_9.trend(networks.part(frame, "wide"), settings)


def against_identity(frame: pd.DataFrame, settings: Settings) -> list[Evidence]:
    """Accuracies of dense orthogonal and of identity skips."""
    return searches.compare(networks.part(frame, "wide"), settings, ORTHOGONAL, IDENTITY)


def zeros(frame: pd.DataFrame, data: str, skip: str) -> pd.DataFrame:
    """Rows of the networks with one skip matrix whose zero responses were counted; one gain has any."""
    counted = networks.part(frame, ZERO)
    return counted[(counted["data"] == data) & (counted["skip"] == skip)]


def fewer_zeros(frame: pd.DataFrame, settings: Settings) -> Iterator[Evidence]:
    """Probabilities of a zero response with identity and with dense orthogonal skips, at every epoch."""
    for data in settings.data:
        both = [zeros(frame, data, skip) for _, skip in COMPARED]
        gains = "/".join(dict.fromkeys(f"{rows['gain'].iloc[0]:.3g}" for rows in both))
        for epoch in settings.at:
            samples = [values(rows, "zero", epoch) for rows in both]
            yield Evidence(f"{data}, epoch {epoch}, best gains ({gains})", samples)


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """A column a data set: accuracy over epochs above, probability of zero responses below."""
    from skiplab.experiments.old_epoch_figures import TITLES, over_epochs
    from skiplab.experiments.old_gain_figures import best_curves
    from skiplab.figures.curves import learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    wide = networks.part(frame, "wide")
    figure, axes = new_figure(columns=len(settings.data), rows=2, width=7.2, height=5.8)
    for row, column in product(axes, range(1, len(settings.data))):
        row[column].sharey(row[0])
    for (above, below), data in zip(axes.T, settings.data, strict=True):
        shown = [IDENTITY, *reversed(settings.skips)]
        curves = {skip: best_curves(wide, data, model, skip) for model, skip in shown}
        learning_curves(above, range(1, settings.epochs + 1), curves, labels="none")
        above.set(title=TITLES.get(data, data), xlabel="epoch")
        over_epochs(below, {skip: zeros(frame, data, skip) for _, skip in COMPARED}, "zero", "")
        below.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("training accuracy")
    axes[1, 0].set_ylabel("probability of zero responses")
    lines, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(lines, names, loc="outside upper center", ncols=5)
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


STUDY = Study(
    id="orhan2018/figure-7",
    words=__file__,
    settings={"smoke": SMOKE, "quick": QUICK, "paper": Settings()},
    stages=(figure_9.train, count_zeros),
    table=table,
    figure=figure,
    claims=(
        Claim(
            "monotone-in-folding",
            "Accuracy falls as the number of distinct skip vectors falls.",
            folding,
            Ordered(),
            "P(more orthogonal > less)",
        ),
        Claim(
            "orthogonal-not-worse",
            "Dense orthogonal skips perform at least as well as identity skips (within a point).",
            against_identity,
            Greater(margin=0.01),
            "accuracy",
        ),
        Claim(
            "orthogonal-has-fewer-zeros",
            "Zero responses are rarer with dense orthogonal than with identity skips, at every measured epoch.",
            fewer_zeros,
            Greater(),
            "probability",
        ),
    ),
    cost={"quick": 55, "paper": 1250},
    paper_device="one H200",
    in_tour=False,
)
