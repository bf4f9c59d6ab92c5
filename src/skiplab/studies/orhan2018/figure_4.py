"""Figure 4: the best and the worst of a hundred plain networks, and their distance from degenerate manifolds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from skiplab.reproduction.study import Study
from skiplab.studies.orhan2018 import best_and_worst, networks
from skiplab.studies.orhan2018.best_and_worst import Settings

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = {
    "accuracy": "training\naccuracy",
    "degenerate": "degenerate\nfraction",
    "norm": "mean\nnorm",
    "overlap": "mean\noverlap",
    "dependence": "linear\ndependence",
}
PANELS = (
    "Means with 95 % intervals: (a) training accuracy, (b) fraction of eigenvalues of the Hessian with |λ| < .001, "
    "from exact spectra, (c) mean norm of the incoming weights of hidden units, (d) mean correlation between the "
    "incoming weights of two units of a layer, (e) share of the top three eigenmodes in the covariance of a layer's "
    "responses, averaged over layers. Fractions and shares are over the first 2,000 training images (quick: 500). "
    "Rows differ in size and initial gain; networks of the paper's width have no spectra, and in the place of (b) "
    "the rank correlations of (c–e) with accuracy over all networks (ours)."
)
# Ours at quick scale: more epochs than other figures, since narrow plain networks hardly learn in 25, and a search
# that can tell gains apart. The paper's width is left out.
QUICK: dict[str, Any] = networks.QUICK | {
    "runs": 60,
    "narrow_runs": 0,
    "other_runs": 60,
    "extremes": 6,
    "epochs": 50,
    "at": (0, 10, 50),
    "search_runs": 3,
    "search_epochs": 40,
}
SMOKE: dict[str, Any] = networks.SMOKE | {
    "runs": 4,
    "narrow_runs": 0,
    "wide_runs": 4,
    "extremes": 2,
    "shown_gains": (),
}


def figure(frame: pd.DataFrame, settings: Settings) -> Any:
    """Draw the paper's five panels, a row for each size and gain."""
    from skiplab.studies.orhan2018.group_panels import panels

    return panels(frame, settings, COLUMNS)


STUDY = Study(
    id="orhan2018/figure-4",
    item="Figure 4",
    title="Plain networks that train well stay farther from degenerate manifolds than those that do not",
    caption=f"The best and the worst plain networks by training accuracy. {PANELS}",
    settings={"smoke": Settings(**SMOKE), "quick": Settings(**QUICK), "paper": Settings()},
    stages=(best_and_worst.search, best_and_worst.decide),
    table=best_and_worst.table,
    figure=figure,
    claims=best_and_worst.CLAIMS,
    cost={"quick": 55, "paper": 750},
    paper_device="one H200",
    choices=best_and_worst.CHOICES,
)
