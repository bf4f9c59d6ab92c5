"""Figure 7: skip matrices folded to fewer distinct vectors, and how often units respond with zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

from skiplab.experiments import measured_networks as measured
from skiplab.experiments import networks
from skiplab.experiments.gains import WIDE, Model
from skiplab.experiments.measured_networks import Measured
from skiplab.experiments.narrow_networks import BEFORE, values
from skiplab.experiments.networks import Member
from skiplab.experiments.open_claims import open_if_ties_disagree
from skiplab.experiments.skip_networks import (
    FOLDED_QUICK,
    FOLDED_SMOKE,
    FOLDING_CLAIMS,
    IDENTITY,
    ORTHOGONAL,
    FoldedSettings,
    shown,
    train_folded,
)
from skiplab.reproduction import Call, Claim, Evidence, Greater, Results, Study, scales
from skiplab.studies.orhan2018.effects import HALF_POINT, SHARE

if TYPE_CHECKING:
    import pandas as pd

ZERO = "zero responses"  # what the measured networks are for
COMPARED = (IDENTITY, ORTHOGONAL)
# The earlier version's figure 9 also says "at least as well", where this caption says "slightly better".
MONOTONE = FOLDING_CLAIMS[0]


@dataclass(frozen=True)
class ZeroSettings(FoldedSettings):
    """The folded matrices' settings, and when and on how many samples zero responses are counted."""

    at: tuple[int, ...] = (0, 1, 3, 10, 30, 100)
    samples: int = 5000


def count_zeros(results: Results) -> list[Call]:
    """Second stage: identity and dense orthogonal skips at their best gains, measured on the way."""
    settings = results.settings
    seeds = networks.final_seeds(settings.seed, settings.runs)
    calls = []
    for data, model in product(settings.data, COMPARED):
        gain = WIDE.best_gain(results, data, model)
        members = [Member(seed, gain) for seed in seeds]
        named = networks.together(settings.training, data, model.name, members, skip=model.skip)
        calls.append(measured.call(Measured(named, ZERO, at=settings.at, units=settings.samples)))
    return calls


def zeros(results: Results, data: str, model: Model) -> pd.DataFrame:
    """Rows of the networks with one skip matrix whose zero responses were counted; one gain has any."""
    return results.rows(stage=ZERO, data=data, skip=model.skip)


def fewer_zeros(results: Results) -> Iterator[Evidence]:
    """Probabilities of a zero response with identity and with dense orthogonal skips; epoch 0 is a further row."""
    for data in results.settings.data:
        both = [zeros(results, data, model) for model in COMPARED]
        gains = "/".join(dict.fromkeys(f"{rows['gain'].iloc[0]:.3g}" for rows in both))
        for epoch in results.settings.at:
            samples = [values(rows, "zero", epoch) for rows in both]
            where, detail = (
                f"{data}, epoch {epoch}, gains of the best means ({gains})",
                "" if epoch else BEFORE,
            )
            yield Evidence(where, samples, headline=epoch > 0, detail=detail, paired=True)


def figure(results: Results) -> Any:
    """A column per data set: accuracy over epochs above, probability of zero responses below."""
    from skiplab.data.registry import title as title_of
    from skiplab.experiments.epoch_figures import over_epochs
    from skiplab.experiments.gain_figures import own_curves, with_gains
    from skiplab.figures.curves import label_ends, learning_curves
    from skiplab.figures.style import new_figure, panel_letter

    settings = results.settings
    matrices = {"identity": IDENTITY, **shown(settings)}
    words = with_gains(results, matrices)
    figure, axes = new_figure(columns=len(settings.data), rows=2, width=7.2, height=5.8)
    for row, column in product(axes, range(1, len(settings.data))):
        row[column].sharey(row[0])
    for (above, below), data in zip(axes.T, settings.data, strict=True):
        curves = {name: own_curves(results, data, model) for name, model in matrices.items()}
        learning_curves(above, range(1, settings.epochs + 1), curves, labels="none", words=words)
        above.set(title=title_of(data), xlabel="epoch")
        counted = {model.skip: zeros(results, data, model) for model in COMPARED}
        over_epochs(below, counted, "zero", "", labels="legend")
        below.set_ylim(bottom=0)
    axes[0, 0].set_ylabel("training accuracy")
    axes[1, 0].set_ylabel("probability of zero responses")
    label_ends(axes[0, -1])
    for letter, ax in zip("abcdefgh", axes.flat, strict=False):
        panel_letter(ax, letter)
    return figure


STUDY = Study(
    id="orhan2018/figure-7",
    words=__file__,
    settings=scales(
        ZeroSettings,
        quick={**FOLDED_QUICK, "at": (0, 1, 3, 10, 25), "samples": 500},
        smoke={**FOLDED_SMOKE, "at": (0, 1), "samples": 40},
    ),
    stages=(train_folded, count_zeros),
    figure=figure,
    claims=(
        MONOTONE,
        Claim(
            "orthogonal-slightly-better",
            "Dense orthogonal skips train slightly better than identity skips.",
            open_if_ties_disagree(ORTHOGONAL, IDENTITY, HALF_POINT),
            kind=Greater(worth=HALF_POINT),
            unit="accuracy",
        ),
        Claim(
            "orthogonal-has-fewer-zeros",
            "Zero responses are rarer with dense orthogonal than with identity skips, at every measured epoch "
            "of training.",
            fewer_zeros,
            kind=Greater(worth=SHARE),
            unit="probability",
            source="ours",
        ),
    ),
    cost={"quick": 55, "paper": 1250},
    paper_device="one H200",
    in_tour=False,
)
