"""Figure 9: skip matrices from orthogonal to a single repeated vector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from skiplab.experiments.gain_experiment import GainExperiment
from skiplab.experiments.gains import ONE_POINT, PLAIN, Model, compare
from skiplab.experiments.gradient_falls import BEFORE, falls
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
from skiplab.reproduction import (
    NOT_RUN,
    NOT_SAID,
    Call,
    Claim,
    Evidence,
    Found,
    Greater,
    Ordered,
    Results,
    Study,
    scales,
)
from skiplab.studies.orhan2017.smallest_effects import HALF_A_POINT


@dataclass(frozen=True)
class Settings(FoldedSettings):
    """Those of folded matrices, and as many plain networks as figure 8 has, in float32 too: the same trials."""

    plain_runs: int = 20
    constant: bool = True  # whether a skip matrix of equal entries is trained, too, which breaks no symmetry


# What figure 9's text speaks of: "in both CIFAR-10 and CIFAR-100 datasets".
BOTH = ("cifar10", "cifar100-coarse")
CONSTANT = Model("residual", "constant")
NOT_TRAINED = (
    "not run yet: the skip matrix of equal entries, the only one that gives every unit the same skip (--set "
    "constant=true, some 2 minutes of one H200)"
)


def train(results: Results) -> list[Call]:
    """The one stage: every skip matrix, the constant one if asked for, and plain networks as figure 8's."""
    settings = results.settings
    plain = replace(settings, runs=settings.plain_runs)
    constant = GainExperiment(CONSTANT).train(results) if settings.constant else []
    return train_folded(results) + constant + GainExperiment(PLAIN).train(Results(plain))


def no_better_than_plain(results: Results) -> Iterator[Evidence]:
    """Plain networks and those whose skips break no symmetry."""
    settings = results.settings
    if not settings.constant:
        for data in settings.data:
            yield Evidence.without(f"constant, {data}, best gains", NOT_RUN, NOT_TRAINED, 2)
        return
    for row in compare(PLAIN, CONSTANT)(results):
        yield replace(row, condition=f"constant, {row.condition}")


def on_both_sets(found: Found) -> Found:
    """The same evidence, and for each of the paper's data sets that was not run a headline without runs."""

    def both(results: Results) -> Iterator[Evidence]:
        yield from found(results)
        used = results.settings.data
        for data in BOTH if set(BOTH) & set(used) else ():
            if data not in used:
                yield Evidence.without(
                    f"{data}, best gains", NOT_RUN, "not run yet: some 10 minutes of one H200", 2
                )

    return both


def decay(results: Results) -> Iterator[Evidence]:
    """How far log gradient norms fall, from the orthogonal to the most folded matrix, all at one gain.

    The paper does not say when it measures. Where norms fall more with folding in training and less before it, or the
    reverse, the headline is the paper's own measurement, of which there is none, and ours are further rows.
    """
    rows = list(falls(*reversed(results.settings.skips))(results))
    before = {
        row.condition.removesuffix(f", {BEFORE}"): row for row in rows if row.condition.endswith(BEFORE)
    }
    for row in rows:
        if row.headline:
            trends = [_trend(when) for when in (row, before[row.condition])]
            if (trends[0] > 0.5) != (trends[1] > 0.5):
                data, _, gain = row.condition.partition(", ")
                told = f"P is {trends[0]:.3g} at {gain} once training has begun, {trends[1]:.3g} before it"
                silent = f"the paper does not say when it measures, nor at which gain, and it decides: {told}"
                yield Evidence.without(f"{data}, when the paper measures", NOT_SAID, silent, len(row.samples))
                row = replace(row, headline=False)
        yield row


def _trend(row: Evidence) -> float:
    """How often norms fall more with the less orthogonal of two matrices; one half where there are no runs."""
    return Ordered().test(row.samples, row.paired).estimate if all(map(len, row.samples)) else 0.5


def figure(results: Results) -> Any:
    """Learning curves at each matrix's own gain, greys from orthogonal to folded, identity in colour, and plain."""
    from skiplab.experiments.gain_figures import curves_and_gains

    constant = {"constant": CONSTANT} if results.settings.constant else {}
    drawn = {"identity": IDENTITY, **shown(results.settings), **constant, "plain": PLAIN}
    return curves_and_gains(results, drawn)


MONOTONE, NOT_WORSE = FOLDING_CLAIMS


STUDY = Study(
    id="orhan2017/figure-9",
    words=__file__,
    settings=scales(
        Settings, quick={**FOLDED_QUICK, "plain_runs": 5}, smoke={**FOLDED_SMOKE, "plain_runs": 2}
    ),
    stages=(train,),
    figure=figure,
    claims=(
        MONOTONE,
        replace(NOT_WORSE, evidence=on_both_sets(NOT_WORSE.evidence)),
        Claim(
            "orthogonal-slightly-better",
            "Dense orthogonal skips perform slightly better than identity skips.",
            on_both_sets(open_if_ties_disagree(ORTHOGONAL, IDENTITY, HALF_A_POINT)),
            kind=Greater(worth=HALF_A_POINT),
            unit="accuracy",
            source="section 2.4.2",
        ),
        Claim(
            "no-help-without-breaking",
            "Skips do not necessarily improve training unless they help break symmetries: if all units receive the "
            "same skip, networks are not better than without skips by more than a point.",
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
