"""Figure 9: skip matrices from orthogonal to a single repeated vector."""

from __future__ import annotations

from typing import Any

from skiplab.experiments.skip_networks import (
    FOLDED_QUICK,
    FOLDED_SMOKE,
    FOLDING_CLAIMS,
    IDENTITY,
    FoldedSettings,
    decays_more,
    shown,
    train_folded,
)
from skiplab.reproduction import Claim, Results, Study, scales


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
            "folded-gradients-decay",
            "Less orthogonal skips make gradients vanish: log norms fall more than with the orthogonal matrix.",
            decays_more,
            unit="log norm",
        ),
    ),
    cost={"quick": 45, "paper": 1200},
    paper_device="one H200",
    in_tour=False,
)
