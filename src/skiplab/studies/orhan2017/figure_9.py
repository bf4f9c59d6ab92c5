"""Figure 9: skip matrices from orthogonal to a single repeated vector."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from skiplab.experiments.gains import compare, each_of, log_decay
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
from skiplab.reproduction import Claim, Evidence, Greater, Ordered, Results, Study, scales
from skiplab.studies.orhan2017.smallest_effects import HALF_A_POINT


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
    settings=scales(FoldedSettings, quick=FOLDED_QUICK, smoke=FOLDED_SMOKE),
    stages=(train_folded,),
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
