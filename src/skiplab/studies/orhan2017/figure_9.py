"""Figure 9: skip matrices from orthogonal to a single repeated vector."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import ONE_POINT, PLAIN, compare, each_of, log_decay
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
from skiplab.reproduction import Call, Claim, Evidence, Greater, Ordered, Results, Study, scales
from skiplab.studies.orhan2017.smallest_effects import HALF_A_POINT


@dataclass(frozen=True)
class Settings(FoldedSettings):
    """Those of folded matrices, and as many plain networks as figure 7 has, so that they are the same trials."""

    plain_runs: int = 20


def train(results: Results) -> list[Call]:
    """The one stage: every skip matrix, and the plain networks of figure 7."""
    plain = replace(results.settings, runs=results.settings.plain_runs)
    return train_folded(results) + GainExperiment(PLAIN).train(Results(plain))


def no_better_than_plain(results: Results) -> Iterator[Evidence]:
    """Plain networks and those of each folded matrix; the headline is the matrix with one vector."""
    fewest, *others = [model for model in results.settings.skips if model != ORTHOGONAL]
    for model in (fewest, *others):
        for row in compare(PLAIN, model)(results):
            headline = row.headline and model == fewest
            yield replace(row, condition=f"{model.skip}, {row.condition}", headline=headline)


def decay(results: Results) -> Iterable[Evidence]:
    """How much log gradient norms fall, from the orthogonal to the most folded matrix, all at one gain."""
    return each_of(list(reversed(results.settings.skips)), log_decay)(results)


def figure(results: Results) -> Any:
    """Learning curves at each matrix's best gain, greys from orthogonal to folded, identity in colour."""
    from skiplab.experiments.gain_figures import curves_and_gains

    return curves_and_gains(results, {"identity": IDENTITY, **shown(results.settings)})


STUDY = Study(
    id="orhan2017/figure-9",
    words=__file__,
    settings=scales(
        Settings, quick={**FOLDED_QUICK, "plain_runs": 5}, smoke={**FOLDED_SMOKE, "plain_runs": 2}
    ),
    stages=(train,),
    figure=figure,
    claims=(
        *FOLDING_CLAIMS,
        Claim(
            "orthogonal-slightly-better",
            "Dense orthogonal skips perform slightly better than identity skips.",
            compare(ORTHOGONAL, IDENTITY),
            kind=Greater(worth=HALF_A_POINT),
            unit="accuracy",
            source="section 2.4.2",
        ),
        Claim(
            "no-help-without-breaking",
            "Skips do not improve training unless they help break symmetries: with a single vector they are not "
            "better than none by more than a point.",
            no_better_than_plain,
            kind=Greater(margin=ONE_POINT),
            unit="accuracy",
            source="abstract",
        ),
        Claim(
            "folded-gradients-decay",
            "Less orthogonal skips make gradients vanish: the fewer distinct vectors, the more log norms fall.",
            decay,
            kind=Ordered(),
            unit="P(less orthogonal falls more)",
            source="section 2.4.2",
        ),
    ),
    cost={"quick": 45, "paper": 1200},
    paper_device="one H200",
    in_tour=False,
)
